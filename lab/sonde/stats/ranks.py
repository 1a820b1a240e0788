# SPDX-License-Identifier: Apache-2.0
"""Ranks: of one array, of a window that moves over many series at once, and how likely a rank sum is by chance.

Real I/O noise is one-sided and heavy-tailed (one run in seven is more than a fifth too slow, hardly any is a fifth too
fast), so all decisions are based on ranks and medians, never on means.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
# Up to this product of the two sizes the distribution of the rank sum is counted out; beyond it, it is normal to three
# digits of the tail that matters here.
_MAX_EXACT_PAIRS = 2500


def compute_midranks(values: ArrayLike) -> Floats:
    """Ranks from 1, equal values share the middle of theirs."""
    array = np.asarray(values, dtype=float)
    _, inverse, counts = np.unique(array, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    ranks: Floats = middle[inverse.reshape(array.shape)]
    return ranks


def compute_mann_whitney_u(low_sample: ArrayLike, high_sample: ArrayLike) -> float:
    """Mann and Whitney's U: in how many of the pairs the value of `low_sample` is the smaller one (equal ones count
    half)."""
    a, b = np.sort(np.asarray(low_sample, dtype=float)), np.asarray(high_sample, dtype=float)
    below, up_to = np.searchsorted(a, b, side="left"), np.searchsorted(a, b, side="right")
    return float(np.sum(below + up_to) / 2)


@cache
def compute_rank_sum_tail(first_count: int, second_count: int) -> Floats:
    """P(U <= u), u = 0 … m·n, when `first_count` and `second_count` values come from one distribution without ties
    (Mann, Whitney 1947)."""
    if first_count * second_count > _MAX_EXACT_PAIRS:
        raise ValueError("so many arrangements are not counted out")
    # Gaussian binomial coefficient: multiply by (1 - q^(n+i)) and divide by (1 - q^i), for i = 1 … m
    counts = np.zeros(first_count * second_count + 1)
    counts[0] = 1.0
    for i in range(1, first_count + 1):
        for u in range(first_count * second_count, second_count + i - 1, -1):
            counts[u] -= counts[u - second_count - i]
        for u in range(i, first_count * second_count + 1):
            counts[u] += counts[u - i]
    tail: Floats = np.cumsum(counts) / np.sum(counts)
    return tail


def compute_rank_sum_p(first_sample: ArrayLike, second_sample: ArrayLike) -> float:
    """Two-sided p that `first_sample` and `second_sample` come from one distribution."""
    first, second = np.asarray(first_sample, dtype=float), np.asarray(second_sample, dtype=float)
    m, n = first.size, second.size
    if m == 0 or n == 0:
        raise ValueError("both sides need a value")
    u = compute_mann_whitney_u(first, second)
    smaller_u = float(np.ceil(min(u, m * n - u)))
    if m * n <= _MAX_EXACT_PAIRS:
        return float(min(1.0, 2 * compute_rank_sum_tail(min(m, n), max(m, n))[int(smaller_u)]))
    return min(1.0, 2 * NormalDist().cdf((smaller_u + 0.5 - m * n / 2) / _compute_rank_sum_sd(m, n)))


def find_rank_sum_cut(first_count: int, second_count: int, max_probability: float) -> int:
    """Returns the number of smallest values of U (0 … cut - 1) whose total probability is at most `max_probability`; 0
    if even U = 0 is more probable."""
    if first_count * second_count <= _MAX_EXACT_PAIRS:
        return int(
            np.searchsorted(
                compute_rank_sum_tail(min(first_count, second_count), max(first_count, second_count)),
                max_probability,
                side="right",
            )
        )
    return max(
        0,
        int(
            np.floor(
                first_count * second_count / 2
                + 0.5
                + NormalDist().inv_cdf(max_probability) * _compute_rank_sum_sd(first_count, second_count)
            )
        ),
    )


def _compute_rank_sum_sd(first_count: int, second_count: int) -> float:
    """Standard deviation of U."""
    return float(np.sqrt(first_count * second_count * (first_count + second_count + 1.0) / 12))


class RankWindow:
    """Keeps the last `width` values of `series` series, and updates their ranks with each new value.

    One step costs a few operations on an array of series x width, however many values came before: a thousand series
    are watched at the cost of one.
    """

    def __init__(self, series_count: int, window_width: int) -> None:
        self.width = window_width
        self.values: Floats = np.full((series_count, window_width), np.nan)  # the newest last
        self.ranks: Floats = np.zeros((series_count, window_width))  # among the values present, from 1
        self.filled = np.zeros(series_count, dtype=np.int64)

    def append_values(self, newest_values: Floats) -> None:
        """Adds one value to each series; where it is NaN (a gap) that series stays as it is."""
        has_value = ~np.isnan(newest_values)
        updates_all = bool(has_value.all())
        values = self.values if updates_all else self.values[has_value]
        ranks = self.ranks if updates_all else self.ranks[has_value]
        filled = self.filled[has_value]
        newest, oldest, remaining = newest_values[has_value, None], values[:, :1], values[:, 1:]
        # Comparisons with NaN are false, so places that are not filled yet count for nothing. A value equal to another
        # counts half, so strict and lax comparisons add up to twice the change of a rank, in numbers of one byte.
        above, at_least = newest < remaining, newest <= remaining
        doubled_change = above.view(np.int8) + at_least.view(np.int8)
        doubled_change -= (oldest < remaining).view(np.int8)
        doubled_change -= (oldest <= remaining).view(np.int8)
        newest_rank = np.minimum(filled, self.width - 1) + 1.0
        newest_rank -= 0.5 * (np.count_nonzero(above, axis=1) + np.count_nonzero(at_least, axis=1))
        new_values, new_ranks = np.empty_like(values), np.empty_like(ranks)
        new_values[:, :-1], new_values[:, -1:] = remaining, newest
        np.multiply(doubled_change, 0.5, out=new_ranks[:, :-1])
        new_ranks[:, :-1] += ranks[:, 1:]
        new_ranks[:, -1] = newest_rank
        if updates_all:
            self.values, self.ranks = new_values, new_ranks
        else:
            self.values[has_value], self.ranks[has_value] = new_values, new_ranks
        self.filled[has_value] = np.minimum(filled + 1, self.width)

    def drop_all_but_last_values(self, series_index: int, kept_count: int) -> None:
        """Forgets all but the last `kept_count` values of one series."""
        kept_count = min(kept_count, int(self.filled[series_index]))
        self.values[series_index, : self.width - kept_count] = np.nan
        self.ranks[series_index] = 0.0
        if kept_count:
            self.ranks[series_index, self.width - kept_count :] = compute_midranks(
                self.values[series_index, self.width - kept_count :]
            )
        self.filled[series_index] = kept_count

    def replace_values(self, series_index: int, last_values: Floats) -> None:
        """Makes these, at most `width`, the last values of one series."""
        self.values[series_index, self.width - last_values.size :] = last_values
        self.filled[series_index] = last_values.size
        self.drop_all_but_last_values(series_index, last_values.size)

    def select_series(self, kept_mask: NDArray[np.bool_]) -> None:
        """Goes on with these series only."""
        self.values, self.ranks, self.filled = self.values[kept_mask], self.ranks[kept_mask], self.filled[kept_mask]

    def find_strongest_splits(self, min_side: int) -> tuple[Floats, NDArray[np.int64]]:
        """For each series the difference of the two sides of the best split, and the number of values after it.

        The difference is the rank sum of the newer side in standard deviations of chance, its sign that of the change;
        the spread takes ties into account. Both are 0 where there are too few values, or all are equal.
        """
        centered = self.ranks - (self.filled[:, None] + 1) / 2
        if np.min(self.filled, initial=self.width) < self.width:
            centered[np.isnan(self.values)] = 0.0
        score = np.cumsum(centered[:, ::-1], axis=1)
        score *= _compute_split_weights(self.width, min_side)[self.filled]
        best = np.argmax(np.abs(score), axis=1)
        spread = np.sqrt(np.einsum("ij,ij->i", centered, centered))  # 0 where all are equal, and so is the score
        strength = score[np.arange(score.shape[0]), best] / np.where(spread > 0, spread, 1.0)
        return strength, np.where(strength != 0.0, best + 1, 0)


@cache
def _compute_split_weights(window_width: int, min_side: int) -> Floats:
    """Of `count` values (rows) and so many newer ones (columns, from 1): by what the excess of the ranks of
    the newer side is multiplied to compare splits; 0 where a side would be shorter than `min_side`."""
    count = np.arange(window_width + 1, dtype=float)[:, None]
    newer = np.arange(1, window_width + 1, dtype=float)[None, :]
    older = count - newer
    with np.errstate(divide="ignore", invalid="ignore"):
        weights: Floats = np.sqrt(count * (count - 1) / (newer * older))
    return np.where((newer >= min_side) & (older >= min_side), weights, 0.0)
