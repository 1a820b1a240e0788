# SPDX-License-Identifier: Apache-2.0
"""Checks the drives of arrays: zones, error recovery against the timeout of commands, write-mostly members, and the
order of parity."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_peers import find_disk_of_partition
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.md_output import REDUNDANT_LEVELS
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

# File systems that write to zones in sequence themselves.
_ZONE_FILE_SYSTEMS = ("btrfs", "f2fs", "zonefs", "xfs-zoned")
# Models with shingled tracks that show no zones, as their vendors list them (Seagate Archive, Barracuda and mobile
# drives; WD Red, Blue and Black; Toshiba P300 and L200).
_HIDDEN_ZONES_PATTERN = re.compile(
    r"(?<![A-Za-z0-9])(?:ST[568]000AS00\d\d|ST8000DM004|ST6000DM003|ST5000DM000|ST4000DM004|ST3000DM007|ST2000DM008"
    r"|ST5000LM000|ST4000LM024|WD[2346]0EFAX|WD[26]0EZAZ|HDWD2[46]0|MQ04ABD200)"
)
# Without a limit a rotating drive may repeat a read for this time.
_LONGEST_RECOVERY_S = 180


def find_drive_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """All faults of drives that depend on what they are used for."""
    for disk in observed_storage.disks.values():
        if disk.settings.get("zoned") or disk.queue.get("zoned"):
            yield from _check_zones(observed_storage, disk)
        if disk.kind == "disk" and _HIDDEN_ZONES_PATTERN.search(disk.settings.get("model", "")):
            yield from _check_hidden_zones(observed_storage, disk)
        if disk.settings.get("data_offset") or disk.settings.get("bad_blocks"):
            yield from _check_bad_blocks(disk)
        if disk.kind == "md":
            yield from _check_write_mostly(observed_storage, disk)
            yield from _check_failfast(disk)
            yield from _check_parity_order(disk)
            for name in dict.fromkeys((*disk.members, *disk.settings.get("spare_devices", "").split())):
                drive = observed_storage.disks.get(find_disk_of_partition(observed_storage, name))
                if drive is not None and disk.level in REDUNDANT_LEVELS:
                    yield from _check_error_recovery(drive, disk)


def _check_bad_blocks(disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    yield CheckedItem("bad blocks", disk.name)
    if disk.settings.get("bad_blocks"):
        yield LayoutFault(
            "bad blocks of a member", disk.name, "its list of bad blocks (mdadm --examine) has entries",
            "these blocks have less redundancy, or are lost when another member has the same ones",
            "replace the drive, or clear the list after a repair (mdadm --assemble --update=force-no-bbl)",
        )  # fmt: skip


def _check_zones(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    zones = disk.queue.get("zoned") or disk.settings.get("zoned", "")
    if disk.kind not in ("disk", "multipath"):
        return
    yield CheckedItem("zones", disk.name)
    if zones not in ("host-managed", "host-aware"):
        return
    use = _describe_use(observed_storage, disk)
    if not use:
        return
    if zones == "host-managed":
        cost = "it refuses writes that do not follow the last one in a zone: the array or file system fails on it"
    else:
        cost = "random writes fill its cache, then each waits until a zone of 256 MiB is written again"
    yield LayoutFault(
        "zoned drive", disk.name, f"it is a zoned drive ({zones}), and {use}", cost,
        "replace it by a conventional drive (CMR)", ("zoned",),
    )  # fmt: skip


def _check_hidden_zones(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault]:
    """A model that writes overlapping tracks (SMR) and does not tell the kernel so."""
    model, use = disk.settings["model"].strip(), _describe_use(observed_storage, disk)
    if use:
        yield LayoutFault(
            "zoned drive", disk.name, f"{model} writes overlapping tracks (SMR, managed by the drive), and {use}",
            "random writes and rebuilds fill its cache, then each waits for seconds: it may be taken for failed",
            "replace it by a conventional drive (CMR)", ("zoned",),
        )  # fmt: skip


def _describe_use(observed_storage: ObservedStorage, disk: ObservedDisk) -> str:
    """Names the use of a drive that needs random writes; empty if there is none."""
    for other in observed_storage.disks.values():
        names = {find_disk_of_partition(observed_storage, name)
                 for name in (*other.members, *other.settings.get("spare_devices", "").split())}  # fmt: skip
        if disk.name in names and other.kind in ("md", "lvm"):
            return f"{other.name} uses it"
        if disk.name in {path.name for path in other.paths}:
            return f"it is a path of {other.settings.get('name') or other.name}"
    for file_system in observed_storage.file_systems:
        wwn = disk.settings.get("wwn", "-")
        if any(disk.name in vdev.name or wwn in vdev.name for vdev in file_system.vdevs):
            return f"pool {file_system.location} uses it"
    kind = disk.settings.get("fs_kind", "")
    return f"{kind} is on it" if kind and kind not in _ZONE_FILE_SYSTEMS else ""


def _check_write_mostly(observed_storage: ObservedStorage, array: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """A write-mostly member is sound next to faster ones only: a rotating drive in a mirror with flash."""
    names = array.settings.get("write_mostly", "").split()
    if array.level in REDUNDANT_LEVELS and (names or array.settings.get("slots")):
        yield CheckedItem("write-mostly members", array.name)
    for name in names:
        drive = observed_storage.disks.get(find_disk_of_partition(observed_storage, name))
        others = [observed_storage.disks.get(find_disk_of_partition(observed_storage, other)) for other in array.members
                  if other not in names]  # fmt: skip
        is_slower = drive is not None and drive.flash is False and any(other and other.flash for other in others)
        if array.level in ("raid1", "raid10") and not is_slower:
            yield LayoutFault(
                "write-mostly member", array.name, f"its member {name} is write-mostly",
                "reads go to the other copies only: this drive adds nothing to the rate of reading",
                f"echo -writemostly > md/dev-{name}/state",
            )  # fmt: skip
        elif array.level not in ("raid1", "raid10"):
            yield LayoutFault(
                "write-mostly member", array.name, f"its member {name} is write-mostly, in an array of {array.level}",
                "md uses the mark in mirrors only; it shows that this member was set in another way than the others",
                f"echo -writemostly > md/dev-{name}/state",
            )  # fmt: skip


def _check_failfast(array: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """Members that fail fast next to others that do not."""
    names = set(array.settings.get("failfast", "").split()) & set(array.members)
    if names and names != set(array.members):
        odd = sorted(names if 2 * len(names) <= len(array.members) else set(array.members) - names)
        yield LayoutFault(
            "differs from its peers", array.name,
            f"failfast is not the same on all members: {', '.join(odd)} {'has' if len(odd) == 1 else 'have'} another"
            " value than the others",
            "members that fail fast leave the array at a short interruption that the others survive",
            "echo failfast or -failfast > md/dev-…/state, the same for all members", ("failfast",),
        )  # fmt: skip


def _check_parity_order(array: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    layout = array.settings.get("layout", "")
    if array.level in ("raid5", "raid6") and layout:
        yield CheckedItem("order of parity", array.name)
    if array.level == "raid6" and layout.endswith("-6"):
        yield LayoutFault(
            "parity on one drive", array.name,
            f"its layout is {layout}, that of RAID 5 with a drive more: one drive holds all of the second parity",
            "each write of any drive also writes this one, and reads never use it",
            "mdadm --grow --layout=left-symmetric", ("layout",),
        )  # fmt: skip


def _check_error_recovery(drive: ObservedDisk, array: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """The time after which the kernel resets a drive against the time for which the drive repeats a read."""
    recovery, timeout = drive.settings.get("error_recovery", ""), drive.settings.get("timeout", "")
    if not recovery or not timeout.isdigit():
        return
    yield CheckedItem("error recovery and timeout", drive.name)
    seconds = int(recovery) / 10 if recovery.isdigit() else _LONGEST_RECOVERY_S
    if (not recovery.isdigit() and drive.flash) or int(timeout) > seconds:
        return
    text = f"takes up to {seconds:g} s" if recovery.isdigit() else f"has no limit ({recovery})"
    yield LayoutFault(
        "timeout below error recovery", drive.name,
        f"its error recovery {text}, but the timeout of commands is {timeout} s",
        f"while it repeats a bad read the kernel resets it, and {array.name} loses the drive instead of a sector",
        "smartctl -l scterc,70,70, or echo 180 > device/timeout where the drive has no such limit",
        ("error_recovery", "timeout"),
    )  # fmt: skip
