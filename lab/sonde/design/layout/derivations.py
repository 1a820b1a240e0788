# SPDX-License-Identifier: Apache-2.0
"""Numbers of a plan with their arithmetic, so that a reader can verify each number."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.model.units import format_bytes

DISK_BLOCK = 512  # the blocks that partition tables, XLV and sunit=, swidth= of mkfs.xfs count
PAGE_BLOCK = 4096  # the usual block of a file system


@dataclass(frozen=True)
class Derivation:
    """One number: the quantity, its value in base units (bytes, bytes/s, blocks or a plain number, see `text`), and
    the arithmetic."""

    part: str  # the part: id of a file system, volume, slice
    quantity: str
    value: float
    text: str
    arithmetic: str


def format_stripe_in_three_units(stripe_bytes: int) -> str:
    """A stripe in three units: 1664 KiB = 3328 blocks of 512 B = 416 blocks of 4 KiB."""
    kib = (
        f"{stripe_bytes // 1024:,} KiB".replace(",", "")
        if stripe_bytes % 1024 == 0 and stripe_bytes % (1 << 20)
        else format_bytes(stripe_bytes)
    )
    if stripe_bytes % DISK_BLOCK:
        return kib
    text = f"{kib} = {stripe_bytes // DISK_BLOCK} blocks of 512 B"
    return f"{text} = {stripe_bytes // PAGE_BLOCK} blocks of 4 KiB" if stripe_bytes % PAGE_BLOCK == 0 else text
