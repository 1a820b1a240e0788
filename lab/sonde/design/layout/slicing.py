# SPDX-License-Identifier: Apache-2.0
"""Divides a LUN into slices: each starts at a multiple of the alignment, and none overlaps another or the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.design.layout.geometry import MIB
from sonde.model.errors import UserError
from sonde.model.units import format_bytes

# Space for the backup partition table at the end of a disk: 33 blocks of 512 B or 6 of 4 KiB, so less than this.
TABLE_AT_END = MIB
# Space for the partition table at the start of a disk: 34 blocks of 512 B or 6 of 4 KiB, so less than this.
TABLE_AT_START = MIB


@dataclass(frozen=True)
class SliceRequest:
    """A requested slice: bytes, a fraction of the disk, or (neither) all remaining space."""

    name: str
    size: int | None = None
    share: float | None = None


@dataclass(frozen=True)
class SliceExtent:
    """One slice: start and length in bytes."""

    name: str
    start: int
    size: int

    @property
    def end_byte(self) -> int:
        """The first byte after the slice."""
        return self.start + self.size


def cut_slices(
    disk_size: int, slice_requests: Sequence[SliceRequest], alignment: int, *, reserves_label: bool = True
) -> tuple[SliceExtent, ...]:
    """Divides a disk of `disk_size` bytes. Starts and sizes are multiples of `alignment`. With `reserves_label` the
    first slice starts one alignment after the beginning, behind the partition table, and the end stays free for its
    backup. Raises UserError when the slices do not fit."""
    first = alignment if reserves_label else 0
    last = (disk_size - TABLE_AT_END if reserves_label else disk_size) // alignment * alignment
    if sum(piece.size is None and piece.share is None for piece in slice_requests) > 1:
        raise UserError("More than one slice takes the remainder of a disk; give all but one of them a size.")
    room = max(0, last - first)
    sizes = [_compute_wanted_size(piece, room, alignment) for piece in slice_requests]
    remainder = room - sum(size for size in sizes if size is not None)
    if remainder < 0 or any(size == 0 for size in sizes) or (None in sizes and remainder < alignment):
        requests = ", ".join(
            f"{piece.name} {format_bytes(size or 0)}" for piece, size in zip(slice_requests, sizes, strict=True)
        )
        raise UserError(
            f"Slices do not fit: {requests}; a disk of {format_bytes(disk_size)} has {format_bytes(room)} for them "
            f"in steps "
            f"of {format_bytes(alignment)}."
        )
    extents, position = [], first
    for piece, size in zip(slice_requests, sizes, strict=True):
        length = remainder if size is None else size
        extents.append(SliceExtent(piece.name, position, length))
        position += length
    return tuple(extents)


def _compute_wanted_size(slice_request: SliceRequest, available_bytes: int, alignment: int) -> int | None:
    if slice_request.size is not None:
        return -(-slice_request.size // alignment) * alignment
    return None if slice_request.share is None else int(available_bytes * slice_request.share) // alignment * alignment
