# SPDX-License-Identifier: Apache-2.0
"""Checks whether a file is fragmented."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import MIB
from sonde.design.layout.live.observations import FileExtents, ObservedStorage
from sonde.model.units import format_bytes

# A file is slow to read when its extents are shorter than this many stripe widths on average.
_MIN_EXTENT_WIDTHS = 4


def find_extent_faults(
    observed_storage: ObservedStorage, file_extents: FileExtents
) -> Iterator[LayoutFault | CheckedItem]:
    """Reports a fragmented file; adjacent extents on the device count as one."""
    yield CheckedItem("extents", file_extents.path)
    runs: list[list[int]] = []
    for _, position, length in sorted(file_extents.pieces):
        if runs and runs[-1][0] + runs[-1][1] == position:
            runs[-1][1] += length
        else:
            runs.append([position, length])
    total = sum(length for _, length in runs)
    width = next((file_system.width for file_system in observed_storage.file_systems if file_system.width), None) or MIB
    if len(runs) > 1 and total / len(runs) < _MIN_EXTENT_WIDTHS * width:
        yield LayoutFault(
            "fragmented", file_extents.path,
            f"{format_bytes(total)} lie in {len(runs):,} pieces of {format_bytes(total / len(runs))}",
            f"pieces shorter than {_MIN_EXTENT_WIDTHS} stripe widths ({format_bytes(width)} each) break streaming",
            "preallocate it (fallocate), write it in larger pieces, or run xfs_fsr on it",
        )  # fmt: skip
