# SPDX-License-Identifier: Apache-2.0
"""Cuts a series of slices into segments of constant level.

A cut is placed where both sides differ by rank (Mann-Whitney, so that single outliers do not count) and their medians
differ by a relevant amount. The threshold is well above that of independent noise, because neighboring slices are
correlated.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonde.stats.ranks import Floats, compute_midranks

# In units of the standard deviation of the rank statistic, of the best of all cuts.
CUT_THRESHOLD = 4.5
MIN_CHANGE = 0.25
MIN_LEVEL_VALUES = 6


@dataclass(frozen=True)
class Level:
    """Values `first` up to but not including `end` have the median `median`."""

    first: int
    end: int
    median: float


def find_constant_levels(
    slice_rates: Sequence[float], min_strength: float = CUT_THRESHOLD, min_change: float = MIN_CHANGE
) -> list[Level]:
    """Returns the levels of `slice_rates`: one when it is constant, none with too few values."""
    array = np.asarray(slice_rates, dtype=float)
    if array.size < 2 * MIN_LEVEL_VALUES:
        return []
    cuts = _find_cuts(array, 0, min_strength, min_change)
    borders = [0, *cuts, array.size]
    parts = [Level(a, b, float(np.median(array[a:b]))) for a, b in itertools.pairwise(borders)]
    return _merge_similar_levels(parts, array, min_change)


def _find_cuts(segment_values: Floats, segment_start: int, min_strength: float, min_change: float) -> list[int]:
    """Returns the cuts of one segment, recursively on both sides of the best cut."""
    cut = _find_strongest_cut(segment_values, min_strength, min_change)
    if cut is None:
        return []
    return [
        *_find_cuts(segment_values[:cut], segment_start, min_strength, min_change),
        segment_start + cut,
        *_find_cuts(segment_values[cut:], segment_start + cut, min_strength, min_change),
    ]


def _find_strongest_cut(segment_values: Floats, min_strength: float, min_change: float) -> int | None:
    """Returns the best cut in any window: a stall with equal rates before and after shows only in a smaller window."""
    best: tuple[float, int] | None = None
    for first, end in _list_overlapping_windows(segment_values.size):
        window = segment_values[first:end]
        cut, strength = _find_best_cut(window)
        left_median, right_median = float(np.median(window[:cut])), float(np.median(window[cut:]))
        if (
            strength >= min_strength
            and _compute_relative_difference(left_median, right_median) >= min_change
            and (best is None or strength > best[0])
        ):
            best = strength, first + cut
    return best[1] if best else None


def _list_overlapping_windows(value_count: int) -> list[tuple[int, int]]:
    """Returns the whole range and ever shorter windows that overlap by half (seeded binary segmentation)."""
    windows: list[tuple[int, int]] = []
    length = float(value_count)
    while length >= 2 * MIN_LEVEL_VALUES:
        width = int(length)
        count = 1 if width == value_count else int(np.ceil((value_count - width) / (width / 2))) + 1
        windows += [(int(first), int(first) + width) for first in np.linspace(0, value_count - width, count)]
        length /= np.sqrt(2)
    return windows


def _find_best_cut(window_values: Floats) -> tuple[int, float]:
    """Returns the cut whose sides differ most by rank, and the difference in standard deviations."""
    n = window_values.size
    ranks = compute_midranks(window_values)
    left_counts = np.arange(MIN_LEVEL_VALUES, n - MIN_LEVEL_VALUES + 1, dtype=float)
    sums = np.cumsum(ranks)[MIN_LEVEL_VALUES - 1 : n - MIN_LEVEL_VALUES]
    expected = left_counts * (n + 1) / 2
    # the variance of the ranks as they are: ties make it smaller than that of a permutation
    deviation = np.sqrt(np.var(ranks) * left_counts * (n - left_counts) / (n - 1))
    score = np.divide(np.abs(sums - expected), deviation, out=np.zeros_like(sums), where=deviation > 0)
    best = int(np.argmax(score))
    return MIN_LEVEL_VALUES + best, float(score[best])


def _compute_relative_difference(first_level: float, second_level: float) -> float:
    larger = max(abs(first_level), abs(second_level))
    return abs(first_level - second_level) / larger if larger > 0 else 0.0


def _merge_similar_levels(levels: list[Level], slice_rates: Floats, min_change: float) -> list[Level]:
    """Merges neighboring levels that are similar after all cuts."""
    merged = levels[:1]
    for part in levels[1:]:
        last = merged[-1]
        if _compute_relative_difference(last.median, part.median) < min_change:
            merged[-1] = Level(last.first, part.end, float(np.median(slice_rates[last.first : part.end])))
        else:
            merged.append(part)
    return merged
