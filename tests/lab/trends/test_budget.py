# SPDX-License-Identifier: Apache-2.0
"""The budget of false alarms holds on noise the settings were not learned on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from sonde.stats.segments import Segment
from sonde.trends import budget
from sonde.trends.budget import (
    AlarmBudget,
    DetectorCalibration,
    calibrate_detector,
    compute_log_residuals,
    count_false_alarms,
    resample_noise,
)
from sonde.trends.detectors import DetectorSettings
from sonde.trends.watch import find_alarms_in_rows


def draw_correlated_noise(runs: int, seed: int) -> np.ndarray:
    """One-sided noise whose neighbors share weather: what breaks promises made for independent runs."""
    random = np.random.default_rng(seed)
    slow, noise = 0.0, np.empty(runs)
    for run in range(runs):
        slow = 0.35 * slow + random.gamma(0.3, 0.25)
        noise[run] = random.normal(0, 0.04) - slow
    return noise


def test_a_year_without_change_stays_within_the_budget() -> None:
    learned = [compute_log_residuals(np.exp(draw_correlated_noise(365, seed))) for seed in range(8)]
    calibration = calibrate_detector(learned, AlarmBudget(1.0, 365))
    assert calibration.from_site_noise
    assert calibration.meets_budget
    fresh = np.array([draw_correlated_noise(365, seed) for seed in range(100, 300)])
    assert len(find_alarms_in_rows(fresh, calibration.settings)) / 200 <= 1.0


def test_settings_for_independent_runs_exceed_the_alarm_budget() -> None:
    """Otherwise the test above would show nothing."""
    fresh = np.array([draw_correlated_noise(365, seed) for seed in range(100, 200)])
    assert len(find_alarms_in_rows(fresh, DetectorSettings(arl0=200))) / 100 > 1.0


def test_smaller_budget_gives_less_sensitive_settings() -> None:
    learned = [np.random.default_rng(seed).normal(0, 0.2, 365) for seed in range(4)]
    generous, strict = calibrate_detector(learned, AlarmBudget(1.0)), calibrate_detector(learned, AlarmBudget(0.2))
    assert strict.settings.arl0 > generous.settings.arl0
    assert strict.settings.collapse_deviations >= generous.settings.collapse_deviations


def test_short_histories_keep_the_published_settings() -> None:
    calibration = calibrate_detector([np.zeros(59)], AlarmBudget())
    assert (calibration.settings, calibration.from_site_noise, calibration.per_100_runs) == (
        DetectorSettings(),
        False,
        None,
    )


def test_residuals_have_no_levels() -> None:
    noise = np.random.default_rng(2).normal(0, 0.05, 200)
    levels = np.repeat([20.0, 19.0, 21.5, 21.5], 50)
    assert np.max(np.abs(compute_log_residuals(np.exp(levels + noise)) - noise)) < 0.05


def test_resampled_histories_preserve_neighbors() -> None:
    resampled = resample_noise(np.arange(100.0), 50, 20, np.random.default_rng(1))
    assert resampled.shape == (50, 20)
    assert np.mean(np.diff(resampled, axis=1) == 1.0) >= 0.85


@pytest.mark.parametrize(("alarms", "runs"), [(0.0, 365.0), (1.0, 0.0), (-1.0, 365.0)])
def test_empty_alarm_budget_is_rejected(alarms: float, runs: float) -> None:
    with pytest.raises(ValueError, match="budget"):
        AlarmBudget(alarms, runs)


def test_noise_above_the_budget_gets_least_sensitive_settings() -> None:
    """Collapses of a tenth of all runs, four in a row: the gate tells each, whatever its limit."""
    noise = np.tile(np.r_[np.full(4, -3.0), np.zeros(36)], 10) + np.random.default_rng(1).normal(0, 0.02, 400)
    tried = 0

    def step() -> None:
        nonlocal tried
        tried += 1

    calibration = calibrate_detector([noise], AlarmBudget(1.0, 365), on_step=step)
    assert not calibration.meets_budget
    assert calibration.settings.collapse_deviations == 12.0
    assert calibration.settings.arl0 == 20_000
    assert calibration.per_100_runs is not None
    assert 100 / 365 < calibration.per_100_runs < 100
    assert tried == 7, "each limit of the gate once, and nothing twice"


def test_chosen_settings_are_the_most_sensitive_within_budget() -> None:
    noises = [np.random.default_rng(seed).normal(0, 0.2, 365) for seed in range(4)]
    calibration = calibrate_detector(noises, AlarmBudget(0.5))
    ladder = budget._TRIED_ARL0
    more = replace(calibration.settings, arl0=ladder[ladder.index(calibration.settings.arl0) - 1])

    def rate(settings: DetectorSettings) -> float:
        alarms, _, watched = budget.count_false_alarms(noises, settings, 400, 37, seed=1)
        return alarms / watched

    allowed = AlarmBudget(0.5).alarms_per_run * (1 - 15 / np.sqrt(4 * 365))
    assert rate(calibration.settings) <= allowed < rate(more)
    assert calibration.per_100_runs == pytest.approx(100 * rate(calibration.settings))
    assert calibration.runs == 4 * 365


def test_default_budget_is_one_alarm_a_year_of_daily_runs() -> None:
    assert AlarmBudget().alarms_per_run == 1 / 365
    assert AlarmBudget(0.5, 100).alarms_per_run == 0.005


def test_residuals_are_logarithms_less_the_medians_of_their_stretches() -> None:
    rates = np.array([2.0, 4.0, 8.0, 100.0, 50.0])
    values = compute_log_residuals(rates, [Segment(0, 3, 4.0), Segment(3, 5, 100.0)])
    assert values == pytest.approx([-np.log(2), 0, np.log(2), 0, -np.log(2)])


def test_blocks_cover_all_noise_and_short_noise_is_one_block() -> None:
    random = np.random.default_rng(5)
    resampled = resample_noise(np.arange(42.0), 300, 80, random)
    assert resampled.shape == (300, 80)
    assert {tuple(row[:40] - row[0]) for row in resampled} == {tuple(range(40))}
    assert {*resampled[:, 0], *resampled[:, 40]} == {0.0, 1.0, 2.0}
    assert resample_noise(np.arange(5.0), 2, 12, random).tolist() == [[*range(5), *range(5), 0, 1]] * 2


def test_runs_before_the_first_answer_are_not_watched() -> None:
    quiet = [np.zeros(60), np.zeros(80)]
    assert count_false_alarms(quiet, DetectorSettings(), 100, 3, seed=1) == (0, 0, 6 * 81)
    assert (
        count_false_alarms(quiet, DetectorSettings(), 20, 3, seed=1)
        == count_false_alarms(quiet, DetectorSettings(), 10, 3, seed=1)
        == (0, 0, 6)
    )
    falls = [np.r_[np.zeros(35), np.full(5, -3.0)]]  # told in each block of forty runs, and again when it is over
    alarms, gate, watched = count_false_alarms(falls, DetectorSettings(), 400, 2, seed=1)
    assert watched == 2 * 381
    assert 0 < gate <= alarms
    assert gate >= 18


Counts = tuple[int, int, int]


def calibrate_with_known_alarms(
    monkeypatch: pytest.MonkeyPatch,
    count: Callable[[DetectorSettings], Counts],
    noises: Sequence[np.ndarray],
    **options: float,
) -> tuple[DetectorCalibration, list[tuple[int, int, int]]]:
    """The calibration with known false alarms of all settings, and noises, runs and rows of its calls."""
    requests = []

    def count_known_alarms(
        noises: Sequence[np.ndarray], tried: DetectorSettings, runs: int, rows: int, seed: int
    ) -> Counts:
        assert seed == 1
        requests.append((len(noises), runs, rows))
        return count(tried)

    monkeypatch.setattr(budget, "count_false_alarms", count_known_alarms)
    return calibrate_detector(noises, AlarmBudget(**options)), requests


@pytest.mark.parametrize(
    ("noises", "runs", "share"),
    [
        ([60], 60, 0.5),  # of few runs half of the budget is used
        ([900], 900, 0.5),
        ([2500], 2500, 0.7),
        ([59, 2500, 12], 2500, 0.7),  # those that are too short do not count
        ([90_000] * 2, 180_000, 0.95),  # never all of it
    ],
)
def test_the_share_of_the_budget_that_is_used_grows_with_the_runs(
    monkeypatch: pytest.MonkeyPatch, noises: list[int], runs: int, share: float
) -> None:
    """One run in ARL0 is a false alarm, none is the gate's: the first ARL0 of the ladder that fits is found."""
    calibration, _ = calibrate_with_known_alarms(
        monkeypatch, lambda tried: (round(1e9 / tried.arl0), 0, 10**9), [np.zeros(size) for size in noises]
    )
    ladder = [arl0 for arl0 in budget._TRIED_ARL0 if 1 / arl0 <= share / 365]
    assert calibration.settings == DetectorSettings(arl0=ladder[0])
    assert (calibration.runs, calibration.from_site_noise, calibration.meets_budget) == (runs, True, True)
    assert calibration.per_100_runs == pytest.approx(100 / ladder[0], rel=1e-6)


