# SPDX-License-Identifier: Apache-2.0
"""Scatter, and what the repeats of one probe say."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.stats.spread import (
    COVERAGE_STATEMENT,
    CoefficientOfVariation,
    ProbeSummary,
    _compute_bonett_interval,
    _compute_vangel_interval,
    compute_chi_square_quantile,
    compute_robust_sd,
    compute_student_quantile,
    estimate_coefficient_of_variation,
    summarize_probe,
)


def test_robust_deviation_ignores_outliers() -> None:
    values = np.random.default_rng(1).normal(10, 2, 5000)
    assert compute_robust_sd(values) == pytest.approx(2, rel=0.05)
    values[:500] = 1e9
    assert compute_robust_sd(values) == pytest.approx(2, rel=0.25)
    assert compute_robust_sd([5.0]) == 0.0


@pytest.mark.parametrize(
    ("p", "freedom", "expected_value"),
    [(0.975, 1, 12.706), (0.975, 4, 2.776), (0.975, 19, 2.093), (0.95, 10, 1.812), (0.995, 30, 2.750)],
)
def test_student_quantiles_match_published_tables(p: float, freedom: int, expected_value: float) -> None:
    assert compute_student_quantile(p, freedom) == pytest.approx(expected_value, abs=0.001)


@pytest.mark.parametrize("p", [0.5, 0.75, 0.9995, 0.99995, 0.999995])
def test_student_tail_quantiles_match_closed_forms(p: float) -> None:
    both = 2 * p - 1
    assert compute_student_quantile(p, 1) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-6, abs=1e-9)
    assert compute_student_quantile(p, 2) == pytest.approx(both * math.sqrt(2 / (1 - both**2)), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("p", "freedom", "expected_value"),
    [
        (0.025, 2, 0.05064),
        (0.975, 2, 7.378),
        (0.025, 5, 0.8312),
        (0.975, 5, 12.833),
        (0.025, 19, 8.907),
        (0.95, 1, 3.841),
        (0.025, 1000, 914.26),
        (0.975, 1000, 1089.5),
    ],
)
def test_chi_square_quantiles_match_published_tables(p: float, freedom: int, expected_value: float) -> None:
    assert compute_chi_square_quantile(p, freedom) == pytest.approx(expected_value, rel=0.001)


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


def measure_coverage(noise: Noise, truth: float, count: int, times: int = 1000) -> float:
    """Share of samples whose interval covers the truth."""
    random, inside = np.random.default_rng(count), 0
    for _ in range(times):
        variation = estimate_coefficient_of_variation(noise(random, count))
        if variation.low is not None and variation.high is not None:
            inside += variation.low <= truth <= variation.high
    return inside / times


@pytest.mark.parametrize("count", [3, 4, 6, 12, 20])
@pytest.mark.parametrize("kind", EVEN)
def test_the_interval_of_the_variation_covers_the_truth_of_even_noise(kind: str, count: int) -> None:
    assert measure_coverage(*EVEN[kind], count) >= 0.935  # 0.95 less two standard errors


@pytest.mark.parametrize("count", [4, 6, 12, 20])
@pytest.mark.parametrize("kind", LONG_TAILS)
def test_coverage_is_nearly_nominal_for_long_tails(kind: str, count: int) -> None:
    assert measure_coverage(*LONG_TAILS[kind], count) >= 0.89  # 0.91 less two standard errors


def test_undercoverage_of_rare_slow_runs_is_as_documented() -> None:
    def draw_rarely_slow_runs(random: np.random.Generator, count: int) -> Any:
        return random.normal(1, 0.03, count) * np.where(random.random(count) < 0.1, 0.6, 1.0)

    values = draw_rarely_slow_runs(np.random.default_rng(7), 2_000_000)
    truth = float(np.std(values) / np.mean(values))
    few, more = measure_coverage(draw_rarely_slow_runs, truth, 6), measure_coverage(draw_rarely_slow_runs, truth, 20)
    assert few == pytest.approx(0.47, abs=0.05)
    assert more == pytest.approx(0.83, abs=0.05)
    for share in (few, more):
        assert any(abs(100 * share - int(word)) <= 5 for word in re.findall(r"\d+", COVERAGE_STATEMENT))


def test_interval_of_three_values_is_wider_than_of_many() -> None:
    three, of_many = (
        estimate_coefficient_of_variation([0.95, 1.0, 1.05]),
        estimate_coefficient_of_variation([0.95, 1.0, 1.05] * 6),
    )
    widths = [
        variation.high / variation.low
        for variation in (three, of_many)
        if variation.low is not None and variation.high is not None
    ]
    assert widths[0] > 5 > widths[1]


@given(st.lists(st.floats(1.0, 1e9), min_size=2, max_size=30), st.floats(0.1, 1e3))
def test_the_variation_has_no_unit(values: list[float], unit: float) -> None:
    variation, other = (
        estimate_coefficient_of_variation(values),
        estimate_coefficient_of_variation(np.array(values) * unit),
    )
    assert other.value == pytest.approx(variation.value, rel=1e-6, abs=1e-9)


def test_few_values_have_a_variation_without_an_interval() -> None:
    variation = estimate_coefficient_of_variation([1.0, 3.0])
    assert variation.value == pytest.approx(0.7071, abs=0.001)
    assert variation.low is None


def test_capability_is_the_second_best_of_many_and_the_best_of_three() -> None:
    assert summarize_probe([5.0, 9.0, 7.0, 8.0, 1.0]).capability == 8.0
    assert summarize_probe([5.0, 9.0, 7.0, 8.0, 1.0]).delivered == 7.0
    with pytest.raises(ValueError, match="without repeats"):
        summarize_probe([])


def test_variation_text_has_percent_and_interval() -> None:
    assert CoefficientOfVariation(0.05, 0.031, 0.099, 9).text == "5.0 % [3.1, 9.9]"
    assert CoefficientOfVariation(0.05, 0.031, float("inf"), 3).text == "5.0 % [3.1, ∞]"
    assert CoefficientOfVariation(0.0707, None, None, 2).text == "7.1 %"


def test_robust_deviation_has_precomputed_values() -> None:
    assert compute_robust_sd([]) == 0.0
    assert compute_robust_sd([1.0, 3.0]) == pytest.approx(1.4826)
    assert compute_robust_sd([1.0, 2.0, 4.0, 9.0, 900.0]) == pytest.approx(1.4826 * 3)


def test_the_interval_of_three_values_is_that_of_vangel() -> None:
    """With u of the printed chi-square quantiles for two degrees of freedom, 7.3778 and 0.050636."""
    variation = estimate_coefficient_of_variation([9.5, 10.0, 10.5])
    ends = [0.05 / (((u + 2) / 3 - 1) * 0.05**2 + u / 2) ** 0.5 for u in (7.3778, 0.050636)]
    assert (variation.value, variation.low, variation.high, variation.count) == pytest.approx(
        (0.05, *ends, 3), rel=1e-3
    )
    narrower = estimate_coefficient_of_variation([9.5, 10.0, 10.5], confidence=0.9)
    ends = [0.05 / (((u + 2) / 3 - 1) * 0.05**2 + u / 2) ** 0.5 for u in (5.9915, 0.10259)]
    assert (narrower.low, narrower.high) == pytest.approx(ends, rel=1e-3)


def test_few_values_that_scatter_widely_have_no_upper_end() -> None:
    variation = estimate_coefficient_of_variation([0.1, 1.0, 9.0])
    assert variation.high == float("inf")
    assert variation.low is not None
    assert 0 < variation.low < variation.value


@pytest.mark.parametrize(
    ("values", "cut"),
    [([8.0, 10.0, 10.0, 20.0], 1), ([8.0, 9.0, 10.0, 12.0, 30.0], 1), ([*range(8, 15), 40.0], 2),
     ([*range(90, 108), 1, 200], 2)],
)  # fmt: skip
def test_values_with_long_tails_have_the_interval_of_bonett(values: list[float], cut: int) -> None:
    """By hand: the kurtosis about the mean without `cut` values at each end, and 1.95996 of the normal distribution."""
    n, mean = len(values), sum(values) / len(values)
    middle = sum(sorted(values)[cut : n - cut]) / (n - 2 * cut)
    squares = sum((value - mean) ** 2 for value in values)
    kurtosis = n * sum((value - middle) ** 4 for value in values) / squares**2
    small = n / (n - 1.95996)
    half = 1.95996 * small * ((kurtosis - (n - 3) / n) / (n - 1)) ** 0.5
    scale = (squares / (n - 1)) ** 0.5 / mean
    bounds = _compute_bonett_interval(np.array(values), scale, 0.95)
    assert bounds == pytest.approx([scale * (small * np.exp(end)) ** 0.5 for end in (-half, half)], rel=1e-4)
    assert _compute_bonett_interval(np.array(values[:3]), scale, 0.95) is None


def test_of_both_intervals_the_wider_end_counts() -> None:
    for values in ([9.0, 10.0, 10.0, 11.0, 10.5, 9.5], [10.0] * 9 + [10.1, 4.0]):
        variation = estimate_coefficient_of_variation(values)
        both = [
            _compute_vangel_interval(variation.value, len(values), 0.95),
            _compute_bonett_interval(np.array(values), variation.value, 0.95),
        ]
        lows, highs = zip(*[interval for interval in both if interval is not None], strict=True)
        assert len(lows) == 2
        assert (variation.low, variation.high) == (min(lows), max(highs))


@pytest.mark.parametrize("wrong", [[], [1.0], [-1.0, 1.0], [-3.0, 1.0]])
def test_variation_of_invalid_values_is_rejected(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="a coefficient of variation needs two values with a mean above 0"):
        estimate_coefficient_of_variation(wrong)


def test_equal_values_do_not_vary_and_have_no_interval() -> None:
    assert estimate_coefficient_of_variation([5.0] * 6) == CoefficientOfVariation(0.0, None, None, 6)


@pytest.mark.parametrize(
    ("repeats", "summary"),
    [([5.0], (5.0, 5.0, 1)), ([5.0, 9.0, 7.0], (9.0, 7.0, 3)), ([5.0, 9.0, 7.0, 8.0], (8.0, 7.5, 4))],
)
def test_probe_summary_contains_its_repeat_count(repeats: list[float], summary: tuple[float, float, int]) -> None:
    assert summarize_probe(repeats) == ProbeSummary(*summary)
