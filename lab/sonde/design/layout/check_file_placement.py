# SPDX-License-Identifier: Apache-2.0
"""Checks on which servers and drives the objects of files and pools of Lustre are, over the outputs of all hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage
from sonde.design.layout.observe_written import list_disks_below
from sonde.design.layout.planned_roles import read_target_name

_OBJECT_TARGET_PATTERN = re.compile(r"(\w+)-OST([0-9a-f]{4})")
_CLIENT_PATTERN = re.compile(r"(\w+-OST[0-9a-f]{4})-osc-(?!MDT)\w+")


@dataclass(frozen=True)
class _Targets:
    """The server of each object target and whether its drives are flash, by its name, where outputs show them."""

    servers: Mapping[str, str]
    flash: Mapping[str, bool]


def find_placement_faults(storage_by_host: Mapping[str, ObservedStorage]) -> Iterator[LayoutFault | CheckedItem]:
    """Faults of pools, and of files whose objects are on targets that do not fit each other."""
    targets = _describe_targets(storage_by_host)
    lustre = [each for storage in storage_by_host.values() for each in storage.file_systems if each.kind == "lustre"]
    names = _list_file_system_names(lustre, targets)
    pools = {each.location: set(each.facts["pool_targets"].split()) for each in lustre if "pool_targets" in each.facts}
    mixed_pools = set[str]()
    for pool in (each for each in lustre if each.facts.get("pool_targets")):
        yield CheckedItem("the drives of the targets of a pool", pool.location)
        if (fault := _check_pool(pool, targets, lustre)) is not None:
            mixed_pools.add(pool.location)
            yield fault
    for file in (each for each in lustre if each.facts.get("mirrors") or each.facts.get("pools")):
        name = next(iter(names)) if len(names) == 1 else ""
        if name:
            yield from _check_mirrors(file, targets, name)
        for pool_name in file.facts.get("pools", "").split():
            if name and pools and any(each.startswith(f"{name}.") for each in pools):
                yield from _check_pool_of_file(file, pools, name, pool_name)
            if name and f"{name}.{pool_name}" not in mixed_pools:
                yield from _check_media(file, targets, name, pool_name)


def _list_file_system_names(lustre: Sequence[ObservedFileSystem], targets: _Targets) -> set[str]:
    mounts = [each.device.rpartition(":/")[2] for each in lustre if ":/" in each.device]
    target_names = [*targets.servers, *targets.flash]
    return {name for name in mounts if name} | {match[1] for target in target_names
                                                if (match := _OBJECT_TARGET_PATTERN.fullmatch(target))}  # fmt: skip


def _describe_targets(storage_by_host: Mapping[str, ObservedStorage]) -> _Targets:
    servers: dict[str, str] = {}
    flash: dict[str, bool] = {}
    for storage in storage_by_host.values():
        for each in storage.file_systems:
            client = _CLIENT_PATTERN.fullmatch(each.location)
            if client is not None and each.facts.get("ost_conn_uuid"):
                servers.setdefault(client[1], each.facts["ost_conn_uuid"])
    for host, storage in storage_by_host.items():
        for each in storage.file_systems:
            name = read_target_name(storage, each) if each.location.startswith("/") and each.options else ""
            if each.kind != "lustre" or not _OBJECT_TARGET_PATTERN.fullmatch(name):
                continue
            if not any("@" in server for server in servers.values()):  # what clients report counts for all or none
                servers[name] = host
            drives = [disk for disk in list_disks_below(storage, (each,)) if disk.kind == "disk"]
            media = {disk.flash for disk in drives}
            if len(media) == 1 and (is_flash := media.pop()) is not None:
                flash[name] = is_flash
    return _Targets(servers, flash)


def _name_targets(file_system_name: str, indexes: str) -> list[str]:
    return [f"{file_system_name}-OST{int(index):04x}" for index in indexes.split()]


def _check_mirrors(
    file: ObservedFileSystem, targets: _Targets, file_system_name: str
) -> Iterator[LayoutFault | CheckedItem]:
    """Mirrors of a file of which one failure of a server takes all."""
    mirrors = [_name_targets(file_system_name, text) for text in file.facts.get("mirrors", "").split(" / ")]
    if len(mirrors) < 2 or not all(mirrors) or any(set(mirror) & set(mirrors[0]) for mirror in mirrors[1:]):
        return
    servers = [{targets.servers.get(target, "") for target in mirror} for mirror in mirrors]
    if any("" in names for names in servers):
        return
    yield CheckedItem("the servers of mirrors", file.location)
    shared = set.intersection(*servers)
    if shared:
        names = sorted({target for mirror in mirrors for target in mirror if targets.servers[target] in shared})
        yield LayoutFault(
            "mirrors on one server", file.location,
            f"its {len(mirrors)} mirrors have objects on {join_first_names(names)}, all of which"
            f" {' and '.join(sorted(shared))} {'serves' if len(shared) == 1 else 'serve'}",
            "while this server is down no mirror of it is complete: it cannot be read",
            "lfs mirror extend it on targets of another server (--pool or -o), then lfs mirror split the old mirror",
        )  # fmt: skip


def _check_pool_of_file(
    file: ObservedFileSystem, pools: Mapping[str, set[str]], file_system_name: str, pool: str
) -> Iterator[LayoutFault | CheckedItem]:
    """A pool that does not exist, and objects on targets that are not in the pool of the file."""
    full_name = f"{file_system_name}.{pool}"
    yield CheckedItem("the pool of a layout", file.location)
    if full_name not in pools:
        yield LayoutFault(
            "pool does not exist", file.location, f"its layout names the pool {pool}, which {file_system_name} lacks",
            "new files get objects on any target, or creates fail",
            f"make the pool (lctl pool_new {full_name}, lctl pool_add), or lfs setstripe with one that exists",
        )  # fmt: skip
        return
    indexes = file.facts.get(f"targets of {pool}", "")
    outside = [name for name in _name_targets(file_system_name, indexes) if name not in pools[full_name]]
    if outside:
        yield LayoutFault(
            "objects outside the pool", file.location,
            f"it belongs to the pool {pool}, but has objects on {join_first_names(outside)}, which are not in it",
            "it has the bandwidth and the space of other targets than its pool", f"lfs migrate -p {pool} it",
        )  # fmt: skip


def _check_media(
    file: ObservedFileSystem, targets: _Targets, file_system_name: str, pool: str
) -> Iterator[LayoutFault | CheckedItem]:
    """Objects in a pool of which some are on flash and some on rotating drives."""
    indexes = file.facts.get(f"targets of {pool}", "")
    media = {name: targets.flash[name] for name in _name_targets(file_system_name, indexes) if name in targets.flash}
    if media:
        yield CheckedItem("the drives of the targets of a file", file.location)
    odd, usual = _divide_by_media(media, pool)
    if odd:
        yield LayoutFault(
            "objects on unlike drives", file.location,
            f"its objects in the pool {pool} are on {usual}, but those on {join_first_names(odd)} are on"
            f" {_name_media(media[odd[0]])}",
            "the slowest of its targets limits the file",
            f"lctl pool_remove {file_system_name}.{pool} {' '.join(odd)} on the"
            " management server, then lfs migrate the file", parts=(file.location, *odd),
        )  # fmt: skip


def _check_pool(
    pool: ObservedFileSystem, targets: _Targets, lustre: Sequence[ObservedFileSystem]
) -> LayoutFault | None:
    """A pool of targets on flash and on rotating drives, unless all targets are in it."""
    members = pool.facts["pool_targets"].split()
    media = {name: targets.flash[name] for name in members if name in targets.flash}
    file_system_name, _, short_name = pool.location.partition(".")
    others = {name for name in targets.flash if name.startswith(f"{file_system_name}-")} - set(members)
    odd, usual = _divide_by_media(media, short_name) if others else ([], "")
    if not odd:
        return None
    files = [
        f"{file.location}: it has objects on {join_first_names(sorted(odd_targets))}"
        for file in lustre
        if short_name in file.facts.get("pools", "").split()
        if (
            odd_targets := set(odd)
            & set(_name_targets(file_system_name, file.facts.get(f"targets of {short_name}", "")))
        )
    ]
    return LayoutFault(
        "pool of unlike drives", pool.location,
        f"its targets are on {usual}, but {join_first_names(odd)} {'is' if len(odd) == 1 else 'are'} on"
        f" {_name_media(media[odd[0]])}",
        "files in this pool are as slow as its slowest target",
        f"lctl pool_remove {pool.location} {' '.join(odd)} on the management server, then lfs migrate files that have"
        " objects there", parts=(pool.location, *odd), consequences=tuple(files),
    )  # fmt: skip


def _name_media(is_flash: bool) -> str:
    return "flash" if is_flash else "rotating drives"


def _divide_by_media(media: Mapping[str, bool], pool: str) -> tuple[list[str], str]:
    """The targets that are not on the drives of the pool, and these: by its name, else those of most targets."""
    if len(set(media.values())) < 2:
        return [], ""
    is_flash = re.search(r"(?i)flash|ssd|nvme|fast", pool) is not None or (
        re.search(r"(?i)hdd|disk|sata|slow|capacity|archive", pool) is None and 2 * sum(media.values()) > len(media)
    )
    return [name for name, value in media.items() if value != is_flash], _name_media(is_flash)
