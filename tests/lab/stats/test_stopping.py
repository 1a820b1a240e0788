# SPDX-License-Identifier: Apache-2.0
"""Repeats that end when the interval of their median is narrow: the interval still covers as it says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from sonde.stats.stopping import (
    InterimLook,
    MedianInterval,
    StopRule,
    _choose_order_statistics,
    _estimate_rank_autocorrelation,
    adjust_level_for_looks,
    compute_intervals_of_samples,
    compute_median_interval,
)

Rows = NDArray[np.float64]
TRIALS, LEAST, MOST = 1000, 6, 30
# 95 % within 2 %, and twice the standard deviation of a share that is counted over so many trials
LOW, HIGH = 0.93 - 0.014, 0.97 + 0.014


def draw_correlated_rows(rows: int, columns: int, alike: float, seed: int) -> Rows:
    """Standard normal values; each is correlated with the one before it."""
    fresh = np.random.default_rng(seed).standard_normal((rows, columns))
    for index in range(1, columns):
        fresh[:, index] = alike * fresh[:, index - 1] + np.sqrt(1 - alike**2) * fresh[:, index]
    return fresh


# Each turns standard normal values into logarithms of rates whose median is 0. The one-sided ones are slow outliers.
KINDS: dict[str, Callable[[Rows], Rows]] = {
    "normal": lambda z: 0.1 * z,
    "heavy on both sides": lambda z: 0.08 * np.sinh(1.2 * z),
    "one-sided": lambda z: 0.12 * np.log1p(np.tanh(z * 0.7978)),
    "chi-square": lambda z: -0.12 * (z**2 - 0.45494),
    "one in seven slow": lambda z: np.where(z < -1.07, 0.05 * z - 0.3 * (-1.07 - z) - 0.1, 0.05 * z),
}


def measure_coverage_with_looks(trial_rows: Rows, share: float) -> tuple[float, float]:
    """Share of the trials (rows) whose interval contains 0 computed after each run, and the mean number of runs."""
    rule = StopRule(LEAST, MOST, share)
    open_ = np.ones(len(trial_rows), dtype=bool)
    hits, runs = 0, 0
    for count in range(LEAST, MOST + 1):
        low, high = compute_intervals_of_samples(trial_rows[open_, :count], rule.classify_look(count))
        half = (np.exp(high) - np.exp(low)) / 2 / np.exp(np.median(trial_rows[open_, :count], axis=1))
        ends = (half <= share) | (count == MOST)
        hits += int(np.sum(ends & (low <= 0) & (high >= 0)))
        runs += count * int(np.sum(ends))
        open_[np.flatnonzero(open_)[ends]] = False
    return hits / len(trial_rows), runs / len(trial_rows)


@pytest.mark.parametrize("alike", [0.0, 0.18])
@pytest.mark.parametrize("kind", KINDS)
def test_interval_coverage_survives_adaptive_stopping(kind: str, alike: float) -> None:
    trial_rows = KINDS[kind](draw_correlated_rows(TRIALS, MOST, alike, seed=11))
    means = []
    for share in (0.5, 0.1, 0.05, 0.03, 0.005):
        coverage, runs = measure_coverage_with_looks(trial_rows, share)
        assert LOW <= coverage <= HIGH, f"{share}: covers in {coverage:.3f}"
        means.append(runs)
    assert means == sorted(means)
    assert means[0] < LEAST + 1
    assert means[-1] > MOST - 1  # the rule was tried at both ends


def test_interval_without_look_adjustment_undercovers() -> None:
    """Without adjusted levels, intervals that are computed after every run cover the truth too rarely."""
    values = KINDS["normal"](draw_correlated_rows(4000, MOST, 0.18, seed=3))
    open_, hits = np.ones(len(values), dtype=bool), 0
    for count in range(LEAST, MOST + 1):
        sample = values[open_, :count]
        half = 1.96 * 1.2533 * np.std(sample, axis=1, ddof=1) / np.sqrt(count)
        ends = (half <= 0.05) | (count == MOST)
        hits += int(np.sum(ends & (np.abs(np.median(sample, axis=1)) <= half)))
        open_[np.flatnonzero(open_)[ends]] = False
    assert hits / len(values) < 0.91


@pytest.mark.parametrize("count", [6, 8, 9, 12, 25])
@pytest.mark.parametrize("kind", KINDS)
def test_fixed_number_of_runs_covers_at_the_stated_level(kind: str, count: int) -> None:
    low, high = compute_intervals_of_samples(KINDS[kind](draw_correlated_rows(TRIALS, count, 0.0, seed=29)))
    assert LOW <= float(np.mean((low <= 0) & (high >= 0))) <= HIGH


@pytest.mark.parametrize(("confidence", "within"), [(0.9, 0.045), (0.99, 0.012)])
def test_other_confidences_are_near_too(confidence: float, within: float) -> None:
    """Far out in the tails six runs know little: 99 % is 98 to 99.9 %."""
    for kind, make in KINDS.items():
        values = make(draw_correlated_rows(4000, MOST, 0.0, seed=31))
        for count, look in ((6, InterimLook.FIRST), (MOST, InterimLook.LAST)):
            low, high = compute_intervals_of_samples(values[:, :count], look, confidence)
            coverage = float(np.mean((low <= 0) & (high >= 0)))
            assert abs(coverage - confidence) <= within, f"{kind}, {count} runs: {coverage:.3f}"


def test_median_interval_of_shares_near_zero_uses_no_logarithm() -> None:
    shares = draw_correlated_rows(4000, 12, 0.0, seed=37) * 0.02
    hits = sum(
        interval.low <= 0 <= interval.high
        for row in shares
        if (interval := compute_median_interval(row)).low is not None and interval.high is not None
    )
    assert LOW <= hits / len(shares) <= HIGH
    assert compute_median_interval([0.0] * 6) == compute_median_interval([0.0] * 6, InterimLook.LAST)
    assert compute_median_interval([0.0] * 6).low == 0


def test_single_sample_equals_a_row_of_many_samples() -> None:
    rates = np.exp(KINDS["normal"](draw_correlated_rows(1, 9, 0.0, seed=5)))[0] * 2e9
    interval = compute_median_interval(rates, InterimLook.BETWEEN)
    low, high = compute_intervals_of_samples(np.log(rates)[None, :], InterimLook.BETWEEN)
    assert interval.low == pytest.approx(np.exp(low[0]))
    assert interval.high == pytest.approx(np.exp(high[0]))
    assert interval.value == np.median(rates)


def test_few_runs_have_no_interval_and_equal_runs_a_zero_width() -> None:
    assert compute_median_interval([1.0, 2.0, 3.0, 4.0]).low is None
    assert compute_median_interval([5.0] * 6).relative_half_width == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match="finite"):
        compute_median_interval([1.0, float("inf")])


def test_repeats_end_at_the_limit_of_runs_or_of_the_interval() -> None:
    noisy = [1.0, 2.0, 1.1, 3.0, 0.5, 1.7, 2.2, 0.9]
    rule = StopRule(6, 8, 0.05)
    assert [rule.is_finished(noisy[:count]) for count in (3, 6, 7, 8)] == [False, False, False, True]
    assert rule.is_finished([1.0, 1.001, 0.999, 1.0, 1.002, 1.0])
    assert StopRule(3, 3).is_finished(noisy[:3])
    assert not StopRule(3, 3).is_finished(noisy[:2])


def test_estimated_runs_grow_with_the_square_of_the_width() -> None:
    values = np.exp(0.05 * np.random.default_rng(2).standard_normal(20))
    half = StopRule(6, 1000, 1e-9).compute_median_interval(values).relative_half_width
    assert half is not None
    assert StopRule(6, 1000, half / 2).estimate_needed_runs(values) == pytest.approx(80, abs=1)
    assert StopRule(6, 30, half / 2).estimate_needed_runs(values) == 30


@pytest.mark.parametrize(
    ("count", "level", "expected_rank"),
    [(5, 0.6, 2), (5, 0.625, 2), (5, 0.63, 1), (6, 0.96, 1), (9, 0.82, 3), (9, 0.83, 2), (20, 0.95, 6)],
)
def test_median_coverage_of_order_statistics_is_binomial(count: int, level: float, expected_rank: int) -> None:
    """The second and the fourth of five lie around the median in 20 cases of 32, the third and the seventh of nine in
    420 of 512 (Conover 1999, table A3 for the sixth and the fifteenth of twenty)."""
    rank, share, stretch = _choose_order_statistics(count, level)
    assert (rank, stretch) == (expected_rank, 1.0)
    assert 0 <= share < 1


def test_range_of_few_values_is_widened_as_for_normal_noise() -> None:
    rank, share, stretch = _choose_order_statistics(5, 0.95)
    assert (rank, share) == (1, 0.0)
    assert stretch == pytest.approx(1.95996 / 1.86273, abs=1e-4)  # the range of five covers in 30 cases of 32


@pytest.mark.parametrize(
    ("looks", "confidence", "level"),
    [
        ([], 0.95, 0.95),
        ([InterimLook.ONLY, InterimLook.FIRST, InterimLook.LAST], 0.95, 0.95),
        ([InterimLook.LAST, InterimLook.BETWEEN], 0.95, 0.9575),
        ([InterimLook.BETWEEN], 0.8, 0.83),
    ],
)
def test_early_look_slightly_lowers_the_level(looks: list[InterimLook], confidence: float, level: float) -> None:
    assert adjust_level_for_looks(looks, confidence) == pytest.approx(level)
    assert adjust_level_for_looks(looks) == adjust_level_for_looks(looks, 0.95)


@pytest.mark.parametrize(
    ("rule", "looks"),
    [
        (StopRule(6, 9, 0.05), "first first first between between last last"),
        (StopRule(3, 8, 0.05), "first first between between last last last"),
        (StopRule(6, 6, 0.05), "only only only only only only only"),
        (StopRule(7, 6, 0.05), "only only only only only only only"),
        (StopRule(6, 9), "only only only only only only only"),
        (StopRule(6, 7, 0.05), "first first first last last last last"),
    ],
)
def test_look_after_each_count_is_classified(rule: StopRule, looks: str) -> None:
    assert [rule.classify_look(count).value for count in range(4, 11)] == looks.split()


def test_a_rule_states_the_interval_of_its_look() -> None:
    values = [1.0, 2.0, 1.1, 3.0, 0.5, 1.7, 2.2, 0.9]
    rule = StopRule(6, 9, 0.05)
    for count, look in ((6, InterimLook.FIRST), (7, InterimLook.BETWEEN), (8, InterimLook.BETWEEN)):
        assert rule.compute_median_interval(values[:count]) == compute_median_interval(values[:count], look)
    assert rule.compute_median_interval([*values, 1.3]) == compute_median_interval([*values, 1.3], InterimLook.LAST)
    between, last, only = (
        compute_median_interval(values, look).relative_half_width or 0.0
        for look in (InterimLook.BETWEEN, InterimLook.LAST, InterimLook.ONLY)
    )
    assert between > last > only > 0
    assert compute_median_interval(values, InterimLook.FIRST) == compute_median_interval(values, InterimLook.ONLY)


def test_repeats_end_when_half_of_the_interval_is_the_share_or_less() -> None:
    values = [1.0, 1.2, 0.9, 1.1, 1.0, 0.8]
    half = compute_median_interval(values, InterimLook.FIRST).relative_half_width
    assert half is not None
    assert StopRule(6, 9, half).is_finished(values)
    assert not StopRule(6, 9, half * 0.999999).is_finished(values)
    assert not StopRule(7, 9, half).is_finished(values)
    assert StopRule(4, 5, 1e-9).is_finished(values[:5])
    assert not StopRule(3, 9, 10.0).is_finished(values[:4])  # four have no interval
    assert not StopRule(6, 9, 10.0).is_finished([])


def test_expected_runs_are_at_least_the_remaining_runs() -> None:
    values = [1.0, 1.2, 0.9, 1.1, 1.0, 0.8]
    half = compute_median_interval(values, InterimLook.FIRST).relative_half_width
    assert half is not None
    assert StopRule(6, 90, 0.05).estimate_needed_runs([]) == 6
    assert StopRule(6, 90).estimate_needed_runs([]) == 6
    assert StopRule(6, 90).estimate_needed_runs(values + values) == 12
    assert StopRule(6, 90, 0.05).estimate_needed_runs(values[:4]) == 6  # nothing is known yet
    assert StopRule(6, 90, 2 * half).estimate_needed_runs(values) == 6  # it is enough
    assert StopRule(6, 90, half * 0.99).estimate_needed_runs(values) == 7
    assert StopRule(6, 90, half / 1.9).estimate_needed_runs(values) == 22  # 6 * 1.9^2 = 21.66
    assert StopRule(30, 90, half / 1.9).estimate_needed_runs(values) == 30
    assert StopRule(6, 12, half / 1.9).estimate_needed_runs(values) == 12


def test_half_an_interval_is_a_share_of_its_median() -> None:
    assert MedianInterval(4.0, 3.0, 6.0, 9).relative_half_width == 0.375
    for interval in (
        MedianInterval(4.0, None, 6.0, 9),
        MedianInterval(4.0, 3.0, None, 9),
        MedianInterval(0.0, -1, 1, 9),
    ):
        assert interval.relative_half_width is None


def test_interval_widens_with_the_correlation_of_neighbors() -> None:
    """Of twelve: the third and the tenth lie around the median in 3938 of 4096 cases, the fourth and the ninth in 3498;
    the way between is that of Hettmansperger and Sheather. The least correlation that is assumed is 0.075."""
    outer, inner = 1 - 2 * 79 / 4096, 1 - 2 * 299 / 4096
    for look, left_of_miss in ((InterimLook.ONLY, 1.1), (InterimLook.FIRST, 1.1), (InterimLook.LAST, 0.8)):
        weight = (outer - (1 - 0.05 * left_of_miss)) / (outer - inner)
        share = 9 * weight / (3 + 6 * weight)
        # up and down in turn: neighbors are unlike
        values = np.array([1.0, 12, 2, 11, 3, 10, 4, 9, 5, 8, 6, 7])
        factor = (1.075 / 0.925) ** 0.5
        low, high = compute_intervals_of_samples(values[None, :], look)
        assert low[0] == pytest.approx(6.5 - (3.5 - share) * factor)
        assert high[0] == pytest.approx(6.5 + (3.5 - share) * factor)
    # less may be missed between the looks: the second and the eleventh, 4070 of 4096, on the way to the third
    weight = (1 - 2 * 13 / 4096 - (1 - 0.05 * 0.46)) / (1 - 2 * 13 / 4096 - outer)
    share = 10 * weight / (2 + 8 * weight)
    low, _ = compute_intervals_of_samples(values[None, :], InterimLook.BETWEEN)
    assert low[0] == pytest.approx(6.5 - (4.5 - share) * factor)


def test_correlation_of_neighbors_is_corrected_for_small_samples() -> None:
    """Twenty values in order have a correlation of ranks of 0.85: with the bias (1 + 3 * 0.85) / 20 it is 1.0275, which
    with twenty runs' worth of doubt is half of that. In hundred it would be 0.8, and 0.6 is the most; where neighbors
    are unlike 0.075 is the least."""
    order = np.arange(20.0)
    ranks = order - 9.5
    raw = float(np.sum(ranks[1:] * ranks[:-1]) / np.sum(ranks**2))
    assert raw == pytest.approx(0.85)
    rows = np.stack([order, 3.0**order, np.where(order % 2, order, -order)])
    assert _estimate_rank_autocorrelation(rows) == pytest.approx([(raw + (1 + 3 * raw) / 20) / 2] * 2 + [0.075])
    assert _estimate_rank_autocorrelation(np.arange(100.0)[None, :]) == pytest.approx([0.6])


def test_five_values_have_a_median_interval() -> None:
    interval = compute_median_interval([3.0, 1.0, 5.0, 2.0, 4.0])
    assert interval.low is not None
    assert interval.high is not None
    assert 0 < interval.low < 1
    assert interval.high > 5
    assert interval.count == 5
    for wrong in ([], [float("nan")]):
        with pytest.raises(ValueError, match="the interval of a median needs finite values"):
            compute_median_interval(wrong)


def test_negative_values_are_not_log_transformed() -> None:
    """The same values further up have the same interval further up: no logarithm was taken."""
    values = np.array([1.0, 12, 2, 11, 3, 10, 4, 9, 5, 8, 6, 7])
    low, high = (float(interval[0]) for interval in compute_intervals_of_samples(values[None, :]))
    shifted = compute_median_interval(values - 12)
    assert (shifted.low, shifted.high) == pytest.approx((low - 12, high - 12))
    nothing = compute_median_interval(values - 1)
    assert (nothing.low, nothing.high) == pytest.approx((low - 1, high - 1))
