# SPDX-License-Identifier: Apache-2.0
"""Checks volumes of LVM and mapped devices: every segment, snapshots, and targets that delay or lose requests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage, VolumeSegment
from sonde.model.units import format_bytes

# The name that pvs prints for a physical volume that it does not find.
MISSING_VOLUME = "[unknown]"
_FULL_SNAPSHOT_PERCENT = 80
# Metadata and the part of an extent at the end take less of a physical volume.
_UNUSED_SHARE = 0.01
_PVMOVE_PATTERN = re.compile(r"-pvmove\d+$")
_AND = " and "
# Targets of device mapper that no plan writes: what each of them does.
UNPLANNED_TARGETS = {
    "crypt": "processors encrypt all data", "cache": "requests go through a cache",
    "writecache": "writes go through a cache", "vdo": "data is deduplicated and compressed",
    "integrity": "each write also writes checksums and maybe a journal", "verity": "reads verify checksums",
    "thin": "the first write to each chunk allocates it, and neighbors are scattered", "era": "writes are tracked",
    "mirror": "all data is written twice", "raid": "LVM combines the devices, not md",
}  # fmt: skip
# Targets of device mapper that no storage in use should have: problem, cost and remedy.
_FAULTY_TARGETS = {
    "error": ("its table has the target error", "every request to that part fails",
              "look for the missing device (pvs, vgs), and activate the volume again"),
    "zero": ("its table has the target zero", "what is written there is lost", "load the table of the volume again"),
    "delay": ("its table has the target delay", "every request waits", "dmsetup load the table without delay"),
    "flakey": ("its table has the target flakey", "requests fail at intervals", "dmsetup load the table without it"),
    "snapshot-merge": ("a snapshot is merged into it", "each write also copies data until the merge has ended",
                       "measure after the merge has ended (lvs)"),
}  # fmt: skip


def find_volume_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """All faults of volumes and mapped devices."""
    for disk in observed_storage.disks.values():
        if disk.segments:
            yield from _check_segments(observed_storage, disk)
        unit = disk.settings.get("mapper_unit", "")
        if unit.isdigit() and disk.unit and disk.kind == "lvm":
            yield CheckedItem("the active table of a volume", disk.name)
            if int(unit) != disk.unit:
                yield LayoutFault(
                    "another table is active", disk.name,
                    f"its active table (dmsetup) has stripes of {format_bytes(int(unit))}, LVM says"
                    f" {format_bytes(disk.unit)}",
                    "data that is written now lies elsewhere than LVM will look for it",
                    "stop writing, save the data, and find out who loaded this table before it is activated again",
                )  # fmt: skip
        for target in disk.settings.get("mapper_targets", "").split():
            yield CheckedItem("targets of device mapper", disk.name)
            if target in _FAULTY_TARGETS:
                yield LayoutFault(f"target {target}", disk.name, *_FAULTY_TARGETS[target])
        yield from _check_snapshots(observed_storage, disk)
        yield from _check_pvmove(observed_storage, disk)
        yield from _check_volume_size(disk)
    yield from _find_missing_volumes(observed_storage)


def _find_missing_volumes(observed_storage: ObservedStorage) -> Iterator[LayoutFault]:
    """A physical volume that pvs does not find; a volume on it that lvs marks as partial is another fault."""
    group = observed_storage.disks.get(MISSING_VOLUME, ObservedDisk("")).settings.get("group_of_pv", "")
    partial = any(disk.settings.get("volume_group") == group and disk.settings.get("health") == "p"
                  for disk in observed_storage.disks.values())  # fmt: skip
    if group and not partial:
        yield LayoutFault(
            "volume lacks a device", group, f"pvs does not find a physical volume of {group} ({MISSING_VOLUME})",
            "volumes on it cannot be activated completely", "look for the missing device: array, path, filter of LVM",
        )  # fmt: skip


def _check_volume_size(disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """A physical volume that is smaller than its device by more than metadata and a part of an extent."""
    used, size = (disk.settings.get(name, "") for name in ("volume_bytes", "device_bytes"))
    if not used.isdigit() or not size.isdigit():
        return
    yield CheckedItem("the size of a physical volume", disk.name)
    if int(size) - int(used) > _UNUSED_SHARE * int(size):
        yield LayoutFault(
            "physical volume smaller than its device", disk.name,
            f"it has {format_bytes(int(used))} of the {format_bytes(int(size))} of its device (pvs)",
            "the rest cannot be used", f"pvresize /dev/{disk.name}, then lvextend and grow the file system",
            ("volume_bytes", "device_bytes"),
        )  # fmt: skip


def list_inactive_volumes(observed_storage: ObservedStorage) -> list[str]:
    """Volumes of LVM that have no device, as lvs prints after vgchange -an, or when activation failed at a start."""
    return [disk.name for disk in observed_storage.disks.values()
            if disk.settings.get("volume_group") and disk.settings.get("state") == "-"]  # fmt: skip


def _check_pvmove(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault]:
    """The mirror that pvmove makes while it copies a physical volume to another one."""
    name = disk.settings.get("name") or disk.name
    if not _PVMOVE_PATTERN.search(name):
        return
    members = list(dict.fromkeys([*disk.members, *(member for segment in disk.segments for member in segment.members)]))
    names = [observed_storage.disks[member].settings.get("name") or member for member in members
             if member in observed_storage.disks]  # fmt: skip
    above = [each.name for each in observed_storage.disks.values() if disk.name in each.members]
    yield LayoutFault(
        "pvmove not finished", disk.name,
        f"{name} copies extents{f' between {_AND.join(names)}' if names else ''} (pvmove), and has not ended",
        "as long as it lies below the volume each write goes to both, and the volume depends on both",
        "pvmove goes on where it stopped and waits for the end; pvmove --abort undoes what is not finished",
        ("members", "size", "physical volume"), (disk.name, *members, *above),
    )  # fmt: skip


def describe_segment(segment: VolumeSegment) -> str:
    """Kind, stripes and devices of a segment for a message."""
    stripes = f" of {segment.stripes}" if segment.stripes and segment.stripes > 1 else ""
    unit = f", stripe size {format_bytes(segment.unit)}" if segment.unit else ""
    return f"{segment.kind or 'unknown'}{stripes}{unit} on {', '.join(segment.members) or 'unknown devices'}"


def _check_segments(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """Segments after the first that are stripes of another kind or lie on other devices."""
    first, *others = disk.segments
    yield CheckedItem("segments", disk.name)
    is_striped = (first.stripes or 1) > 1
    for number, segment in enumerate(others, start=2):
        if segment.kind in _FAULTY_TARGETS:
            continue  # another fault
        has_other_shape = (segment.kind, segment.stripes, segment.unit) != (first.kind, first.stripes, first.unit)
        has_other_devices = bool(segment.members) and set(segment.members) != set(first.members)
        has_other_technology = _list_technologies(observed_storage, segment) != _list_technologies(
            observed_storage, first
        )
        if not has_other_shape and not (has_other_devices and (is_striped or has_other_technology)):
            continue
        size = f" of {format_bytes(segment.size)}" if segment.size else ""
        if has_other_shape:
            cost = "files in that part have another rate than in the rest"
            cost += ": fewer members work for them" if (segment.stripes or 1) < (first.stripes or 1) else ""
        elif has_other_technology:
            cost = "files in that part have the rate and latency of other drives"
        else:
            cost = "files in that part use these devices only, and the volume is lost with each of all devices"
        yield LayoutFault(
            "unequal segments of a volume", disk.name,
            f"its segment {number}{size} is {describe_segment(segment)}; the first is {describe_segment(first)}",
            cost, "pvmove the segment and extend with the first stripes, or save the data and make the volume again",
        )  # fmt: skip


def _list_technologies(observed_storage: ObservedStorage, segment: VolumeSegment) -> set[bool]:
    """Whether the drives below are flash, as far as that is known."""
    below = [disk for member in segment.members for disk in observed_storage.iterate_disks_below(member)]
    return {disk.flash for disk in below if disk.flash is not None and disk.kind != "part"}


def _check_snapshots(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    kind, targets = disk.settings.get("volume_type", ""), disk.settings.get("mapper_targets", "").split()
    if kind or targets:
        yield CheckedItem("snapshots", disk.name)
    group, volume = disk.settings.get("volume_group", "").replace("-", "--"), disk.settings.get("name") or disk.name
    volumes = [
        each for each in observed_storage.disks.values() if each.settings.get("origin") and each.name != disk.name
    ]
    snapshots = [each for each in volumes
                 if f"{group}-{each.settings['origin'].replace('-', '--')}" == volume]  # fmt: skip
    names = f": {', '.join(each.name for each in snapshots)}" if snapshots else ""
    if kind in ("o", "O") or "snapshot-origin" in targets:
        yield LayoutFault(
            "snapshot slows its origin", disk.name, f"it is the origin of a snapshot{names}",
            "the first write to each chunk first reads it and writes it to the snapshot: three transfers for one",
            "lvremove the snapshot after the backup, or take snapshots of thin volumes",
            parts=(disk.name, *(each.name for each in snapshots)),
        )  # fmt: skip
    elif kind == "V" and snapshots:
        yield LayoutFault(
            "snapshot slows its origin", disk.name, f"it shares chunks with a thin snapshot{names}",
            "the first write to each shared chunk copies it", "lvremove the snapshot when it is not needed",
        )  # fmt: skip
    percent = disk.settings.get("data_percent", "").partition(".")[0]
    if kind == "t" and percent.isdigit() and int(percent) >= _FULL_SNAPSHOT_PERCENT:
        yield LayoutFault(
            "thin pool almost full", disk.name, f"{percent} % of the space of the thin pool are used",
            "when it is full all of its volumes stop writing",
            "lvextend it, or remove snapshots and fstrim its volumes",
        )  # fmt: skip
    if kind in ("s", "S") and percent.isdigit() and int(percent) >= _FULL_SNAPSHOT_PERCENT:
        yield LayoutFault(
            "snapshot almost full", disk.name, f"{percent} % of the space of the snapshot are used",
            "when it is full it is invalid: what it preserved is lost", "lvextend or lvremove it",
        )  # fmt: skip
