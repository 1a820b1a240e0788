# SPDX-License-Identifier: Apache-2.0
"""Finds write-back caches of device mapper that lie on fewer copies than the volume that they belong to."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.md_output import REDUNDANT_LEVELS
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage


def find_cache_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Volumes whose data lies on RAID, and whose write-back cache lies on single drives."""
    names = {disk.settings["number"]: disk.name for disk in observed_storage.disks.values()
             if "number" in disk.settings}  # fmt: skip
    for volume in observed_storage.disks.values():
        parts = volume.settings.get("mapper_write_cache", "").split()
        if len(parts) != 2:
            continue
        yield CheckedItem("the redundancy of a write cache", volume.name)
        cache, origin = (_list_lowest(observed_storage, names.get(part, part)) for part in parts)
        lost = [disk.name for disk in cache if not _is_redundant(disk)]
        if lost and origin and all(_is_redundant(disk) for disk in origin):
            yield LayoutFault(
                "write cache without redundancy", volume.name,
                f"its write-back cache lies on {', '.join(lost)} alone, its data on"
                f" {', '.join(disk.name for disk in origin)}, which has redundancy",
                "writes are acknowledged when this drive alone has them: when it fails they are lost, and the file"
                " system is damaged although its RAID is whole",
                "lvchange --cachemode writethrough (or lvconvert --uncache, which first writes all to the volume), or"
                " put the cache on a mirror of two drives", ("cache",), (volume.name, *lost),
            )  # fmt: skip


def _is_redundant(disk: ObservedDisk) -> bool:
    targets = disk.settings.get("mapper_targets", "").split()
    return disk.level in REDUNDANT_LEVELS or bool({"raid", "mirror"} & set(targets))


def _list_lowest(observed_storage: ObservedStorage, name: str) -> list[ObservedDisk]:
    """The arrays below a device, and the drives that are in none."""
    return [disk for disk in observed_storage.iterate_disks_below(name, _is_lowest) if _is_lowest(disk)]


def _is_lowest(disk: ObservedDisk) -> bool:
    return _is_redundant(disk) or disk.kind == "multipath" or not (disk.on or disk.members)
