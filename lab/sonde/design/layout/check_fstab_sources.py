# SPDX-License-Identifier: Apache-2.0
"""Compares the device that a line of fstab names with the one that is mounted there now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import FstabEntry, ObservedDisk, ObservedStorage

_ANOTHER_DEVICE = "fstab names another device"
_LABELS = {"UUID": "fs_uuid", "LABEL": "fs_label", "PARTLABEL": "partlabel"}
_MOUNTED_KINDS = ("xfs", "ext2", "ext3", "ext4")  # others are parts of arrays and volumes: another fault of the line
# Names of devices that only links give, in folders that the collector lists completely.
_LINK_PATTERN = re.compile(r"(/dev/mapper/|/dev/disk/by-[a-z]+/).+")


def find_source_faults(observed_storage: ObservedStorage, entry: FstabEntry) -> Iterator[LayoutFault]:
    """A line whose device is known, and another one is mounted; and a name below /dev that no device has."""
    devices = list_named_devices(observed_storage, entry.source)
    mounted = [disk for each in observed_storage.file_systems
               if each.location == entry.mount_point and each.options and each.kind == entry.kind
               for disk in list_named_devices(observed_storage, each.device)]  # fmt: skip
    names = {disk.name for disk in devices}
    is_part = "=" in entry.source and any(
        disk.settings.get("fs_kind", entry.kind) not in _MOUNTED_KINDS for disk in devices
    )
    if devices and mounted and not is_part and not names & {disk.name for disk in mounted}:
        yield LayoutFault(
            _ANOTHER_DEVICE, entry.mount_point,
            f"fstab mounts {entry.source}, which is {_describe_disk(devices[0])}; mounted now is"
            f" {_describe_disk(mounted[0])}",
            "after the next start of the machine programs find other files there",
            "look which of both belongs there, and correct the line or the mount",
            parts=(entry.mount_point, devices[0].name, mounted[0].name),
        )  # fmt: skip
    folder = _LINK_PATTERN.fullmatch(entry.source)
    if folder is not None and not devices and _shows_folder(observed_storage, folder[1]):
        yield LayoutFault(
            "fstab names no device", entry.mount_point, f"fstab mounts {entry.source}, which no device has",
            "the next start of the machine stops, or goes on without it",
            f"write the name that exists{f' ({_describe_disk(mounted[0])} is mounted now)' if mounted else ''}, or the"
            " UUID that blkid prints, into fstab", devices=(entry.source,),
        )  # fmt: skip


def join_exchanged_lines(results: Sequence[LayoutFault | CheckedItem]) -> Iterator[LayoutFault | CheckedItem]:
    """The results, with one fault for two lines of which each names the device that is mounted for the other."""
    pairs: dict[frozenset[str], list[LayoutFault]] = {}
    for result in results:
        if isinstance(result, LayoutFault) and result.kind == _ANOTHER_DEVICE:
            pairs.setdefault(frozenset(result.parts[1:]), []).append(result)
    exchanged = {id(fault): faults for faults in pairs.values() if len(faults) == 2 for fault in faults}
    for result in results:
        first, second = exchanged.get(id(result), (None, None))
        if first is None or second is None:
            yield result
        elif isinstance(result, LayoutFault) and result is first:
            yield replace(
                result, location=f"{first.location}, {second.location}", parts=(*first.parts, second.location),
                problem=f"{first.problem}, and at {second.location} it is the reverse: they are exchanged",
                remedy="look by their files which of both belongs where; then mount them by fstab again, or correct"
                " both lines or labels",
            )  # fmt: skip


def _describe_disk(disk: ObservedDisk) -> str:
    name = disk.settings.get("name", "")
    return f"{disk.name} ({name})" if name and name != disk.name else disk.name


def list_named_devices(observed_storage: ObservedStorage, source: str) -> list[ObservedDisk]:
    """The devices with a UUID or label, or with a name below /dev."""
    kind, _, value = source.partition("=")
    disks = observed_storage.disks.values()
    if kind in _LABELS:
        text = value.strip("\"'").lower()
        return [disk for disk in disks if text and disk.settings.get(_LABELS[kind], "").lower() == text]
    name = re.sub(r"^/dev/(?:mapper/)?", "", source) if source.startswith("/dev/") else ""
    return [disk for disk in disks if name and (
        name in (disk.name, disk.settings.get("name")) or source in disk.settings.get("links", "").split()
    )]  # fmt: skip


def _shows_folder(observed_storage: ObservedStorage, folder: str) -> bool:
    """Whether an output shows links in a folder of /dev."""
    return any(link.startswith(folder) for disk in observed_storage.disks.values()
               for link in disk.settings.get("links", "").split())  # fmt: skip


def find_lasting_name(disk: ObservedDisk) -> str:
    """A link to a device that leads to it after each start; "" is unknown."""
    links = disk.settings.get("links", "").split()
    return next((link for folder in ("/dev/md/", "/dev/mapper/", "/dev/disk/by-id/", "/dev/disk/by-partlabel/")
                 for link in links if link.startswith(folder)), "")  # fmt: skip
