# SPDX-License-Identifier: Apache-2.0
"""Segments of constant level in a whole history, for charts and tables.

Not for alarms, because it uses later values. Least squares with a penalty for each cut, solved exactly by PELT
(Killick,
Fearnhead and Eckley 2012), on values with single outliers clipped.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats
from sonde.stats.spread import MAD_TO_SD

# The price of a cut in squared standard deviations is this times ln(runs). Lower ones cut real noise to bits.
CUT_PENALTY = 10.0
MIN_SEGMENT_RUNS = 5
MIN_CHANGE = 0.10
_MEDIAN_WINDOW = 7
_OUTLIER_DEVIATIONS = 3.0


@dataclass(frozen=True)
class Segment:
    """Runs `first` up to but not including `end` have the median `level` (in the unit of the values)."""

    first: int
    end: int
    level: float


def find_segments(
    rates: ArrayLike, penalty_per_border: float = CUT_PENALTY, min_change: float = MIN_CHANGE
) -> list[Segment]:
    """Returns the segments of `rates` (all above 0, oldest first): one when constant, none without runs."""
    values = np.log(np.asarray(rates, dtype=float))
    if values.size == 0:
        return []
    cuts: list[int] = []
    if values.size >= 2 * MIN_SEGMENT_RUNS:
        noise = max(MAD_TO_SD * float(np.median(np.abs(np.diff(values)))) / np.sqrt(2), 1e-3)
        cuts = _find_segment_borders(_clip_outliers(values, noise) / noise, penalty_per_border * np.log(values.size))
    return _merge_similar_segments(values, [0, *cuts, values.size], -float(np.log(1 - min_change)))


def _clip_outliers(log_rates: Floats, noise_sd: float) -> Floats:
    """Values no further than three standard deviations from the median of their neighborhood."""
    half = _MEDIAN_WINDOW // 2
    padded = np.pad(log_rates, half, mode="reflect")
    local_median = np.median(np.lib.stride_tricks.sliding_window_view(padded, _MEDIAN_WINDOW), axis=1)
    cleaned: Floats = np.clip(
        log_rates, local_median - _OUTLIER_DEVIATIONS * noise_sd, local_median + _OUTLIER_DEVIATIONS * noise_sd
    )
    return cleaned


def _find_segment_borders(scaled_log_rates: Floats, border_penalty: float) -> list[int]:
    n = scaled_log_rates.size
    sums = np.concatenate([[0.0], np.cumsum(scaled_log_rates)])
    squares = np.concatenate([[0.0], np.cumsum(scaled_log_rates * scaled_log_rates)])
    best = np.full(n + 1, np.inf)
    best[0] = -border_penalty
    last = np.zeros(n + 1, dtype=np.int64)
    hopeless = np.full(n + 1, n + 1)  # from which end on
    candidates = np.array([0])
    for end in range(MIN_SEGMENT_RUNS, n + 1):
        if end >= 2 * MIN_SEGMENT_RUNS:
            candidates = np.append(candidates, end - MIN_SEGMENT_RUNS)
        total = sums[end] - sums[candidates]
        cost = squares[end] - squares[candidates] - total * total / (end - candidates)
        total_cost = best[candidates] + cost
        best_position = int(np.argmin(total_cost))
        best[end], last[end] = total_cost[best_position] + border_penalty, candidates[best_position]
        # what cannot win even without paying for the next cut never will, once a stretch may begin here
        hopeless_candidates = candidates[total_cost > best[end]]
        hopeless[hopeless_candidates] = np.minimum(hopeless[hopeless_candidates], end + MIN_SEGMENT_RUNS)
        candidates = candidates[hopeless[candidates] > end + 1]
    cuts, end = [], n
    while last[end] > 0:
        end = int(last[end])
        cuts.append(end)
    return cuts[::-1]


def _merge_similar_segments(log_rates: Floats, border_indices: list[int], min_change: float) -> list[Segment]:
    """Merges neighboring segments whose difference is irrelevant, the most similar first."""
    while len(border_indices) > 2:
        levels = [float(np.median(log_rates[a:b])) for a, b in itertools.pairwise(border_indices)]
        steps = np.abs(np.diff(levels))
        weakest = int(np.argmin(steps))
        if steps[weakest] >= min_change:
            break
        del border_indices[weakest + 1]
    return [Segment(a, b, float(np.exp(np.median(log_rates[a:b])))) for a, b in itertools.pairwise(border_indices)]
