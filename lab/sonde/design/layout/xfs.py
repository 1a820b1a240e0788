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
_MOST_LOG_BLOCKS = 1 << 20
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


def _round_up_to_multiple(block_count: int, multiple: int) -> int:
    return -(-block_count // multiple) * multiple


def compute_allocation_groups_of_2004(
    block_count: int, stripe_unit: int, stripe_width: int = 0, block_bytes: int = 4096
) -> AllocationGroups:
    """Groups as mkfs of 2004 created them: about 1 GiB each, a whole number of stripe units. All sizes are in blocks.
    With a wider stripe the size is one unit off its multiples, so that groups do not all start on the same member."""
    count = -(-block_count // (_LEGACY_GROUP // block_bytes))
    size = -(-block_count // count)
    even = _round_up_to_multiple(size, stripe_unit) if stripe_unit else size
    how = (
        f"ceil({block_count} / {_LEGACY_GROUP // block_bytes} blocks of 1 GiB) = {count} groups, ceil({block_count} "
        f"/ {count}) = {size}"
    )
    if stripe_unit:
        how += f", up to stripe units of {stripe_unit}: {even}"
    if stripe_unit and stripe_width > stripe_unit and even % stripe_width == 0 and block_count > even:
        even -= stripe_unit
        how += f", one unit off a multiple of the stripe width {stripe_width}: {even}"
    return AllocationGroups(-(-block_count // even), even, block_count, how)


def compute_allocation_groups(
    block_count: int, stripe_unit: int, stripe_width: int, block_bytes: int = 4096, requested_groups: int | None = None
) -> AllocationGroups:
    """Groups as mkfs.xfs creates them. `stripe_unit` and `stripe_width` are those of the stripe, in blocks; 0 is none.
    `requested_groups` is the approximate number of groups, instead of the default.

    If all groups started on the same stripe unit, their headers would load one drive: then the size is one unit less. A
    remainder below 16 MiB at the end stays unused.
    """
    largest = (_LARGEST_GROUP - 1) // block_bytes
    if requested_groups is not None:
        size, how = (
            min(largest, -(-block_count // requested_groups)),
            f"ceil({block_count} / {requested_groups} groups)",
        )
    else:
        size, how = _choose_default_group_size_and_reason(block_count, block_bytes, largest, is_striped=stripe_unit > 0)
    how = f"{how} = {size} blocks"
    if stripe_unit:
        even = _round_up_to_multiple(size, stripe_unit)
        if even > largest:
            even = size // stripe_unit * stripe_unit
        if even != size:
            how += f", a whole number of stripe units of {stripe_unit}: {even}"
        if stripe_width and stripe_width != stripe_unit and even % stripe_width == 0 and block_count > even:
            less = even - stripe_unit
            even = less if less * block_bytes >= _SMALLEST_GROUP else even + stripe_unit
            how += f", one unit off a multiple of the stripe width {stripe_width}: {even}"
        size = even
    count = -(-block_count // size)
    remainder = block_count % size
    if count > 1 and remainder and remainder * block_bytes < _SMALLEST_GROUP:
        block_count, count = block_count - remainder, count - 1
        how += f"; {remainder} blocks at the end are too few for a group and stay unused"
    return AllocationGroups(count, size, block_count, f"{how}; ceil({block_count} / {size}) = {count} groups")


def _choose_default_group_size_and_reason(
    block_count: int, block_bytes: int, largest_group: int, *, is_striped: bool
) -> tuple[int, str]:
    total = block_count * block_bytes
    if total >= 32 << 40 or (not is_striped and total >= 4 << 40):
        return largest_group, "the largest group, 1 TiB less a block"
    if not is_striped and total >= 128 * MIB:
        shift = 2
    else:
        limits = (512 * GIB, 8 * GIB)
        shift = 5 - sum(total <= limit for limit in limits)
        shift -= sum(total < limit for limit in (128 * MIB, 64 * MIB, 32 * MIB))
    parts = 1 << shift
    size = block_count >> shift
    if block_count % parts and size < largest_group:
        size += 1
    return size, f"ceil({block_count} / {parts} groups)"


def compute_log_size_and_reason(
    capacity_bytes: int, group_bytes: int, write_bytes_per_s: float | None, *, is_external: bool = False
) -> tuple[int, str]:
    """Bytes of the log and the reason. `group_bytes` is the size of an allocation group in bytes, which holds an
    internal log; `write_bytes_per_s` is the required write rate in bytes/s, None if unknown.

    1/2048 of the file system, like mkfs.xfs, but at least 64 MiB; at least 128 MiB, which was found sufficient in 2004,
    for more than 300 MB/s or an unknown rate.
    """
    fast = write_bytes_per_s is None or write_bytes_per_s > LEGACY_LOG_RATE
    least = LEGACY_LARGEST_LOG if fast else SMALLEST_LOG
    share = capacity_bytes // 2048
    size = min(LARGEST_LOG, max(least, share)) // MIB * MIB
    how = f"largest of {least // MIB} MiB ({'beyond' if fast else 'up to'} 300 MB/s) and 1/2048 of the file system"
    if not is_external and size > group_bytes * 3 // 4:
        size = group_bytes * 3 // 4 // MIB * MIB
        how += ", but no more than three quarters of an allocation group"
    return size, how


def compute_largest_log(block_bytes: int) -> int:
    """Bytes of the largest log that mkfs.xfs makes: below 2 GiB, and at most 2**20 blocks (XFS_MAX_LOG_BYTES and
    XFS_MAX_LOG_BLOCKS of libxfs)."""
    return min(LARGEST_LOG, _MOST_LOG_BLOCKS * block_bytes)


def compute_log_unit(segment_bytes: int, block_bytes: int = 4096) -> int:
    """Bytes of the log's stripe unit: the segment, or its largest divisor of whole blocks up to 256 KiB; 0 is none."""
    if segment_bytes <= LARGEST_LOG_UNIT:
        return segment_bytes if segment_bytes % block_bytes == 0 else 0
    return next((size for size in range(LARGEST_LOG_UNIT, 0, -block_bytes) if segment_bytes % size == 0), 0)
