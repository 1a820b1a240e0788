# SPDX-License-Identifier: Apache-2.0
"""How two groups of runs differ, as a ratio: the estimate, its interval, and what could not have been seen.

The ratio is that of Hodges and Lehmann on logarithms (the median of all ratios between a run of one group and a run of
the other), its interval the inversion of the Mann-Whitney test: among the intervals whose coverage holds on real I/O
noise it is the narrowest, and single outliers do not move it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats, compute_rank_sum_p, find_rank_sum_cut

# Below this the interval would be the range of all ratios or wider; the estimate alone is given then.
MIN_RUNS_PER_SIDE = 5
CONFIDENCE = 0.95
_TEST_POWER, _SIGNIFICANCE_LEVEL = 0.80, 0.01
# How often two sides are drawn to find what could have been seen, and how many values of a side at most.
_DRAWS, _MAX_DRAWN_VALUES = 400, 80
# Values of a side that are paired with all of the other: more move the estimate by less than the interval is wide.
_MAX_PAIRED_VALUES = 1500


@dataclass(frozen=True)
class RateRatio:
    """`value` = second group by first. `low` and `high` are None for too few runs; `why` gives that reason."""

    value: float
    low: float | None
    high: float | None
    p: float | None
    before: int
    after: int
    confidence: float
    why: str = ""

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1."""
        return self.low is not None and self.high is not None and not self.low <= 1.0 <= self.high


def compare_rates(
    rates_before: ArrayLike, rates_after: ArrayLike, confidence: float = CONFIDENCE, with_p_value: bool = True
) -> RateRatio:
    """The ratio of `rates_after` to `rates_before` (rates, all above 0) with its interval, and without its p where no
    `with_p_value` is asked for.

    Raises ValueError for an empty group and for values that have no logarithm.
    """
    old, new = _convert_to_logarithms(rates_before), _convert_to_logarithms(rates_after)
    m, n = old.size, new.size
    differences = _compute_pairwise_differences(old, new)
    value = float(np.exp(np.median(differences)))
    if min(m, n) < MIN_RUNS_PER_SIDE:
        reason = f"an interval needs {MIN_RUNS_PER_SIDE} runs on each side; here are {m} and {n}"
        return RateRatio(value, None, None, None, m, n, confidence, reason)
    # the largest number of differences that may be cut off at each end
    cut = find_rank_sum_cut(m, n, (1 - confidence) / 2)
    if cut == 0:
        reason = f"{m} and {n} runs cannot give {100 * confidence:g} % confidence"
        return RateRatio(
            value, None, None, compute_rank_sum_p(old, new) if with_p_value else None, m, n, confidence, reason
        )
    if differences.size < m * n:
        cut = max(1, round(cut / (m * n) * differences.size))
    low, high = float(np.exp(differences[cut - 1])), float(np.exp(differences[-cut]))
    return RateRatio(value, low, high, compute_rank_sum_p(old, new) if with_p_value else None, m, n, confidence)


def estimate_levels_of_ratio(rates_before: ArrayLike, rates_after: ArrayLike, rate_ratio: float) -> tuple[float, float]:
    """The level of each group when the second is the first times `rate_ratio`: both follow from all values together.

    The medians of the two groups need not have the ratio of Hodges and Lehmann, and can even differ the other way. The
    level is the median of the first group and of the second divided by the ratio; that of the second is `rate_ratio`
    times it."""
    rates_before, rates_after = np.asarray(rates_before, dtype=float), np.asarray(rates_after, dtype=float)
    level = float(np.median(np.concatenate([rates_before.ravel(), rates_after.ravel() / rate_ratio])))
    return level, level * rate_ratio


def _compute_pairwise_differences(old_logarithms: Floats, new_logarithms: Floats) -> Floats:
    """All differences between the two sides, sorted; of large sides those between evenly chosen order statistics."""
    thinned = [
        np.sort(side)[np.linspace(0, side.size - 1, _MAX_PAIRED_VALUES).round().astype(int)]
        if side.size > _MAX_PAIRED_VALUES
        else side
        for side in (old_logarithms, new_logarithms)
    ]
    ordered: Floats = np.sort((thinned[1][:, None] - thinned[0][None, :]).ravel())
    return ordered


def _convert_to_logarithms(positive_rates: ArrayLike) -> Floats:
    array = np.asarray(positive_rates, dtype=float).ravel()
    if array.size == 0:
        raise ValueError("a group without runs has no ratio")
    if not np.all(np.isfinite(array)) or np.any(array <= 0):
        raise ValueError("a ratio needs rates above 0")
    logarithms: Floats = np.log(array)
    return logarithms


