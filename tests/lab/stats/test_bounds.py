# SPDX-License-Identifier: Apache-2.0
"""Intervals against what is known of them: tables of shares, a slope that was drawn, and corners."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.stats.bounds import Bounded, along, more_runs, share_bounds


def test_intervals_are_added_and_divided_by_their_corners() -> None:
    one, other = Bounded(10, 9, 12), Bounded(2, 1, 4)
    assert one + other == Bounded(12, 10, 16)
    assert one - other == Bounded(8, 5, 11)
    assert one * other == Bounded(20, 9, 48)
    assert one / other == Bounded(5, 9 / 4, 12)
    assert one / Bounded(1, -1, 2) == Bounded(10, None, None)
    assert one + Bounded(1, None, None) == Bounded(11, None, None)


@pytest.mark.parametrize(
    ("count", "of", "low", "high"), [(6, 6, 0.5407, 1.0), (0, 10, 0.0, 0.3085), (5, 10, 0.1871, 0.8129)]
)
def test_the_interval_of_a_share_is_that_of_clopper_and_pearson(count: int, of: int, low: float, high: float) -> None:
    found = share_bounds(count, of)
    assert found.ends == pytest.approx((low, high), abs=5e-4)


@pytest.mark.parametrize(("count", "of"), [(-1, 3), (4, 3), (0, 0)])
def test_what_is_no_share_has_no_interval(count: int, of: int) -> None:
    with pytest.raises(ValueError, match=f"{count} of {of} is no share"):
        share_bounds(count, of)


def test_the_interval_of_a_slope_covers_the_slope_that_was_drawn() -> None:
    random = np.random.default_rng(8)
    x = np.log(np.array([1.0, 2.0, 4.0, 8.0]))
    x -= x.mean()

    def slope(y: np.ndarray) -> float:
        return float(np.sum(x * np.log(y)) / np.sum(x * x))

    covered = 0
    for _ in range(40):
        groups = [np.exp(0.5 * at + random.normal(0, 0.05, 10)) for at in x]
        low, high = along(groups, slope).ends
        covered += low <= 0.5 <= high
    assert covered >= 34


def test_more_runs_are_those_that_would_bring_the_bound_to_the_threshold() -> None:
    # the interval reaches twice as far as the threshold is away: four times as many runs
    assert more_runs(10, Bounded(1.1, 0.9, 1.3), 1.0) == 30
    assert more_runs(3, Bounded(1.1, None, None), 1.0) == 3
    assert more_runs(10, Bounded(1.0, 0.9, 1.1), 1.0) is None
    # below the threshold it is the upper bound that has to come nearer
    assert more_runs(8, Bounded(0.75, 0.7, 1.25), 1.0) == 24
    # an interval that reaches 29 times as far: 841 times as many runs; beyond 30 nobody would
    assert more_runs(10, Bounded(1.5, -13.0, 20.0), 1.0) == 8400
    assert more_runs(10, Bounded(1.5, -14.0, 20.0), 1.0) is None
    # the bound is on the right side already: one more run shows it
    assert more_runs(10, Bounded(2.0, 1.5, 2.5), 1.0) == 1


def test_half_an_interval_is_a_share_of_the_size_of_its_value() -> None:
    assert Bounded(10, 8, 13).half == 0.25
    assert Bounded(-10, -13, -8).half == 0.25
    assert Bounded(10, None, 13).half is Bounded(10, 8, None).half is Bounded(0, -1, 1).half is None
