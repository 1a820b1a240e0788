# SPDX-License-Identifier: Apache-2.0
"""When a rate moved: cuts a series into stretches of constant level.

A cut is made where the two sides differ by rank (Mann-Whitney, so that single outliers do not count) beyond a threshold
well above that of independent noise, because neighboring slices are not independent, and where the medians also differ
by enough to matter to a person.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonde.stats.ranks import Floats, midranks

# In units of the standard deviation of the rank statistic, of the best of all cuts.
THRESHOLD = 4.5
SMALLEST_CHANGE = 0.25
SHORTEST = 6


@dataclass(frozen=True)
class Level:
    """Values `first` up to but not including `end` have the median `median`."""

    first: int
    end: int
    median: float


def levels(values: Sequence[float], threshold: float = THRESHOLD, change: float = SMALLEST_CHANGE) -> list[Level]:
    """The stretches of `values`; one when nothing moved, none when there are too few values to say."""
    array = np.asarray(values, dtype=float)
    if array.size < 2 * SHORTEST:
        return []
    cuts = _cuts(array, 0, threshold, change)
    borders = [0, *cuts, array.size]
    parts = [Level(a, b, float(np.median(array[a:b]))) for a, b in itertools.pairwise(borders)]
    return _merged(parts, array, change)


def _cuts(values: Floats, start: int, threshold: float, change: float) -> list[int]:
    """Cuts of one stretch, and of the two sides of the best of them."""
    cut = _strongest(values, threshold, change)
    if cut is None:
        return []
    return [
        *_cuts(values[:cut], start, threshold, change),
        start + cut,
        *_cuts(values[cut:], start + cut, threshold, change),
    ]


def _strongest(values: Floats, threshold: float, change: float) -> int | None:
    """The best cut seen in any of the windows; a stall with the same rate before and after is only seen in a part."""
    best: tuple[float, int] | None = None
    for first, end in _windows(values.size):
        window = values[first:end]
        cut, strength = _best_cut(window)
        left, right = float(np.median(window[:cut])), float(np.median(window[cut:]))
        if strength >= threshold and _relative(left, right) >= change and (best is None or strength > best[0]):
            best = strength, first + cut
    return best[1] if best else None


def _windows(size: int) -> list[tuple[int, int]]:
    """The whole, and shorter and shorter windows that overlap by half (seeded binary segmentation)."""
    found: list[tuple[int, int]] = []
    length = float(size)
    while length >= 2 * SHORTEST:
        width = int(length)
        count = 1 if width == size else int(np.ceil((size - width) / (width / 2))) + 1
        found += [(int(first), int(first) + width) for first in np.linspace(0, size - width, count)]
        length /= np.sqrt(2)
    return found


def _best_cut(values: Floats) -> tuple[int, float]:
    """The cut whose sides differ most by rank, and that difference in standard deviations."""
    n = values.size
    ranks = midranks(values)
    left = np.arange(SHORTEST, n - SHORTEST + 1, dtype=float)
    sums = np.cumsum(ranks)[SHORTEST - 1 : n - SHORTEST]
    expected = left * (n + 1) / 2
    # the variance of the ranks as they are: ties make it smaller than that of a permutation
    deviation = np.sqrt(np.var(ranks) * left * (n - left) / (n - 1))
    score = np.divide(np.abs(sums - expected), deviation, out=np.zeros_like(sums), where=deviation > 0)
    best = int(np.argmax(score))
    return SHORTEST + best, float(score[best])


def _relative(one: float, other: float) -> float:
    larger = max(abs(one), abs(other))
    return abs(one - other) / larger if larger > 0 else 0.0


def _merged(parts: list[Level], values: Floats, change: float) -> list[Level]:
    """Neighbours that turned out alike, once other cuts were made, are one level."""
    merged = parts[:1]
    for part in parts[1:]:
        last = merged[-1]
        if _relative(last.median, part.median) < change:
            merged[-1] = Level(last.first, part.end, float(np.median(values[last.first : part.end])))
        else:
            merged.append(part)
    return merged
