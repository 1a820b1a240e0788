# SPDX-License-Identifier: Apache-2.0
"""A number and how it was worked out, so that every figure of a plan can be followed by hand."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.model.units import format_bytes

DISK_BLOCK = 512  # the blocks that partition tables, XLV and sunit=, swidth= of mkfs.xfs count
PAGE_BLOCK = 4096  # the usual block of a file system


@dataclass(frozen=True)
class Worked:
    """One number: what it is, its value in base units (bytes, bytes/s, blocks or plain, as `shown` says), how."""

    of: str  # the part: id of a file system, volume, slice
    what: str
    value: float
    shown: str
    how: str


def stripe_words(size: int) -> str:
    """A stripe as the cheat sheets have it: 1664 KiB = 3328 blocks of 512 B = 416 blocks of 4 KiB."""
    kib = f"{size // 1024:,} KiB".replace(",", "") if size % 1024 == 0 and size % (1 << 20) else format_bytes(size)
    if size % DISK_BLOCK:
        return kib
    words = f"{kib} = {size // DISK_BLOCK} blocks of 512 B"
    return f"{words} = {size // PAGE_BLOCK} blocks of 4 KiB" if size % PAGE_BLOCK == 0 else words
