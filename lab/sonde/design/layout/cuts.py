# SPDX-License-Identifier: Apache-2.0
"""Slices of a LUN: each begins at a multiple of the alignment, none overlaps another, nothing lies outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.design.layout.geometry import MIB
from sonde.model.errors import UserError
from sonde.model.units import format_bytes

# Room for the second partition table at the end of a disk: 33 blocks of 512 B or 6 of 4 KiB, so less than this.
TABLE_AT_END = MIB


@dataclass(frozen=True)
class Piece:
    """What is wanted: bytes, or a share of the whole, or (neither) what is left."""

    name: str
    size: int | None = None
    share: float | None = None


@dataclass(frozen=True)
class Cut:
    """One slice: bytes from the beginning of the disk, and its length."""

    name: str
    start: int
    size: int

    @property
    def end(self) -> int:
        """First byte behind it."""
        return self.start + self.size


def cut(whole: int, pieces: Sequence[Piece], alignment: int, *, label: bool = True) -> tuple[Cut, ...]:
    """Cuts a disk of `whole` bytes. Begins and sizes are multiples of `alignment`; with `label` the first begins one
    alignment in, behind the partition table, and the end stays free for its copy. Raises UserError when that does not
    fit.
    """
    first = alignment if label else 0
    last = (whole - TABLE_AT_END if label else whole) // alignment * alignment
    if sum(piece.size is None and piece.share is None for piece in pieces) > 1:
        raise UserError("More than one slice wants what is left of a disk; give all but one of them a size.")
    room = max(0, last - first)
    sizes = [_wanted(piece, room, alignment) for piece in pieces]
    rest = room - sum(size for size in sizes if size is not None)
    if rest < 0 or any(size == 0 for size in sizes) or (None in sizes and rest < alignment):
        asked = ", ".join(f"{piece.name} {format_bytes(size or 0)}" for piece, size in zip(pieces, sizes, strict=True))
        raise UserError(
            f"Slices do not fit: {asked}; a disk of {format_bytes(whole)} has {format_bytes(room)} for them in steps "
            f"of {format_bytes(alignment)}."
        )
    found, at = [], first
    for piece, size in zip(pieces, sizes, strict=True):
        length = rest if size is None else size
        found.append(Cut(piece.name, at, length))
        at += length
    return tuple(found)


def _wanted(piece: Piece, room: int, alignment: int) -> int | None:
    if piece.size is not None:
        return -(-piece.size // alignment) * alignment
    return None if piece.share is None else int(room * piece.share) // alignment * alignment
