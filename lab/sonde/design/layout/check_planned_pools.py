# SPDX-License-Identifier: Apache-2.0
"""Compares the drives of the vdevs of ZFS pools with those that a plan names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.device_identity import (
    describe_planned_devices,
    find_planned_names,
    split_device_arguments,
)
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage, ObservedVdev

# What zpool status prints after the name of a drive that it does not find.
_FORMER_NAME_PATTERN = re.compile(r"\bwas (/dev/\S+)")
# Names that the kernel gives in the order in which it finds devices.
KERNEL_NAME_PATTERN = re.compile(r"(?:/dev/)?(?:(?:s|v|xv)d[a-z]+\d*|nvme\d+n\d+(?:p\d+)?|dm-\d+)")
_VDEV_KIND_PATTERN = re.compile(r"(mirror|raidz\d?|draid\d?(:\S+)?)$")


def _split_vdevs(zpool_arguments: str) -> dict[str, list[list[str]]]:
    """The planned devices of each vdev of zpool create by their use: "" for data, "log" and "spare"."""
    uses: dict[str, list[list[str]]] = {"": [], "log": [], "spare": []}
    use, is_open = "", False
    for argument in split_device_arguments(zpool_arguments)[2:]:
        if argument in uses:
            use, is_open = argument, False
        elif _VDEV_KIND_PATTERN.match(argument):
            uses[use].append([])
            is_open = True
        elif is_open:
            uses[use][-1].append(argument)
        else:
            uses[use].append([argument])
    return uses


def find_vdev_disk(observed_storage: ObservedStorage, vdev_name: str) -> ObservedDisk:
    """The disk of a vdev, whose name may be that of the kernel or of a link; without one, a disk of that link."""
    name = re.sub(r"-part\d+$", "", vdev_name.removeprefix("/dev/"))
    for disk in observed_storage.disks.values():
        links = {link.rpartition("/")[2] for link in disk.settings.get("links", "").split()}
        if name in (disk.name, disk.settings.get("name"), f"wwn-{disk.settings.get('wwn', '')}") or name in links:
            return disk
    folder = "/dev" if re.fullmatch(r"sd[a-z]+|nvme\d+n\d+", name) else "/dev/disk/by-id"
    return ObservedDisk(name, settings={"links": f"{folder}/{name}"} if folder != "/dev" else {})


def find_disk_of_drive(observed_storage: ObservedStorage, vdev: ObservedVdev) -> ObservedDisk:
    """The disk of a drive of a pool. In the place of a drive that is missing zpool prints its GUID, and what it was."""
    was = _FORMER_NAME_PATTERN.search(vdev.note)
    if was is None:
        return find_vdev_disk(observed_storage, vdev.name)
    disk = find_vdev_disk(observed_storage, was[1].rpartition("/")[2])
    path = re.sub(r"-part\d+$", "", was[1])
    links = f"{disk.settings.get('links', '')} {path}".split()
    return replace(disk, settings={**disk.settings, "links": " ".join(dict.fromkeys(links))})


def compare_pool(
    observed_storage: ObservedStorage, file_systems: Sequence[ObservedFileSystem], zpool_arguments: str
) -> Iterator[LayoutFault | CheckedItem]:
    """The drives of each vdev against those in the arguments of zpool create."""
    uses = _split_vdevs(zpool_arguments)
    planned_vdevs, spares = uses[""], [path for paths in uses["spare"] for path in paths]
    planned = [*(path for paths in planned_vdevs for path in paths), *spares]
    for pool in (each for each in file_systems if each.kind == "zfs"):
        groups: dict[str, dict[str, list[str]]] = {}
        strays: list[tuple[str, str, list[str], list[str], list[str]]] = []
        for vdev in pool.vdevs:
            is_drive = vdev.kind == "drive" and not vdev.use
            paths = (
                find_planned_names(observed_storage, planned, find_disk_of_drive(observed_storage, vdev))
                if is_drive
                else None
            )
            if paths is not None:
                yield CheckedItem("the planned drives of vdevs", pool.location)
                groups.setdefault(vdev.parent or vdev.name, {})[vdev.name] = paths
        yield from _check_vdev_names(pool, [*planned, *(path for paths in uses["log"] for path in paths)])
        yield from _compare_pool_spares(observed_storage, pool, planned, spares)
        yield from _compare_pool_log(observed_storage, pool, uses["log"])
        for parent, members in groups.items():
            all_paths = {path for paths in members.values() for path in paths}
            usual = max(planned_vdevs, key=lambda vdev: len(all_paths & set(vdev)))
            if len(groups) > len(planned_vdevs) and not all_paths & set(usual):
                yield _report_unplanned_vdev(pool, parent, members, spares)
                continue
            absent = [path for path in usual if path not in all_paths]
            if absent and len(members) < len(usual):
                yield _report_missing_drives(pool, parent, len(members), absent)
            # a spare may have replaced a drive
            strays += [(parent, name, paths, absent, usual) for name, paths in members.items()
                       if not set(paths) & {*usual, *spares}]  # fmt: skip
        yield from _report_stray_drives(pool, strays)


def _check_vdev_names(pool: ObservedFileSystem, planned_paths: Sequence[str]) -> Iterator[LayoutFault | CheckedItem]:
    """Whether a pool that the plan makes of names that last was imported by names of the kernel. zpool status -L prints
    those of the kernel in any case."""
    drives = [vdev.name for vdev in pool.vdevs if vdev.kind == "drive"]
    folders = sorted({path.rpartition("/")[0] for path in planned_paths})
    is_lasting = all(re.match(r"/dev/(disk/by-|mapper$)", folder) for folder in folders)
    if not drives or not folders or not is_lasting or re.search(r" -\w*L", pool.origin):
        return
    yield CheckedItem("the names of the drives of a pool", pool.location)
    unstable = [name for name in drives if KERNEL_NAME_PATTERN.fullmatch(name)]
    if 2 * len(unstable) > len(drives):  # a few were added so later
        yield LayoutFault(
            "not as planned", pool.location,
            f"it was imported by names of the kernel ({join_first_names(unstable)}); planned are names in"
            f" {' and '.join(folders)}",
            "after a start or a change of cables the kernel may give these names to other drives: an import by the"
            " cache file fails then, and zpool names a wrong drive to replace",
            f"zpool export {pool.location}, then zpool import -d {folders[0]} {pool.location}, when nobody uses it",
            ("vdev names",), planned=" and ".join(folders),
        )  # fmt: skip


def _report_missing_drives(
    pool: ObservedFileSystem, vdev_name: str, missing_count: int, absent_drives: Sequence[str]
) -> LayoutFault:
    return LayoutFault(
        "not as planned", pool.location,
        f"{vdev_name} has {missing_count} drives without {describe_planned_devices(absent_drives)}; planned are"
        f" {missing_count + len(absent_drives)}", "other drives may fail, and another rate and capacity",
        "save the data, and make the pool again with the script of sonde layout plan", ("vdevs", "vdev drives"),
        planned=str(missing_count + len(absent_drives)),
    )  # fmt: skip


def _report_stray_drives(
    pool: ObservedFileSystem, strays: Sequence[tuple[str, str, list[str], list[str], list[str]]]
) -> Iterator[LayoutFault]:
    """Drives in vdevs that the plan does not have them in; those that two vdevs have of each other are one fault. Each
    stray is the vdev, the drive, its planned paths, and the absent and all planned paths of the vdev."""
    done: set[str] = set()
    for parent, name, paths, absent, usual in strays:
        opposite = next((each for each in strays if set(each[2]) & set(usual) and set(paths) & set(each[4])), None)
        if name in done:
            continue
        if opposite is None or opposite[0] == parent or opposite[1] in done:
            yield _report_vdev_drive(pool, parent, name, absent)
            continue
        done.add(opposite[1])
        yield LayoutFault(
            "not as planned", pool.location,
            f"drives are exchanged: {name} in {parent} is planned where {opposite[0]} is, and {opposite[1]} in"
            f" {opposite[0]} where {parent} is",
            "other drives than planned may fail together, and a vdev may lose more than it bears",
            "exchange the drives, or change the plan if it is meant so",
        )  # fmt: skip


def _compare_pool_spares(
    observed_storage: ObservedStorage, pool: ObservedFileSystem, planned_spares: list[str], spares: Sequence[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Planned spares that are none: absent, or a member of a vdev for good. Outputs must identify all drives."""
    vdevs = [vdev for vdev in pool.vdevs if vdev.kind == "drive"]
    answers = [
        find_planned_names(observed_storage, planned_spares, find_disk_of_drive(observed_storage, vdev))
        for vdev in vdevs
    ]
    if not spares or not answers or None in answers:
        return
    yield CheckedItem("the planned spares of a pool", pool.location)
    drives_by_path = {path: vdev for vdev, paths in zip(vdevs, answers, strict=True) for path in paths or ()}
    reserve = {path for path, vdev in drives_by_path.items() if vdev.use == "spares"}
    reserve |= {path for path, vdev in drives_by_path.items() if vdev.group}  # a spare that is in use
    absent = [path for path in spares if path not in reserve]
    if absent:
        verb = "is no spare" if len(absent) == 1 else "are no spares"
        members = [f"{vdev.name} is {f'a drive of {vdev.parent}' if vdev.parent else 'a vdev by itself'}"
                   for path in absent
                   if (vdev := drives_by_path.get(path)) is not None]  # fmt: skip
        member_text = f", {', '.join(members)}" if members else ""
        yield LayoutFault(
            "not as planned", pool.location, f"{describe_planned_devices(absent)} {verb} of it{member_text}; planned"
            f" are {len(spares)}", "after the loss of fewer drives than planned nothing takes over",
            f"zpool add {pool.location} spare, with as many drives", ("spares",),
        )  # fmt: skip


