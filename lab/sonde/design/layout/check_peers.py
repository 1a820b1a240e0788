# SPDX-License-Identifier: Apache-2.0
"""Compares what should be alike: the drives of an array, the paths of a disk, disks with several paths; and finds
drives that carry several arrays."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.check_controllers import find_controller_faults
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import GIB
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.model.units import format_bytes

_STRIPED_LEVELS = ("raid0", "raid4", "raid5", "raid6", "raid10")
# Smaller arrays (/boot, swap) may share drives with another one: they carry next to nothing.
_SMALL_ARRAY = 64 * GIB
# Settings of drives that should be equal: what a member without the others' setting costs.
_MEMBER_SETTINGS = {
    "write_cache": "a flush takes as long as the slowest drive needs",
    "physical_block_size": "writes that suit one drive make another one read first",
    "logical_block_size": "the array gets the larger sectors of both",
}
_MEMBER_COSTS = {
    "write_cache on": "at a power failure it loses what it has acknowledged and no flush has stored yet, and the array"
    " or file system may be damaged",
}
_MEMBER_REMEDIES = {
    "write_cache on": "hdparm -W 0 for SATA, sdparm --clear WCE --save for SAS, by a udev rule that also sets it after"
    " a start; else turn it on for all, where mounts have barriers and the power supply is safe",
    "logical_block_size": "take it out of the array, format it with sectors of {value} bytes (nvme format --lbaf,"
    " sg_format --size; this erases it) and add it again, or replace it",
    "physical_block_size": "replace the odd drive by one with physical sectors of {value} bytes",
}
# Other kinds (members of md, LVM, ZFS, Btrfs, multipath) have the UUID of what they belong to.
_KINDS_WITH_OWN_UUID = ("xfs", "ext2", "ext3", "ext4")
_PATH_SETTINGS = ("max_sectors_kb", "max_hw_sectors_kb", "logical_block_size")
_PARTITION_PATTERN = re.compile(r"(.*nvme\d+n\d+|.*mmcblk\d+)p\d+|((?:s|h|v|xv)d[a-z]+)\d+")


def find_peer_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """All differences between parts that should be alike."""
    for disk in observed_storage.disks.values():
        if disk.kind == "md":
            yield from _compare_array_members(observed_storage, disk)
            yield from _check_array_spares(observed_storage, disk)
        if disk.kind == "multipath" and len(disk.paths) > 1:
            yield from _compare_paths(observed_storage, disk)
    yield from _find_shared_drives(observed_storage)
    yield from _find_copies(observed_storage)
    maps = [disk for disk in observed_storage.disks.values() if disk.kind == "multipath" and disk.paths]
    yield from _compare_luns(maps)
    yield from find_controller_faults(maps)


def find_disk_of_partition(observed_storage: ObservedStorage, device_name: str) -> str:
    """The disk of a partition, known from what was observed or from its name; the name itself for other devices."""
    if device_name in observed_storage.disks and observed_storage.disks[device_name].on:
        return observed_storage.disks[device_name].on
    match = _PARTITION_PATTERN.fullmatch(device_name)
    return next((group for group in match.groups() if group), device_name) if match else device_name


def _split_off_minority(values_by_name: Mapping[str, object]) -> tuple[object, list[str]]:
    """The value that most have, and the names with another one; no names when none is in the majority."""
    counts = Counter(values_by_name.values()).most_common(2)
    if len(counts) < 2 or counts[0][1] == counts[1][1]:
        return None, []
    common = counts[0][0]
    return common, [name for name, value in values_by_name.items() if value != common]


def _compare_array_members(
    observed_storage: ObservedStorage, array: ObservedDisk
) -> Iterator[LayoutFault | CheckedItem]:
    drives = {name: observed_storage.disks[disk_name] for name in array.members
              if (disk_name := find_disk_of_partition(observed_storage, name)) in observed_storage.disks}  # fmt: skip
    kinds = {name: drive.flash for name, drive in drives.items() if drive.flash is not None}
    if len(kinds) > 1:
        yield CheckedItem("drives of one kind", array.name)
    flash = [name for name, is_flash in kinds.items() if is_flash]
    if flash and len(flash) < len(kinds):
        few, text = (flash, "flash") if 2 * len(flash) <= len(kinds) else (
            [name for name in kinds if name not in flash], "rotating drives")  # fmt: skip
        verb_text = f"are {text}" if len(few) > 1 else f"is {text.replace('rotating drives', 'a rotating drive')}"
        yield LayoutFault(
            "unequal members of a stripe", array.name, f"{join_first_names(few)} of it {verb_text}, the others are not",
            "the array is as fast as its slowest drive", "build an array of drives of one kind", ("flash",),
        )  # fmt: skip
    for setting, cost in _MEMBER_SETTINGS.items():
        values = {name: drive.queue[setting] for name, drive in drives.items() if setting in drive.queue}
        common, others = _split_off_minority(values)
        if others:
            key = setting + " on" * (setting == "write_cache" and values[others[0]] == "write back")
            yield LayoutFault(
                "unequal members of a stripe", array.name,
                f"{setting} of {join_first_names(others)} is {values[others[0]]}; of the other members it is {common}",
                _MEMBER_COSTS.get(key, cost), _MEMBER_REMEDIES.get(
                    key, f"give all members the same {setting}, or replace the odd drive").format(value=common),
                (setting,), tuple(others),
            )  # fmt: skip


def _check_array_spares(observed_storage: ObservedStorage, array: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    sizes = [size for size in array.member_sizes if size]
    for name in array.settings.get("spare_devices", "").split():
        size = observed_storage.disks[name].size if name in observed_storage.disks else None
        flash = {observed_storage.disks[member].flash for member in array.members if member in observed_storage.disks}
        if name in observed_storage.disks and observed_storage.disks[name].flash is False and flash == {True}:
            yield LayoutFault(
                "slow spare", array.name, f"spare {name} is a rotating drive, the members are flash",
                "when it takes over, the array is as slow as this drive", "add a spare of flash, and remove this one",
            )  # fmt: skip
        if name in observed_storage.disks and observed_storage.disks[name].flash and flash == {False}:
            yield LayoutFault(
                "spare of another kind", array.name, f"spare {name} is flash, the members are rotating drives",
                "when it takes over, flash does the work of a rotating drive, and the array is of two kinds",
                "add a spare of the kind of the members, and use the flash drive elsewhere",
            )  # fmt: skip
        if size is None or not sizes:
            continue
        yield CheckedItem("the size of a spare", name)
        if size < min(sizes):
            yield LayoutFault(
                "spare too small", array.name,
                f"spare {name} has {format_bytes(size)}, the members have {format_bytes(min(sizes))}",
                "it cannot replace a drive that fails", "add a spare at least as large as the members",
            )  # fmt: skip


def _compare_paths(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    device = disk.settings.get("name") or disk.name
    for setting in _PATH_SETTINGS:
        disks = observed_storage.disks
        values = {path.name: disks[path.name].queue[setting] for path in disk.paths
                  if path.name in disks and setting in disks[path.name].queue}  # fmt: skip
        if len(values) > 1:
            yield CheckedItem("the same queue on all paths", disk.name)
        if len(set(values.values())) > 1:
            text = ", ".join(f"{name} {value}" for name, value in values.items())
            yield LayoutFault(
                "unequal paths", disk.name, f"{setting} differs between the paths of {device}: {text}",
                "requests that one path takes fail on another, or are split",
                f"set the same {setting} on all paths, by a udev rule or max_sectors_kb in multipath.conf",
                (setting,), tuple(values),
            )  # fmt: skip


def _find_shared_drives(observed_storage: ObservedStorage) -> Iterator[LayoutFault]:
    """Drives whose partitions belong to several arrays that stripe."""
    arrays: dict[str, list[str]] = {}
    for disk in observed_storage.disks.values():
        if disk.kind == "md" and disk.level in _STRIPED_LEVELS and not (disk.size and disk.size < _SMALL_ARRAY):
            for disk_name in {find_disk_of_partition(observed_storage, name) for name in disk.members}:
                arrays.setdefault(disk_name, []).append(disk.name)
    shared = {drive: names for drive, names in arrays.items() if len(set(names)) > 1}
    if shared:
        names = sorted({name for drive_arrays in shared.values() for name in drive_arrays})
        yield LayoutFault(
            "one disk in several arrays", ", ".join(names),
            f"{join_first_names(sorted(shared))} carry parts of {' and '.join(names)}",
            "heads go back and forth between the arrays, and a drive that fails degrades all of them",
            "give every array drives of its own",
        )  # fmt: skip


def _find_copies(observed_storage: ObservedStorage) -> Iterator[LayoutFault]:
    """Drives with one serial number, and file systems with one UUID, that no multipath map joins."""
    paths = {path.name for disk in observed_storage.disks.values() for path in disk.paths}
    single = [disk for disk in observed_storage.disks.values() if disk.name not in paths]
    drives = [disk for disk in single if disk.kind == "disk"]
    for disks in _group_by(drives, _read_identity):
        yield LayoutFault(
            "one drive twice", join_first_names([disk.name for disk in disks]),
            f"{len(disks)} disks have the identity {_read_identity(disks[0])}: they are one drive, by several paths",
            "what uses both believes in two drives: it is slow, and not redundant",
            "let multipathd join them, and use /dev/mapper",
        )  # fmt: skip
    mounted = [disk for disk in single if disk.settings.get("fs_kind") in _KINDS_WITH_OWN_UUID]
    for disks in _group_by(mounted, lambda disk: disk.settings.get("fs_label", "")):
        tops = _list_top_disks(observed_storage, disks)
        if len({disk.settings.get("fs_uuid", disk.name) for disk in tops}) > 1:
            yield LayoutFault(
                "one label twice", join_first_names([disk.name for disk in tops]),
                f"{len(tops)} file systems have the label {tops[0].settings['fs_label']}",
                "a mount by label takes either of them", "give each its own label (xfs_admin -L, e2label)",
                ("index",), (tops[0].settings["fs_label"],),
            )  # fmt: skip
    for disks in _group_by(mounted, lambda disk: disk.settings.get("fs_uuid", "")):
        tops = _list_top_disks(observed_storage, disks)
        if len(tops) > 1:
            yield LayoutFault(
                "one UUID twice", join_first_names([disk.name for disk in tops]),
                f"{len(tops)} file systems have the UUID {tops[0].settings['fs_uuid']}: one is a copy of the other",
                "a mount by UUID takes either of them",
                "detach the copy, or give it another one (xfs_admin -U generate, tune2fs -U random)",
            )  # fmt: skip


def _list_top_disks(observed_storage: ObservedStorage, disks: Sequence[ObservedDisk]) -> list[ObservedDisk]:
    """The disks of a group that lie below no other of them."""
    disks_below = [list(observed_storage.iterate_disks_below(other.name))[1:] for other in disks]
    return [disk for disk in disks if not any(disk in below for below in disks_below)]


def _read_identity(disk: ObservedDisk) -> str:
    """The world-wide name of a drive, else its serial number; "" where neither is known to be its own."""
    if name := disk.settings.get("wwn", ""):
        return name
    # all namespaces of an NVMe controller have its serial number
    return "" if disk.name.startswith("nvme") else disk.settings.get("serial", "")


def _group_by(disks: Sequence[ObservedDisk], read_value: Callable[[ObservedDisk], str]) -> list[list[ObservedDisk]]:
    """Disks that share a value, where there are several."""
    groups: dict[str, list[ObservedDisk]] = {}
    for disk in disks:
        if value := read_value(disk):
            groups.setdefault(value, []).append(disk)
    return [group for group in groups.values() if len(group) > 1]


def _compare_luns(luns: Sequence[ObservedDisk]) -> Iterator[LayoutFault | CheckedItem]:
    """Disks that have fewer paths than the others, and active paths that all use one adapter."""
    if len(luns) < 2:
        return
    yield CheckedItem("paths of all disks", f"{len(luns)} disks")
    names = {lun.name: lun.settings.get("name") or lun.name for lun in luns}
    for product in dict.fromkeys(lun.settings.get("product", "") for lun in luns):
        yield from _compare_path_counts([lun for lun in luns if lun.settings.get("product", "") == product], names)
    active = {path.adapter for lun in luns for path in lun.paths if path.active}
    adapters = {path.adapter for lun in luns for path in lun.paths}
    idle = ", ".join(f"host{adapter}" for adapter in sorted(adapters - active))
    if len(active) == 1 and idle and "" not in adapters:
        yield LayoutFault(
            "one adapter for all disks", join_first_names([names[lun.name] for lun in luns]),
            f"the active paths of all {len(luns)} disks lead through host{active.pop()}; {idle} is idle",
            "one adapter carries everything", "zone the preferred paths over all adapters, then fail back",
            parts=tuple(names),
        )  # fmt: skip


def _compare_path_counts(luns: Sequence[ObservedDisk], names: Mapping[str, str]) -> Iterator[LayoutFault]:
    """Disks of one product with fewer or more paths than most of them; of two that differ, the one with fewer."""
    counts = Counter(len(lun.paths) for lun in luns)
    if len(counts) < 2:
        return
    usual, frequency = max(counts.items(), key=lambda item: (item[1], item[0]))
    adapters = {path.adapter for lun in luns for path in lun.paths}
    for lun in luns if 2 * frequency >= len(luns) else ():
        number = len(lun.paths)
        if 1 < number < usual:
            absent = " or ".join(f"host{name}" for name in sorted(adapters - {path.adapter for path in lun.paths}))
            absent_text = f"; none of its own leads through {absent}" if absent and "" not in adapters else ""
            yield LayoutFault(
                "fewer paths than others", lun.name,
                f"{names[lun.name]} has {number} paths; others have {usual}{absent_text}",
                "it has less bandwidth, and is lost by fewer failures",
                "look at the mapping of this disk, its cables and zoning, then rescan",
            )  # fmt: skip
        elif number > usual and usual > 1:
            yield LayoutFault(
                "more paths than others", lun.name,
                f"{names[lun.name]} has {number} paths; others have {usual}",
                "paths through one port twice share its rate, or the others lack paths",
                "look at the zoning of all disks, then rescan",
            )  # fmt: skip
