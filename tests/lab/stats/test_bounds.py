# SPDX-License-Identifier: Apache-2.0
"""Intervals against what is known of them: tables of shares, a slope that was drawn, and corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sonde.stats.bounds import BoundedValue, bootstrap_statistic, compute_binomial_interval, estimate_more_runs

near: Any = pytest.approx  # as a member of what is compared whole


def test_intervals_are_added_and_divided_by_their_corners() -> None:
    minuend, other = BoundedValue(10, 9, 12), BoundedValue(2, 1, 4)
    assert minuend + other == BoundedValue(12, 10, 16)
    assert minuend - other == BoundedValue(8, 5, 11)
    assert minuend * other == BoundedValue(20, 9, 48)
    assert minuend / other == BoundedValue(5, 9 / 4, 12)
    assert minuend / BoundedValue(1, -1, 2) == BoundedValue(10, None, None)
    assert (
        minuend / BoundedValue(1, 0, 2)
        == minuend / BoundedValue(1, -2, 0)
        == minuend / BoundedValue(1, None, None)
        == BoundedValue(10, None, None)
    )
    assert minuend / BoundedValue(0.25, 0.25, 0.5) == BoundedValue(40, 18, 48)
    for half_known in (BoundedValue(1, None, None), BoundedValue(1, 0, None), BoundedValue(1, None, 2)):
        assert minuend + half_known == half_known + minuend == BoundedValue(11, None, None)
    with pytest.raises(ZeroDivisionError):
        minuend / BoundedValue(0, -1, 1)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"), [(6, 6, 0.5407, 1.0), (0, 10, 0.0, 0.3085), (5, 10, 0.1871, 0.8129)]
)
def test_the_interval_of_a_share_is_that_of_clopper_and_pearson(
    successes: int, trials: int, low: float, high: float
) -> None:
    share = compute_binomial_interval(successes, trials)
    assert share.value == successes / trials
    assert share.limits == pytest.approx((low, high), abs=5e-4)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3), (0, 0)])
def test_impossible_share_has_no_binomial_interval(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match=f"{successes} of {trials} is no share"):
        compute_binomial_interval(successes, trials)


@pytest.mark.parametrize(
    ("successes", "confidence", "low", "high"),
    [(0, 0.95, 0.0, 0.975), (1, 0.95, 0.025, 1.0), (1, 0.9, 0.05, 1.0), (0, 0.9, 0.0, 0.95)],
)
def test_a_single_run_gives_a_wide_binomial_interval(
    successes: int, confidence: float, low: float, high: float
) -> None:
    """With one run in which it happened, a share below a fortieth would be an accident of less than 2.5 %."""
    share = compute_binomial_interval(successes, 1, confidence)
    assert share.value == successes
    assert share.limits == pytest.approx((low, high))


def test_bootstrap_interval_of_a_slope_covers_the_true_slope() -> None:
    random = np.random.default_rng(8)
    x = np.log(np.array([1.0, 2.0, 4.0, 8.0]))
    x -= x.mean()

    def slope(y: np.ndarray) -> float:
        return float(np.sum(x * np.log(y)) / np.sum(x * x))

    covered = 0
    for _ in range(40):
        groups = [np.exp(0.5 * position + random.normal(0, 0.05, 10)) for position in x]
        low, high = bootstrap_statistic(groups, slope).limits
        covered += low <= 0.5 <= high
    assert covered >= 34


def test_more_runs_move_the_bound_to_the_threshold() -> None:
    # the interval reaches twice as far as the threshold is away: four times as many runs
    assert estimate_more_runs(10, BoundedValue(1.1, 0.9, 1.3), 1.0) == 30
    assert estimate_more_runs(3, BoundedValue(1.1, None, None), 1.0) == 3
    assert estimate_more_runs(10, BoundedValue(1.0, 0.9, 1.1), 1.0) is None
    # below the threshold it is the upper bound that has to come nearer
    assert estimate_more_runs(8, BoundedValue(0.75, 0.7, 1.25), 1.0) == 24
    # an interval that reaches 29 times as far: 841 times as many runs; beyond 30 nobody would
    assert estimate_more_runs(10, BoundedValue(1.5, -13.0, 20.0), 1.0) == 8400
    assert estimate_more_runs(10, BoundedValue(1.5, -14.0, 20.0), 1.0) is None
    # the bound is on the right side already: one more run shows it
    assert estimate_more_runs(10, BoundedValue(2.0, 1.5, 2.5), 1.0) == 1


def test_half_an_interval_is_a_share_of_the_size_of_its_value() -> None:
    assert BoundedValue(10, 8, 13).relative_half_width == 0.25
    assert BoundedValue(-10, -13, -8).relative_half_width == 0.25
    assert (
        BoundedValue(10, None, 13).relative_half_width
        is BoundedValue(10, 8, None).relative_half_width
        is BoundedValue(0, -1, 1).relative_half_width
        is None
    )


def test_interval_exists_when_both_limits_exist() -> None:
    assert BoundedValue.from_exact_value(3.0) == BoundedValue(3.0, 3.0, 3.0)
    assert BoundedValue.from_exact_value(3.0).has_interval
    assert BoundedValue.from_exact_value(3.0).relative_half_width == 0
    assert BoundedValue(3.0, 1.0, 4.0).limits == (1.0, 4.0)
    assert BoundedValue(3.0, None, None).limits == (-np.inf, np.inf)
    assert not any(
        value.has_interval
        for value in (BoundedValue(3, None, None), BoundedValue(3, 1, None), BoundedValue(3, None, 4))
    )


@pytest.mark.parametrize(
    ("first", "confidence", "low", "high"),
    [(500, 0.95, 24.975, 974.025), (500, 0.8, 99.9, 899.1), (-7, 0.95, -7, 974.025), (2000, 0.95, 24.975, 2000)],
)
def test_bootstrap_limits_are_quantiles_of_a_thousand_resamples(
    first: float, confidence: float, low: float, high: float
) -> None:
    """A statistic that counts how often it was asked: once for the value, then 0 … 999. The value is in its interval
    even where no draw comes near it."""
    quantiles = iter([float(first), *map(float, range(1000))])
    bounded = bootstrap_statistic([[1.0] * 6, [2.0] * 7], lambda _: next(quantiles), confidence)
    assert bounded == BoundedValue(first, near(low), near(high))
    assert next(quantiles, None) is None


def test_bootstrap_draws_within_groups_and_is_deterministic() -> None:
    groups = [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [70.0, 80.0, 90.0] * 3]
    samples: list[tuple[float, float]] = []

    def difference(medians: np.ndarray) -> float:
        samples.append((float(medians[0]), float(medians[1])))
        return float(medians[1] - medians[0])

    bounded = bootstrap_statistic(groups, difference)
    assert bounded.value == 76.5
    assert samples[0] == (3.5, 80.0)
    assert {second for _, second in samples} == {70.0, 80.0, 90.0}
    assert all(1 <= first <= 6 for first, _ in samples)
    assert len({first for first, _ in samples}) > 6
    assert bootstrap_statistic(groups, difference) == bounded


def test_bootstrap_interval_needs_six_runs_per_group() -> None:
    def ratio(medians: np.ndarray) -> float:
        return float(medians[1] / medians[0])

    assert bootstrap_statistic([[2.0] * 6, [3.0] * 6], ratio) == BoundedValue(1.5, 1.5, 1.5)
    assert (
        bootstrap_statistic([[2.0] * 6, [3.0] * 5], ratio)
        == bootstrap_statistic([[2.0] * 5, [3.0] * 6], ratio)
        == BoundedValue(1.5, None, None)
    )


def test_enough_runs_without_an_interval_need_another_run() -> None:
    assert [estimate_more_runs(now, BoundedValue(1.1, None, None), 1.0) for now in (0, 5, 6, 9)] == [6, 1, 1, 1]


def test_more_runs_are_estimated_up_to_thirty_times_the_width() -> None:
    assert estimate_more_runs(10, BoundedValue(1.5, -13.5, 20.0), 1.0) == 8990
    assert estimate_more_runs(10, BoundedValue(1.5, -13.51, 20.0), 1.0) is None