def estimate_detectable_drop(rates_before: ArrayLike, rates_after: ArrayLike) -> float | None:
    """The smallest drop that so many runs with such noise show four times in five (one-sided level 0.01), as a share.

    0.2 means: a drop of less than 20 % would probably not have been seen. None where even the strongest difference
    could not reach that level with so few runs, or where there is no noise to judge by.

    Both sides are drawn again from their own residuals, so heavy and one-sided noise counts as it is. A residual about
    a median of few runs is too small, and the extremes that decide a test of few runs are rarely among them: the factor
    of `_compute_small_sample_factor` makes up for both. With it the mean power at the stated drop is 0.80 within 0.05
    for 8 runs a side and more, and noise that is normal, Laplace, Student with 3 degrees of freedom, uniform or
    one-sided (gamma with shape 0.5 and 1). With five or six runs per side the kinds cannot be distinguished: the factor
    is between 0.72 (the most one-sided noise) and 0.89 (noise without tails), and within 0.05 for the kinds between
    them.
    """
    old, new = _convert_to_logarithms(rates_before), _convert_to_logarithms(rates_after)
    if 1.0 / _count_divisions_into_groups(old.size, new.size) > _SIGNIFICANCE_LEVEL or min(old.size, new.size) < 2:
        return None
    residuals = np.concatenate([old - np.median(old), new - np.median(new)])
    if not np.any(residuals):
        return None
    sizes = [min(side.size, _MAX_DRAWN_VALUES) for side in (old, new)]
    random = np.random.default_rng(1)
    drawn_sides = [random.choice(residuals, (_DRAWS, size)) for size in sizes]
    needed_shifts = _find_detectable_shifts(drawn_sides[0], drawn_sides[1], _SIGNIFICANCE_LEVEL)
    size_correction = (1 / old.size + 1 / new.size) / (1 / sizes[0] + 1 / sizes[1])
    shift = (
        np.quantile(needed_shifts, _TEST_POWER)
        * _compute_small_sample_factor(old.size + new.size)
        * np.sqrt(size_correction)
    )
    return float(1 - np.exp(-shift)) if shift > 0 else None


def _find_detectable_shifts(old_samples: Floats, new_samples: Floats, max_probability: float) -> Floats:
    """For each row of two samples without a difference: the decrease of `new_samples` that the rank test just
    detects."""
    cut = find_rank_sum_cut(old_samples.shape[1], new_samples.shape[1], max_probability)
    differences = (new_samples[:, :, None] - old_samples[:, None, :]).reshape(len(old_samples), -1)
    position = differences.shape[1] - cut
    shifts: Floats = np.partition(differences, position, axis=1)[:, position]
    return shifts


def _compute_small_sample_factor(run_count: int) -> float:
    """Factor by which residuals of so few runs underestimate the noise. It was simulated for the six kinds of noise
    named above."""
    return 1 + 1.6 / run_count + 9 / run_count**2


def simulate_detectable_drop(
    log_residuals: ArrayLike, run_count_before: int, run_count_after: int, draw_count: int = 1000, seed: int = 1
) -> float | None:
    """Estimates the same by drawing from `log_residuals` (logarithms without their level), for noise of any
    distribution."""
    noise = np.asarray(log_residuals, dtype=float)
    if noise.size < 20 or 1.0 / _count_divisions_into_groups(run_count_before, run_count_after) > _SIGNIFICANCE_LEVEL:
        return None
    random = np.random.default_rng(seed)
    old, new = random.choice(noise, (draw_count, run_count_before)), random.choice(noise, (draw_count, run_count_after))
    max_significant_u = (
        find_rank_sum_cut(run_count_before, run_count_after, _SIGNIFICANCE_LEVEL) - 1
    )  # U up to this is significant

    # U counts the pairs in which the new value is the higher one: it is small enough as long as no more than `most` of
    # the differences are below the shift
    differences = (old[:, None, :] - new[:, :, None]).reshape(draw_count, -1)
    detectable_shifts = np.partition(differences, max_significant_u, axis=1)[:, max_significant_u]

    def compute_power(relative_drop: float) -> float:
        return float(np.mean(detectable_shifts >= np.log(1 - relative_drop)))

    low, high = 0.0, 0.99
    if compute_power(high) < _TEST_POWER:
        return None
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if compute_power(middle) >= _TEST_POWER else (middle, high)
    return high


def _count_divisions_into_groups(first_count: int, second_count: int) -> float:
    """Ways to divide m + n runs into groups of m and n."""
    count = 1.0
    for i in range(1, min(first_count, second_count) + 1):
        count *= (first_count + second_count - i + 1) / i
    return count
