# SPDX-License-Identifier: Apache-2.0
"""Scatter, and what the repeats of one probe say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.stats.spread import probe, robust_sd, student_quantile, variation


def test_the_robust_deviation_is_that_of_normal_noise_and_ignores_outliers() -> None:
    values = np.random.default_rng(1).normal(10, 2, 5000)
    assert robust_sd(values) == pytest.approx(2, rel=0.05)
    values[:500] = 1e9
    assert robust_sd(values) == pytest.approx(2, rel=0.25)
    assert robust_sd([5.0]) == 0.0


@pytest.mark.parametrize(
    ("p", "freedom", "value"),
    [(0.975, 1, 12.706), (0.975, 4, 2.776), (0.975, 19, 2.093), (0.95, 10, 1.812), (0.995, 30, 2.750)],
)
def test_student_quantiles_are_the_printed_ones(p: float, freedom: int, value: float) -> None:
    assert student_quantile(p, freedom) == pytest.approx(value, abs=0.001)


def test_the_interval_of_the_variation_covers_the_truth() -> None:
    random = np.random.default_rng(3)
    truth = float(np.sqrt(np.exp(0.2**2) - 1))
    covered = 0
    for _ in range(300):
        found = variation(np.exp(random.normal(0, 0.2, 15)))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    assert covered / 300 >= 0.90


@given(st.lists(st.floats(1.0, 1e9), min_size=2, max_size=30), st.floats(0.1, 1e3))
def test_the_variation_has_no_unit(values: list[float], unit: float) -> None:
    one, other = variation(values), variation(np.array(values) * unit)
    assert other.value == pytest.approx(one.value, rel=1e-6, abs=1e-9)


def test_few_values_have_a_variation_without_an_interval() -> None:
    found = variation([1.0, 2.0, 3.0])
    assert found.value == pytest.approx(0.5)
    assert found.low is None
    with pytest.raises(ValueError, match="two values"):
        variation([1.0])


def test_capability_is_the_second_best_of_many_and_the_best_of_three() -> None:
    assert probe([5.0, 9.0, 7.0]).capability == 9.0
    assert probe([5.0, 9.0, 7.0, 8.0, 1.0]).capability == 8.0
    assert probe([5.0, 9.0, 7.0, 8.0, 1.0]).delivered == 7.0
    with pytest.raises(ValueError, match="without repeats"):
        probe([])
