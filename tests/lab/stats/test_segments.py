# SPDX-License-Identifier: Apache-2.0
"""Looking back at levels that are known."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sonde.stats.segments import (
    MIN_SEGMENT_RUNS,
    Segment,
    _clip_outliers,
    _find_segment_borders,
    _merge_similar_segments,
    find_segments,
)

near: Any = pytest.approx  # as a member of what is compared whole


def test_two_steps_are_located_within_two_runs() -> None:
    random = np.random.default_rng(2)
    hits = 0
    for _ in range(60):
        rates = 1e9 * np.exp(0.08 * random.standard_t(3, 200))
        rates[80:] *= 0.7
        rates[140:] *= 1.6
        parts = find_segments(rates)
        hits += len(parts) == 3 and abs(parts[0].end - 80) <= 2 and abs(parts[1].end - 140) <= 2
    assert hits >= 54


def test_noise_with_single_outliers_is_one_level() -> None:
    random = np.random.default_rng(4)
    cut = 0
    for _ in range(100):
        rates = np.exp(0.1 * random.standard_t(3, 150))
        rates[random.integers(0, 150, 5)] *= 0.2
        cut += len(find_segments(rates)) > 1
    assert cut <= 5


@given(st.lists(st.floats(1.0, 1e12), max_size=80))
def test_levels_cover_the_history_without_gaps(rates: list[float]) -> None:
    parts = find_segments(rates)
    assert bool(parts) == bool(rates)
    if parts:
        assert parts[0].first == 0
        assert parts[-1].end == len(rates)
        assert all(a.end == b.first for a, b in itertools.pairwise(parts))


def test_cut_penalty_scales_with_noise_of_at_least_a_thousandth() -> None:
    """A cut of twelve runs costs 10 ln(12), 24.8 squared deviations; six and six runs that differ by 0.34 % save 34.6,
    by 0.26 % 20.2."""
    for step, parts in ((1.0034, 2), (1.0026, 1)):
        assert len(find_segments([1.0] * 6 + [step] * 6, min_change=1e-4)) == parts


def test_outliers_are_clipped_to_three_deviations() -> None:
    values = np.zeros(9)
    values[4] = 10.0
    assert _clip_outliers(values, 0.5).tolist() == [0.0] * 4 + [1.5] + [0.0] * 4
    assert _clip_outliers(-values, 0.5).tolist() == [0.0] * 4 + [-1.5] + [0.0] * 4
    assert _clip_outliers(values, 4.0).tolist() == values.tolist()
    border = np.array([9.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0])  # mirrored: 2 1 1 [9] 1 1 2 2 …
    assert _clip_outliers(border, 0.1).tolist() == pytest.approx([1.3, 1.0, 1.7, 2.0, 2.0, 2.0, 2.0, 2.0])


def squares_left(values: np.ndarray, cuts: list[int]) -> float:
    """The sum of squares that these cuts leave."""
    return float(sum(np.sum((part - part.mean()) ** 2) for part in np.split(values, cuts)))


@given(
    st.lists(st.integers(-6, 6).map(float), min_size=MIN_SEGMENT_RUNS, max_size=24),
    st.sampled_from([0.5, 2.0, 9.0, 40.0]),
)
@example([0.0] * 9 + [-4.0, 2.0], 0.5)  # the best begin looked hopeless four runs earlier, where no stretch could end
def test_no_other_cuts_are_cheaper(numbers: list[float], price: float) -> None:
    """All ways to cut, priced one by one: `best[end]` from its definition."""
    values = np.array(numbers)
    best = [0.0] + [np.inf] * len(numbers)
    for end in range(MIN_SEGMENT_RUNS, len(numbers) + 1):
        best[end] = min(
            best[begin] + squares_left(values[begin:end], []) + (price if begin else 0.0)
            for begin in range(end - MIN_SEGMENT_RUNS + 1)
        )
    cuts = _find_segment_borders(values, price)
    assert all(b - a >= MIN_SEGMENT_RUNS for a, b in itertools.pairwise([0, *cuts, len(numbers)]))
    assert squares_left(values, cuts) + price * len(cuts) == pytest.approx(best[-1])


def test_segment_needs_five_runs() -> None:
    assert find_segments([4.0] * 5 + [2.0] * 5) == [Segment(0, 5, near(4.0)), Segment(5, 10, near(2.0))]
    assert find_segments([4.0] * 5 + [2.0] * 4) == [Segment(0, 9, near(4.0))]
    assert find_segments([4.0]) == [Segment(0, 1, near(4.0))]
    assert find_segments([4.0, 1.0]) == [Segment(0, 2, near(2.0))], "the median of logarithms"


def test_changes_below_a_tenth_stay_one_segment_by_default() -> None:
    assert len(find_segments([1.0] * 20 + [0.91] * 20)) == 1
    assert len(find_segments([1.0] * 20 + [0.89] * 20)) == 2
    assert len(find_segments([1.0] * 20 + [0.91] * 20, min_change=0.08)) == 2


def test_the_noise_is_that_of_neighboring_runs() -> None:
    """Runs that go up and down by d differ by 2 d from each other: 1.4826 * 2 d / sqrt(2) counts as their noise. A cut
    of forty costs 10 ln(40) of its squares: 36.9. A step of s saves 10 s^2."""
    d = 0.01
    noise = 1.4826 * 2 * d / 2**0.5
    least = noise * (10 * np.log(40) / 10) ** 0.5
    waves = np.tile([d, -d], 20)
    for step, parts in ((1.08 * least, 2), (0.92 * least, 1)):
        assert len(find_segments(np.exp(waves + np.repeat([0, step], 20)), min_change=1e-3)) == parts
    for price, parts in ((9.0, 2), (12.0, 1)):
        assert len(find_segments(np.exp(waves + np.repeat([0, least], 20)), price, min_change=1e-3)) == parts


@pytest.mark.parametrize(("smallest", "cuts"), [(0.05, [5, 10, 15]), (0.1, [10, 15]), (0.2, [15]), (0.5, [])])
def test_smallest_of_too_small_steps_is_merged_first(smallest: float, cuts: list[int]) -> None:
    """Steps of 7 %, 15 % and 30 %."""
    values = np.log(np.repeat([1.0, 0.93, 0.93 * 0.85, 0.93 * 0.85 * 0.7], 5))
    segments = _merge_similar_segments(values, [0, 5, 10, 15, 20], -float(np.log(1 - smallest)))
    assert [part.end for part in segments] == [*cuts, 20]
    assert [part.first for part in segments] == [0, *cuts]
    assert segments[-1].level == pytest.approx(float(np.exp(np.median(values[segments[-1].first :]))))
