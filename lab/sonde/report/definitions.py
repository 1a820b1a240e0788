# SPDX-License-Identifier: Apache-2.0
"""What each rate divides by what: the words of the report for the rates of the record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Definition:
    """A rate's name for people, its numerator and its interval. `one_interval` is false for a sum of rates."""

    name: str
    numerator: str
    interval: str
    one_interval: bool = True


RATES: dict[str, Definition] = {
    "total": Definition("Total", "all bytes moved", "from the first open to the last close of any task"),
    "transfer": Definition("Transfer", "all bytes moved", "from the first start to the last end of a task’s transfer"),
    "steady": Definition("Steady window", "bytes moved in the window", "the time in which all tasks were transferring"),
    "stonewall": Definition("Stonewall", "bytes moved until the deadline", "the time from the start to the deadline"),
    "first_done": Definition("First done", "bytes moved until the first task finished", "the time until then"),
    "task_sum": Definition("Sum of tasks", "each task’s own bytes", "its own time, added up over the tasks", False),
}
