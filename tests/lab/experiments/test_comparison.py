# SPDX-License-Identifier: Apache-2.0
"""A comparison of two variants detects an effect of 5 % as often as stated, and no effect where there is none.

Whole comparisons are played: the order is that of the runner, the noise is drawn, the verdict is that of `sonde run`.
"""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from detectable_drop import compute_detectable_drop

from sonde.experiments.schedule import Schedule
from sonde.model.experiment import Cell
from sonde.model.experiment.description import RunSchedule
from sonde.stats.ratio import compare_rates, estimate_detectable_drop

COMPARISONS, RUNS = 400, 10
SIDES = [Cell("", {"variant": variant}, ()) for variant in ("a", "b")]
# Noise of which ten runs a side show a drop of 5 % four times in five, by the formula for planning.
NOISE = 0.05 * 0.035 / compute_detectable_drop(0.035, RUNS, RUNS)


def simulate_comparison(
    effect: float, seed: int, drift: float = 0.0, order: str = "block_random", has_slow_runs: bool = False
) -> list[list[float]]:
    """The rates of both sides of one comparison; `drift` is how much faster the last run is than the first."""
    random = np.random.default_rng(seed)
    sides: dict[str, list[float]] = {"a": [], "b": []}
    turns = list(
        Schedule(SIDES, RunSchedule(min=RUNS, order=order), seed, lambda cell: {}, lambda cell: False).iterate_runs()
    )
    for number, turn in enumerate(turns):
        side = turn.cell.coordinates["variant"]
        noise = NOISE * random.standard_normal()
        if has_slow_runs and random.random() < 1 / 7:
            noise -= random.exponential(0.3)
        level = log(1 - effect) if side == "b" else 0.0
        sides[side].append(float(np.exp(level + noise + drift * number / len(turns))))
    return [sides["a"], sides["b"]]


def measure_found_share(effect: float, **more: object) -> float:
    """Share of simulated comparisons in which the interval of the ratio excludes 1."""
    pairs = (simulate_comparison(effect, seed, **more) for seed in range(COMPARISONS))  # type: ignore[arg-type]
    return sum(compare_rates(before, after).differs for before, after in pairs) / COMPARISONS


# twice the standard deviation of a share of 5 % over so many comparisons
RATE_TOLERANCE = 2 * (0.05 * 0.95 / COMPARISONS) ** 0.5


@pytest.mark.parametrize("has_slow_runs", [False, True])
def test_false_effects_are_at_most_5_percent(has_slow_runs: bool) -> None:
    assert measure_found_share(0.0, has_slow_runs=has_slow_runs) <= 0.05 + RATE_TOLERANCE


def test_effect_of_5_percent_is_detected_with_the_stated_power() -> None:
    assert measure_found_share(0.05) >= 0.80
    stated = [estimate_detectable_drop(*simulate_comparison(0.05, seed)) for seed in range(60)]
    known_effects = [effect for effect in stated if effect is not None]
    assert len(known_effects) == 60
    assert np.median(known_effects) == pytest.approx(0.05, rel=0.2)


def test_half_the_stated_effect_is_mostly_not_detected() -> None:
    assert measure_found_share(0.02) < 0.5


def test_drift_is_effect_only_without_interleaving() -> None:
    assert measure_found_share(0.0, drift=0.2) <= 0.05 + RATE_TOLERANCE
    assert measure_found_share(0.0, drift=0.2, order="in_order") > 0.9
