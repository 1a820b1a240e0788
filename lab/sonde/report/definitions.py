# SPDX-License-Identifier: Apache-2.0
"""Numerator and denominator of each rate of the record, in the terms of the report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RateDefinition:
    """A rate's name for people, its numerator and its interval. `one_interval` is false for a sum of rates."""

    name: str
    numerator: str
    interval: str
    one_interval: bool = True


RATE_DEFINITIONS: dict[str, RateDefinition] = {
    "total": RateDefinition("Total", "all bytes moved", "from the first open to the last close of any task"),
    "transfer": RateDefinition(
        "Transfer", "all bytes moved", "from the first start of a transfer to the last end of one"
    ),
    "steady": RateDefinition(
        "Steady window",
        "bytes moved in the window",
        "from the last task’s first transfer to the first task’s last one, in whole slices",
    ),
    "stonewall": RateDefinition(
        "Stonewall",
        "bytes moved up to the deadline",
        "from the first open to the deadline, or to the end when that came earlier",
    ),
    "first_done": RateDefinition(
        "First done",
        "bytes moved until the first task had finished",
        "from the first open until the first task had finished its transfers",
    ),
    "task_sum": RateDefinition(
        "Sum of tasks", "each task’s own bytes", "its own time from open to close; added up over the tasks", False
    ),
}