def test_arl0_candidates_are_49_values_from_200_to_20000() -> None:
    ladder = budget._TRIED_ARL0
    assert (len(ladder), ladder[0], ladder[-1], ladder[24]) == (49, 200.0, 20_000.0, 2000.0)
    assert all(arl0 == round(arl0) for arl0 in ladder)


@pytest.mark.parametrize(
    ("gate_per_run", "deviations"),
    [(0.39, 4.0), (0.41, 5.0), (0.81, 6.0), (1.21, 7.0), (1.61, 8.0), (2.01, 10.0), (2.41, 12.0)],
)
def test_gate_uses_at_most_two_fifths_of_the_budget(
    monkeypatch: pytest.MonkeyPatch, gate_per_run: float, deviations: float
) -> None:
    """The gate alarms in so many shares of what is allowed with four deviations; with each of the next limits it is
    that over how much duller it is: 4, 5, 6, 7, 8, 10 and 12 deviations leave 1, 1/2, 1/3 … of it."""
    order = [4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0]
    allowed = 0.5 / 365

    def count(tried: DetectorSettings) -> Counts:
        gate = round(1e9 * allowed * gate_per_run / (1 + order.index(tried.collapse_deviations)))
        return gate, gate, 10**9

    calibration, requests = calibrate_with_known_alarms(monkeypatch, count, [np.zeros(100)])
    assert calibration.settings == DetectorSettings(arl0=200.0, collapse_deviations=deviations)
    assert calibration.meets_budget
    assert set(requests) == {(1, 400, 150)}  # 60,000 runs in years of 400


