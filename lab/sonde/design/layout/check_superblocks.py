# SPDX-License-Identifier: Apache-2.0
"""Checks the superblocks of members of md and the lines of mdadm.conf: members that fell behind, superblocks without
their checksum, drives that left their array, and UUIDs of other arrays."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_array_devices import find_excluded_members
from sonde.design.layout.check_inactive_arrays import find_inactive_arrays, normalize_uuid
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import read_identity
from sonde.design.layout.live.md_output import OUTSIDE_OF_DATA
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

# An array counts events while its members are examined one after another; an assembly bears a difference of one.
_FEW_EVENTS, _MANY_EVENTS = 1, 100
MEMBER_KIND = "linux_raid_member"


def find_superblock_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """All faults of the superblocks, of mdadm.conf and of inactive arrays."""
    for disk in observed_storage.disks.values():
        if disk.settings.get("superblock_events"):
            yield from _check_checksum(disk)
        if disk.kind == "md":
            yield from _compare_events(observed_storage, disk)
            yield from _check_mdadm_conf_line(observed_storage, disk)
    yield from _find_former_members(observed_storage)
    yield from find_inactive_arrays(observed_storage)
    yield from find_excluded_members(observed_storage)
    yield from _check_alerts(observed_storage)


def _check_alerts(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Whether mdadm.conf names somebody whom mdadm --monitor informs."""
    arrays = [disk for disk in observed_storage.disks.values() if disk.kind == "md"
              and disk.level not in ("raid0", "linear") and "configured_device" in disk.settings]  # fmt: skip
    if arrays:
        yield CheckedItem("alerts of mdadm.conf", ", ".join(array.name for array in arrays))
    silent = [array.name for array in arrays if array.settings.get("configured_alert") == "none"]
    if silent:
        yield LayoutFault(
            "no alert of failures", ", ".join(silent), "mdadm.conf has neither MAILADDR nor PROGRAM",
            "mdadm --monitor does not start, or writes to the log only: a failed drive is noticed when the next one"
            " fails",
            "MAILADDR with an address that somebody reads in mdadm.conf, then restart mdmonitor.service and try"
            " mdadm --monitor --scan --oneshot --test", ("alert",),
        )  # fmt: skip


def _check_checksum(disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    yield CheckedItem("the checksum of a superblock", disk.name)
    if expected := disk.settings.get("superblock_expected", ""):
        yield LayoutFault(
            "superblock damaged", disk.name,
            f"the checksum of its superblock is wrong (mdadm --examine: expected {expected})",
            "md does not accept this member when the array is assembled again: it starts degraded",
            "look at the drive (smartctl, log of the kernel); mdadm --fail and --remove it, then --add it again or"
            " another drive, while all other members are sound",
        )  # fmt: skip


def _compare_events(observed_storage: ObservedStorage, array: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """Members whose superblock is older than those of the others."""
    members = [observed_storage.disks[name] for name in array.members if name in observed_storage.disks]
    events = {member.name: int(member.settings["superblock_events"]) for member in members
              if member.settings.get("superblock_events", "").isdigit()}  # fmt: skip
    if len(events) < 2:
        return
    yield CheckedItem("events of all members", array.name)
    newest = max(events, key=lambda name: events[name])
    for name, count in events.items():
        settings, other = (observed_storage.disks[each].settings for each in (name, newest))
        behind = events[newest] - count
        has_other_view = settings.get("superblock_members") != other.get("superblock_members")
        if behind > _MANY_EVENTS or (behind > _FEW_EVENTS and has_other_view):
            time = settings.get("superblock_time", "")
            yield LayoutFault(
                "stale member", name,
                f"its superblock is older than those of the other members of {array.name}: Events {count:,}, those have"
                f" {events[newest]:,}{f' (last update {time})' if time else ''}",
                "what was written since then is not on it: the next assembly leaves it out, and the array is degraded",
                f"look at drive and cable, then mdadm --manage /dev/{array.name} --re-add /dev/{name}; never --force an"
                " assembly with it", parts=(name, array.name),
            )  # fmt: skip


def _check_mdadm_conf_line(
    observed_storage: ObservedStorage, array: ObservedDisk
) -> Iterator[LayoutFault | CheckedItem]:
    """The line of mdadm.conf that is for an array."""
    uuid, configured = array.settings.get("array_uuid", ""), array.settings.get("configured_uuid", "").split()
    others = [text for text in configured if normalize_uuid(text) != normalize_uuid(uuid)]
    device = array.settings.get("configured_device", "")
    if not device or not uuid:
        return
    yield CheckedItem("the line of mdadm.conf", array.name)
    title = array.settings.get("array_name") or array.name
    if device == "none":
        yield LayoutFault(
            "array not in mdadm.conf", array.name,
            f"mdadm.conf has lines of other arrays, but none of {title} (UUID {uuid})",
            "after a restart it may have another name (md127), and nothing that the line would set",
            "add its line of mdadm --detail --scan, and make the initramfs again",
        )  # fmt: skip
    elif device.lower() == "<ignore>":
        yield LayoutFault(
            "array ignored by mdadm.conf", array.name,
            f"its line of mdadm.conf is ARRAY <ignore> (UUID {uuid}), though it runs now",
            "at the next start of the machine it is not assembled, and what is on it is missing",
            "replace the line by that of mdadm --detail --scan, and make the initramfs again (dracut -f,"
            " update-initramfs -u), unless a cluster assembles it",
        )  # fmt: skip
    elif others:
        yield LayoutFault(
            "another UUID in mdadm.conf", array.name,
            f"mdadm.conf names {device} with UUID {', '.join(others)}; the array has {uuid}",
            "at the next start it is not assembled by this line: it has another name (md127) or is missing",
            "replace the line by that of mdadm --detail --scan, and make the initramfs again (dracut -f,"
            " update-initramfs -u)",
        )  # fmt: skip


def _find_former_members(observed_storage: ObservedStorage) -> Iterator[LayoutFault]:
    """Drives that hold the superblock of an array that runs without them."""
    arrays = {normalize_uuid(disk.settings["array_uuid"]): disk for disk in observed_storage.disks.values()
              if disk.kind == "md" and disk.settings.get("array_uuid")}  # fmt: skip
    used = {disk.name for array in arrays.values() for disk in observed_storage.iterate_disks_below(array.name)}
    used |= {path.name for disk in observed_storage.disks.values() for path in disk.paths}
    identities = {read_identity(observed_storage.disks[name], observed_storage.disks) for name in used
                  if name in observed_storage.disks} - {""}  # fmt: skip
    for disk in observed_storage.disks.values():
        array = arrays.get(normalize_uuid(disk.settings.get("fs_uuid", "")))
        if array is None or disk.name in used or disk.settings.get("fs_kind") != MEMBER_KIND:
            continue
        others = " ".join(array.settings.get(name, "") for name in OUTSIDE_OF_DATA).split()
        if disk.name in others or disk.kind not in ("disk", "part", "multipath"):
            continue
        if read_identity(disk, observed_storage.disks) in identities:
            continue  # another path of a drive that the array uses
        yield LayoutFault(
            "drive left its array", disk.name,
            f"it holds a superblock of {array.name}, but is neither a member nor a spare of it",
            "the array works without it, and what it holds is old",
            f"look at the drive (smartctl, log of the kernel), then mdadm --manage /dev/{array.name} --re-add"
            f" /dev/{disk.name}, or add another drive",
            parts=(disk.name, array.name),
        )  # fmt: skip
