# SPDX-License-Identifier: Apache-2.0
"""The gate before users are let in: is what was just measured within what the baseline says, and when is it not?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from sonde.model.errors import NothingComparedError, UserError
from sonde.model.history_key import HistoryKey
from sonde.model.units import format_count_with_noun
from sonde.stats.spread import compute_robust_sd
from sonde.trends.detectors import DetectorSettings
from sonde.trends.sides import (
    ComparedSide,
    SideValues,
    collect_values_by_number,
    list_key_differences,
    pair_comparable_values,
)

# Below this many baseline runs a limit is a guess.
MIN_BASELINE_RUNS = 5
# All of so many runs in a row must be low.
MIN_CONSECUTIVE_RUNS = 3


@dataclass(frozen=True)
class GateCheck:
    """One number of a gate: values of the baseline, the limit that follows from them, and the measured values."""

    key: HistoryKey
    plan: str
    baseline: tuple[float, ...]
    usual: float
    limit: float
    measured: tuple[float, ...]
    differs_in: tuple[tuple[str, str, str], ...]
    not_judged: str = ""  # why the number is not judged; empty for a verdict
    about: str = ""  # what the number describes where that is not storage
    runs: tuple[str, ...] = ()  # ids of the runs that measured the number, in the order of `measured`

    @property
    def low_run_count(self) -> int:
        """How many of the measured runs are below the limit."""
        return sum(value < self.limit for value in self.measured)

    @property
    def is_too_slow(self) -> bool:
        """Whether all of them are: a single low run may be chance. False for a number that is not judged."""
        return not self.not_judged and self.low_run_count == len(self.measured)

    @property
    def relative_change(self) -> float:
        """Median now by median then, less 1."""
        return float(np.median(self.measured)) / self.usual - 1


def compute_median_and_limit(
    baseline_values: Sequence[float], settings: DetectorSettings | None = None
) -> tuple[float, float]:
    """The median of `baseline_values` and the limit below it: four robust standard deviations and 15 %, whichever is
    lower."""
    settings = settings or DetectorSettings()
    logs = np.log(np.asarray(baseline_values, dtype=float))
    middle = float(np.median(logs))
    spread = max(compute_robust_sd(logs), settings.min_spread)
    drop = max(settings.collapse_deviations * spread, -log(1 - settings.collapse_change))
    return exp(middle), exp(middle - drop)


def check_against_baseline(
    baseline_side: ComparedSide, measured_side: ComparedSide, settings: DetectorSettings | None = None
) -> list[GateCheck]:
    """Each number that baseline and runs have in common. Raises NothingComparedError when there is none, UserError
    when the baseline has too few runs."""
    both = pair_comparable_values(
        collect_values_by_number(baseline_side.runs), collect_values_by_number(measured_side.runs)
    )
    if not both:
        raise NothingComparedError(
            f"{baseline_side.name} and {measured_side.name} have no number in common; set a baseline of the same "
            "experiment on the same storage with `sonde baseline set`."
        )
    few = [old for old, _ in both if len(old.values) < MIN_BASELINE_RUNS]
    if few:
        raise UserError(
            f"{baseline_side.name} holds {format_count_with_noun(len(few[0].values), 'run')} of {few[0].key.phase}; a "
            f"limit needs {MIN_BASELINE_RUNS}"
            " at least, and ten are better: add runs with `sonde baseline set`."
        )
    return sorted((_check_number_against_baseline(old, new, settings) for old, new in both), key=lambda item: item.key)


def _check_number_against_baseline(
    baseline_values: SideValues, measured_values: SideValues, settings: DetectorSettings | None
) -> GateCheck:
    differs = tuple(list_key_differences(baseline_values.key, measured_values.key))
    before, after = baseline_values.select_judged_values(), measured_values.select_judged_values()
    reason = ""
    if not after.values:
        reason = f"not a storage number ({measured_values.classification_text})"
    elif len(before.values) < MIN_BASELINE_RUNS:
        reason = (
            f"{len(before.values)} of {format_count_with_noun(len(baseline_values.values), 'baseline run')} have a "
            f"storage number ({baseline_values.classification_text})"
        )
    if reason:
        before, after = baseline_values, measured_values
    usual, limit = compute_median_and_limit(before.values, settings)
    return GateCheck(
        measured_values.key,
        measured_values.plan,
        before.values,
        usual,
        limit,
        after.values,
        differs,
        reason,
        measured_values.classification_text,
        after.runs,
    )
