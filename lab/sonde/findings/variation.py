# SPDX-License-Identifier: Apache-2.0
"""How a rate varied within a phase: steps, a drift, stalls, steady or uneven.

It reports only changes that a reader also sees in the chart (a quarter or more) and that explain most of the variance.
Levels are means over their interval, so their mean, weighted by duration, is the mean rate. Where that is not the
number to explain (`RateVariation.explains`), nothing is reported: most of the time was spent elsewhere, for example in
an fsync.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sonde.stats.bins import find_steady_slices, sum_into_bins
from sonde.stats.levels import Level, find_constant_levels

MIN_CHANGE_RATIO = 1.25  # smallest ratio that is called a change
MIN_DRIFT_VARIANCE_SHARE = 0.8  # share of the variance that a straight line must explain to be the story
MIN_VARIATION_INTERVALS = 8  # intervals below which nothing is said
MAX_RATE_STEPS = 3  # levels that still make a sentence
MAX_STALLED_RATE_SHARE = 0.1  # share of the median below which an interval counts as stalled
MIN_STALLED_TIME_SHARE = 0.03  # share of the time that must be stalled to be worth a sentence
MAX_MEAN_DIFFERENCE = 0.1  # share by which the mean of the levels may differ from the number they explain
MAX_STEADY_HALF_WIDTH = 0.1  # half width of nine tenths of the time, over the median, that is still called steady
# Coarse intervals for how wide the rate swings; finer ones for steps, so that one early in a phase is found too.
COARSE_INTERVALS, FINE_INTERVALS = 60, 120


@dataclass(frozen=True)
class RateVariation:
    """`kind` says which members mean something.

    steps: `parts`, each (start in seconds, mean rate); drift: `before` and `after`, the ends of the fitted line;
    stalls: `stalled_s`, and `moving`, the mean rate of the rest; steady and uneven: `low` and `high`, between which the
    rate was nine tenths of the time. `mean` and `median` are always set, except in phases that are too short. Rates are
    amounts per second."""

    kind: Literal["short", "steady", "uneven", "steps", "drift", "stalls"]
    median: float = 0.0
    mean: float = 0.0
    low: float = 0.0
    high: float = 0.0
    parts: tuple[tuple[float, float], ...] = ()
    before: float = 0.0
    after: float = 0.0
    stalled_s: float = 0.0
    rate_without_stalls: float = 0.0

    def has_levels_matching_rate(self, stated_rate: float) -> bool:
        """Whether the levels describe `stated_rate`: their weighted mean is within a tenth of it, and it is within the
        reported range."""
        if self.kind == "uneven" and not self.low <= stated_rate <= self.high:
            return False
        return stated_rate > 0 and abs(self.mean - stated_rate) <= MAX_MEAN_DIFFERENCE * stated_rate

    @property
    def relative_spread(self) -> float:
        """Half the distance between `low` and `high`, over the median."""
        return (self.high - self.low) / 2 / self.median if self.median > 0 else 0.0


def analyze_rate_variation(
    amount_per_slice: Sequence[float], active_tasks: Sequence[int], slice_s: float
) -> RateVariation:
    """Describes what was moved in slices of `slice_s` seconds, while all tasks were at work."""
    first, end = find_steady_slices(amount_per_slice, active_tasks)
    inside = amount_per_slice[first:end]
    if len(inside) < MIN_VARIATION_INTERVALS:
        return RateVariation("short")
    seconds = len(inside) * slice_s
    coarse, fine = (
        [moved * len(bins) / seconds for moved in bins]
        for bins in (sum_into_bins(inside, n) for n in (COARSE_INTERVALS, FINE_INTERVALS))
    )
    return _classify_rate_variation(coarse, fine, seconds, first * slice_s)


def _classify_rate_variation(
    slice_rates: Sequence[float], fine_rates: Sequence[float], covered_s: float, start_s: float
) -> RateVariation:
    """Classifies two series of rates that both cover `covered_s` from `start_s` on."""
    middle, mean = statistics.median(slice_rates), sum(slice_rates) / len(slice_rates)
    low, high = (float(bound) for bound in np.quantile(slice_rates, (0.05, 0.95)))
    parts = find_constant_levels(fine_rates)
    start, end, explained = _fit_rate_line(fine_rates)
    # Levels also fit a slope, but a line describes a slope better; levels describe a step better than a line.
    if (
        explained >= max(MIN_DRIFT_VARIANCE_SHARE, _compute_variance_share_of_levels(fine_rates, parts))
        and min(start, end) >= 0
        and _differs_visibly(start, end)
    ):
        return RateVariation("drift", middle, mean, low, high, before=start, after=end)
    steps = [
        (start_s + part.first * covered_s / len(fine_rates), _compute_mean(fine_rates[part.first : part.end]))
        for part in parts
    ]
    if 2 <= len(steps) <= MAX_RATE_STEPS and all(_differs_visibly(a[1], b[1]) for a, b in itertools.pairwise(steps)):
        return RateVariation("steps", middle, mean, low, high, parts=tuple(steps))
    moving = [rate for rate in slice_rates if rate >= MAX_STALLED_RATE_SHARE * middle]
    stalled = covered_s * (len(slice_rates) - len(moving)) / len(slice_rates)
    if stalled > MIN_STALLED_TIME_SHARE * covered_s:
        return RateVariation(
            "stalls", middle, mean, low, high, stalled_s=stalled, rate_without_stalls=_compute_mean(moving)
        )
    return RateVariation(
        "steady" if (high - low) / 2 <= MAX_STEADY_HALF_WIDTH * middle else "uneven", middle, mean, low, high
    )


def _compute_mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _compute_variance_share_of_levels(slice_rates: Sequence[float], levels: Sequence[Level]) -> float:
    """Share of the variance that the levels explain."""
    unexplained = sum(_sum_squared_deviations(slice_rates[part.first : part.end]) for part in levels)
    total = _sum_squared_deviations(slice_rates)
    return 1 - unexplained / total if total > 0 and levels else 0.0


def _sum_squared_deviations(values: Sequence[float]) -> float:
    mean = _compute_mean(values)
    return sum((value - mean) ** 2 for value in values)


def _differs_visibly(first_rate: float, second_rate: float) -> bool:
    low, high = min(first_rate, second_rate), max(first_rate, second_rate)
    return high > 0 and (low <= 0 or high / low >= MIN_CHANGE_RATIO)


def _fit_rate_line(slice_rates: Sequence[float]) -> tuple[float, float, float]:
    """Least squares line: its two ends and the share of the variance it explains."""
    n = len(slice_rates)
    center, mean = (n - 1) / 2, sum(slice_rates) / n
    across = sum((i - center) ** 2 for i in range(n))
    slope = sum((i - center) * (rate - mean) for i, rate in enumerate(slice_rates)) / across
    start, end = mean - slope * center, mean + slope * center
    unexplained = sum((rate - start - slope * i) ** 2 for i, rate in enumerate(slice_rates))
    total = _sum_squared_deviations(slice_rates)
    return start, end, 1 - unexplained / total if total > 0 else 0.0
