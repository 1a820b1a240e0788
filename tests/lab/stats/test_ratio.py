# SPDX-License-Identifier: Apache-2.0
"""Ratios, their intervals, and what could not have been seen."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from detectable_drop import compute_detectable_drop
from hypothesis import given
from hypothesis import strategies as st

from sonde.stats.ranks import find_rank_sum_cut
from sonde.stats.ratio import (
    RateRatio,
    _compute_pairwise_differences,
    _compute_small_sample_factor,
    _count_divisions_into_groups,
    compare_rates,
    estimate_detectable_drop,
    estimate_levels_of_ratio,
    simulate_detectable_drop,
)

near: Any = pytest.approx  # as a member of what is compared whole

rates = st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=15)


@given(rates, rates, st.floats(0.01, 100))
def test_ratio_is_independent_of_the_unit(before: list[float], after: list[float], unit: float) -> None:
    comparison = compare_rates(before, after)
    other = compare_rates(np.array(before) * unit, np.array(after) * unit)
    assert other.value == pytest.approx(comparison.value, rel=1e-9)


def test_levels_match_the_ratio_even_if_medians_disagree() -> None:
    before, after = [1.0, 8.0, 8.0, 1.5, 8.5], [2.0, 2.2, 7.0, 12.0, 13.0]
    ratio = compare_rates(before, after).value
    assert np.median(after) < np.median(before)
    assert ratio > 1
    first, second = estimate_levels_of_ratio(before, after, ratio)
    assert second / first == pytest.approx(ratio)
    assert min(before) <= first <= max(before)


@given(rates, rates)
def test_swapping_the_sides_inverts_the_ratio(before: list[float], after: list[float]) -> None:
    forward, other = compare_rates(before, after), compare_rates(after, before)
    assert forward.value * other.value == pytest.approx(1.0, rel=1e-9)
    if forward.low is not None and forward.high is not None:
        assert forward.low <= forward.value <= forward.high
        assert other.high == pytest.approx(1 / forward.low, rel=1e-9)


def test_ratio_is_the_median_of_pairwise_ratios() -> None:
    assert compare_rates([1.0, 2.0, 4.0], [2.0, 4.0, 8.0]).value == pytest.approx(2.0)
    comparison = compare_rates([10.0] * 8, [5.0] * 8)
    assert (comparison.value, comparison.low, comparison.high) == pytest.approx((0.5, 0.5, 0.5))
    assert comparison.differs


def test_fewer_than_five_runs_give_no_interval_but_a_reason() -> None:
    comparison = compare_rates([1.0] * 4, [2.0] * 9)
    assert (comparison.low, comparison.high, comparison.p) == (None, None, None)
    assert not comparison.differs
    assert comparison.why == "an interval needs 5 runs on each side; here are 4 and 9"
    comparison = compare_rates([1.0] * 5, [2.0] * 6, confidence=0.999)
    assert (comparison.value, comparison.low, comparison.high) == (near(2.0), None, None)
    assert comparison.p == near(2 / 462)
    assert comparison.why == "5 and 6 runs cannot give 99.9 % confidence"
    assert compare_rates([1.0] * 5, [2.0] * 6, confidence=0.999, with_p_value=False).p is None


def test_five_runs_a_side_use_the_third_ratios_as_limits() -> None:
    """U is 2 or less in 4 of 252 arrangements (1.6 %), 3 or less in 7 (2.8 %): the third ratio is the bound of 95 %.
    All ratios are 2 to the powers 1 … 25 here."""
    before, after = 2.0 ** np.arange(-5, 0), 2.0 ** np.arange(0, 25, 5)
    comparison = compare_rates(before, after)
    assert (comparison.low, comparison.value, comparison.high) == pytest.approx((2.0**3, 2.0**13, 2.0**23))
    assert (comparison.before, comparison.after, comparison.confidence, comparison.why) == (5, 5, 0.95, "")
    assert comparison.p == pytest.approx(2 / 252)
    assert compare_rates(before, after, with_p_value=False).p is None
    assert compare_rates(before, after, confidence=0.9).low == pytest.approx(2.0**5)  # 4 or less in 12 (4.8 %)
    assert compare_rates(before[:4], after, confidence=0.5).low is None
    assert compare_rates(before, after[:4], confidence=0.5).low is None


@pytest.mark.parametrize("wrong", [[], [0.0, 1.0], [-1.0], [float("nan")], [float("inf")]])
def test_ratio_of_rates_without_logarithm_is_rejected(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match=r"ratio"):
        compare_rates(wrong, [1.0])


@pytest.mark.parametrize(("m", "n"), [(5, 5), (10, 10), (5, 20)])
def test_the_interval_covers_the_truth_on_one_sided_noise(m: int, n: int) -> None:
    random = np.random.default_rng(7)
    covered = 0
    for _ in range(600):
        before = 1e9 * np.exp(-random.gamma(0.5, 0.2, m))
        after = 0.8e9 * np.exp(-random.gamma(0.5, 0.2, n))
        comparison = compare_rates(before, after)
        assert comparison.low is not None
        assert comparison.high is not None
        covered += comparison.low <= 0.8 <= comparison.high
    assert covered / 600 >= 0.93


def test_ten_thousand_runs_a_side_are_no_burden() -> None:
    random = np.random.default_rng(9)
    before, after = np.exp(random.normal(0, 0.2, 12_000)), 0.9 * np.exp(random.normal(0, 0.2, 9_000))
    comparison = compare_rates(before, after)
    assert comparison.low is not None
    assert comparison.high is not None
    assert comparison.value == pytest.approx(0.9, rel=0.01)
    # of the mean of logarithms it would be 1.96 * 0.2 * sqrt(1/m + 1/n) to either side
    assert np.log(comparison.high / comparison.low) / 2 == pytest.approx(
        1.96 * 0.2 * (1 / 12_000 + 1 / 9_000) ** 0.5, rel=0.2
    )
    assert comparison.p is not None
    assert comparison.p < 1e-6


def test_detectable_drop_separates_missed_from_detected_drops() -> None:
    random = np.random.default_rng(8)
    noise = random.normal(0, 0.1, 400)
    drop = simulate_detectable_drop(noise, 5, 20)
    assert drop is not None
    assert drop == pytest.approx(compute_detectable_drop(0.1, 5, 20), abs=0.03)
    few = simulate_detectable_drop(noise, 3, 20)
    assert few is not None
    assert few > drop


def test_too_few_runs_have_no_detectable_drop() -> None:
    assert estimate_detectable_drop([1.0, 1.1, 0.9], [1.0, 0.9]) is None
    assert estimate_detectable_drop([1.0] * 10, [1.0] * 10) is None  # no noise to judge by
    assert estimate_detectable_drop([1.0], [1.0 + 0.01 * index for index in range(300)]) is None  # one run has no noise
    for other, is_detectable in ((12, False), (13, True)):  # 91 and 105 arrangements, for a level of 1 %
        assert (
            estimate_detectable_drop([1.0, 1.1], [1.0 + 0.01 * index for index in range(other)]) is not None
        ) == is_detectable
        assert (simulate_detectable_drop([0.1, -0.1] * 10, 2, other) is not None) == is_detectable
    assert simulate_detectable_drop([0.1, -0.1] * 9 + [0.1], 5, 5) is None  # nineteen residuals
    some = estimate_detectable_drop([1.0, 1.1, 0.9, 1.2, 0.95], [1.0, 1.05, 0.93, 1.1, 0.9])
    assert some is not None
    assert 0.1 < some < 0.6


NOISE: dict[str, Callable[..., Any]] = {
    "normal": lambda random, size: random.normal(0, 0.1, size),
    "heavy tails": lambda random, size: 0.1 * random.standard_t(3, size),
    "one-sided": lambda random, size: -random.exponential(0.2, size),
    "one-sided and heavy": lambda random, size: -random.gamma(0.5, 0.2, size),
}


@pytest.mark.parametrize("noise_kind", sorted(NOISE))
@pytest.mark.parametrize(("before", "after"), [(5, 5), (6, 6), (5, 20), (8, 8), (12, 12), (40, 40), (5, 300)])
def test_stated_detectable_drop_has_80_percent_power(noise_kind: str, before: int, after: int) -> None:
    """The power at the stated drop, over many pairs of groups, with noise of known shape."""
    random, noise = np.random.default_rng(3), NOISE[noise_kind]
    # by how much the second side must fall for the rank test to see it, from its definition: U, counted pair by pair
    cut = find_rank_sum_cut(before, after, 0.01)
    draws = 3000 if before * after <= 2000 else 500
    old, new = noise(random, (draws, before)), noise(random, (draws, after))
    differences = np.sort((new[:, :, None] - old[:, None, :]).reshape(draws, -1), axis=1)
    needed = np.sort(differences[:, -cut])
    power = []
    for _ in range(250 if before * after <= 400 else 40):
        drop = estimate_detectable_drop(np.exp(noise(random, before)), np.exp(noise(random, after)))
        assert drop is not None
        power.append(np.searchsorted(needed, -np.log(1 - drop)) / draws)
    few = before < 8 and noise_kind == "one-sided and heavy"  # whose extremes so few runs do not show
    assert np.mean(power) == pytest.approx(0.80, abs=0.11 if few else 0.06)  # 0.05, and the error of so few pairs


def test_noisier_groups_have_a_larger_detectable_drop() -> None:
    random = np.random.default_rng(4)
    calm, wild = random.normal(0, 0.05, (2, 10)), random.normal(0, 0.05, (2, 10))
    wild[1] *= 4
    sharp, blunt = estimate_detectable_drop(*np.exp(calm)), estimate_detectable_drop(*np.exp(wild))
    assert sharp is not None
    assert blunt is not None
    assert blunt > 1.5 * sharp


@pytest.mark.parametrize(
    ("low", "high", "differs"),
    [(0.5, 0.9, True), (1.5, 3.0, True), (0.5, 1.0, False), (1.0, 2.0, False), (0.5, 2, False)],
)
def test_ratio_differs_when_its_interval_excludes_1(low: float, high: float, differs: bool) -> None:
    assert RateRatio(1.2, low, high, 0.5, 9, 9, 0.95).differs == differs


def test_sides_that_are_thinned_keep_their_extremes() -> None:
    old, new = np.arange(5000.0), np.array([1.0, 2.0])
    differences = _compute_pairwise_differences(old, new)
    assert (differences[0], differences[-1]) == (1.0 - 4999.0, 2.0)
    assert differences.size < old.size * new.size
    assert np.all(np.diff(differences) >= 0)


def test_small_sample_correction_equals_the_simulated_factor() -> None:
    assert _compute_small_sample_factor(10) == pytest.approx(1 + 0.16 + 0.09)
    assert _count_divisions_into_groups(5, 5) == 252
    assert _count_divisions_into_groups(3, 7) == _count_divisions_into_groups(7, 3) == 120


def test_detectable_drop_grows_with_noise_as_in_normal_theory() -> None:
    """The level is 0.01, the power 0.8; the rank test shows 0.98 of the shift that a t test shows."""
    units = 2.3263 + 0.8416
    drop = compute_detectable_drop(0.1, 10, 15)
    assert -np.log(1 - drop) == pytest.approx(units * 0.1 * (1 / 10 + 1 / 15) ** 0.5 / 0.98, rel=1e-3)


def test_detectable_drop_without_noise_is_the_smallest_tried() -> None:
    """The search halves 0 … 99 % twelve times; beyond 99 % it does not look."""
    assert simulate_detectable_drop([0.0] * 20, 10, 10) == pytest.approx(0.99 / 2**12)
    assert simulate_detectable_drop([-20.0, 20.0] * 10, 10, 10) is None


def test_a_drop_that_is_just_as_large_as_the_noise_shows() -> None:
    """With two levels of noise the drop must be their full distance: half of 0.99 here, the first value tried."""
    assert simulate_detectable_drop([0.0, float(np.log(1 - 0.99 / 2))] * 10, 5, 5) == 0.99 / 2


@pytest.mark.parametrize(("before", "after"), [(5, 20), (10, 10), (40, 10)])
def test_simulated_detectable_drop_has_80_percent_power(before: int, after: int) -> None:
    random = np.random.default_rng(21)
    noise = random.normal(0, 0.1, 4000)
    drop = simulate_detectable_drop(noise, before, after, draw_count=4000)
    assert drop is not None
    old, new = random.choice(noise, (4000, before)), random.choice(noise, (4000, after)) + np.log(1 - drop)
    above = (new[:, :, None] > old[:, None, :]).sum(axis=(1, 2))
    assert np.mean(above < find_rank_sum_cut(before, after, 0.01)) == pytest.approx(0.8, abs=0.025)


def test_detectable_drop_defaults_are_a_thousand_draws_and_seed_1() -> None:
    noise = np.random.default_rng(22).normal(0, 0.1, 300)
    assert simulate_detectable_drop(noise, 8, 8) == simulate_detectable_drop(noise, 8, 8, draw_count=1000, seed=1)


def test_detectable_drop_of_many_runs_matches_the_normal_law() -> None:
    """320 runs a side see about what the normal law says of them; drawn are eighty of each."""
    random = np.random.default_rng(23)
    drop = estimate_detectable_drop(*np.exp(random.normal(0, 0.1, (2, 320))))
    assert drop is not None
    assert np.log(1 - drop) / np.log(1 - compute_detectable_drop(0.1, 320, 320)) == pytest.approx(1, abs=0.12)


def test_pairwise_differences_are_thinned_above_1500_runs() -> None:
    old, new = np.arange(1500.0), np.arange(3.0)
    assert _compute_pairwise_differences(old, new).size == 4500
    assert _compute_pairwise_differences(np.arange(1501.0), new).size == 4500
    values = np.random.default_rng(24).permutation(np.arange(3001.0))
    thinned = _compute_pairwise_differences(np.array([0.0]), values)
    assert (thinned.size, thinned[0], thinned[-1]) == (1500, 0.0, 3000.0)
    assert set(np.diff(thinned)) == {2.0, 3.0}


def test_interval_of_thinned_sides_cuts_at_least_a_ratio() -> None:
    """For 5 and 4000 runs the extreme ratios are the bounds if one arrangement has the probability of the level."""
    before, after = np.arange(1.0, 6.0), np.linspace(10, 20, 4000)
    spread = (20_000 * 4006 / 12) ** 0.5
    level = NormalDist().cdf((1.5 - 0.5 - 10_000) / spread)
    assert find_rank_sum_cut(5, 4000, level) == 1
    comparison = compare_rates(before, after, confidence=1 - 2 * level)
    assert (comparison.low, comparison.high) == pytest.approx((10 / 5, 20 / 1))
