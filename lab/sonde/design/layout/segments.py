# SPDX-License-Identifier: Apache-2.0
"""Chooses the segments of software RAID groups below storage targets where the system file states none."""

from __future__ import annotations

from sonde.design.layout.geometry import KIB, MIB, read_geometry_of_group
from sonde.model.ranges import fold_names_into_ranges
from sonde.model.system import System
from sonde.model.system.changes import apply_changes
from sonde.model.system.storage import RaidGroup
from sonde.model.units import format_bytes

# Servers write at least 1 MiB at a time to a target: that is one full stripe at most.
_LARGEST_STRIPE, _LEAST_SEGMENT = MIB, 64 * KIB


def choose_segment(data_drives: int) -> int:
    """The largest power of two with which the full stripe is at most 1 MiB, from 64 KiB on."""
    segment = _LEAST_SEGMENT
    while 2 * segment * data_drives <= _LARGEST_STRIPE:
        segment *= 2
    return segment


def add_segments(system: System) -> tuple[System, tuple[str, ...]]:
    """The system with a segment for each parity group of drives below a target, and a sentence for each chosen one.

    Without it mdadm would choose one, and the stride of the file system would not be known.
    """
    below_targets = {name for item in system.list_parts("targets") for name in system.find_references(item.id, "on")}
    groups: dict[int, list[str]] = {}
    for item in system.list_parts("raid_groups"):
        table = item.table
        assert isinstance(table, RaidGroup)
        geometry = read_geometry_of_group(table)
        if item.id not in below_targets or table.segment is not None or table.controller:
            continue
        if geometry is not None and geometry.parity and geometry.data > 1:
            groups.setdefault(geometry.data, []).append(item.id)
    notes = []
    changes = {}
    for data_drives, names in groups.items():
        segment = choose_segment(data_drives)
        ranges = fold_names_into_ranges(names)
        for names_in_range in ranges.split(", "):
            changes[f"raid_groups.{names_in_range}.segment"] = f"{segment} B"
        notes.append(
            f"{ranges}: no segment is given; {format_bytes(segment)} is chosen, so that the full stripe of"
            f" {data_drives} drives is {format_bytes(segment * data_drives)}"
        )
    return (apply_changes(system, changes) if changes else system), tuple(notes)
