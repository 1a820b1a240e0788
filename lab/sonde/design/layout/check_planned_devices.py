# SPDX-License-Identifier: Apache-2.0
"""Compares the devices that a plan names with those that outputs show: members of arrays, volumes and pools, disks of
targets and file systems, and mount points."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_volumes import UNPLANNED_TARGETS
from sonde.design.layout.device_identity import (
    describe_device,
    find_planned_names,
    is_planned_device,
    split_device_arguments,
)
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage
from sonde.design.layout.observe_written import list_disks_below
from sonde.design.layout.written_attributes import WrittenAttribute

# The subjects of the comparisons of devices by the command whose arguments name them.
DEVICE_SUBJECTS: Mapping[tuple[str, str], str] = {
    ("mdadm", ""): "the planned drives of an array", ("mdadm", "--create"): "the planned drives of an array",
    ("pvcreate", ""): "the planned physical volumes", ("vgcreate", ""): "the planned physical volumes",
    ("mkfs.lustre", ""): "the planned device of a target", ("mkfs.xfs", ""): "the planned device",
    ("mke2fs", ""): "the planned device", ("mount", ""): "the planned mount point",
}  # fmt: skip
_CHANGE = "exchange the drives, or change the plan if it is meant so"


def find_device_faults(
    storage: ObservedStorage,
    file_systems: Sequence[ObservedFileSystem],
    written: Sequence[WrittenAttribute],
    mount_points: Collection[str] = (),
) -> Iterator[LayoutFault | CheckedItem]:
    """Devices that are not where the plan puts them. What no output identifies is not compared. `mount_points` are
    those that the plan has on any node."""
    names = {attribute.value for attribute in written if attribute.key == ("mkfs.lustre", "--fsname")}
    yield from _compare_client_mounts(storage.file_systems, names, mount_points)
    commands: dict[int, dict[tuple[str, str], str]] = {}
    for attribute in written:
        commands.setdefault(attribute.number, {})[attribute.key] = attribute.value
    arrays = [options for options in commands.values() if ("mdadm", "") in options]
    spares = [path for options in arrays for path in _split_spares(options)[1]]
    for options in arrays:
        yield from _compare_array(storage, options, spares)
    yield from _find_unplanned_layers(storage, file_systems)
    for options in commands.values():
        if ("vgcreate", "") in options:
            yield from _compare_volume_group(storage, options["vgcreate", ""])
        if ("zpool", "") in options:
            yield from _compare_pool(storage, file_systems, options["zpool", ""])
        if ("mkfs.lustre", "") in options:
            yield from _compare_target(storage, options)
        if ("mkfs.xfs", "-l logdev") in options:
            yield from _compare_log_device(storage, file_systems, options["mkfs.xfs", "-l logdev"])
        for program in ("mkfs.xfs", "mke2fs"):
            if (program, "") in options:
                yield from _compare_file_system(storage, file_systems, options[program, ""])
        if ("mount", "") in options:
            yield from _compare_mount_point(file_systems, options["mount", ""], mount_points)


def _find_unplanned_layers(
    storage: ObservedStorage, file_systems: Sequence[ObservedFileSystem]
) -> Iterator[LayoutFault]:
    """Mapped devices below a planned file system that no plan writes, as encryption or a cache."""
    names = {disk.name for disk in list_disks_below(storage, tuple(file_systems))}
    for disk in storage.disks.values():
        # raid5_ls and raid10 of LVM, thin-pool
        segment_kinds = {re.sub(r"^raid.*", "raid", segment.kind).removesuffix("-pool") for segment in disk.segments}
        for target in sorted((set(disk.settings.get("mapper_targets", "").split()) | segment_kinds) & set(
                UNPLANNED_TARGETS)) if disk.name in names else ():  # fmt: skip
            yield LayoutFault(
                "not as planned", disk.name, f"a layer that the plan does not have lies below: {target}",
                UNPLANNED_TARGETS[target], "make the file system on the planned device, or correct the plan",
            )  # fmt: skip


def _split_spares(options: Mapping[tuple[str, str], str]) -> tuple[list[str], list[str]]:
    """The planned members of an array in the order of their slots, and its spares."""
    paths = split_device_arguments(options["mdadm", ""])
    count = int(options.get(("mdadm", "--raid-devices"), str(len(paths))))
    return paths[:count], paths[count:]


def _find_array(storage: ObservedStorage, options: Mapping[tuple[str, str], str]) -> ObservedDisk | None:
    """The observed array of a command: that of its name, else the one that has most of its members."""
    arrays = [disk for disk in storage.disks.values() if disk.kind == "md"]
    path = options.get(("mdadm", "--create"), "")
    by_name = [array for array in arrays if is_planned_device(storage, path, array)]
    if by_name:
        return by_name[0]
    members, _ = _split_spares(options)
    scores = {array.name: sum(bool(find_planned_names(storage, members, storage.disks[name]))
                              for name in array.members if name in storage.disks) for array in arrays}  # fmt: skip
    best = max(scores, key=lambda name: scores[name], default="")
    return storage.disks[best] if best and scores[best] else None


def _compare_array(
    storage: ObservedStorage, options: Mapping[tuple[str, str], str], all_spares: Sequence[str]
) -> Iterator[LayoutFault | CheckedItem]:
    array = _find_array(storage, options)
    if array is None:
        return
    members, _ = _split_spares(options)
    matches: dict[str, list[str]] = {}
    for name in array.members:
        disk = storage.disks.get(name)
        planned = find_planned_names(storage, [*members, *all_spares], disk) if disk is not None else None
        if disk is None or planned is None:
            continue
        matches[name] = planned
        yield CheckedItem("the planned drives of an array", array.name)
    absent = [path for path in members if not any(path in paths for paths in matches.values())]
    for name in (name for name, paths in matches.items() if not paths):
        planned_text = f"; planned {'are' if len(absent) > 1 else 'is'} {', '.join(absent[:3])}" if absent else ""
        yield LayoutFault(
            "not as planned", array.name,
            f"its member {describe_device(storage.disks[name])} is no drive of the plan for it{planned_text}",
            "failures that the plan keeps apart may coincide, and it may have another size or rate",
            _CHANGE,
        )  # fmt: skip
    yield from _compare_spares(storage, array, [*members, *all_spares])
    yield from _compare_copies(array, members, matches)


def _compare_spares(
    storage: ObservedStorage, array: ObservedDisk, planned: list[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Spares that the plan neither has as spares nor as members, which a spare may have replaced."""
    for name in array.settings.get("spare_devices", "").split():
        paths = find_planned_names(storage, planned, storage.disks[name]) if name in storage.disks else None
        if paths is None:
            continue
        yield CheckedItem("the planned spares of an array", array.name)
        if not paths:
            yield LayoutFault(
                "not as planned", array.name,
                f"its spare {describe_device(storage.disks[name])} is no drive of the plan for it",
                "a drive of another size, rate or enclosure takes over, and what the plan has it for lacks it", _CHANGE,
            )  # fmt: skip


