# SPDX-License-Identifier: Apache-2.0
"""Checks the counters of bad sectors of a drive: one finding of all of them. A surface that wears out is replaced; a
few sectors that cannot be read are written again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.design.layout.smart_rules import REPLACE_DRIVE


@dataclass(frozen=True)
class _SectorCounter:
    """A counter, its values that are a fault, the problem, and whether the drive must be replaced."""

    attribute: str
    faulty: str
    problem: str
    is_worn: bool


_COUNTERS = (
    # a few replaced sectors are usual in years
    _SectorCounter("smart_reallocated", r"[5-9]|[1-9]\d+",
                   "it has replaced {value} bad sectors by spare ones (Reallocated_Sector_Ct)", True),
    _SectorCounter("smart_grown_defects", r"[1-9]\d+", "it has replaced {value} bad sectors (grown defect list)", True),
    _SectorCounter("smart_pending", r"[1-9]\d*",
                   "{value} of its sectors cannot be read (Current_Pending_Sector)", False),
    _SectorCounter("smart_uncorrectable", r"[1-9]\d*",
                   "a test of the drive could not read {value} of its sectors (Offline_Uncorrectable)", False),
    _SectorCounter("smart_media_errors", r"[1-9]\d*",
                   "it could not correct data {value} times (Media and Data Integrity Errors)", True),
    _SectorCounter("smart_uncorrected", r"[1-9]\d*",
                   "it could not correct {value} errors (Total uncorrected errors)", True),
    _SectorCounter("smart_test", "(?i).*fail.*", "its last test of itself failed ({value})", True),
)  # fmt: skip


def find_sector_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """One fault of each drive with bad sectors."""
    for disk in observed_storage.disks.values():
        if disk.kind == "disk":
            yield from _check_sectors(disk)


def _check_sectors(disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    present = [counter for counter in _COUNTERS if disk.settings.get(counter.attribute)]
    for counter in present:
        yield CheckedItem(counter.attribute, disk.name)
    faulty = [each for each in present if re.fullmatch(each.faulty, disk.settings[each.attribute])]
    if not faulty:
        return
    is_worn = any(counter.is_worn for counter in faulty)
    yield LayoutFault(
        "bad sectors of a drive", disk.name,
        "; ".join(counter.problem.format(value=disk.settings[counter.attribute]) for counter in faulty),
        "reads of bad sectors fail or take seconds, and are lost when another member of its array fails"
        + "; such drives fail far more often than others" * is_worn,
        REPLACE_DRIVE if is_worn
        else "scrub its array, which writes them again; replace it if the number does not return to 0",
        tuple(counter.attribute for counter in faulty),
    )  # fmt: skip