def _compare_pool_log(
    observed_storage: ObservedStorage, pool: ObservedFileSystem, planned_vdevs: Sequence[Sequence[str]]
) -> Iterator[LayoutFault | CheckedItem]:
    """The devices that hold the log of synchronous writes (SLOG) against the planned ones."""
    if not pool.vdevs:
        return
    yield CheckedItem("the planned log of a pool", pool.location)
    drives = [vdev for vdev in pool.vdevs if vdev.use == "logs" and vdev.kind == "drive"]
    planned = [path for paths in planned_vdevs for path in paths]
    names = ", ".join(drive.name for drive in drives)
    planned_text = " and ".join(("mirror of " if len(paths) > 1 else "") + describe_planned_devices(paths)
                                for paths in planned_vdevs)  # fmt: skip
    arguments = " ".join(("mirror " if len(paths) > 1 else "") + " ".join(paths) for paths in planned_vdevs)
    answers = [find_planned_names(observed_storage, planned, find_disk_of_drive(observed_storage, drive))
               for drive in drives]  # fmt: skip
    present = {path for paths in answers for path in paths or ()}
    absent = [path for path in planned if path not in present] if None not in answers else []
    odd = [drive.name for drive, paths in zip(drives, answers, strict=True) if paths == []]
    is_single = len(drives) == 1 and max((len(paths) for paths in planned_vdevs), default=1) > 1
    is_mirror_split = max((len(paths) for paths in planned_vdevs), default=1) > 1 and not all(
        drive.parent for drive in drives
    )
    cost = "synchronous writes wait for the drives of the data, or for another device than planned"
    if planned and not drives:
        problem, remedy = (
            f"it has no log device; planned is {planned_text}",
            f"zpool add {pool.location} log {arguments}",
        )
    elif drives and not planned:
        problem, remedy = f"its log is on {names}; the plan has none", "put it into the system file, or zpool remove it"
        cost = "synchronous writes have the latency of a device that the plan does not know"
    elif is_single and not odd:
        problem = f"its log is {names} alone; planned is {planned_text}"
        cost = "when it fails with a crash of the server, acknowledged writes are lost"
        remedy = f"zpool attach {pool.location} {names} {' '.join(absent) or 'and the other planned device'}"
    elif is_mirror_split and not odd and not absent:
        problem = f"its log is on {names} without a mirror; planned is {planned_text}"
        cost = "when one of them fails with a crash of the server, acknowledged writes are lost"
        remedy = (
            f"zpool remove {pool.location} {drives[-1].name}, then zpool attach {pool.location} {drives[0].name}"
            f" {drives[-1].name}"
        )
    elif odd or absent:
        problem = f"its log is on {names}; planned is {planned_text}"
        remedy = "zpool add the planned log, then zpool remove the other one"
    else:
        return
    yield LayoutFault("not as planned", pool.location, problem, cost, remedy, ("log",), planned=planned_text)


