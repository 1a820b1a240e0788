# SPDX-License-Identifier: Apache-2.0
"""How much runs scatter, and what one probe of several repeats says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats

# 1.4826 times the median of absolute deviations is the standard deviation where noise is normal.
MAD_TO_SD = 1.4826
LEAST = 5


def robust_sd(values: ArrayLike) -> float:
    """The standard deviation as half of the values see it; 0 for fewer than two values."""
    array = np.asarray(values, dtype=float)
    if array.size < 2:
        return 0.0
    return MAD_TO_SD * float(np.median(np.abs(array - np.median(array))))


@dataclass(frozen=True)
class Variation:
    """Coefficient of variation (standard deviation by mean) as a share; no interval below five values."""

    value: float
    low: float | None
    high: float | None
    count: int


def variation(values: ArrayLike, confidence: float = 0.95) -> Variation:
    """The coefficient of variation with its interval: jackknife on its logarithm (Miller 1968), which does not ask
    noise to be normal; of six runs with rare slow outliers it still misses in one of four cases, since most samples of
    six hold no outlier. Raises ValueError for fewer than two values or a mean that is not above 0."""
    array = np.asarray(values, dtype=float)
    if array.size < 2 or float(np.mean(array)) <= 0:
        raise ValueError("a coefficient of variation needs two values with a mean above 0")
    value = _variation(array)
    n = array.size
    if n < LEAST or value == 0:
        return Variation(value, None, None, n)
    parts = np.array([_variation(np.delete(array, i)) for i in range(n)])
    if np.any(parts <= 0):
        return Variation(value, None, None, n)
    pseudo = n * np.log(value) - (n - 1) * np.log(parts)
    half = student_quantile((1 + confidence) / 2, n - 1) * float(np.std(pseudo, ddof=1)) / np.sqrt(n)
    center = float(np.mean(pseudo))
    return Variation(value, float(np.exp(center - half)), float(np.exp(center + half)), n)


def _variation(values: Floats) -> float:
    return float(np.std(values, ddof=1) / np.mean(values))


def student_quantile(p: float, freedom: int) -> float:
    """Quantile of Student's t for p from 0.5 to 0.9995, by adding up its density."""
    # t = sqrt(freedom) * tan(angle) makes the density cos(angle)^(freedom - 1) on a finite interval
    angles = np.linspace(0.0, np.pi / 2, 200_001)
    density = np.cos(angles) ** (freedom - 1)
    steps = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    angle = float(np.interp((p - 0.5) * 2, steps / steps[-1], angles))
    return float(np.sqrt(freedom) * np.tan(angle))


@dataclass(frozen=True)
class Probe:
    """What the repeats of one probe say. Others' traffic only slows down, so the second best (of three or fewer: the
    best) tells what the system *can* do, the median what users *get*."""

    capability: float
    delivered: float
    repeats: int


def probe(repeats: ArrayLike) -> Probe:
    """Raises ValueError when there is no repeat."""
    ordered = np.sort(np.asarray(repeats, dtype=float).ravel())[::-1]
    if ordered.size == 0:
        raise ValueError("a probe without repeats says nothing")
    best = ordered[1] if ordered.size > 3 else ordered[0]
    return Probe(float(best), float(np.median(ordered)), int(ordered.size))
