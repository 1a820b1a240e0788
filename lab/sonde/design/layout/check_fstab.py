# SPDX-License-Identifier: Apache-2.0
"""Compares /etc/fstab with the devices and mounts of a host: what the next start of the machine mounts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_inactive_arrays import list_inactive_arrays
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import FstabEntry, ObservedDisk, ObservedStorage

_SETTINGS = {"UUID": "fs_uuid", "LABEL": "fs_label", "PARTLABEL": "partlabel"}
_LOCAL_KINDS = ("xfs", "ext2", "ext3", "ext4")
# Options that do not depend on the one who mounts, and cost much where they are forgotten.
_LASTING_OPTIONS = ("noatime", "logdev", "logbsize", "largeio", "swalloc", "nobarrier", "noquota", "stripe", "sunit")
# What the kernel prints for each mounted XFS that nobody gave another value.
_PRINTED_DEFAULTS = ("logbsize=32k", "logbsize=32768")


def find_fstab_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Lines whose device no output shows, two lines of one mount point, and options other than those of the mount."""
    counts = Counter(each.mount_point for each in observed_storage.fstab if each.mount_point.startswith("/"))
    for mount_point, count in counts.items():
        if count > 1:
            yield LayoutFault(
                "two lines of fstab", mount_point, f"fstab has {count} lines for it",
                "the last one that is mounted hides the others", "remove the line that does not belong there",
            )  # fmt: skip
    for entry in observed_storage.fstab:
        if entry.kind not in _LOCAL_KINDS or not entry.mount_point.startswith("/") or "noauto" in entry.options:
            continue
        yield CheckedItem("the line of fstab", entry.mount_point)
        if not _find_devices(observed_storage, entry) and _shows_sources(observed_storage, entry):
            inactive = ", ".join(array.name for array in list_inactive_arrays(observed_storage))
            yield LayoutFault(
                "fstab names no device", entry.mount_point, f"fstab mounts {entry.source}, which no device has"
                + f"; it may be on {inactive}, which does not run" * bool(inactive),
                "the next start of the machine stops, or goes on without it",
                "assemble the array first, and change fstab only if no device has it then" if inactive
                else "write the UUID or label that blkid prints into fstab",
            )  # fmt: skip
        elif counts[entry.mount_point] == 1:
            yield from _compare_options(observed_storage, entry)


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
        if lost or new:
            texts = ["without " + ", ".join(lost)] * bool(lost) + ["with " + ", ".join(new)] * bool(new)
            yield LayoutFault(
                "fstab differs from the mount", entry.mount_point, f"fstab mounts it {' and '.join(texts)}",
                "after the next start of the machine it is mounted in another way than now",
                "write the options that are meant into fstab",
            )  # fmt: skip