def _report_unplanned_vdev(
    pool: ObservedFileSystem, vdev_name: str, vdev_members: Mapping[str, list[str]], spares: Collection[str]
) -> LayoutFault:
    planned_spares = [name for name, paths in vdev_members.items() if set(paths) & set(spares)]
    verb = "is planned as spare" if len(planned_spares) == 1 else "are planned as spares"
    spare_text = f"; {', '.join(planned_spares)} {verb}" if planned_spares else ""
    attach = (f"; until then zpool attach {pool.location} {vdev_name} and another drive, so that it is a mirror"
              if list(vdev_members) == [vdev_name] else "")  # fmt: skip
    return LayoutFault(
        "vdev not planned", pool.location, f"no vdev like {vdev_name} is planned{spare_text}",
        "the pool is lost with this vdev" + ", and no spare takes over for these drives" * bool(planned_spares),
        "save the data, and make the pool again with the script of sonde layout plan: a vdev next to raidz cannot be"
        f" removed{attach}", ("vdevs",),
    )  # fmt: skip


def _report_vdev_drive(
    pool: ObservedFileSystem, vdev_name: str, drive_name: str, absent_drives: Sequence[str]
) -> LayoutFault:
    group = next((vdev.group for vdev in pool.vdevs if vdev.name == drive_name and vdev.parent == vdev_name), "")
    if group:
        others = [vdev.name for vdev in pool.vdevs if vdev.group == group and vdev.parent == vdev_name
                  and vdev.name != drive_name]  # fmt: skip
        problem = f"drive {drive_name} replaces {', '.join(others)} in {vdev_name}; the plan does not have it there"
    else:
        absent_text = describe_planned_devices(absent_drives[:3]) or "another drive"
        verb = "are" if len(absent_drives) > 1 else "is"
        problem = f"drive {drive_name} is in {vdev_name}; planned there {verb} {absent_text}"
    return LayoutFault(
        "not as planned", pool.location, problem,
        "other drives than planned may fail together, and a vdev may lose more than it bears",
        "exchange the drives, or change the plan if it is meant so",
    )  # fmt: skip
