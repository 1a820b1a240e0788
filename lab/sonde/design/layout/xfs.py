# SPDX-License-Identifier: Apache-2.0
"""Computes the parameters of an XFS file system: allocation groups, stripe unit and width, log.

Two versions of mkfs: the current one (libxfs `calc_default_ag_geometry` and the alignment that mkfs applies to it,
described in mkfs.xfs(8) and tested against ``mkfs.xfs -N``), and that of 2004, derived from its published output.
"""

from __future__ import annotations

from dataclasses import dataclass

from sonde.design.layout.geometry import GIB, KIB, MIB

# The format of XFS allows allocation groups below 1 TiB.
_LARGEST_GROUP, _SMALLEST_GROUP = 1 << 40, 16 * MIB
_LEGACY_GROUP = GIB
# Log sizes: the default minimum of mkfs, the maximum of XFS, and those of 2004.
SMALLEST_LOG, LARGEST_LOG = 64 * MIB, 2 * GIB - 10 * MIB
LEGACY_LOG, LEGACY_LARGEST_LOG = 4096 * 4096, 32768 * 4096
# Write rate in bytes/s at which the log of 2004 became the limit ("not sufficient for > 300 MB/s").
LEGACY_LOG_RATE = 300e6
# Largest stripe unit of a log (XFS_MAX log buffer).
LARGEST_LOG_UNIT = 256 * KIB


@dataclass(frozen=True)
class AllocationGroups:
    """Allocation groups: their number, their size in file-system blocks, and the blocks in use."""

    count: int
    size: int
    blocks: int
    how: str


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def compute_legacy_groups(blocks: int, unit: int, width: int = 0, block: int = 4096) -> AllocationGroups:
    """Groups as mkfs of 2004 created them: about 1 GiB each, a whole number of stripe units. All sizes are in blocks.
    With a wider stripe the size is one unit off its multiples, so that groups do not all start on the same member."""
    count = -(-blocks // (_LEGACY_GROUP // block))
    size = -(-blocks // count)
    even = _round_up(size, unit) if unit else size
    how = (
        f"ceil({blocks} / {_LEGACY_GROUP // block} blocks of 1 GiB) = {count} groups, ceil({blocks} / {count}) = {size}"
    )
    if unit:
        how += f", up to stripe units of {unit}: {even}"
    if unit and width > unit and even % width == 0 and blocks > even:
        even -= unit
        how += f", one unit off a multiple of the stripe width {width}: {even}"
    return AllocationGroups(-(-blocks // even), even, blocks, how)


def compute_modern_groups(
    blocks: int, unit: int, width: int, block: int = 4096, requested: int | None = None
) -> AllocationGroups:
    """Groups as mkfs.xfs creates them. `unit` and `width` are those of the stripe, in blocks; 0 is none. `requested` is
    the approximate number of groups, instead of the default.

    If all groups started on the same stripe unit, their headers would load one drive: then the size is one unit less. A
    remainder below 16 MiB at the end stays unused.
    """
    largest = (_LARGEST_GROUP - 1) // block
    if requested is not None:
        size, how = min(largest, -(-blocks // requested)), f"ceil({blocks} / {requested} groups)"
    else:
        size, how = _default_group(blocks, block, largest, multidisk=unit > 0)
    how = f"{how} = {size} blocks"
    if unit:
        even = _round_up(size, unit)
        if even > largest:
            even = size // unit * unit
        if even != size:
            how += f", a whole number of stripe units of {unit}: {even}"
        if width and width != unit and even % width == 0 and blocks > even:
            less = even - unit
            even = less if less * block >= _SMALLEST_GROUP else even + unit
            how += f", one unit off a multiple of the stripe width {width}: {even}"
        size = even
    count = -(-blocks // size)
    remainder = blocks % size
    if count > 1 and remainder and remainder * block < _SMALLEST_GROUP:
        blocks, count = blocks - remainder, count - 1
        how += f"; {remainder} blocks at the end are too few for a group and stay unused"
    return AllocationGroups(count, size, blocks, f"{how}; ceil({blocks} / {size}) = {count} groups")


def _default_group(blocks: int, block: int, largest: int, *, multidisk: bool) -> tuple[int, str]:
    total = blocks * block
    if total >= 32 << 40 or (not multidisk and total >= 4 << 40):
        return largest, "the largest group, 1 TiB less a block"
    if not multidisk and total >= 128 * MIB:
        shift = 2
    else:
        limits = (512 * GIB, 8 * GIB)
        shift = 5 - sum(total <= limit for limit in limits)
        shift -= sum(total < limit for limit in (128 * MIB, 64 * MIB, 32 * MIB))
    parts = 1 << shift
    size = blocks >> shift
    if blocks % parts and size < largest:
        size += 1
    return size, f"ceil({blocks} / {parts} groups)"


def compute_log_size(capacity: int, group: int, rate: float | None, *, external: bool = False) -> tuple[int, str]:
    """Bytes of the log and the reason. `group` is the size of an allocation group in bytes, which holds an internal
    log; `rate` is the required write rate in bytes/s, None if unknown.

    1/2048 of the file system, like mkfs.xfs, but at least 64 MiB; at least 128 MiB, which was found sufficient in 2004,
    for more than 300 MB/s or an unknown rate.
    """
    fast = rate is None or rate > LEGACY_LOG_RATE
    least = LEGACY_LARGEST_LOG if fast else SMALLEST_LOG
    share = capacity // 2048
    size = min(LARGEST_LOG, max(least, share)) // MIB * MIB
    how = f"largest of {least // MIB} MiB ({'beyond' if fast else 'up to'} 300 MB/s) and 1/2048 of the file system"
    if not external and size > group * 3 // 4:
        size = group * 3 // 4 // MIB * MIB
        how += ", but no more than three quarters of an allocation group"
    return size, how


def compute_log_unit(segment: int, block: int = 4096) -> int:
    """Bytes of the log's stripe unit: the segment, or its largest divisor of whole blocks up to 256 KiB; 0 is none."""
    if segment <= LARGEST_LOG_UNIT:
        return segment if segment % block == 0 else 0
    return next((size for size in range(LARGEST_LOG_UNIT, 0, -block) if segment % size == 0), 0)
