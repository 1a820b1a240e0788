# SPDX-License-Identifier: Apache-2.0
"""Compares /etc/fstab with the devices and mounts of a host: what the next start of the machine mounts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_fstab_mounts import is_target_line
from sonde.design.layout.check_fstab_sources import (
    find_lasting_name,
    find_source_faults,
    join_exchanged_lines,
    list_named_devices,
)
from sonde.design.layout.check_inactive_arrays import list_inactive_arrays
from sonde.design.layout.check_volumes import list_inactive_volumes
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import FstabEntry, ObservedDisk, ObservedStorage
from sonde.design.layout.observe_written import parse_written_size

# Directories that the system, containers and people mount as they need them.
_SYSTEM_PATTERN = re.compile(r"/|/(?:boot|usr|var|opt|tmp|run|media|mnt|snap|sysroot)(?:/.*)?")
_SETTINGS = {"UUID": "fs_uuid", "LABEL": "fs_label", "PARTLABEL": "partlabel"}
_MIN_PEERS = 3  # mounts at numbered directories
_LOCAL_KINDS = ("xfs", "ext2", "ext3", "ext4")
# Options that do not depend on the one who mounts, and cost much where they are forgotten.
_DEVICES_OF_XFS = ("logdev", "rtdev")
_LASTING_OPTIONS = (
    "noatime",
    *_DEVICES_OF_XFS,
    "logbsize",
    "largeio",
    "swalloc",
    "nobarrier",
    "noquota",
    "stripe",
    "sunit",
)
# What the kernel prints for each mounted XFS that nobody gave another value.
_PRINTED_DEFAULTS = ("logbsize=32k", "logbsize=32768")


# Names that the kernel gives in the order in which it finds devices.
_KERNEL_NAME_PATTERN = re.compile(r"/dev/(?:dm-\d+|sd[a-z]+\d*|(nvme)\d+n\d+(?:p\d+)?)")


def find_fstab_faults(
    observed_storage: ObservedStorage, planned_mount_points: Collection[str] = ()
) -> Iterator[LayoutFault | CheckedItem]:
    """Lines whose device no output shows or whose name changes, two lines of one mount point, options other than those
    of the mount, and planned mounts that a start of the machine leaves out."""
    yield from join_exchanged_lines(list(_check_lines(observed_storage, planned_mount_points)))


def _check_lines(
    observed_storage: ObservedStorage, planned_mount_points: Collection[str]
) -> Iterator[LayoutFault | CheckedItem]:
    yield from _find_lasting_absences(observed_storage, planned_mount_points)
    counts = Counter(each.mount_point for each in observed_storage.fstab if each.mount_point.startswith("/"))
    for mount_point, count in counts.items():
        if count > 1:
            yield LayoutFault(
                "two lines of fstab", mount_point, f"fstab has {count} lines for it",
                "the last one that is mounted hides the others", "remove the line that does not belong there",
            )  # fmt: skip
    for entry in observed_storage.fstab:
        if is_target_line(entry):
            yield CheckedItem("the line of fstab", entry.mount_point)
            yield from list(_check_source(observed_storage, entry)) or find_source_faults(observed_storage, entry)
        if entry.kind not in _LOCAL_KINDS or not entry.mount_point.startswith("/") or "noauto" in entry.options:
            continue
        yield CheckedItem("the line of fstab", entry.mount_point)
        if not _find_devices(observed_storage, entry) and _shows_sources(observed_storage, entry):
            arrays = [array.name for array in list_inactive_arrays(observed_storage)]
            inactive = ", ".join([*arrays, *list_inactive_volumes(observed_storage)])
            yield LayoutFault(
                "fstab names no device", entry.mount_point, f"fstab mounts {entry.source}, which no device has"
                + f"; it may be on {inactive}, which {'does not run' if arrays else 'is not active'}" * bool(inactive),
                "the next start of the machine stops, or goes on without it",
                f"{'assemble the array' if arrays else 'activate the volume (vgchange -ay)'} first, and change fstab"
                " only if no device has it then" if inactive
                else "write the UUID or label that blkid prints into fstab", devices=(entry.source,),
            )  # fmt: skip
        elif counts[entry.mount_point] == 1:
            yield from _compare_options(observed_storage, entry)
        unstable_names = list(_check_source(observed_storage, entry))
        source_faults = unstable_names or list(find_source_faults(observed_storage, entry))
        yield from source_faults or _check_kind(observed_storage, entry)
    yield from _find_absent_swap(observed_storage)


def _find_lasting_absences(
    observed_storage: ObservedStorage, mount_points: Collection[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Planned local file systems that are mounted now, and that no line of fstab mounts at a start; also those at
    numbered directories of which most others have a line."""
    peers = list(_list_mounts_without_line(observed_storage))
    mounted = {each.location for each in observed_storage.file_systems if each.options and each.kind in _LOCAL_KINDS}
    for mount_point in dict.fromkeys((*mount_points, *peers)) if observed_storage.fstab else ():
        entries = [entry for entry in observed_storage.fstab if entry.mount_point == mount_point]
        waits = [entry for entry in entries if "noauto" in entry.options
                 and not any(option.startswith("x-systemd.automount") for option in entry.options)]  # fmt: skip
        if mount_point in mounted:
            yield CheckedItem("the mount at a start of the machine", mount_point)
        if mount_point in mounted and len(waits) == len(entries):
            text = "its line of fstab has noauto" if waits else "fstab has no line for it"
            text += _describe_other_mount_point(observed_storage, mount_point) * (not waits)
            line = "that sonde layout plan prints" if mount_point in mount_points else "like those of the others"
            remedy = "take noauto out of its line" if waits else f"write a line {line}"
            yield LayoutFault(
                "not mounted at a start", mount_point, f"it is mounted now, but {text}",
                "after the next start of the machine it is not mounted, and programs write to the file system below",
                f"{remedy}, unless a cluster or a unit of systemd mounts it", ("fstab",),
            )  # fmt: skip


