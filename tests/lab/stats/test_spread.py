# SPDX-License-Identifier: Apache-2.0
"""Scatter, and what the repeats of one probe say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.stats.spread import COVERS, Variation, chi_square_quantile, probe, robust_sd, student_quantile, variation


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


@pytest.mark.parametrize(
    ("p", "freedom", "value"),
    [
        (0.025, 2, 0.05064),
        (0.975, 2, 7.378),
        (0.025, 5, 0.8312),
        (0.975, 5, 12.833),
        (0.025, 19, 8.907),
        (0.95, 1, 3.841),
    ],
)
def test_chi_square_quantiles_are_the_printed_ones(p: float, freedom: int, value: float) -> None:
    assert chi_square_quantile(p, freedom) == pytest.approx(value, rel=0.001)


Noise = Callable[[np.random.Generator, int], Any]
# Noise of runs around 1, and its coefficient of variation.
EVEN: dict[str, tuple[Noise, float]] = {
    "normal, 5 %": (lambda r, n: r.normal(1, 0.05, n), 0.05),
    "normal, 30 %": (lambda r, n: r.normal(1, 0.3, n), 0.3),
    "log-normal": (lambda r, n: np.exp(r.normal(0, 0.2, n)), float(np.sqrt(np.exp(0.2**2) - 1))),
    "uniform": (lambda r, n: r.uniform(0.8, 1.2, n), 0.4 / float(np.sqrt(12))),
}
LONG_TAILS: dict[str, tuple[Noise, float]] = {
    "laplace": (lambda r, n: r.laplace(1, 0.05 / np.sqrt(2), n), 0.05),
    "student, 5": (lambda r, n: 1 + 0.05 * r.standard_t(5, n) * np.sqrt(3 / 5), 0.05),
}


def covered(noise: Noise, truth: float, count: int, times: int = 1000) -> float:
    """Share of samples whose interval covers the truth."""
    random, inside = np.random.default_rng(count), 0
    for _ in range(times):
        found = variation(noise(random, count))
        if found.low is not None and found.high is not None:
            inside += found.low <= truth <= found.high
    return inside / times


@pytest.mark.parametrize("count", [3, 4, 6, 12, 20])
@pytest.mark.parametrize("kind", EVEN)
def test_the_interval_of_the_variation_covers_the_truth_of_even_noise(kind: str, count: int) -> None:
    assert covered(*EVEN[kind], count) >= 0.935  # 0.95 less two standard errors


@pytest.mark.parametrize("count", [4, 6, 12, 20])
@pytest.mark.parametrize("kind", LONG_TAILS)
def test_with_long_tails_it_covers_nearly_as_often(kind: str, count: int) -> None:
    assert covered(*LONG_TAILS[kind], count) >= 0.89  # 0.91 less two standard errors


def test_rare_slow_runs_are_not_covered_by_few_runs_as_the_page_says() -> None:
    def slow(random: np.random.Generator, count: int) -> Any:
        return random.normal(1, 0.03, count) * np.where(random.random(count) < 0.1, 0.6, 1.0)

    many = slow(np.random.default_rng(7), 2_000_000)
    truth = float(np.std(many) / np.mean(many))
    few, more = covered(slow, truth, 6), covered(slow, truth, 20)
    assert few == pytest.approx(0.47, abs=0.05)
    assert more == pytest.approx(0.83, abs=0.05)
    for told in (few, more):
        assert any(abs(100 * told - int(word)) <= 5 for word in re.findall(r"\d+", COVERS))


def test_the_interval_of_three_values_is_wide_and_wider_than_that_of_many() -> None:
    three, many = variation([0.95, 1.0, 1.05]), variation([0.95, 1.0, 1.05] * 6)
    widths = [one.high / one.low for one in (three, many) if one.low is not None and one.high is not None]
    assert widths[0] > 5 > widths[1]


@given(st.lists(st.floats(1.0, 1e9), min_size=2, max_size=30), st.floats(0.1, 1e3))
def test_the_variation_has_no_unit(values: list[float], unit: float) -> None:
    one, other = variation(values), variation(np.array(values) * unit)
    assert other.value == pytest.approx(one.value, rel=1e-6, abs=1e-9)


def test_few_values_have_a_variation_without_an_interval() -> None:
    found = variation([1.0, 3.0])
    assert found.value == pytest.approx(0.7071, abs=0.001)
    assert found.low is None
    with pytest.raises(ValueError, match="two values"):
        variation([1.0])


def test_capability_is_the_second_best_of_many_and_the_best_of_three() -> None:
    assert probe([5.0, 9.0, 7.0]).capability == 9.0
    assert probe([5.0, 9.0, 7.0, 8.0, 1.0]).capability == 8.0
    assert probe([5.0, 9.0, 7.0, 8.0, 1.0]).delivered == 7.0
    with pytest.raises(ValueError, match="without repeats"):
        probe([])


def test_a_variation_is_said_in_percent_with_what_is_known_of_its_interval() -> None:
    assert Variation(0.05, 0.031, 0.099, 9).words == "5.0 % [3.1, 9.9]"
    assert Variation(0.05, 0.031, float("inf"), 3).words == "5.0 % [3.1, ∞]"
    assert Variation(0.0707, None, None, 2).words == "7.1 %"
