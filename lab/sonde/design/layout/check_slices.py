# SPDX-License-Identifier: Apache-2.0
"""Checks a table of slices before it is written: fractions, duplicates, and alignment for the geometry of its disk."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import CSM_SEGMENTS, MIB, compute_slice_alignment, parse_geometry
from sonde.design.layout.live.observations import ObservedSlices, ObservedStorage
from sonde.model.errors import UserError
from sonde.model.units import format_bytes


def find_slice_faults(
    observed_storage: ObservedStorage, slice_table: ObservedSlices
) -> Iterator[LayoutFault | CheckedItem]:
    """Faults of a slice table before it is written: fractions, duplicates, alignment for the geometry of its disk."""
    yield CheckedItem("slices", slice_table.name)
    shares = sum(share for _, share, _, _ in slice_table.rows if share is not None)
    numbers = [number for number, *_ in slice_table.rows]
    if shares > 1.0001:
        yield LayoutFault(
            "more than the whole", slice_table.origin, f"its slices take {100 * shares:.0f} % of the disk",
            "it cannot be written",
            "make them 100 % together",
        )  # fmt: skip
    if len(set(numbers)) < len(numbers):
        yield LayoutFault(
            "slice named twice", slice_table.origin, f"slices are {', '.join(map(str, numbers))}",
            "the later one replaces the other",
            "give every slice its own number",
        )  # fmt: skip
    geometry = _parse_layout_geometry(slice_table.origin) or next(
        (
            disk.geometry
            for disk in observed_storage.disks.values()
            if slice_table.disk and slice_table.disk in (disk.name, disk.settings.get("device"))
        ),
        "",
    )
    if geometry:
        segment = next((kinds[geometry] for kinds in CSM_SEGMENTS.values() if geometry in kinds), None)
        stripe = parse_geometry(geometry).compute_full_stripe_bytes(segment) if segment else None
        step = slice_table.alignment or MIB
        if stripe and step % stripe:
            yield LayoutFault(
                "slice is not aligned", slice_table.origin,
                f"slices begin at multiples of {format_bytes(step)}, the stripe of {geometry} is "
                f"{format_bytes(stripe)}",
                "a request of one full stripe touches two", f"write modulo {compute_slice_alignment(stripe) // MIB}M",
            )  # fmt: skip


def _parse_layout_geometry(file_name: str) -> str:
    """The geometry in a file name like option-RG11D.cf, which names a layout with one group."""
    match = re.search(r"RG\d1([0-9A-F])", file_name)
    if match is None:
        return ""
    try:
        return str(parse_geometry(f"{int(match[1], 16)}+1"))
    except UserError:
        return ""
