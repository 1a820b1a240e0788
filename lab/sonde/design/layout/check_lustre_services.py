# SPDX-License-Identifier: Apache-2.0
"""Checks what the services of Lustre report (recovery, changelogs, threads, versions) and what clients know of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.check_target_servers import list_mounted_targets
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage
from sonde.design.layout.planned_roles import TARGET_NAME_PATTERN

_METADATA_DEVICES = "lctl dl (osp)"
_METADATA_PATTERN = re.compile(r"(\w+-OST[0-9a-f]{4})-osc-MDT[0-9a-f]{4}")
_CLIENT_PATTERN = re.compile(r"(\w+-OST[0-9a-f]{4})-osc-(?!MDT)\w+")
# Unread records of a changelog that no consumer leaves for long.
_MOST_RECORDS = 10_000_000
_MOST_IDLE_SECONDS = 7 * 86400
_LEAST_THREADS = 32
# What servers of one role have alike: parameters of the node and of its services.
_EQUAL_SETTINGS = {
    "version": ("the version of Lustre", "install the same version on all servers"),
    "ost_io.threads_max": ("ost_io.threads_max", "lctl set_param -P ost.OSS.ost_io.threads_max"),
    "ost.threads_max": ("ost.threads_max", "lctl set_param -P ost.OSS.ost.threads_max"),
    "timeout": ("timeout", "lctl set_param -P timeout on the management server"),
    "at_max": ("at_max", "lctl set_param -P at_max on the management server"),
    "at_min": ("at_min", "lctl set_param -P at_min on the management server"),
}  # fmt: skip


def find_lustre_service_faults(file_systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
    """Faults that the services of one host report of themselves."""
    for each in (each for each in file_systems if each.kind == "lustre"):
        status = each.facts.get("recovery_status", "")
        if status:
            yield CheckedItem("the recovery of a target", each.location)
        if status in ("RECOVERING", "WAITING"):
            yield LayoutFault(
                "target in recovery", each.location, f"its recovery_status is {status}",
                "clients wait until all of them have reconnected, or the time of recovery is over",
                "wait for it; lctl --device … abort_recovery only if clients are known to be lost",
            )  # fmt: skip
        for consumer in each.facts.get("changelog_users", "").split():
            yield from _check_changelog(each, *consumer.split(":"))
        for name in ("ost_io.threads_max", "ost.threads_max"):
            threads = each.facts.get(name, "")
            if threads.isdigit() and int(threads) < _LEAST_THREADS:
                yield LayoutFault(
                    "parameter too small", f"{each.location} {name}", f"{name} is {threads}",
                    "requests of clients wait for a thread while drives are idle",
                    f"take {name} out of modprobe.d and of lctl set_param: Lustre chooses it by memory and processors",
                    (name,), (each.location,),
                )  # fmt: skip


def _check_changelog(
    target: ObservedFileSystem, consumer: str, unread: str, idle_seconds: str
) -> Iterator[LayoutFault | CheckedItem]:
    yield CheckedItem("the consumers of a changelog", target.location)
    if int(unread) > _MOST_RECORDS or (int(idle_seconds or 0) > _MOST_IDLE_SECONDS and int(unread)):
        days = int(idle_seconds or 0) // 86400
        yield LayoutFault(
            "changelog not read", target.location,
            f"its consumer {consumer} has not read the last {int(unread):,} records"
            + f", for {days} days" * (days > 0),
            "records fill the metadata target, and each change of names is slower",
            f"start what reads them (robinhood, lustre_rsync), or lctl changelog_deregister {consumer}",
        )  # fmt: skip


def compare_lustre_hosts(storage_by_host: Mapping[str, ObservedStorage]) -> Iterator[LayoutFault | CheckedItem]:
    """Settings in which servers of the same role differ, and what clients lack of the targets of the servers."""
    roles: dict[str, list[str]] = {}
    for host, storage in storage_by_host.items():
        for role in {target.rpartition("-")[2][:3] for target in list_mounted_targets(storage)} & {"OST", "MDT"}:
            roles.setdefault(role, []).append(host)
    for hosts in roles.values():
        for name, (title, remedy) in _EQUAL_SETTINGS.items():
            values = {host: value for host in hosts if (value := _read_setting(storage_by_host[host], name))}
            yield from _compare_servers(values, name, title, remedy)
    versions = {host: value for hosts in roles.values() for host in hosts
                if (value := _read_setting(storage_by_host[host], "version"))}  # fmt: skip
    if not any(len({versions[host] for host in hosts if host in versions}) > 1 for hosts in roles.values()):
        yield from _compare_servers(versions, "version", *_EQUAL_SETTINGS["version"])
    served = {target for storage in storage_by_host.values() for target in list_mounted_targets(storage)}
    yield from _find_unmounted_targets(storage_by_host, served)
    nodes = {node for storage in storage_by_host.values() for each in storage.file_systems
             for node in re.split(r"[:, ]", each.facts.get("management", "")) if node}  # fmt: skip
    for host, storage in storage_by_host.items():
        yield from _check_visible_targets(host, storage, served)
        for mount in storage.file_systems:
            yield from _check_management_servers(host, mount, nodes)


def _find_unmounted_targets(
    storage_by_host: Mapping[str, ObservedStorage], served: set[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Labeled devices that no host has mounted: arrays that run on a server, and maps that several servers see."""
    servers: dict[str, list[str]] = {}
    arrays: dict[str, str] = {}
    for host, storage in storage_by_host.items():
        for disk in storage.disks.values() if list_mounted_targets(storage) else ():
            label = disk.settings.get("fs_label", "")
            if not TARGET_NAME_PATTERN.fullmatch(label) or disk.kind not in ("md", "multipath"):
                continue
            servers.setdefault(label, []).append(host)
            if disk.kind == "md":
                arrays[label] = disk.name
    for label, hosts in servers.items():
        yield CheckedItem("the server of a labeled device", label)
        if label not in served and (label in arrays or len(hosts) > 1):
            text = (f"{hosts[0]} runs its array {arrays[label]}" if label in arrays
                    else f"{' and '.join(hosts)} see its device")  # fmt: skip
            yield LayoutFault(
                "target not mounted", label, f"{text}, but none of the given hosts has it mounted",
                "files with objects on it cannot be read or written",
                "look at the log of the kernel and of the cluster, then mount -t lustre its device on one of them",
            )  # fmt: skip