def _list_mounts_without_line(observed_storage: ObservedStorage) -> Iterator[str]:
    """Mount points that no line of fstab mounts at a start, while most others are in fstab: those that only a number
    distinguishes, and those of data outside of the directories of the system."""
    lines = {entry.mount_point for entry in observed_storage.fstab if "noauto" not in entry.options
             or any(option.startswith("x-systemd.automount") for option in entry.options)}  # fmt: skip
    groups: dict[tuple[str, str], list[str]] = {}
    for each in observed_storage.file_systems:
        role = re.sub(r"\d+", "*", each.location)
        if each.kind in _LOCAL_KINDS and each.options and role != each.location:
            groups.setdefault((each.kind, role), []).append(each.location)
        if each.kind in _LOCAL_KINDS and each.options and not _SYSTEM_PATTERN.fullmatch(each.location):
            groups.setdefault(("", ""), []).append(each.location)
    for locations in groups.values():
        absent = [location for location in locations if location not in lines]
        yield from absent if len(locations) >= _MIN_PEERS and 3 * len(absent) <= len(locations) else ()


def _describe_other_mount_point(observed_storage: ObservedStorage, mount_point: str) -> str:
    """Where a line of fstab mounts the device of a mount instead, or an empty text."""
    names = {each.device.rpartition("/")[2] for each in observed_storage.file_systems if each.location == mount_point}
    texts = [f"; it mounts {entry.source} at {entry.mount_point}" for entry in observed_storage.fstab
             for disk in _find_devices(observed_storage, entry)
             if {disk.name, disk.settings.get("name", disk.name)} & names]  # fmt: skip
    return next(iter(texts), "")


def _check_source(observed_storage: ObservedStorage, entry: FstabEntry) -> Iterator[LayoutFault]:
    match = _KERNEL_NAME_PATTERN.fullmatch(entry.source)
    # the only controller for NVMe has one name at each start
    controllers = {re.sub(r"n\d+$", "", name) for name, disk in observed_storage.disks.items()
                   if name.startswith("nvme") and disk.kind == "disk"}  # fmt: skip
    if match is not None and (not match[1] or len(controllers) > 1):
        name = entry.source.rpartition("/")[2]
        maps = [disk.settings.get("name") or disk.name for disk in observed_storage.disks.values()
                if any(path.name == name for path in disk.paths)]  # fmt: skip
        path_text = f", one path of {maps[0]}" if maps else ""
        yield LayoutFault(
            "fstab names an unstable device", entry.mount_point, f"fstab mounts {entry.source}{path_text}",
            "the kernel gives this name in the order in which it finds devices: after a start it may be another device",
            "write UUID= or LABEL= (blkid), or the name below /dev/mapper, into fstab",
        )  # fmt: skip


def _check_kind(observed_storage: ObservedStorage, entry: FstabEntry) -> Iterator[LayoutFault]:
    """A line whose UUID or label is that of another kind of file system, or of a part of an array or volume."""
    kinds = {disk.settings["fs_kind"]: disk for disk in _find_devices(observed_storage, entry)
             if disk.settings.get("fs_kind")}  # fmt: skip
    is_same_family = entry.kind.startswith("ext") and any(kind.startswith("ext") for kind in kinds)
    if not kinds or entry.kind in kinds or is_same_family:
        return
    kind, disk = next(iter(kinds.items()))
    is_member = kind not in (*_LOCAL_KINDS, "btrfs", "vfat", "swap")
    yield LayoutFault(
        "fstab names another kind", entry.mount_point,
        f"fstab mounts {entry.source} as {entry.kind}; {disk.name} with it holds {kind}"
        + ", a part of an array, pool or volume" * is_member,
        "the next start of the machine does not mount it, and may stop",
        "write the UUID or label of the file system itself (blkid of its array or volume) into fstab" if is_member
        else f"write {kind} into fstab", ("fs_kind",),
    )  # fmt: skip


