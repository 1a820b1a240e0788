# SPDX-License-Identifier: Apache-2.0
"""Compares two sides of an archive: numbers, environments and storage targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sonde.model.system import System
from sonde.store.archive import Archive
from sonde.trends.comparison import MIN_CHANGE, Comparison, compare_sides
from sonde.trends.environment import EnvironmentDifference, compare_environments
from sonde.trends.sides import find_compared_side, require_runs_of_same_origin
from sonde.trends.target_comparison import TargetComparison, compare_targets


@dataclass(frozen=True)
class ArchiveComparison:
    """Two sides compared: number by number, and what differed around them."""

    numbers: Comparison
    environment: Sequence[EnvironmentDifference]
    targets: Sequence[TargetComparison]


def compare_archive_sides(
    archive: Archive,
    runs_before: str,
    runs_after: str,
    refusal_hint: str,
    smallest_change: float = MIN_CHANGE,
    with_simulated: bool = False,
    system: System | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> ArchiveComparison:
    """Compares the runs that the texts mean (see `find_compared_side`). `system` names the server and unit of each
    target.

    Raises UserError, with the sentence `refusal_hint`, if one side is simulated and the other is not, unless
    `with_simulated`.
    """
    old, new = (
        find_compared_side(archive, runs_before, on_progress),
        find_compared_side(archive, runs_after, on_progress),
    )
    if not with_simulated:
        old, new = require_runs_of_same_origin(old, new, refusal_hint)
    comparison = compare_sides(old, new, smallest_change)
    environment = compare_environments(comparison.before.runs, comparison.after.runs)
    return ArchiveComparison(comparison, environment, compare_targets(comparison, system))
