# SPDX-License-Identifier: Apache-2.0
"""Ranks and rank sums against counting by hand and against printed tables."""

from __future__ import annotations

import itertools
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.stats.ranks import (
    RankWindow,
    compute_mann_whitney_u,
    compute_midranks,
    compute_rank_sum_p,
    compute_rank_sum_tail,
    find_rank_sum_cut,
)

few = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12)


@given(few)
def test_rank_counts_smaller_values_and_half_the_ties(values: list[float]) -> None:
    by_hand = [sum(b < a for b in values) + (1 + sum(b == a for b in values)) / 2 for a in values]
    assert list(compute_midranks(values)) == by_hand


@given(few, few)
def test_mann_whitney_u_equals_the_count_over_all_pairs(low: list[float], high: list[float]) -> None:
    by_hand = sum((a < b) + 0.5 * (a == b) for a, b in itertools.product(low, high))
    assert compute_mann_whitney_u(low, high) == by_hand


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (3, 3), (4, 5)])
def test_the_distribution_of_the_rank_sum_is_that_of_all_arrangements(m: int, n: int) -> None:
    counts = np.zeros(m * n + 1)
    for chosen in itertools.combinations(range(m + n), m):
        counts[sum(chosen) - m * (m - 1) // 2] += 1
    assert compute_rank_sum_tail(m, n) == pytest.approx(np.cumsum(counts) / counts.sum())


@pytest.mark.parametrize(("m", "n", "critical"), [(5, 5, 2), (8, 12, 22), (10, 10, 23), (20, 20, 127)])
def test_critical_values_match_published_mann_whitney_tables(m: int, n: int, critical: int) -> None:
    """Two-sided 0.05, as in the tables of Mann and Whitney's test."""
    tail = compute_rank_sum_tail(m, n)
    assert tail[critical] <= 0.025 < tail[critical + 1]


@pytest.mark.parametrize("level", [0.005, 0.025, 0.2])
def test_normal_approximation_continues_the_exact_distribution(level: float) -> None:
    counted, normal = find_rank_sum_cut(50, 50, level) / 2500, find_rank_sum_cut(50, 51, level) / 2550
    assert counted == pytest.approx(normal, abs=0.002)


def test_p_of_many_runs_is_that_of_the_printed_normal_form() -> None:
    """U = 1000 of 60 x 60: z = (1000.5 - 1800) / 190.5 = -4.197, p = 2.7e-5."""
    new = np.arange(60) + 1000.5
    old = np.array([0.0] * 43 + [1040.0] + [2000.0] * 16)
    u = min(compute_mann_whitney_u(old, new), 3600 - compute_mann_whitney_u(old, new))
    assert u == 60 * 16 + 40
    assert compute_rank_sum_p(old, new) == pytest.approx(2.7e-5, rel=0.03)


def test_rank_sum_cut_is_zero_for_few_runs() -> None:
    assert find_rank_sum_cut(3, 3, 0.025) == 0
    assert find_rank_sum_cut(5, 5, 0.025) == 3


def test_p_value_of_disjoint_and_of_equal_groups() -> None:
    assert compute_rank_sum_p([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / 252)
    assert compute_rank_sum_p([1, 2, 3], [1, 2, 3]) == 1.0
    assert compute_rank_sum_p(range(60), range(60)) == 1.0
    for side, other in (([], [1.0]), ([1.0], [])):
        with pytest.raises(ValueError, match="both sides need a value"):
            compute_rank_sum_p(side, other)


def test_tie_counts_as_half_a_pair_in_the_rank_sum() -> None:
    """U is a half: of the six arrangements of two and two, two have U of 1 and less."""
    assert compute_rank_sum_p([1, 2], [2, 3]) == compute_rank_sum_p([2, 3], [1, 2]) == pytest.approx(2 * 2 / 6)


def test_rank_sum_is_exact_up_to_2500_pairs() -> None:
    low = np.arange(50.0)
    assert compute_rank_sum_p(low, low + 20.5) == 2 * compute_rank_sum_tail(50, 50)[30 * 29 // 2]
    assert find_rank_sum_cut(50, 50, 0.03) == int(np.sum(compute_rank_sum_tail(50, 50) <= 0.03))
    with pytest.raises(ValueError, match="so many arrangements are not counted out"):
        compute_rank_sum_tail(50, 51)
    wide = (50 * 51 * 102 / 12) ** 0.5
    high = np.arange(51.0) + 19.5  # 30 values of the one side are above the first of the other, 29 above the next …
    u = sum(a > b for a in low for b in high)
    assert compute_rank_sum_p(low, high) == pytest.approx(2 * NormalDist().cdf((u + 0.5 - 1275) / wide))


def test_rank_sum_cut_matches_the_tail_probability() -> None:
    tail = compute_rank_sum_tail(5, 5)
    assert [find_rank_sum_cut(5, 5, float(level)) for level in tail[:4]] == [1, 2, 3, 4]
    assert (
        find_rank_sum_cut(3, 7, 0.05)
        == find_rank_sum_cut(7, 3, 0.05)
        == int(np.sum(compute_rank_sum_tail(3, 7) <= 0.05))
    )
    # 1800 + 0.5 - 1.95996 * sqrt(60 * 60 * 121 / 12) = 1427.05
    assert find_rank_sum_cut(60, 60, 0.025) == 1427
    assert find_rank_sum_cut(1, 3000, 1e-9) == 0


steps = st.lists(
    st.tuples(*[st.one_of(st.just(float("nan")), st.integers(0, 6).map(float))] * 2), min_size=1, max_size=30
)


@given(steps, st.integers(2, 8))
def test_rank_window_has_the_ranks_of_its_last_values(rows: list[tuple[float, float]], width: int) -> None:
    window = RankWindow(2, width)
    for row in rows:
        window.append_values(np.array(row))
    for series in range(2):
        last = [row[series] for row in rows if not np.isnan(row[series])][-width:]
        assert window.filled[series] == len(last)
        if last:
            assert list(window.values[series, -len(last) :]) == last
            assert list(window.ranks[series, -len(last) :]) == list(compute_midranks(last))


@given(st.lists(st.integers(0, 9).map(float), min_size=2, max_size=25), st.integers(1, 4), st.integers(0, 3))
def test_strongest_split_equals_the_brute_force_maximum(values: list[float], shortest: int, room: int) -> None:
    window = RankWindow(1, len(values) + room)
    for value in values:
        window.append_values(np.array([value]))
    strength, newer = window.find_strongest_splits(shortest)
    ranks = compute_midranks(values)
    n, spread = len(values), float(np.var(ranks))
    best = 0.0
    for count in range(shortest, n - shortest + 1):
        expected = count * (n + 1) / 2
        deviation = (spread * count * (n - count) / (n - 1)) ** 0.5
        score = (ranks[n - count :].sum() - expected) / deviation if deviation > 0 else 0.0
        best = max(best, abs(score))
        if count == newer[0]:
            assert strength[0] == pytest.approx(score)
    assert abs(strength[0]) == pytest.approx(best)
    assert (newer[0] == 0) == (best == 0)


def test_rank_window_continues_after_dropping_values() -> None:
    window = RankWindow(2, 6)
    for value in range(6):
        window.append_values(np.array([float(value), float(-value)]))
    window.drop_all_but_last_values(0, 2)
    window.append_values(np.array([4.5, 9.0]))
    assert list(window.ranks[0, -3:]) == [1.0, 3.0, 2.0]
    assert list(window.filled) == [3, 6]
    assert window.ranks[1, -1] == 6.0


def test_rank_window_drops_no_more_values_than_it_contains() -> None:
    window = RankWindow(2, 4)
    window.replace_values(0, np.array([7.0, 5.0, 9.0]))
    window.replace_values(1, np.array([1.0, 1.0, 2.0, 0.0]))
    assert list(window.filled) == [3, 4]
    assert window.ranks.tolist() == [[0.0, 2.0, 1.0, 3.0], [2.5, 2.5, 4.0, 1.0]]
    assert np.isnan(window.values[0, 0])
    window.drop_all_but_last_values(0, 9)
    assert (window.filled[0], window.ranks[0].tolist()) == (3, [0.0, 2.0, 1.0, 3.0])
    window.drop_all_but_last_values(0, 1)
    assert (window.filled[0], window.ranks[0].tolist()) == (1, [0.0, 0.0, 0.0, 1.0])
    window.drop_all_but_last_values(0, 0)
    assert (window.filled[0], window.ranks[0].tolist()) == (0, [0.0] * 4)
    assert np.isnan(window.values[0]).all()
    assert window.values[1].tolist() == [1.0, 1.0, 2.0, 0.0]
    window.select_series(np.array([False, True]))
    assert (window.values.tolist(), window.filled.tolist()) == ([[1.0, 1.0, 2.0, 0.0]], [4])
    assert window.ranks.tolist() == [[2.5, 2.5, 4.0, 1.0]]


def test_series_of_different_lengths_are_split_separately() -> None:
    """Four and four values that do not overlap differ by 16 ranks less 8, in standard deviations of sqrt(12)."""
    window = RankWindow(3, 8)
    window.replace_values(0, np.array([1.0, 2.0, 3.0, 4.0, 15.0, 16.0, 17.0, 18.0]))
    window.replace_values(1, np.array([9.0, 8.0, 2.0, 1.0]))
    strength, newer = window.find_strongest_splits(2)
    assert strength == pytest.approx([8 / 12**0.5, -2 / (5 / 3) ** 0.5, 0.0])
    assert list(newer) == [4, 2, 0]
