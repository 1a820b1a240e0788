# SPDX-License-Identifier: Apache-2.0
"""Compares the drives of the vdevs of ZFS pools with those that a plan names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.device_identity import (
    describe_planned_devices,
    find_planned_names,
    split_device_arguments,
)
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage


def _split_vdevs(arguments: str) -> tuple[list[list[str]], list[str]]:
    """The planned devices of each vdev of zpool create, and the spares."""
    vdevs: list[list[str]] = []
    is_open = False
    devices = split_device_arguments(arguments)[2:]
    end = devices.index("spare") if "spare" in devices else len(devices)
    for argument in devices[:end]:
        if re.match(r"(mirror|raidz\d?|draid\d?(:\S+)?)$", argument):
            vdevs.append([])
            is_open = True
        elif is_open:
            vdevs[-1].append(argument)
        else:
            vdevs.append([argument])
    return vdevs, devices[end + 1 :]


def find_vdev_disk(observed_storage: ObservedStorage, vdev_name: str) -> ObservedDisk:
    """The disk of a vdev, whose name may be that of the kernel or of a link; without one, a disk of that link."""
    name = re.sub(r"-part\d+$", "", vdev_name.removeprefix("/dev/"))
    for disk in observed_storage.disks.values():
        links = {link.rpartition("/")[2] for link in disk.settings.get("links", "").split()}
        if name in (disk.name, disk.settings.get("name"), f"wwn-{disk.settings.get('wwn', '')}") or name in links:
            return disk
    folder = "/dev" if re.fullmatch(r"sd[a-z]+|nvme\d+n\d+", name) else "/dev/disk/by-id"
    return ObservedDisk(name, settings={"links": f"{folder}/{name}"} if folder != "/dev" else {})


def compare_pool(
    observed_storage: ObservedStorage, file_systems: Sequence[ObservedFileSystem], arguments: str
) -> Iterator[LayoutFault | CheckedItem]:
    """The drives of each vdev against those in the arguments of zpool create."""
    planned_vdevs, spares = _split_vdevs(arguments)
    planned = [*(path for paths in planned_vdevs for path in paths), *spares]
    for pool in (each for each in file_systems if each.kind == "zfs"):
        groups: dict[str, dict[str, list[str]]] = {}
        strays: list[tuple[str, str, list[str], list[str], list[str]]] = []
        for vdev in pool.vdevs:
            is_drive = vdev.kind == "drive" and not vdev.use
            paths = (
                find_planned_names(observed_storage, planned, find_vdev_disk(observed_storage, vdev.name))
                if is_drive
                else None
            )
            if paths is not None:
                yield CheckedItem("the planned drives of vdevs", pool.location)
                groups.setdefault(vdev.parent or vdev.name, {})[vdev.name] = paths
        yield from _compare_pool_spares(observed_storage, pool, planned, spares)
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


def _report_missing_drives(pool: ObservedFileSystem, vdev_name: str, count: int, absent: Sequence[str]) -> LayoutFault:
    return LayoutFault(
        "not as planned", pool.location,
        f"{vdev_name} has {count} drives without {describe_planned_devices(absent)}; planned are"
        f" {count + len(absent)}", "other drives may fail, and another rate and capacity",
        "save the data, and make the pool again with the script of sonde layout plan", ("vdevs", "vdev drives"),
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
    observed_storage: ObservedStorage, pool: ObservedFileSystem, planned: list[str], spares: Sequence[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Planned spares that are none: absent, or a member of a vdev for good. Outputs must identify all drives."""
    vdevs = [vdev for vdev in pool.vdevs if vdev.kind == "drive"]
    answers = [
        find_planned_names(observed_storage, planned, find_vdev_disk(observed_storage, vdev.name)) for vdev in vdevs
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
        members = [f"{vdev.name} is a drive of {vdev.parent}" for path in absent
                   if (vdev := drives_by_path.get(path)) is not None]  # fmt: skip
        member_text = f", {', '.join(members)}" if members else ""
        yield LayoutFault(
            "not as planned", pool.location, f"{describe_planned_devices(absent)} {verb} of it{member_text}; planned"
            f" are {len(spares)}", "after the loss of fewer drives than planned nothing takes over",
            f"zpool add {pool.location} spare, with as many drives", ("spares",),
        )  # fmt: skip


def _report_unplanned_vdev(
    pool: ObservedFileSystem, vdev_name: str, members: Mapping[str, list[str]], spares: Collection[str]
) -> LayoutFault:
    planned_spares = [name for name, paths in members.items() if set(paths) & set(spares)]
    verb = "is planned as spare" if len(planned_spares) == 1 else "are planned as spares"
    spare_text = f"; {', '.join(planned_spares)} {verb}" if planned_spares else ""
    return LayoutFault(
        "vdev not planned", pool.location, f"no vdev like {vdev_name} is planned{spare_text}",
        "the pool is lost with this vdev" + ", and no spare takes over for these drives" * bool(planned_spares),
        "save the data, and make the pool again with the script of sonde layout plan: a vdev next to raidz cannot be"
        " removed", ("vdevs",),
    )  # fmt: skip


def _report_vdev_drive(pool: ObservedFileSystem, vdev_name: str, drive: str, absent: Sequence[str]) -> LayoutFault:
    group = next((vdev.group for vdev in pool.vdevs if vdev.name == drive and vdev.parent == vdev_name), "")
    if group:
        others = [vdev.name for vdev in pool.vdevs if vdev.group == group and vdev.parent == vdev_name
                  and vdev.name != drive]  # fmt: skip
        problem = f"drive {drive} replaces {', '.join(others)} in {vdev_name}; the plan does not have it there"
    else:
        absent_text = describe_planned_devices(absent[:3]) or "another drive"
        problem = f"drive {drive} is in {vdev_name}; planned there {'are' if len(absent) > 1 else 'is'} {absent_text}"
    return LayoutFault(
        "not as planned", pool.location, problem,
        "other drives than planned may fail together, and a vdev may lose more than it bears",
        "exchange the drives, or change the plan if it is meant so",
    )  # fmt: skip