def _read_setting(storage: ObservedStorage, name: str) -> str:
    return next((each.facts[name] for each in storage.file_systems if each.kind == "lustre" and name in each.facts), "")


def _compare_servers(
    values: Mapping[str, str], name: str, title: str, remedy: str
) -> Iterator[LayoutFault | CheckedItem]:
    if len(values) < 2:
        return
    yield CheckedItem(f"{name} of servers", ", ".join(values))
    counts = Counter(values.values())
    is_small = "threads" in name and any(value.isdigit() and int(value) < _LEAST_THREADS for value in values.values())
    if len(counts) > 1 and not is_small:  # too few threads are a fault of one server
        usual, count = counts.most_common(1)[0]
        odd = [host for host, value in values.items() if value != usual] if 2 * count > len(values) else list(values)
        texts = ", ".join(f"{value} on {host}" for host, value in values.items())
        yield LayoutFault(
            "servers differ", ", ".join(odd), f"{title} is {texts}",
            "after a failover its targets behave in another way" if name != "version"
            else "servers of one file system should run one version: some features and repairs are on one alone",
            remedy, (name,),
        )  # fmt: skip


def _check_visible_targets(
    host: str, storage: ObservedStorage, served: set[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Targets that servers have mounted, and that lfs df or the devices of a client or metadata server lack."""
    for noun, visible in (
        ("lfs df", {each.location for each in storage.file_systems
                    if "used_percent" in each.facts or "unreachable" in each.facts}),
        (_METADATA_DEVICES, {match[1] for each in storage.file_systems
                                 if (match := _METADATA_PATTERN.fullmatch(each.location))}),
        ("lctl dl", {match[1] for each in storage.file_systems if (match := _CLIENT_PATTERN.fullmatch(each.location))}),
    ):  # fmt: skip
        names = {name.partition("-")[0] for name in visible if TARGET_NAME_PATTERN.fullmatch(name)}
        absent = sorted(target for target in served - visible if target.partition("-")[0] in names
                        and (noun == "lfs df" or "-OST" in target))  # fmt: skip
        if names:
            yield CheckedItem(f"the targets of {noun}", host)
        if absent:
            is_server = noun == _METADATA_DEVICES
            yield LayoutFault(
                "target unknown to its metadata server" if is_server else "target unknown to a client",
                f"{host}: {', '.join(absent)}",
                f"{noun} of {host} does not have {join_first_names(absent)}, which a server has mounted",
                "no file gets an object on it: its space and bandwidth are left out" if is_server
                else "files with objects on it cannot be read or written there, and new files leave it out",
                "look whether it has registered with the management server (lctl dl there), then mount the"
                f" {'target' if is_server else 'client'} again", parts=tuple(absent),
            )  # fmt: skip
            return


def _check_management_servers(
    host: str, mount: ObservedFileSystem, nodes: set[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """A client that names fewer management servers than the labels of the targets."""
    source = re.fullmatch(r"(\S+):/\w+", mount.device) if mount.kind == "lustre" and mount.options else None
    source_nodes = set(re.split(r"[:,]", source[1])) if source is not None else set()
    if not source_nodes or not nodes:
        return
    yield CheckedItem("the management servers of a client", f"{host}: {mount.location}")
    if source_nodes < nodes:
        yield LayoutFault(
            "management server missing", f"{host}: {mount.location}",
            f"it is mounted from {':'.join(sorted(source_nodes))}; the labels of the targets also name"
            f" {', '.join(sorted(nodes - source_nodes))}",
            "while that server is down this client cannot mount it",
            f"mount it from {':'.join(sorted(nodes))}:/{mount.device.rpartition('/')[2]}, also in fstab",
        )  # fmt: skip