def _compare_copies(
    array: ObservedDisk, members: Sequence[str], matches: Mapping[str, list[str]]
) -> Iterator[LayoutFault | CheckedItem]:
    """The drives that hold copies of the same data in RAID 10 with near copies: neighbors in the order of slots."""
    copies = re.fullmatch(r"near=(\d+)", array.settings.get("layout", ""))
    slots = dict(entry.split("=", 1) for entry in array.settings.get("slots", "").split())
    if array.level != "raid10" or copies is None or not slots:
        return
    size = int(copies[1])
    set_by_path = {path: index // size for index, path in enumerate(members)}
    sets: dict[int, list[tuple[str, int]]] = {}
    for slot, name in slots.items():
        planned = [set_by_path[path] for path in matches.get(name, []) if path in set_by_path]
        if planned:
            sets.setdefault(int(slot) // size, []).append((name, planned[0]))
    for pairs in sets.values():
        if len({planned for _, planned in pairs}) > 1:
            names = " and ".join(name for name, _ in pairs)
            yield LayoutFault(
                "not as planned", array.name, f"{names} hold copies of the same data; the plan pairs each with another",
                "both copies may be lost with one enclosure or path that the plan keeps apart", _CHANGE,
            )  # fmt: skip


def _compare_volume_group(storage: ObservedStorage, arguments: str) -> Iterator[LayoutFault | CheckedItem]:
    group, *planned = split_device_arguments(arguments)
    for disk in list(storage.disks.values()):
        if disk.settings.get("group_of_pv") != group:
            continue
        paths = find_planned_names(storage, planned, disk)
        if paths is None:
            continue
        yield CheckedItem("the planned physical volumes", disk.name)
        if not paths:
            yield LayoutFault(
                "not as planned", disk.name,
                f"it is a physical volume of {group}; planned are {', '.join(planned[:4])}",
                "the volume lies on another device than planned, with other rates and failures", _CHANGE,
            )  # fmt: skip


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


def _find_vdev_disk(storage: ObservedStorage, vdev_name: str) -> ObservedDisk:
    """The disk of a vdev, whose name may be that of the kernel or of a link; without one, a disk of that link."""
    name = re.sub(r"-part\d+$", "", vdev_name.removeprefix("/dev/"))
    for disk in storage.disks.values():
        links = {link.rpartition("/")[2] for link in disk.settings.get("links", "").split()}
        if name in (disk.name, disk.settings.get("name"), f"wwn-{disk.settings.get('wwn', '')}") or name in links:
            return disk
    folder = "/dev" if re.fullmatch(r"sd[a-z]+|nvme\d+n\d+", name) else "/dev/disk/by-id"
    return ObservedDisk(name, settings={"links": f"{folder}/{name}"} if folder != "/dev" else {})


def _compare_pool(
    storage: ObservedStorage, file_systems: Sequence[ObservedFileSystem], arguments: str
) -> Iterator[LayoutFault | CheckedItem]:
    planned_vdevs, spares = _split_vdevs(arguments)
    planned = [*(path for paths in planned_vdevs for path in paths), *spares]
    for pool in (each for each in file_systems if each.kind == "zfs"):
        groups: dict[str, dict[str, list[str]]] = {}
        for vdev in pool.vdevs:
            is_drive = vdev.kind == "drive" and not vdev.use
            paths = find_planned_names(storage, planned, _find_vdev_disk(storage, vdev.name)) if is_drive else None
            if paths is not None:
                yield CheckedItem("the planned drives of vdevs", pool.location)
                groups.setdefault(vdev.parent or vdev.name, {})[vdev.name] = paths
        for parent, members in groups.items():
            all_paths = {path for paths in members.values() for path in paths}
            usual = max(planned_vdevs, key=lambda vdev: len(all_paths & set(vdev)))
            if len(groups) > len(planned_vdevs) and not all_paths & set(usual):
                yield _report_unplanned_vdev(pool, parent, members, spares)
                continue
            # a spare may have replaced a drive
            for name in (name for name, paths in members.items() if not set(paths) & {*usual, *spares}):
                yield _report_vdev_drive(pool, parent, name, [path for path in usual if path not in all_paths])


def _report_unplanned_vdev(
    pool: ObservedFileSystem, vdev_name: str, members: Mapping[str, list[str]], spares: Collection[str]
) -> LayoutFault:
    planned_spares = [name for name, paths in members.items() if set(paths) & set(spares)]
    verb = "is planned as spare" if len(planned_spares) == 1 else "are planned as spares"
    spare_text = f"; {', '.join(planned_spares)} {verb}" if planned_spares else ""
    return LayoutFault(
        "not as planned", pool.location, f"no vdev like {vdev_name} is planned{spare_text}",
        "the pool is lost with this vdev" + ", and no spare takes over for these drives" * bool(planned_spares),
        "save the data, and make the pool again with the script of sonde layout plan: a vdev next to raidz cannot be"
        " removed",
    )  # fmt: skip


def _report_vdev_drive(pool: ObservedFileSystem, vdev_name: str, drive: str, absent: Sequence[str]) -> LayoutFault:
    group = next((vdev.group for vdev in pool.vdevs if vdev.name == drive and vdev.parent == vdev_name), "")
    if group:
        others = [vdev.name for vdev in pool.vdevs if vdev.group == group and vdev.parent == vdev_name
                  and vdev.name != drive]  # fmt: skip
        problem = f"drive {drive} replaces {', '.join(others)} in {vdev_name}; the plan does not have it there"
    else:
        absent_text = ", ".join(absent[:3]) or "another drive"
        problem = f"drive {drive} is in {vdev_name}; planned there {'are' if len(absent) > 1 else 'is'} {absent_text}"
    return LayoutFault(
        "not as planned", pool.location, problem,
        "other drives than planned may fail together, and a vdev may lose more than it bears", _CHANGE,
    )  # fmt: skip


def _compare_target(
    storage: ObservedStorage, options: Mapping[tuple[str, str], str]
) -> Iterator[LayoutFault | CheckedItem]:
    """The device that has the label of a target."""
    index, path = options.get(("mkfs.lustre", "--index"), ""), options["mkfs.lustre", ""]
    role = "OST" if ("mkfs.lustre", "--ost") in options else "MDT"
    label = f"{options['mkfs.lustre', '--fsname']}-{role}{int(index):04x}" if index else "MGS"
    for disk in list(storage.disks.values()):
        if re.sub(r"[:=]", "-", disk.settings.get("fs_label", "")) != label:
            continue
        if any(disk.name in {path.name for path in other.paths} for other in storage.disks.values()):
            continue  # a path has the label of its map
        answer = is_planned_device(storage, path, disk)
        if answer is None:
            continue
        yield CheckedItem("the planned device of a target", label)
        if not answer:
            yield LayoutFault(
                "not as planned", label, f"it is on {describe_device(disk)}; planned is {path}",
                "it has the bandwidth, redundancy and server of another device than planned",
                "look whether labels or devices of two targets are exchanged, and make them as planned",
            )  # fmt: skip


def _find_disk(storage: ObservedStorage, device_path: str) -> ObservedDisk | None:
    """The disk that has the last part of a path as its name, or as that of its map."""
    name = device_path.rsplit("/", 1)[-1]
    disks = (disk for disk in storage.disks.values() if name and name in (disk.name, disk.settings.get("name")))
    return next(disks, None)


def _compare_file_system(
    storage: ObservedStorage, file_systems: Sequence[ObservedFileSystem], path: str
) -> Iterator[LayoutFault | CheckedItem]:
    for each in file_systems:
        disk = _find_disk(storage, each.device)
        answer = is_planned_device(storage, path, disk) if disk is not None else None
        if disk is None or answer is None:
            continue
        yield CheckedItem("the planned device", each.location)
        if not answer:
            yield LayoutFault(
                "not as planned", each.location, f"it is on {describe_device(disk)}; planned is {path}",
                "it has the bandwidth and redundancy of another device than planned",
                "mount the file system of the planned device, or move the data there",
            )  # fmt: skip


def _compare_log_device(
    storage: ObservedStorage, file_systems: Sequence[ObservedFileSystem], path: str
) -> Iterator[LayoutFault | CheckedItem]:
    for each in file_systems:
        disk = _find_disk(storage, each.log_device or "")
        answer = is_planned_device(storage, path, disk) if disk is not None else None
        if disk is None or answer is None:
            continue
        yield CheckedItem("the planned device of the log", each.location)
        if not answer:
            yield LayoutFault(
                "not as planned", each.location, f"its log is on {describe_device(disk)}; planned is {path}",
                "commits have the latency and redundancy of another device than planned",
                "make it with the planned log device, and name it in the mount options",
            )  # fmt: skip


def _compare_mount_point(
    file_systems: Sequence[ObservedFileSystem], arguments: str, mount_points: Collection[str]
) -> Iterator[LayoutFault | CheckedItem]:
    planned = split_device_arguments(arguments)[-1]
    mounted = [each for each in file_systems if each.options and each.location.startswith("/")]
    # where several may be the planned one, which of them is elsewhere is not known
    for each in mounted if len({each.location for each in mounted}) == 1 else ():
        yield CheckedItem("the planned mount point", each.location)
        if each.location not in (planned, *mount_points):
            yield LayoutFault(
                "not as planned", each.location, f"it is mounted at {each.location}; planned is {planned}",
                f"programs that write to {planned} write to the file system below it", f"mount it at {planned}",
            )  # fmt: skip


def _compare_client_mounts(
    file_systems: Sequence[ObservedFileSystem], names: Collection[str], mount_points: Collection[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Where a client mounts a planned file system of Lustre: its source ends in the name of the file system."""
    for each in file_systems if mount_points else ():
        name = re.fullmatch(r"\S+:/(\w+)", each.device)
        if each.kind != "lustre" or name is None or name[1] not in names:
            continue
        yield CheckedItem("the planned mount point", each.location)
        if each.location not in mount_points:
            planned = " or ".join(mount_points)
            yield LayoutFault(
                "not as planned", each.location, f"it is mounted at {each.location}; planned is {planned}",
                f"programs that write to {planned} write to the file system below it", f"mount it at {planned}",
            )  # fmt: skip
