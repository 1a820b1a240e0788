# SPDX-License-Identifier: Apache-2.0
"""Checks the blocks and sectors of a local file system, and whether it has a journal."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import GIB
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage
from sonde.design.layout.observe_written import list_disks_below
from sonde.model.units import format_bytes

# On smaller file systems small blocks save space that matters.
_MIN_LARGE_BYTES = 64 * GIB
_USUAL_BLOCK = 4096
_MIN_MUCH_RESERVED_BYTES = 200 * GIB
# mkfs.lustre reserves 5 % of a target, and the manual of Lustre advises against less.
_RESERVE_OF_TARGETS = 0.051
# Metadata at the end of a device, and rounding, take less than this fraction of it.
_SIZE_SHARE = 0.02


def find_block_faults(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem, planned_bytes: int | None = None
) -> Iterator[LayoutFault | CheckedItem]:
    """All faults of size, blocks, sectors and journal of one file system, for which a plan may have another size than
    that of its device."""
    yield from _check_size(observed_storage, file_system, planned_bytes)
    if file_system.facts.get("journal"):
        yield CheckedItem("journal", file_system.location)
    if file_system.facts.get("journal") == "no":
        yield LayoutFault(
            "no journal", file_system.location, "it has no journal",
            "after a crash all of it must be checked before it can be mounted, and files may be lost",
            "tune2fs -O has_journal, while it is not mounted",
        )  # fmt: skip
    yield from _check_health(file_system)
    is_large = file_system.size_bytes is not None and file_system.size_bytes >= _MIN_LARGE_BYTES
    if file_system.block and is_large:
        yield CheckedItem("block size", file_system.location)
    if file_system.block and file_system.block < _USUAL_BLOCK and is_large:
        yield LayoutFault(
            "blocks too small", file_system.location, f"a block has {format_bytes(file_system.block)}",
            "four times the metadata of blocks of 4 KiB, and writes smaller than a sector of the drives",
            "save the data, then make it with blocks of 4 KiB", ("block",),
        )  # fmt: skip
    yield from _check_sectors(observed_storage, file_system)


def _check_size(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem, planned_bytes: int | None
) -> Iterator[LayoutFault | CheckedItem]:
    """The size of a file system against that of its device; a smaller one may be planned."""
    device = next(iter(list_disks_below(observed_storage, (file_system,))), None)
    size = file_system.size_bytes
    if device is None or not device.size or not size:
        return
    yield CheckedItem("the size of its device", file_system.location)
    texts = f"it has {format_bytes(size)}; its device {device.name} has {format_bytes(device.size)}"
    is_planned = planned_bytes is not None and abs(size - planned_bytes) <= _SIZE_SHARE * planned_bytes
    if size < (1 - _SIZE_SHARE) * device.size and not is_planned:
        yield LayoutFault(
            "device partly unused", file_system.location, texts, "capacity is lost",
            "grow it (xfs_growfs, or resize2fs), or save the data and make it again without a size", ("blocks",),
        )  # fmt: skip
    elif size > device.size:
        yield LayoutFault(
            "larger than its device", file_system.location, texts, "what lies beyond the end cannot be read or written",
            "look whether the device shrank or is another one, before anything is written",
        )  # fmt: skip


def _check_health(file_system: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    """The state in the superblock, and features that every file system of today has."""
    state = file_system.facts.get("state", "")
    if state:
        yield CheckedItem("state", file_system.location)
    if "error" in state:
        yield LayoutFault(
            "file system with errors", file_system.location, f"its superblock says: {state}",
            "parts of it are wrong: it may become read-only or lose files", "unmount it, and run e2fsck",
        )  # fmt: skip
    reserved = file_system.facts.get("reserved", "")
    if (
        reserved.isdigit()
        and file_system.block
        and int(reserved) * file_system.block > _MIN_MUCH_RESERVED_BYTES
        and not (file_system.kind == "ldiskfs" and int(reserved) <= _RESERVE_OF_TARGETS * (file_system.blocks or 0))
    ):
        yield LayoutFault(
            "space reserved for root", file_system.location,
            f"{format_bytes(int(reserved) * file_system.block)} are reserved for root", "users cannot use them",
            "tune2fs -m 0 or -r with a number of blocks; root needs some only where it writes", ("reserved",),
        )  # fmt: skip


def _check_sectors(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem
) -> Iterator[LayoutFault | CheckedItem]:
    sectors = [int(file_system.facts[name]) for name in ("sector", "log_sector") if file_system.facts.get(name)]
    if file_system.log_device not in (None, "internal"):
        sectors = sectors[:1]  # the log is on other drives
    sector = min(sectors, default=0)
    below = list_disks_below(observed_storage, (file_system,))
    physical = max((int(disk.queue.get("physical_block_size", 0) or 0) for disk in below), default=0)
    if not sector or not physical:
        return
    yield CheckedItem("sectors", file_system.location)
    if sector < physical:
        yield LayoutFault(
            "sectors too small", file_system.location,
            f"it writes sectors of {sector} bytes; those of the drives have {physical}",
            "each write of its log and headers reads a sector first",
            f"save the data, then make it with -s size={physical}",
        )  # fmt: skip
