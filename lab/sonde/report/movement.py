# SPDX-License-Identifier: Apache-2.0
"""When a rate moved during a phase: steps, a drift, stalls, or nothing worth saying.

Pure functions on arrays. The answer is for words beside a chart: it speaks only of changes that a reader would also see
in the drawing (a quarter or more) and that explain most of the variation.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sonde.stats.levels import levels

VISIBLE = 1.25  # smallest ratio that is called a change
DRIFTS = 0.8  # share of the variance that a straight line must explain to be the story
FEWEST = 8  # intervals below which nothing is said
MOST_STEPS = 4  # levels that still make a sentence
STALLED = 0.1  # share of the median below which an interval counts as stalled
COARSE = 96  # intervals that are looked at


@dataclass(frozen=True)
class Movement:
    """`kind` says which members mean something.

    steps: `parts`, each (start in seconds, rate); drift: `before` and `after`, the ends of the fitted line; stalls:
    `stalled_s`; steady and uneven: `spread`, half the distance between the 5 % and 95 % quantiles over the median.
    `median` is always there, but for short, which says nothing.
    """

    kind: Literal["short", "steady", "uneven", "steps", "drift", "stalls"]
    median: float = 0.0
    spread: float = 0.0
    parts: tuple[tuple[float, float], ...] = ()
    before: float = 0.0
    after: float = 0.0
    stalled_s: float = 0.0


def movement(edges: Sequence[float], rates: Sequence[float]) -> Movement:
    """Describes rates[i], which hold from edges[i] to edges[i+1] (seconds)."""
    edges, rates = _coarse(edges, rates, COARSE)
    if len(rates) < FEWEST:
        return Movement("short")
    middle = statistics.median(rates)
    if middle <= 0:
        return Movement("uneven", middle)
    ordered = sorted(rates)
    spread = (_quantile(ordered, 0.95) - _quantile(ordered, 0.05)) / 2 / middle
    parts = levels(rates)
    start, end, explained = _line(rates)
    stalled = sum(
        b - a for (a, b), rate in zip(itertools.pairwise(edges), rates, strict=True) if rate < STALLED * middle
    )
    if explained >= DRIFTS and _visible(start, end) and len(parts) != 2:
        return Movement("drift", middle, spread, before=start, after=end)
    if 2 <= len(parts) <= MOST_STEPS and _visible(*_extremes([one.median for one in parts])):
        return Movement("steps", middle, spread, parts=tuple((edges[one.first], one.median) for one in parts))
    if stalled > 0:
        return Movement("stalls", middle, spread, stalled_s=stalled)
    return Movement("steady" if spread <= 0.1 else "uneven", middle, spread)


def _extremes(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _visible(one: float, other: float) -> bool:
    low, high = min(one, other), max(one, other)
    return high > 0 and (low <= 0 or high / low >= VISIBLE)


def _coarse(edges: Sequence[float], rates: Sequence[float], most: int) -> tuple[list[float], list[float]]:
    """Joins neighbors so that at most `most` intervals are left; what was moved stays the same."""
    group = max(1, -(-len(rates) // most))
    kept = [*edges[:-1:group], *edges[-1:]]
    merged: list[float] = []
    for at in range(0, len(rates), group):
        stop = min(at + group, len(rates))
        time = edges[stop] - edges[at]
        moved = sum(rates[i] * (edges[i + 1] - edges[i]) for i in range(at, stop))
        merged.append(moved / time if time > 0 else 0.0)
    return kept, merged


def _quantile(ordered: Sequence[float], q: float) -> float:
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _line(rates: Sequence[float]) -> tuple[float, float, float]:
    """Least squares line: its two ends and the share of the variance it explains."""
    n = len(rates)
    center, mean = (n - 1) / 2, sum(rates) / n
    across = sum((i - center) ** 2 for i in range(n))
    slope = sum((i - center) * (rate - mean) for i, rate in enumerate(rates)) / across
    start, end = mean - slope * center, mean + slope * center
    left = sum((rate - start - slope * i) ** 2 for i, rate in enumerate(rates))
    total = sum((rate - mean) ** 2 for rate in rates)
    return max(0.0, start), max(0.0, end), 1 - left / total if total > 0 else 0.0
