# SPDX-License-Identifier: Apache-2.0
"""Claims about cells whose repeats were ended by their own interval: they are wrong as seldom as was stated.

Runs are drawn around a level that is known and ended by the rule of the runner; judged is what `sonde run` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from draw_counts import draw_by_day_and_night
from in_memory_runs import Phase, build_experiment, make_claim, make_runs, record
from numpy.typing import NDArray

from sonde.experiments.claims.grid import CellGrid
from sonde.experiments.claims.samples import RateCurve, Samples
from sonde.experiments.claims.values import ClaimEvaluator
from sonde.experiments.claims.verdicts import evaluate_claims
from sonde.model.experiment.claim_verdicts import ClaimVerdict
from sonde.model.experiment.experiment import Cell, Experiment
from sonde.stats.ratio import RateRatio, compare_rates, estimate_detectable_drop
from sonde.stats.stopping import InterimLook, StopRule, adjust_level_for_looks, compute_intervals_of_samples

LEAST, MOST = 6, 30
TRANSFERS = {"name": "transfer", "paths": "data.access.transfer", "values": ["1MiB", "2MiB"]}
# Standard normal values become logarithms of rates around 0.
KINDS = {
    "normal": lambda z: 0.1 * z,
    "heavy on both sides": lambda z: 0.08 * np.sinh(1.2 * z),
    "one in seven slow": lambda z: np.where(z < -1.07, 0.05 * z - 0.3 * (-1.07 - z) - 0.1, 0.05 * z),
}


def compute_margin(draws: int) -> float:
    """Twice the standard deviation of a share of 5 % over so many draws."""
    return 2 * math.sqrt(0.05 * 0.95 / draws)


class GivenRates:
    """A source of samples: the rates of each cell by its id, and at which look they were ended."""

    is_deterministic = False

    def __init__(self, rates: dict[str, NDArray[np.float64]], look: InterimLook) -> None:
        self._rates, self._look = rates, look

    def restrict_to_subjects(self, claim_subjects: Sequence[str]) -> GivenRates:
        return self

    def collect_samples(self, metric: str, phase_id: str, cell: Cell) -> Samples:
        rates = self._rates[cell.id]
        return Samples(tuple(rates), tuple(map(str, range(len(rates)))), look=self._look)

    def determine_interim_look(self, cell: Cell) -> InterimLook:
        return self._look

    def collect_member_values(
        self, metric_name: str, phase_id: str, cell: Cell, member_kind: str
    ) -> Sequence[Sequence[float]]:
        raise AssertionError

    def collect_task_end_times(self, phase_id: str, cell: Cell) -> Sequence[Sequence[float]]:
        raise AssertionError

    def collect_rate_curves(self, metric: str, phase_id: str, cell: Cell) -> Sequence[RateCurve]:
        raise AssertionError

    def count_storage_units(self, cell: Cell) -> float:
        raise AssertionError


def simulate_trials(
    noise_kind: str, sides: int, trials: int, interval_share: float, seed: int, effect: float = 0.0
) -> list[tuple[NDArray[np.float64], InterimLook]]:
    """Rates of one trial (a side a row, the last one slower by `effect`), as many as all sides needed, and the look."""
    random = np.random.default_rng(seed)
    logs = KINDS[noise_kind](random.standard_normal((sides, trials, MOST)))
    logs[-1] += np.log(1 - effect)
    rule, open_, samples = StopRule(LEAST, MOST, interval_share), np.arange(trials), []
    for count in range(LEAST, MOST + 1):
        enough = np.ones(open_.size, dtype=bool)
        for side in logs:
            running = side[open_, :count]
            low, high = compute_intervals_of_samples(running, rule.classify_look(count))
            half = (np.exp(high) - np.exp(low)) / 2 / np.exp(np.median(running, axis=1))
            enough &= (half <= interval_share) | (count == MOST)
        samples += [(np.exp(logs[:, row, :count]), rule.classify_look(count)) for row in open_[enough]]
        open_ = open_[~enough]
    assert len(samples) == trials
    return samples


@pytest.mark.parametrize("interval_share", [0.5, 0.1, 0.05])
@pytest.mark.parametrize("noise_kind", KINDS)
@draw_by_day_and_night(400, 1000)
def test_interval_of_adaptive_repeats_covers_truth(draws: int, noise_kind: str, interval_share: float) -> None:
    experiment = build_experiment(expect=[make_claim("bandwidth(write) >= 1")])
    cell, written = experiment.cells[0], experiment.claims["C1"].comparisons[0].left_operand
    hits = 0
    for rates, look in simulate_trials(noise_kind, 1, draws, interval_share, seed=13):
        low, high = (
            ClaimEvaluator(CellGrid(experiment), GivenRates({cell.id: rates[0]}, look), 0.95)
            .evaluate_expression(written, {})
            .bounds.limits
        )
        hits += low <= 1.0 <= high
    assert 0.93 - compute_margin(draws) <= hits / draws <= 0.97 + compute_margin(draws)


@draw_by_day_and_night(400, 1000)
def test_threshold_at_truth_is_decided_at_most_5_percent(draws: int) -> None:
    experiment = build_experiment(expect=[make_claim("bandwidth(write) >= 1")])
    outcomes = [
        evaluate_claims(experiment, GivenRates({experiment.cells[0].id: rates[0]}, look))[0].outcome
        for rates, look in simulate_trials("normal", 1, draws, 0.1, seed=17)
    ]
    assert outcomes.count(ClaimVerdict.UNDECIDED) / draws >= 0.95 - 0.02 - compute_margin(draws)
    assert outcomes.count(ClaimVerdict.HOLDS) > 0
    assert outcomes.count(ClaimVerdict.FAILS) > 0


def compare_trial(rates: NDArray[np.float64], look: InterimLook = InterimLook.ONLY) -> RateRatio:
    return compare_rates(rates[0], rates[1], adjust_level_for_looks([look, look]))


@pytest.mark.parametrize("interval_share", [0.5, 0.1, 0.05])
@pytest.mark.parametrize("noise_kind", KINDS)
@draw_by_day_and_night(1000, 4000)
def test_adaptive_sides_differ_falsely_at_most_5_percent(draws: int, noise_kind: str, interval_share: float) -> None:
    false = sum(
        compare_trial(rates, look).differs
        for rates, look in simulate_trials(noise_kind, 2, draws, interval_share, seed=19)
    )
    assert 0.03 - compute_margin(draws) <= false / draws <= 0.05 + compute_margin(draws)


def test_ignoring_adaptive_repeats_raises_false_differences() -> None:
    """Shows why comparisons need their level. The difference is small; many comparisons show it."""
    trials = 12_000
    samples = simulate_trials("normal", 2, trials, 0.1, seed=101)
    most = 0.05 + compute_margin(trials)
    assert sum(compare_trial(rates).differs for rates, _ in samples) / trials > most
    assert sum(compare_trial(rates, look).differs for rates, look in samples) / trials <= most


@pytest.mark.parametrize("noise_kind", KINDS)
def test_stated_detectable_effect_has_80_percent_power(noise_kind: str) -> None:
    stated = [
        estimate_detectable_drop(rates[0], rates[1]) for rates, _ in simulate_trials(noise_kind, 2, 60, 0.1, seed=23)
    ]
    visible = float(np.median([effect for effect in stated if effect is not None]))
    assert 0.05 < visible < 0.2
    samples = simulate_trials(noise_kind, 2, 400, 0.1, seed=29, effect=visible)
    assert sum(compare_trial(rates, look).differs for rates, look in samples) >= 0.8 * 400


def _judged(rates: Sequence[float], most: int) -> Experiment:
    return build_experiment(
        repeat={"min": 6, "max": most, "interval": 0.0001, "seed": 1}, expect=[make_claim("bandwidth(write) >= 1 B/s")]
    )


def test_measured_runs_report_how_repeats_ended() -> None:
    rates = [1e6 * factor for factor in (0.98, 1.03, 1.0, 0.99, 1.02, 1.01, 1.0, 0.995)]
    halves: list[float] = []
    for most, look in ((8, InterimLook.LAST), (30, InterimLook.BETWEEN)):
        experiment = _judged(rates, most)
        source = make_runs(experiment, {"base": [record([Phase(rate=rate)]) for rate in rates]})
        assert source.determine_interim_look(experiment.cells[0]) is look
        samples = source.collect_samples("bandwidth", "write", experiment.cells[0])
        assert samples.look is look
        halves.append(samples.compute_median_bounds().relative_half_width or 0.0)
    fixed_experiment = build_experiment(repeat={"min": 8, "seed": 1})
    fixed = make_runs(fixed_experiment, {"base": [record([Phase(rate=rate)]) for rate in rates]})
    assert fixed.determine_interim_look(fixed_experiment.cells[0]) is InterimLook.ONLY
    halves.insert(
        0,
        fixed.collect_samples("bandwidth", "write", fixed_experiment.cells[0])
        .compute_median_bounds()
        .relative_half_width
        or 0.0,
    )
    assert halves == sorted(halves)  # the more a number of runs was chosen by looking, the wider
    assert len(set(halves)) == 3
