# SPDX-License-Identifier: Apache-2.0
"""Finds the best of several values: sequential halving in interleaved blocks, then a comparison of fresh runs.

All values that remain are measured once in each block, in random order, so that slow drift of the storage meets all of
them alike. After each round the worse half is left out (sequential halving: Karnin, Koren, Somekh 2013). The value that
remains is compared with the present one in further blocks, whose runs took no part in the choice. The ratio and its
interval are those of `sonde compare`. Because the interval is looked at after each block, it is asked at a level of
`FIRST_LOOK_CONFIDENCE`; the stated ends then hold in at least 95 of 100 tunings.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sonde.stats.ratio import MIN_RUNS_PER_SIDE, RateRatio, compare_rates

FIRST_LOOK_CONFIDENCE = 0.99
# A change is called better only where this wider interval is above 1: repeated looks would else call 3 of 100 values
# without effect better (simulated with 5 to 10 % of noise).
STRICT_CONFIDENCE = 0.998

# Measures a value (None: the present one) and returns its rate; a value that cannot be set raises RejectedValueError.
MeasureRate = Callable[[str | None], float]


class RejectedValueError(Exception):
    """A value that system or plan do not accept. The text is part of a sentence."""


@dataclass(frozen=True)
class SearchRule:
    """The number of runs of a search, and the smallest difference that counts."""

    worth: float = 0.05  # smallest gain that is worth a change, as a share
    blocks_per_round: int = 3
    max_blocks: int = 20  # of the comparison


@dataclass(frozen=True)
class SearchResult:
    """Result of a search. `best` is None when no value could be tried."""

    best: str | None
    ratio: RateRatio | None  # rate with `best` by the present rate
    verdict: str  # better, "no difference worth having", undecided, "no value to try"
    rates: dict[str, list[float]] = field(default_factory=dict)  # of the rounds, by value
    present: tuple[float, ...] = ()  # rates of the comparison
    changed: tuple[float, ...] = ()
    rejected: dict[str, str] = field(default_factory=dict)  # value -> reason

    @property
    def is_better(self) -> bool:
        return self.verdict == BETTER_VERDICT


BETTER_VERDICT, NO_DIFFERENCE, UNDECIDED_VERDICT, NOTHING_TO_TRY = (
    *("better", "no difference worth having", "undecided"),
    "no value to try",
)


def estimate_min_and_max_runs(candidate_count: int, rule: SearchRule) -> tuple[int, int]:
    """The fewest and the most runs that a search of so many values takes."""
    rounds, remaining = 0, candidate_count
    while remaining > 1:
        rounds += rule.blocks_per_round * remaining
        remaining = math.ceil(remaining / 2)
    return (rounds + 2 * MIN_RUNS_PER_SIDE, rounds + 2 * rule.max_blocks) if candidate_count else (0, 0)


def search_best_value(
    candidate_values: Sequence[str], measure_rate: MeasureRate, search_rule: SearchRule, seed: int
) -> SearchResult:
    """Searches the best of `candidate_values` and compares it with the present one."""
    order = random.Random(seed)
    rejected: dict[str, str] = {}
    rates: dict[str, list[float]] = {}
    best = _select_by_successive_halving(list(candidate_values), measure_rate, search_rule, order, rates, rejected)
    while best is not None:
        try:
            return _compare_interleaved(
                best,
                measure_rate,
                search_rule,
                order,
                SearchResult(best, None, UNDECIDED_VERDICT, rates, rejected=rejected),
            )
        except RejectedValueError as reason:  # with one value there was no round before
            rejected[best] = str(reason)
            best = next((value for value in _rank_values(rates) if value not in rejected), None)
    return SearchResult(None, None, NOTHING_TO_TRY, rates, rejected=rejected)


def compare_candidate_with_present_value(
    candidate_value: str, measure_rate: MeasureRate, search_rule: SearchRule, seed: int
) -> SearchResult:
    """Compares one value with the present one, in interleaved fresh runs."""
    return _compare_interleaved(
        candidate_value,
        measure_rate,
        search_rule,
        random.Random(seed),
        SearchResult(candidate_value, None, UNDECIDED_VERDICT),
    )


def _select_by_successive_halving(
    candidate_values: list[str],
    measure_rate: MeasureRate,
    search_rule: SearchRule,
    random_order: random.Random,
    rates_by_value: dict[str, list[float]],
    rejection_reason_by_value: dict[str, str],
) -> str | None:
    """Returns the value that remains after rounds that each remove the worse half."""
    while len(candidate_values) > 1:
        deviations: dict[str, list[float]] = {value: [] for value in candidate_values}
        for _ in range(search_rule.blocks_per_round):
            block: dict[str, float] = {}
            for value in random_order.sample(candidate_values, len(candidate_values)):
                try:
                    block[value] = measure_rate(value)
                except RejectedValueError as reason:
                    rejection_reason_by_value[value] = str(reason)
                else:
                    rates_by_value.setdefault(value, []).append(block[value])
            candidate_values = [value for value in candidate_values if value not in rejection_reason_by_value]
            level = float(np.mean(np.log(list(block.values())))) if block else 0.0
            for value in candidate_values:
                deviations[value].append(math.log(block[value]) - level)
            if len(candidate_values) < 2:
                break
        ranked = sorted(candidate_values, key=lambda value: -float(np.median(deviations[value])))
        keep_count = math.ceil(len(ranked) / 2)
        candidate_values = [value for value in candidate_values if value in ranked[:keep_count]]
    return candidate_values[0] if candidate_values else None


def _rank_values(rates_by_value: dict[str, list[float]]) -> list[str]:
    return sorted(rates_by_value, key=lambda value: -float(np.median(rates_by_value[value])))


def _compare_interleaved(
    best_value: str,
    measure_rate: MeasureRate,
    search_rule: SearchRule,
    random_order: random.Random,
    halving_result: SearchResult,
) -> SearchResult:
    present: list[float] = []
    changed: list[float] = []
    ratio: RateRatio | None = None
    verdict = UNDECIDED_VERDICT
    for block in range(search_rule.max_blocks):
        for value in random_order.sample((None, best_value), 2):
            (present if value is None else changed).append(measure_rate(value))
        if block + 1 < MIN_RUNS_PER_SIDE:
            continue
        ratio = compare_rates(present, changed, FIRST_LOOK_CONFIDENCE)
        verdict = decide_tune_verdict(
            ratio, compare_rates(present, changed, STRICT_CONFIDENCE, with_p_value=False), search_rule.worth
        )
        if verdict != UNDECIDED_VERDICT:
            break
    return SearchResult(
        best_value, ratio, verdict, halving_result.rates, tuple(present), tuple(changed), halving_result.rejected
    )


def decide_tune_verdict(ratio: RateRatio, strict_ratio: RateRatio, min_gain: float) -> str:
    """The verdict about a ratio: better when its `strict_ratio` interval is above 1 and the estimate is worth it; no
    difference when the interval is below what is worth it; else undecided."""
    if strict_ratio.low is not None and strict_ratio.low > 1.0 and strict_ratio.value >= 1.0 + min_gain:
        return BETTER_VERDICT
    return NO_DIFFERENCE if ratio.high is not None and ratio.high < 1.0 + min_gain else UNDECIDED_VERDICT
