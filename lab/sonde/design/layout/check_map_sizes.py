# SPDX-License-Identifier: Apache-2.0
"""Compares the size of multipath maps with that of their paths, of arrays with that of their members, and the ends of
partitions with the size of their disk."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedStorage
from sonde.model.units import format_bytes

# Rounding to chunks takes less than this fraction of an array.
_SIZE_SHARE = 0.01


def find_map_size_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Maps that are smaller or larger than all of their paths. Paths of unequal size are another fault."""
    disks = observed_storage.disks
    for disk in disks.values():
        sizes = {disks[path.name].size for path in disk.paths if path.name in disks}
        size = next(iter(sizes), None)
        if disk.kind != "multipath" or disk.size is None or size is None or len(sizes) != 1:
            continue
        yield CheckedItem("the size of a map", disk.name)
        name = disk.settings.get("name") or disk.name
        if disk.size < size:
            yield LayoutFault(
                "map smaller than its LUN", disk.name,
                f"{name} has {format_bytes(disk.size)}, its paths have {format_bytes(size)}: the LUN has grown",
                "the new capacity is not used, and the map may fail to load again",
                f"multipathd resize map {name}, then pvresize or the tool of the file system (xfs_growfs, resize2fs)",
                ("size",),
            )  # fmt: skip
        elif disk.size > size:
            yield LayoutFault(
                "map larger than its LUN", disk.name,
                f"{name} has {format_bytes(disk.size)}, its paths have {format_bytes(size)}: the LUN was made smaller",
                "requests beyond its end fail: data is lost or was never written",
                "give the LUN its former size on the array before anything is written, then check the file system",
                ("size",),
            )  # fmt: skip


def find_array_size_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Arrays that are smaller than what they use of their members, as mdadm --grow --array-size makes them."""
    for array in observed_storage.disks.values():
        used = array.settings.get("used_bytes", "")
        if array.kind != "md" or not used.isdigit() or not array.size or not array.data or array.level == "linear":
            continue
        yield CheckedItem("the size of an array", array.name)
        expected = array.data * int(used)
        if array.size < (1 - _SIZE_SHARE) * expected and array.settings.get("reshape_position", "none") == "none":
            yield LayoutFault(
                "array smaller than its members", array.name,
                f"it has {format_bytes(array.size)}; its members give {format_bytes(expected)}",
                "the rest cannot be used", f"mdadm --grow /dev/{array.name} --array-size=max, then grow what is on it",
                ("array_size",),
            )  # fmt: skip


def find_partition_end_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Partitions that end behind the end of their disk."""
    for partition in observed_storage.disks.values():
        disk = observed_storage.disks.get(partition.on) if partition.kind == "part" else None
        if disk is None or disk.size is None or partition.size is None or partition.start is None:
            continue
        yield CheckedItem("the end of a partition", partition.name)
        excess = partition.start + partition.size - disk.size
        if excess > 0:
            yield LayoutFault(
                "partition beyond its disk", partition.name,
                f"it ends {format_bytes(excess)} behind the end of {disk.name}, which has {format_bytes(disk.size)}",
                "requests beyond the end fail, and what is on it may be refused at the next start",
                f"look why {disk.name} is smaller than its table of partitions (another drive or LUN, a copied table, a"
                " hidden area), and give it its former size before anything is written; else save the data, and make"
                " the partition smaller", ("size",), (partition.name, disk.name),
            )  # fmt: skip
