# SPDX-License-Identifier: Apache-2.0
"""Numbers of an XFS file system: allocation groups, stripe unit and width, the log.

Two mkfs: today's (libxfs `calc_default_ag_geometry` and the alignment that mkfs applies to it, described in mkfs.xfs(8)
and checked against ``mkfs.xfs -N`` by the tests), and that of 2004, whose rule follows from its printed outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from sonde.design.layout.geometry import GIB, KIB, MIB

# An allocation group is under 1 TiB today; it was "a little less than 4 GB" in 2004.
_LARGEST_GROUP, _SMALLEST_GROUP = 1 << 40, 16 * MIB
_LEGACY_GROUP = GIB
# Logs: the smallest that today's mkfs makes by itself, the largest that XFS has, and that of 2004.
SMALLEST_LOG, LARGEST_LOG = 64 * MIB, 2 * GIB - 10 * MIB
LEGACY_LOG, LEGACY_LARGEST_LOG = 4096 * 4096, 32768 * 4096
# With the log of 2004 writing stopped growing here; "not sufficient for > 300 MB/s".
LEGACY_LOG_RATE = 300e6
# Largest stripe unit of a log (XFS_MAX log buffer).
LARGEST_LOG_UNIT = 256 * KIB


@dataclass(frozen=True)
class Groups:
    """Allocation groups: how many, of how many file system blocks; `blocks` of data are used."""

    count: int
    size: int
    blocks: int
    how: str


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def legacy_groups(blocks: int, unit: int, width: int = 0, block: int = 4096) -> Groups:
    """Groups as mkfs of 2004 made them: about 1 GiB each, a whole number of stripe units (all in blocks); with a wider
    stripe one unit off its multiples, so that groups do not all begin on one member."""
    count = -(-blocks // (_LEGACY_GROUP // block))
    size = -(-blocks // count)
    even = _up(size, unit) if unit else size
    how = (
        f"ceil({blocks} / {_LEGACY_GROUP // block} blocks of 1 GiB) = {count} groups, ceil({blocks} / {count}) = {size}"
    )
    if unit:
        how += f", up to stripe units of {unit}: {even}"
    if unit and width > unit and even % width == 0 and blocks > even:
        even -= unit
        how += f", one unit off a multiple of the stripe width {width}: {even}"
    return Groups(-(-blocks // even), even, blocks, how)


def modern_groups(blocks: int, unit: int, width: int, block: int = 4096, wanted: int | None = None) -> Groups:
    """Groups as mkfs.xfs makes them. `unit` and `width` are those of the stripe, all in blocks; 0 is none; `wanted` is
    a number of groups to come near to, instead of the default.

    A group that begins on the same stripe unit as all others would load one drive with their headers: then the size is
    one unit less. What is left over at the end and smaller than 16 MiB is not used.
    """
    largest = (_LARGEST_GROUP - 1) // block
    if wanted is not None:
        size, how = min(largest, -(-blocks // wanted)), f"ceil({blocks} / {wanted} groups)"
    else:
        size, how = _default_group(blocks, block, largest, multidisk=unit > 0)
    how = f"{how} = {size} blocks"
    if unit:
        even = _up(size, unit)
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
    rest = blocks % size
    if count > 1 and rest and rest * block < _SMALLEST_GROUP:
        blocks, count = blocks - rest, count - 1
        how += f"; {rest} blocks at the end are too few for a group and stay unused"
    return Groups(count, size, blocks, f"{how}; ceil({blocks} / {size}) = {count} groups")


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


def log_size(capacity: int, group: int, rate: float | None, *, external: bool = False) -> tuple[int, str]:
    """Bytes of the log and why. `group` is bytes of an allocation group, which holds an internal log; `rate` is bytes
    per second that the file system should write, None when nobody knows.

    One 2,048th of the file system, as mkfs.xfs does, at least 64 MiB; at least 128 MiB, the size that the talk of 2004
    found enough, where writing is to go beyond 300 MB/s or nobody knows.
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


def log_unit(segment: int, block: int = 4096) -> int:
    """Bytes of the log's stripe unit: the segment, or its largest divisor of whole blocks up to 256 KiB."""
    if segment <= LARGEST_LOG_UNIT:
        return segment if segment % block == 0 else 0
    return next((one for one in range(LARGEST_LOG_UNIT, 0, -block) if segment % one == 0), 0)
