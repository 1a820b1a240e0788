# SPDX-License-Identifier: Apache-2.0
"""Dips that come back: a curve folded by one period after the other until the low parts lie on top of each other.

The search is that for box-shaped dips by least squares (Kovács, Zucker and Mazeh 2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sonde.stats.ranks import Floats

FEWEST_DIPS = 3
_WIDEST = 0.5  # of the period
_PRESENT = 0.75  # share of the expected dips that must be there


@dataclass(frozen=True)
class Dips:
    """`period`, `width` and `first` (start of the first dip) in slices; `depth` as a difference of logarithms; `cost`
    is the sum of squares that two levels leave."""

    period: float
    width: float
    first: float
    depth: float
    count: int
    cost: float


def find_dips(logs: Floats) -> Dips | None:
    """The periodic dips that explain most of `logs`, or None when none come at least three times."""
    n = logs.size
    centered = logs - logs.mean()
    place = np.arange(n) + 0.5
    best: tuple[float, float, float, float] | None = None  # gain, period, phase, width
    frequencies = np.arange((FEWEST_DIPS - 0.4) / n, 1 / 3, 0.25 / n)
    for period in 1 / frequencies:
        phases = place % period
        order = np.argsort(phases, kind="stable")
        gain, first, end = _best_box(centered[order], max(1, int(_WIDEST * n)))
        if gain > (best[0] if best else 0.0):
            sorted_phases = phases[order]
            low, high = float(sorted_phases[first]), float(sorted_phases[end % n])
            width = (high - low) % period
            best = gain, float(period), low - 0.5, width
    return _described(logs, *best) if best else None


def _best_box(folded: Floats, widest: int) -> tuple[float, int, int]:
    """The run of neighbors (around the end too) that lowers the sum of squares most by being lower than the rest."""
    n = folded.size
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([folded, folded]))])
    best = (0.0, 0, 1)
    # widths grow by a third: the gain hardly depends on a slice more or less
    widths = np.unique(np.round(np.geomspace(FEWEST_DIPS, widest, 14)).astype(int))
    for width in widths:
        inside = sums[width : width + n] - sums[:n]
        gains = np.where(inside < 0, inside**2 * n / (width * (n - width)), 0.0)
        at = int(np.argmax(gains))
        if gains[at] > best[0]:
            best = (float(gains[at]), at, at + int(width))
    return best


def _described(logs: Floats, gain: float, period: float, phase: float, width: float) -> Dips | None:
    n = logs.size
    inside = ((np.arange(n) + 0.5 - (phase + 0.5)) % period) < width
    if not inside.any():
        return None
    depth = float(np.median(logs[~inside]) - np.median(logs[inside]))
    number = np.floor((np.arange(n) - phase) / period).astype(int)
    expected = [logs[inside & (number == one)] for one in np.unique(number[inside])]
    present = [part for part in expected if np.mean(part) < np.median(logs[~inside]) - depth / 2]
    if len(present) < FEWEST_DIPS or len(present) < _PRESENT * len(expected) or depth <= 0:
        return None
    first = phase % period
    return Dips(period, width, first, depth, len(present), float(np.sum((logs - logs.mean()) ** 2)) - gain)