def test_less_sensitive_collapse_detector_frees_budget_for_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the first limits the gate is within its share, but both lanes together break the budget whatever ARL0."""
    calibration, _ = calibrate_with_known_alarms(
        monkeypatch, lambda tried: (10**6 if tried.collapse_deviations < 7 else 10, 0, 10**8), [np.zeros(100)]
    )
    assert (calibration.settings.collapse_deviations, calibration.settings.arl0, calibration.meets_budget) == (
        7.0,
        200.0,
        True,
    )
    calibration, _ = calibrate_with_known_alarms(monkeypatch, lambda tried: (10**6, 0, 10**8), [np.zeros(100)])
    assert (calibration.settings.collapse_deviations, calibration.settings.arl0, calibration.meets_budget) == (
        12.0,
        20_000.0,
        False,
    )
    assert calibration.per_100_runs == pytest.approx(1.0)


@pytest.mark.parametrize(("size", "is_kept"), [(0.99, True), (1.0, True), (1.01, False)])
def test_least_sensitive_settings_may_use_the_entire_budget(
    monkeypatch: pytest.MonkeyPatch, size: float, is_kept: bool
) -> None:
    """Nothing keeps to what is allowed; what is left of the budget for what is not known well may still hold it."""
    calibration, _ = calibrate_with_known_alarms(
        monkeypatch, lambda _: (round(size * 10**6), 0, 10**8), [np.zeros(100)], alarms_per_year=1, runs_per_year=100
    )
    assert calibration.meets_budget == is_kept


@pytest.mark.parametrize(("count", "used"), [(300, 300), (301, 151), (601, 201)])
def test_noise_samples_are_thinned_above_300(monkeypatch: pytest.MonkeyPatch, count: int, used: int) -> None:
    calibration, requests = calibrate_with_known_alarms(monkeypatch, lambda _: (0, 0, 1), [np.zeros(60)] * count)
    assert set(requests) == {(used, 400, max(1, 60_000 // (400 * used)))}
    assert calibration.runs == 60 * count


def test_sixty_runs_teach_and_fifty_nine_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    calibration, requests = calibrate_with_known_alarms(monkeypatch, lambda _: (0, 0, 1), [np.zeros(60)])
    assert (calibration.from_site_noise, calibration.meets_budget, calibration.settings.arl0) == (True, True, 200.0)
    calibration, requests = calibrate_with_known_alarms(monkeypatch, lambda _: (0, 0, 1), [np.zeros(59)])
    assert (calibration, requests) == (
        DetectorCalibration(DetectorSettings(), None, 0, from_site_noise=False, meets_budget=True),
        [],
    )


def test_requested_settings_are_preserved_except_detector_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "count_false_alarms", lambda *_: (0, 0, 1))
    requested = DetectorSettings(smallest_change=0.3, collapse_change=0.4)
    assert calibrate_detector([np.zeros(60)], AlarmBudget(), requested).settings == replace(
        requested, arl0=200.0, collapse_deviations=4.0
    )
    assert calibrate_detector([np.zeros(9)], AlarmBudget(), requested).settings == requested
