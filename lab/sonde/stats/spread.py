# SPDX-License-Identifier: Apache-2.0
"""Estimates the scatter of runs, and summarizes the repeats of one probe."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats

# 1.4826 times the median of absolute deviations is the standard deviation where noise is normal.
MAD_TO_SD = 1.4826
MIN_VALUES = 3
# Student's t with so many degrees of freedom is the normal distribution.
_NORMAL_DEGREES_OF_FREEDOM = 100_000


def compute_robust_sd(values: ArrayLike) -> float:
    """Robust standard deviation, from the median absolute deviation; 0 for fewer than two values."""
    array = np.asarray(values, dtype=float)
    if array.size == 0:
        return 0.0
    return MAD_TO_SD * float(np.median(np.abs(array - np.median(array))))


@dataclass(frozen=True)
class CoefficientOfVariation:
    """Coefficient of variation (standard deviation by mean) as a share; no interval below three values. `high` is
    infinite where few values scatter so much that their mean is not known to be above 0."""

    value: float
    low: float | None
    high: float | None
    count: int

    @property
    def text(self) -> str:
        """5.0 % [3.1, 9.9], in the form that every page uses."""
        if self.low is None or self.high is None:
            return f"{100 * self.value:.1f} %"
        high = f"{100 * self.high:.1f}" if self.high < float("inf") else "\N{INFINITY}"
        return f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {high}]"


# What the interval covers, for the pages that show it; measured by tests/lab/stats/test_spread.py.
COVERAGE_STATEMENT = (
    "An interval of the scatter (COV) covers the truth in at least 95 of 100 cases where runs scatter evenly, and in 91"
    " where they scatter with long tails. Rare slow runs it cannot know before it has met some: where one run of ten is"
    " slower by 40 %, it covers in 47 of 100 cases with six runs and in 83 with twenty."
)


def estimate_coefficient_of_variation(values: ArrayLike, confidence: float = 0.95) -> CoefficientOfVariation:
    """The coefficient of variation with its interval: all that two methods allow. That of Vangel (1996), which is exact
    enough for normal noise from three values on and too narrow for long tails; and that of Bonett (2006), which looks
    at the tails and needs four values. `COVERS` is the probability that both together cover the truth. Raises
    ValueError for fewer than two values or a mean that is not above 0."""
    array = np.asarray(values, dtype=float)
    if array.size < 2 or float(np.mean(array)) <= 0:
        raise ValueError("a coefficient of variation needs two values with a mean above 0")
    value = _compute_coefficient_of_variation(array)
    if array.size < MIN_VALUES or value == 0:
        return CoefficientOfVariation(value, None, None, array.size)
    bounds = [
        _compute_vangel_interval(value, array.size, confidence),
        _compute_bonett_interval(array, value, confidence),
    ]
    available_bounds = [candidate for candidate in bounds if candidate is not None]
    return CoefficientOfVariation(
        value, min(low for low, _ in available_bounds), max(high for _, high in available_bounds), array.size
    )


def _compute_vangel_interval(
    coefficient_of_variation: float, value_count: int, confidence: float
) -> tuple[float, float]:
    """Ends for normal noise (Vangel 1996, "Confidence intervals for a normal coefficient of variation"); the upper one
    is infinite where the scatter is too large for one."""
    ends = []
    for p in ((1 + confidence) / 2, (1 - confidence) / 2):
        u = compute_chi_square_quantile(p, value_count - 1)
        square = ((u + 2) / value_count - 1) * coefficient_of_variation**2 + u / (value_count - 1)
        ends.append(coefficient_of_variation / float(np.sqrt(square)) if square > 0 else float("inf"))
    return ends[0], ends[1]


def _compute_bonett_interval(
    sample_values: Floats, coefficient_of_variation: float, confidence: float
) -> tuple[float, float] | None:
    """Ends for noise of any form with a fourth moment (Bonett 2006, "Approximate confidence interval for standard
    deviation of nonnormal distributions"), whose kurtosis is taken about a trimmed mean; None below four values."""
    n = sample_values.size
    if n < MIN_VALUES + 1:
        return None
    cut = int(n * min(0.25, 1 / (2 * np.sqrt(n - 4)) if n > 4 else 0.25))
    ordered = np.sort(sample_values)
    middle = float(np.mean(ordered[cut : n - cut]))
    kurtosis = (
        n
        * float(np.sum((sample_values - middle) ** 4))
        / float(np.sum((sample_values - sample_values.mean()) ** 2)) ** 2
    )
    z = compute_student_quantile((1 + confidence) / 2, _NORMAL_DEGREES_OF_FREEDOM)
    small_sample_factor = n / (n - z)  # for few values
    half = z * small_sample_factor * float(np.sqrt(max(kurtosis - (n - 3) / n, 0.0) / (n - 1))) / 2
    return coefficient_of_variation * float(
        np.sqrt(small_sample_factor) * np.exp(-half)
    ), coefficient_of_variation * float(np.sqrt(small_sample_factor) * np.exp(half))


def _compute_coefficient_of_variation(values: Floats) -> float:
    return float(np.std(values, ddof=1) / np.mean(values))


@cache
def compute_chi_square_quantile(cumulative_probability: float, degrees_of_freedom: int) -> float:
    """Quantile of the chi-square distribution for p from 0.0005 to 0.9995, by adding up the density of its root."""
    roots = np.linspace(0.0, float(np.sqrt(degrees_of_freedom)) + 8, 100_001)
    logs = (degrees_of_freedom - 1) * np.log(np.maximum(roots, 1e-300)) - roots**2 / 2
    density = np.exp(logs - logs.max())
    steps = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(np.interp(cumulative_probability, steps / steps[-1], roots)) ** 2


@cache
def compute_student_quantile(cumulative_probability: float, degrees_of_freedom: int) -> float:
    """Quantile of Student's t for p from 0.5 to 0.999995, by adding up its density: within 1e-6 of it."""
    # t = sqrt(freedom) * tan(angle) makes the density cos(angle)^(freedom - 1) on a finite interval
    angles = np.linspace(0.0, np.pi / 2, 200_001)
    density = np.cos(angles) ** (degrees_of_freedom - 1)
    steps = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    angle = float(np.interp((cumulative_probability - 0.5) * 2, steps / steps[-1], angles))
    return float(np.sqrt(degrees_of_freedom) * np.tan(angle))


@dataclass(frozen=True)
class ProbeSummary:
    """Summary of the repeats of one probe. Others' traffic only slows down, so the second best (of three or fewer: the
    best) tells what the system *can* do, the median what users *get*."""

    capability: float
    delivered: float
    repeats: int


def summarize_probe(repeat_rates: ArrayLike) -> ProbeSummary:
    """Raises ValueError when there is no repeat."""
    ordered = np.sort(np.asarray(repeat_rates, dtype=float).ravel())[::-1]
    if ordered.size == 0:
        raise ValueError("a probe without repeats says nothing")
    best = ordered[1] if ordered.size > 3 else ordered[0]
    return ProbeSummary(float(best), float(np.median(ordered)), int(ordered.size))
