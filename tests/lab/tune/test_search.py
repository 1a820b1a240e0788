# SPDX-License-Identifier: Apache-2.0
"""The search against values whose rates are known: planted optima are found, and nothing where nothing helps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from sonde.stats.ratio import RateRatio
from sonde.tune.search import (
    BETTER_VERDICT,
    NO_DIFFERENCE,
    NOTHING_TO_TRY,
    UNDECIDED_VERDICT,
    MeasureRate,
    RejectedValueError,
    SearchRule,
    compare_candidate_with_present_value,
    decide_tune_verdict,
    estimate_min_and_max_runs,
    search_best_value,
)

RULE = SearchRule()
NOISES: dict[str, Callable[[np.random.Generator], float]] = {
    "normal": lambda random: random.normal(0, 0.05),
    "tails": lambda random: random.laplace(0, 0.04),
    "one-sided": lambda random: -random.exponential(0.05),
}


def make_storage(effects: dict[str, float], seed: int, noise: str = "normal", drift: float = 0.1) -> MeasureRate:
    """Storage of 1 GB/s whose rate each value multiplies, with noise and slow drift."""
    random, count = np.random.default_rng(seed), 0

    def measure(value: str | None) -> float:
        nonlocal count
        count += 1
        effect = 1.0 if value is None else effects[value]
        return float(1e9 * effect * math.exp(NOISES[noise](random) + drift * math.sin(count / 15)))

    return measure


@pytest.mark.parametrize("noise", NOISES)
def test_planted_optimum_is_identified_in_18_of_20_searches(noise: str) -> None:
    hits, covered = 0, 0
    for seed in range(20):
        optimum = seed % 5
        effects = {str(value): 1.2 if value == optimum else 1 - 0.04 * abs(value - optimum) for value in range(5)}
        result = search_best_value(list(effects), make_storage(effects, seed, noise), RULE, seed)
        hits += result.is_better and result.best == str(optimum)
        assert result.ratio is not None
        assert result.ratio.low is not None
        assert result.ratio.high is not None
        covered += result.ratio.low <= effects[str(result.best)] <= result.ratio.high
    assert hits >= 18
    assert covered >= 18


@pytest.mark.parametrize("noise", NOISES)
def test_no_improvement_is_reported_without_an_effect(noise: str) -> None:
    effects = dict.fromkeys("abcde", 1.0)
    results = [search_best_value(list(effects), make_storage(effects, seed, noise), RULE, seed) for seed in range(20)]
    assert sum(result.is_better for result in results) <= 1
    assert any(result.verdict == NO_DIFFERENCE for result in results)


def test_slower_values_end_early_without_change() -> None:
    effects = {"a": 0.5, "b": 0.6}
    result = search_best_value(["a", "b"], make_storage(effects, 1), RULE, 1)
    assert (result.best, result.verdict) == ("b", NO_DIFFERENCE)
    assert len(result.changed) == 5


def test_number_of_runs_is_within_the_estimate() -> None:
    measure, runs = make_storage(dict.fromkeys("abcde", 1.3), 1), 0

    def count(value: str | None) -> float:
        nonlocal runs
        runs += 1
        return measure(value)

    search_best_value(list("abcde"), count, RULE, 1)
    least, most = estimate_min_and_max_runs(5, RULE)
    assert (least, most) == (3 * (5 + 3 + 2) + 10, 3 * (5 + 3 + 2) + 40)
    assert least <= runs <= most


def test_rejected_value_is_skipped_and_its_reason_reported() -> None:
    storage = make_storage({"good": 1.3, "fair": 1.0}, 1)

    def measure(value: str | None) -> float:
        if value == "bad":
            raise RejectedValueError("the kernel says no")
        return storage(value)

    result = search_best_value(["bad", "good", "fair"], measure, RULE, 1)
    assert (result.best, result.verdict, result.rejected) == ("good", BETTER_VERDICT, {"bad": "the kernel says no"})
    only_bad = search_best_value(["bad"], measure, RULE, 1)
    assert (only_bad.best, only_bad.verdict) == (None, NOTHING_TO_TRY)
    assert only_bad.rejected == {"bad": "the kernel says no"}


def test_blocks_interleave_both_sides() -> None:
    order: list[str | None] = []

    def measure(value: str | None) -> float:
        order.append(value)
        return 1.0 + 0.001 * len(order)

    compare_candidate_with_present_value("x", measure, RULE, 3)
    pairs = [set(order[index : index + 2]) for index in range(0, len(order), 2)]
    assert all(pair == {None, "x"} for pair in pairs)
    assert len({tuple(order[index : index + 2]) for index in range(0, len(order), 2)}) == 2


@pytest.mark.parametrize(
    ("low", "value", "high", "verdict"),
    [
        (1.01, 1.06, 1.12, BETTER_VERDICT),
        (1.01, 1.04, 1.08, UNDECIDED_VERDICT),  # above 1, but perhaps not worth it
        (1.00, 1.06, 1.12, UNDECIDED_VERDICT),
        (0.98, 1.01, 1.049, NO_DIFFERENCE),
        (1.01, 1.02, 1.03, NO_DIFFERENCE),
        (0.5, 0.6, 0.7, NO_DIFFERENCE),
        (0.98, 1.01, 1.05, UNDECIDED_VERDICT),
        (None, 1.5, None, UNDECIDED_VERDICT),
    ],
)
def test_verdict_follows_from_interval(low: float | None, value: float, high: float | None, verdict: str) -> None:
    ratio = RateRatio(value, low, high, None, 9, 9, 0.99)
    assert decide_tune_verdict(ratio, ratio, 0.05) == verdict


def test_better_needs_the_strict_interval() -> None:
    ratio, strict = (RateRatio(1.2, low, 1.4, None, 9, 9, 0.99) for low in (1.02, 0.99))
    assert decide_tune_verdict(ratio, strict, 0.05) == UNDECIDED_VERDICT


def test_few_of_many_searches_call_equal_values_better() -> None:
    effects = dict.fromkeys("abcd", 1.0)
    results = [
        search_best_value(list(effects), make_storage(effects, 1000 + seed, drift=0), RULE, seed) for seed in range(150)
    ]
    assert sum(result.is_better for result in results) <= 4  # 1 of 100 is expected at most
