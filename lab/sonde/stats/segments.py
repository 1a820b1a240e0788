# SPDX-License-Identifier: Apache-2.0
"""Looking back: the stretches of constant level in a whole history, for pictures and tables.

Not for alarms: it sees what came after. Exact least squares with a price for each cut, by dynamic programming that
drops hopeless cuts (PELT; Killick, Fearnhead and Eckley 2012), on values freed from single outliers.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats
from sonde.stats.spread import MAD_TO_SD

# The price of a cut in squared standard deviations is this times ln(runs). Lower ones cut real noise to bits.
PRICE = 10.0
SHORTEST = 5
SMALLEST_CHANGE = 0.10
_NEIGHBORS = 7
_OUTLIER = 3.0


@dataclass(frozen=True)
class Segment:
    """Runs `first` up to but not including `end` have the median `level` (in the unit of the values)."""

    first: int
    end: int
    level: float


def segments(rates: ArrayLike, price: float = PRICE, smallest: float = SMALLEST_CHANGE) -> list[Segment]:
    """The stretches of `rates` (all above 0, oldest first). One when nothing moved, none for no runs."""
    values = np.log(np.asarray(rates, dtype=float))
    if values.size == 0:
        return []
    cuts: list[int] = []
    if values.size >= 2 * SHORTEST:
        noise = max(MAD_TO_SD * float(np.median(np.abs(np.diff(values)))) / np.sqrt(2), 1e-3)
        cuts = _cuts(_without_outliers(values, noise) / noise, price * np.log(values.size))
    return _merged(values, [0, *cuts, values.size], -float(np.log(1 - smallest)))


def _without_outliers(values: Floats, noise: float) -> Floats:
    """Values no further than three standard deviations from the median of their neighborhood."""
    half = _NEIGHBORS // 2
    padded = np.pad(values, half, mode="reflect")
    near = np.median(np.lib.stride_tricks.sliding_window_view(padded, _NEIGHBORS), axis=1)
    cleaned: Floats = np.clip(values, near - _OUTLIER * noise, near + _OUTLIER * noise)
    return cleaned


def _cuts(values: Floats, price: float) -> list[int]:
    n = values.size
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values * values)])
    best = np.full(n + 1, np.inf)
    best[0] = -price
    last = np.zeros(n + 1, dtype=np.int64)
    hopeless = np.full(n + 1, n + 1)  # from which end on
    candidates = np.array([0])
    for end in range(SHORTEST, n + 1):
        if end >= 2 * SHORTEST:
            candidates = np.append(candidates, end - SHORTEST)
        total = sums[end] - sums[candidates]
        cost = squares[end] - squares[candidates] - total * total / (end - candidates)
        through = best[candidates] + cost
        at = int(np.argmin(through))
        best[end], last[end] = through[at] + price, candidates[at]
        # what cannot win even without paying for the next cut never will, once a stretch may begin here
        lost = candidates[through > best[end]]
        hopeless[lost] = np.minimum(hopeless[lost], end + SHORTEST)
        candidates = candidates[hopeless[candidates] > end + 1]
    cuts, end = [], n
    while last[end] > 0:
        end = int(last[end])
        cuts.append(end)
    return cuts[::-1]


def _merged(values: Floats, borders: list[int], smallest: float) -> list[Segment]:
    """Neighbors that differ by less than matters become one, the most alike first."""
    while len(borders) > 2:
        levels = [float(np.median(values[a:b])) for a, b in itertools.pairwise(borders)]
        steps = np.abs(np.diff(levels))
        weakest = int(np.argmin(steps))
        if steps[weakest] >= smallest:
            break
        del borders[weakest + 1]
    return [Segment(a, b, float(np.exp(np.median(values[a:b])))) for a, b in itertools.pairwise(borders)]
