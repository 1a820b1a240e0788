# SPDX-License-Identifier: Apache-2.0
"""Statistics against answers known beforehand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.stats.bins import find_steady_slices, pad_with_zeros, sum_into_bins
from sonde.stats.levels import MIN_LEVEL_VALUES, _find_best_cut, _list_overlapping_windows, find_constant_levels


@given(st.lists(st.floats(0, 1e12), max_size=300), st.integers(1, 80))
def test_rebinning_loses_nothing(values: list[float], bins: int) -> None:
    bins_filled = sum_into_bins(values, bins)
    assert len(bins_filled) == min(bins, len(values))
    assert math.isclose(sum(bins_filled), sum(values), rel_tol=1e-9, abs_tol=1e-6)


def test_rebinning_divides_a_slice_on_a_border() -> None:
    assert sum_into_bins([1.0, 1.0, 1.0], 2) == pytest.approx([1.5, 1.5])
    assert sum_into_bins([6.0, 0.0, 0.0], 2) == pytest.approx([6.0, 0.0])


def test_zero_bins_are_rejected() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        sum_into_bins([1.0], 0)


@pytest.mark.parametrize(
    ("active", "window"),
    [([0, 1, 2, 2, 1, 0], (2, 4)), ([2, 2, 2], (0, 3)), ([1, 2, 1, 2, 1], (1, 4)), ([0, 1, 0], (1, 2)),
     ([0, 0], (0, 2)), ([], (0, 5))],
)  # fmt: skip
def test_steady_slices_have_all_tasks_active(active: list[int], window: tuple[int, int]) -> None:
    assert find_steady_slices([1.0] * (len(active) or 5), active) == window


def test_a_steady_noisy_rate_does_not_move() -> None:
    random = np.random.default_rng(1)
    alarms = sum(len(find_constant_levels((1e9 * np.exp(random.normal(0, 0.2, 60))).tolist())) > 1 for _ in range(300))
    assert alarms <= 1


def test_step_is_located_within_two_values() -> None:
    random = np.random.default_rng(2)
    hits = 0
    for _ in range(200):
        cut = int(random.integers(12, 48))
        values = np.exp(random.normal(0, 0.15, 60))
        values[cut:] *= 0.6
        parts = find_constant_levels(values.tolist())
        hits += len(parts) == 2 and abs(parts[0].end - cut) <= 2
    assert hits >= 190


def test_stall_in_the_middle_yields_three_levels() -> None:
    values = [10.0] * 20 + [1.0] * 20 + [10.0] * 20
    assert [(part.first, part.end, part.median) for part in find_constant_levels(values)] == [
        (0, 20, 10.0),
        (20, 40, 1.0),
        (40, 60, 10.0),
    ]


def test_single_outliers_are_no_level() -> None:
    values = [10.0 + 0.1 * (i % 3) for i in range(60)]
    for position in (7, 23, 40, 55):
        values[position] = 0.5
    assert len(find_constant_levels(values)) == 1


def test_change_below_the_threshold_yields_a_single_level() -> None:
    assert len(find_constant_levels([100.0] * 30 + [85.0] * 30)) == 1


@pytest.mark.parametrize("values", [[], [1.0] * 11])
def test_too_few_values_yield_no_levels(values: list[float]) -> None:
    assert find_constant_levels(values) == []


@given(st.lists(st.floats(0, 1e15), max_size=120))
def test_levels_cover_the_series_without_gaps(values: list[float]) -> None:
    parts = find_constant_levels(values)
    if parts:
        assert parts[0].first == 0
        assert parts[-1].end == len(values)
        assert all(a.end == b.first for a, b in itertools.pairwise(parts))


def test_twelve_values_suffice_for_a_level() -> None:
    assert [(part.first, part.end, part.median) for part in find_constant_levels([3.0] * 12)] == [(0, 12, 3.0)]


def test_windows_have_room_for_two_levels_and_overlap_by_half_or_more() -> None:
    assert _list_overlapping_windows(2 * MIN_LEVEL_VALUES - 1) == []
    assert _list_overlapping_windows(2 * MIN_LEVEL_VALUES) == [(0, 2 * MIN_LEVEL_VALUES)]
    windows = _list_overlapping_windows(100)
    assert windows[0] == (0, 100)
    assert min(end - first for first, end in windows) in (
        2 * MIN_LEVEL_VALUES,
        2 * MIN_LEVEL_VALUES + 1,
        2 * MIN_LEVEL_VALUES + 2,
        2 * MIN_LEVEL_VALUES + 3,
    )
    for width in {end - first for first, end in windows}:
        same = [window for window in windows if window[1] - window[0] == width]
        assert (same[0][0], same[-1][1]) == (0, 100)
        assert all(2 * (b[0] - a[0]) <= width + 1 for a, b in itertools.pairwise(same))


def test_steady_slices_ignore_counts_of_another_length() -> None:
    assert find_steady_slices([1.0] * 4, [0, 2, 0]) == find_steady_slices([1.0] * 4, [0, 2, 2, 2, 0]) == (0, 4)


def test_as_many_slices_as_bins_are_returned_to_the_last_digit() -> None:
    assert sum_into_bins([1e16, 1.0, 3.0], 3) == sum_into_bins([1e16, 1.0, 3.0], 9) == [1e16, 1.0, 3.0]


@pytest.mark.parametrize(
    ("length", "series"), [(5, [1.0, 2.0, 0.0, 0.0, 0.0]), (2, [1.0, 2.0]), (1, [1.0, 2.0]), (0, [1.0, 2.0])]
)
def test_only_a_short_series_is_padded_with_zeros(length: int, series: list[float]) -> None:
    padded = pad_with_zeros([1, 2], length)
    assert padded == series
    assert all(isinstance(value, float) for value in padded)


@given(st.lists(st.integers(0, 9).map(float), min_size=2 * MIN_LEVEL_VALUES, max_size=30))
def test_best_cut_maximizes_the_standardized_rank_sum(values: list[float]) -> None:
    """From the definition: the rank sum of the left side, in standard deviations of one without a difference."""
    n = len(values)
    ranks = [sum(b < a for b in values) + (1 + sum(b == a for b in values)) / 2 for a in values]
    scores = {}
    for cut in range(MIN_LEVEL_VALUES, n - MIN_LEVEL_VALUES + 1):
        variance = float(np.var(ranks)) * cut * (n - cut) / (n - 1)
        scores[cut] = abs(sum(ranks[:cut]) - cut * (n + 1) / 2) / variance**0.5 if variance else 0.0
    cut, strength = _find_best_cut(np.array(values))
    assert strength == pytest.approx(scores[cut])
    assert strength == pytest.approx(max(scores.values()))


def test_a_cut_that_is_just_strong_enough_counts() -> None:
    values = [5.0] * 9 + [2.0] * 11
    _, strength = _find_best_cut(np.array(values))
    assert strength == pytest.approx(19**0.5)  # sides that do not overlap, nearly all tied: no cut is stronger
    assert len(find_constant_levels(values, min_strength=strength)) == 2
    assert len(find_constant_levels(values, min_strength=strength * 1.000001)) == 1


def test_level_change_counts_from_a_quarter() -> None:
    for before, after, parts in ((4.0, 3.0, 2), (3.0, 4.0, 2), (4.0, 3.01, 1), (3.01, 4.0, 1)):
        assert len(find_constant_levels([before] * 30 + [after] * 30)) == parts
    assert len(find_constant_levels([4.0] * 30 + [3.5] * 30, min_change=0.1)) == 2


def test_series_with_a_median_of_zero_has_a_single_level() -> None:
    assert len(find_constant_levels([0.0] * 100 + [0.0, 0.0, 5.0, 0.0, 5.0] * 20)) == 1


def test_each_level_has_the_median_of_its_values() -> None:
    assert [part.median for part in find_constant_levels([8.0, 10.0, 12.0, 10.0] * 6 + [1.0, 2.0, 3.0] * 8)] == [
        10.0,
        2.0,
    ]