def _find_absent_swap(observed_storage: ObservedStorage) -> Iterator[LayoutFault]:
    """Lines of swap that no device has: the start of the machine waits for each of them."""
    for entry in observed_storage.fstab:
        is_needed = entry.kind == "swap" and not {"noauto", "nofail"} & set(entry.options)
        if is_needed and _shows_sources(observed_storage, entry) and not _find_devices(observed_storage, entry):
            yield LayoutFault(
                "fstab names no device", "swap", f"fstab has swap on {entry.source}, which no device has",
                "the start of the machine waits 90 s for it and then lacks the swap space",
                "remove the line, or write the UUID that blkid prints",
            )  # fmt: skip


def _shows_sources(observed_storage: ObservedStorage, entry: FstabEntry) -> bool:
    """Whether outputs show what lines of that form name, for any device."""
    setting = _SETTINGS.get(entry.source.partition("=")[0], "")
    return any(disk.settings.get(setting) for disk in observed_storage.disks.values())


def _find_devices(observed_storage: ObservedStorage, entry: FstabEntry) -> list[ObservedDisk]:
    name, _, value = entry.source.partition("=")
    value = value.strip("\"'")
    return [disk for disk in observed_storage.disks.values() if name in _SETTINGS
            and disk.settings.get(_SETTINGS[name], "").lower() == value.lower()]  # fmt: skip


def _compare_options(observed_storage: ObservedStorage, entry: FstabEntry) -> Iterator[LayoutFault]:
    mounts = [each for each in observed_storage.file_systems
              if each.location == entry.mount_point and each.options]  # fmt: skip
    for mount in mounts[:1]:
        present, future = ({re.sub(r"=.*", "", option) for option in options if option not in _PRINTED_DEFAULTS}
                           & set(_LASTING_OPTIONS) for options in (mount.options, entry.options))  # fmt: skip
        # the kernel shows stripes that it read from the superblock
        lost, new = sorted(present - future - {"stripe", "sunit", "noquota"}), sorted(future - present)
        new += ["ro"] * ("ro" in entry.options and "ro" not in mount.options)
        changed = _describe_other_log_buffers(mount.options, entry.options)
        lost, new = ([name for name in names if not changed or name != "logbsize"] for names in (lost, new))
        devices = [option for option in mount.options if option.partition("=")[0] in {*_DEVICES_OF_XFS} & set(lost)]
        if mount.kind == "xfs" and devices:
            yield _report_lost_devices(observed_storage, entry.mount_point, lost, devices)
        elif lost or new or changed:
            texts = ["without " + ", ".join(lost)] * bool(lost) + ["with " + ", ".join(new)] * bool(new)
            texts += [changed] * bool(changed)
            yield LayoutFault(
                "fstab differs from the mount", entry.mount_point, f"fstab mounts it {' and '.join(texts)}",
                "after the next start of the machine it is mounted in another way than now",
                "write the options that are meant into fstab",
            )  # fmt: skip


def _report_lost_devices(
    observed_storage: ObservedStorage, mount_point: str, lost_names: Sequence[str], options: Sequence[str]
) -> LayoutFault:
    """A line of XFS without the option that names its log or realtime device."""
    texts = []
    for name, _, path in (option.partition("=") for option in options):
        disks = list_named_devices(observed_storage, path)
        texts.append(f"{name}={(find_lasting_name(disks[0]) if disks else '') or path}")
    names = " and ".join(option.partition("=")[0] for option in options)
    return LayoutFault(
        "fstab differs from the mount", mount_point, f"fstab mounts it without {', '.join(lost_names)}",
        f"XFS whose log or realtime device is another one is not mounted without {names}: the next start of the machine"
        " does not mount it, and may stop",
        f"write {','.join(texts)} into its line of fstab", tuple(lost_names),
    )  # fmt: skip


def _describe_other_log_buffers(mount_options: Collection[str], fstab_options: Collection[str]) -> str:
    """The sizes of log buffers in fstab and of the mount, where both have one and they differ; else an empty text."""
    present, future = (
        next((option.partition("=")[2].lower() for option in options if option.startswith("logbsize=")), "")
        for options in (mount_options, fstab_options)
    )
    sizes = [parse_written_size(value) for value in (present, future)]
    if None in sizes or sizes[0] == sizes[1]:
        return ""
    return f"with logbsize={future} (mounted now is logbsize={present})"
