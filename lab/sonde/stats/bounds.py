# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals of a fraction of runs and of statistics of several medians, and interval arithmetic.

`sonde.stats.stopping` has the interval of one median. No method assumes normal noise. Interval arithmetic is
conservative: a result's interval covers at least as often as all operand intervals together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats

CONFIDENCE = 0.95
# With fewer values, even their full range covers the median in less than 95 % of cases.
MIN_VALUES = 6
_BOOTSTRAP_DRAWS = 1000


@dataclass(frozen=True)
class BoundedValue:
    """A number and its confidence interval; both bounds are None with too few values."""

    value: float
    low: float | None
    high: float | None

    @staticmethod
    def from_exact_value(exact_value: float) -> BoundedValue:
        """Returns an exact number, with an empty interval."""
        return BoundedValue(exact_value, exact_value, exact_value)

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return self.low is not None and self.high is not None

    @property
    def limits(self) -> tuple[float, float]:
        """Both bounds; infinite without an interval."""
        return (-math.inf if self.low is None else self.low, math.inf if self.high is None else self.high)

    @property
    def relative_half_width(self) -> float | None:
        """Half the interval as a fraction of the value; None without an interval or when the value is 0."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

    def __add__(self, other: BoundedValue) -> BoundedValue:
        return _combine_bounded_values(self, other, lambda a, b: a + b)

    def __sub__(self, other: BoundedValue) -> BoundedValue:
        return _combine_bounded_values(self, other, lambda a, b: a - b)

    def __mul__(self, other: BoundedValue) -> BoundedValue:
        return _combine_bounded_values(self, other, lambda a, b: a * b)

    def __truediv__(self, other: BoundedValue) -> BoundedValue:
        """Raises ZeroDivisionError for divisor 0. A divisor whose interval contains 0 gives no interval."""
        value = self.value / other.value
        low, high = other.limits
        if low <= 0 <= high:
            return BoundedValue(value, None, None)
        return _combine_bounded_values(self, other, lambda a, b: a / b)


def _combine_bounded_values(
    left_value: BoundedValue, right_value: BoundedValue, arithmetic_operator: Callable[[float, float], float]
) -> BoundedValue:
    value = arithmetic_operator(left_value.value, right_value.value)
    if not (left_value.has_interval and right_value.has_interval):
        return BoundedValue(value, None, None)
    corners = [arithmetic_operator(a, b) for a in left_value.limits for b in right_value.limits]
    return BoundedValue(value, min(corners), max(corners))


def compute_binomial_interval(success_count: int, trial_count: int, confidence: float = CONFIDENCE) -> BoundedValue:
    """Returns a fraction of runs with its exact interval (Clopper, Pearson 1934). Raises ValueError."""
    if not 0 <= success_count <= trial_count or trial_count < 1:
        raise ValueError(f"{success_count} of {trial_count} is no share")
    tail = (1 - confidence) / 2

    def compute_probability_of_at_least(success_probability: float) -> float:
        return sum(
            math.comb(trial_count, k) * success_probability**k * (1 - success_probability) ** (trial_count - k)
            for k in range(success_count, trial_count + 1)
        )

    def compute_probability_of_at_most(success_probability: float) -> float:
        return sum(
            math.comb(trial_count, k) * success_probability**k * (1 - success_probability) ** (trial_count - k)
            for k in range(success_count + 1)
        )

    low = 0.0 if success_count == 0 else _find_root_by_bisection(lambda p: compute_probability_of_at_least(p) - tail)
    high = (
        1.0
        if success_count == trial_count
        else _find_root_by_bisection(lambda p: tail - compute_probability_of_at_most(p))
    )
    return BoundedValue(success_count / trial_count, low, high)


def _find_root_by_bisection(function: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return (low + high) / 2


def bootstrap_statistic(
    run_groups: Sequence[ArrayLike],
    compute_statistic: Callable[[Floats], float],
    confidence: float = CONFIDENCE,
    seed: int = 1,
) -> BoundedValue:
    """Returns a statistic of the medians of several groups of runs, with its percentile-bootstrap interval.

    There is no interval when a group has fewer than `MIN_VALUES` values. The draws are deterministic.
    """
    arrays = [np.asarray(group, dtype=float).ravel() for group in run_groups]
    value = compute_statistic(np.array([np.median(array) for array in arrays]))
    if any(array.size < MIN_VALUES for array in arrays):
        return BoundedValue(value, None, None)
    random = np.random.default_rng(seed)
    medians = np.stack(
        [np.median(random.choice(array, (_BOOTSTRAP_DRAWS, array.size)), axis=1) for array in arrays], axis=1
    )
    statistics = np.array([compute_statistic(row) for row in medians])
    low, high = np.quantile(statistics, [(1 - confidence) / 2, (1 + confidence) / 2])
    return BoundedValue(value, min(float(low), value), max(float(high), value))


def estimate_more_runs(run_count: int, bounded_value: BoundedValue, threshold: float) -> int | None:
    """Estimates how many more runs decide whether the value is above `threshold`.

    Intervals shrink with the square root of the number of runs. Returns None when the value is so close to the
    threshold that no practical number of runs decides.
    """
    if not bounded_value.has_interval:
        return max(1, MIN_VALUES - run_count)
    low, high = bounded_value.limits
    distance = abs(bounded_value.value - threshold)
    half_width = bounded_value.value - low if bounded_value.value >= threshold else high - bounded_value.value
    if distance == 0 or half_width / distance > 30:
        return None
    return max(1, math.ceil(run_count * (half_width / distance) ** 2) - run_count)
