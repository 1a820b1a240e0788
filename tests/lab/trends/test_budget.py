# SPDX-License-Identifier: Apache-2.0
"""The budget of false alarms holds on noise the settings were not learned on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sonde.trends import budget
from sonde.trends.budget import Budget, calibrate, resample, residuals
from sonde.trends.lanes import Settings
from sonde.trends.watch import watch_rows


def spells(runs: int, seed: int) -> np.ndarray:
    """One-sided noise whose neighbors share weather: what breaks promises made for independent runs."""
    random = np.random.default_rng(seed)
    slow, noise = 0.0, np.empty(runs)
    for run in range(runs):
        slow = 0.35 * slow + random.gamma(0.3, 0.25)
        noise[run] = random.normal(0, 0.04) - slow
    return noise


def test_a_year_without_change_stays_within_the_budget() -> None:
    learned = [residuals(np.exp(spells(365, seed))) for seed in range(8)]
    found = calibrate(learned, Budget(1.0, 365))
    assert found.own
    assert found.kept
    fresh = np.array([spells(365, seed) for seed in range(100, 300)])
    assert len(watch_rows(fresh, found.settings)) / 200 <= 1.0


def test_settings_made_for_independent_runs_break_it_here() -> None:
    """Otherwise the test above would show nothing."""
    fresh = np.array([spells(365, seed) for seed in range(100, 200)])
    assert len(watch_rows(fresh, Settings(arl0=200))) / 100 > 1.0


def test_a_smaller_budget_makes_duller_settings() -> None:
    learned = [np.random.default_rng(seed).normal(0, 0.2, 365) for seed in range(4)]
    generous, strict = calibrate(learned, Budget(1.0)), calibrate(learned, Budget(0.2))
    assert strict.settings.arl0 > generous.settings.arl0
    assert strict.settings.gate_deviations >= generous.settings.gate_deviations


def test_short_histories_keep_the_published_settings() -> None:
    found = calibrate([np.zeros(59)], Budget())
    assert (found.settings, found.own, found.per_100_runs) == (Settings(), False, None)


def test_residuals_have_no_levels() -> None:
    noise = np.random.default_rng(2).normal(0, 0.05, 200)
    levels = np.repeat([20.0, 19.0, 21.5, 21.5], 50)
    assert np.max(np.abs(residuals(np.exp(levels + noise)) - noise)) < 0.05


def test_drawn_histories_keep_neighbors_together() -> None:
    drawn = resample(np.arange(100.0), 50, 20, np.random.default_rng(1))
    assert drawn.shape == (50, 20)
    assert np.mean(np.diff(drawn, axis=1) == 1.0) >= 0.85


@pytest.mark.parametrize(("alarms", "runs"), [(0.0, 365.0), (1.0, 0.0), (-1.0, 365.0)])
def test_a_budget_of_nothing_is_refused(alarms: float, runs: float) -> None:
    with pytest.raises(ValueError, match="budget"):
        Budget(alarms, runs)


def test_noise_that_breaks_the_budget_gets_the_dullest_settings_and_is_said_to() -> None:
    """Collapses of a tenth of all runs, four in a row: the gate tells each, whatever its limit."""
    noise = np.tile(np.r_[np.full(4, -3.0), np.zeros(36)], 10) + np.random.default_rng(1).normal(0, 0.02, 400)
    tried = 0

    def step() -> None:
        nonlocal tried
        tried += 1

    found = calibrate([noise], Budget(1.0, 365), step=step)
    assert not found.kept
    assert found.settings.gate_deviations == 12.0
    assert found.settings.arl0 == 20_000
    assert found.per_100_runs is not None
    assert 100 / 365 < found.per_100_runs < 100
    assert tried == 7, "each limit of the gate once, and nothing twice"


def test_the_settings_that_are_found_keep_the_budget_and_the_next_more_sensitive_ones_do_not() -> None:
    noises = [np.random.default_rng(seed).normal(0, 0.2, 365) for seed in range(4)]
    found = calibrate(noises, Budget(0.5))
    ladder = budget._ARL0
    more = replace(found.settings, arl0=ladder[ladder.index(found.settings.arl0) - 1])

    def rate(settings: Settings) -> float:
        alarms, _, watched = budget.false_alarms(noises, settings, 400, 37, seed=1)
        return alarms / watched

    allowed = Budget(0.5).per_run * (1 - 15 / np.sqrt(4 * 365))
    assert rate(found.settings) <= allowed < rate(more)
    assert found.per_100_runs == pytest.approx(100 * rate(found.settings))
    assert found.runs == 4 * 365
