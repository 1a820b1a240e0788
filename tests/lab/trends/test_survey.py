# SPDX-License-Identifier: Apache-2.0
"""A survey of histories whose changes are planted, and the assessment of those that did not change."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import log, pi, sqrt
from pathlib import Path

import numpy as np
import pytest

from sonde.model.errors import UserError
from sonde.model.history_key import HistoryKey
from sonde.stats.ratio import RateRatio, compare_rates, simulate_detectable_drop
from sonde.stats.spread import compute_robust_sd
from sonde.store import history
from sonde.trends import budget
from sonde.trends.archive_histories import merge_repeats_into_histories
from sonde.trends.budget import AlarmBudget, DetectorCalibration, compute_log_residuals
from sonde.trends.changes import (
    Change,
    _estimate_log_change_and_error,
    _is_surely_unchanged,
    _measure_unnoticed_change,
    group_changes,
)
from sonde.trends.detectors import DetectorSettings
from sonde.trends.history import History
from sonde.trends.result_cache import ResultCache
from sonde.trends.stated_limits import check_limit_against_runs, parse_limit
from sonde.trends.survey import (
    _calibrate_detector_settings,
    _estimate_noise,
    _find_changes,
    _NoiseEstimate,
    _split_into_segments_at_changes,
    survey_histories,
)
from sonde.trends.survey_cache import _MAX_CACHE_FILES, SurveyCache, make_histories_key
from sonde.trends.watch import find_alarms_in_histories

DAY = 86400.0


@pytest.fixture(autouse=True)
def few_simulated_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """DetectorSettings are learned on few simulated runs: how good they are is not asked here."""
    monkeypatch.setattr(budget, "_SIMULATED_RUNS", 2000)


def series(seed: int, factor: float = 1.0, runs: int = 120, changed_run: int = 80) -> History:
    """Noise of 2 % that falls by a factor at one run."""
    values = 1e9 * np.exp(np.random.default_rng(seed).normal(0, 0.02, runs))
    values[changed_run:] *= factor
    return History({"phase": f"p{seed}"}, DAY * np.arange(float(runs)), values)


def test_changes_below_the_smallest_change_are_ignored() -> None:
    histories = [series(1), series(2, 0.8), series(3, 0.5)]
    changed = {
        smallest: [len(analysis.changes) for analysis in survey_histories(histories, smallest_change=smallest).analyses]
        for smallest in (0.05, 0.35, 0.6)
    }
    assert changed == {0.05: [0, 1, 1], 0.35: [0, 0, 1], 0.6: [0, 0, 0]}


def test_analysis_has_current_level_and_segments() -> None:
    survey = survey_histories([series(3, 0.5), series(4, runs=4)])
    (analysis,) = survey.analyses
    assert survey.short == 1
    assert analysis.now == pytest.approx(float(np.median(analysis.history.values[-3:])))
    assert analysis.current_level == pytest.approx(0.5e9, rel=0.02)
    assert [(part.first, part.end) for part in analysis.segments] == [(0, 80), (80, 120)]
    assert analysis.noise == pytest.approx(0.02, rel=0.3)
    assert analysis.visible is not None
    assert 0.005 < analysis.visible < 0.1


def test_progress_runs_from_the_first_to_the_last_step() -> None:
    progress: list[tuple[int, int]] = []
    survey_histories([series(1), series(2)], on_progress=lambda done, total: progress.append((done, total)))
    assert {total for _, total in progress} == {8}
    done = [step for step, _ in progress]
    assert done == sorted(done)
    assert (done[:2], done[-2:]) == ([1, 2], [7, 8])
    assert {3, 6} <= set(done), "settings and watches take time, and say so"


def test_calibration_step_advances_a_tenth_of_the_remainder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calibration = DetectorCalibration(DetectorSettings(), 0.2, 120, True)

    def return_calibration(
        residuals: object, budget: object, settings: object, on_step: Callable[[], None]
    ) -> DetectorCalibration:
        for _ in range(3):
            on_step()
        return calibration

    monkeypatch.setattr("sonde.trends.survey.calibrate_detector", return_calibration)
    learned = [_estimate_noise(series(seed, runs=10).values, ResultCache()) for seed in range(10)]
    progress: list[tuple[int, int]] = []
    settings_found = _calibrate_detector_settings(
        learned, AlarmBudget(1.0, 365.0), DetectorSettings(), ResultCache(), lambda *step: progress.append(step)
    )
    assert settings_found == calibration
    assert progress == [(10, 40), (11, 40), (12, 40)]  # 0.99…, 1.9 and 2.71 of the second quarter


@pytest.mark.parametrize(("begin", "learned"), [(0, 74), (14, 60), (15, 65), (70, 10)])
def test_noise_and_pace_are_learned_from_earlier_weeks(begin: int, learned: int) -> None:
    """Day 74 is a Monday at 0:00. With fewer than 60 runs before it the whole history teaches. From that day on five
    times as much is measured."""
    days = (
        np.concatenate([np.arange(begin, 74.0), np.arange(74.0, 75.0, 0.17)])
        if learned in (74, 60)
        else np.arange(begin, 80.0)
    )
    values = 1e9 * np.exp(np.random.default_rng(8).normal(0, 0.05, days.size))
    examined = History({"experiment": "e"}, DAY * days, values)
    taught = History(examined.labels, examined.times[:learned], examined.values[:learned])
    survey = survey_histories([examined])
    assert survey.analyses[0].noise == compute_robust_sd(compute_log_residuals(taught.values))
    assert survey.budget.runs_per_year == pytest.approx(taught.runs_per_year)
    assert survey.calibration.runs == (learned if learned >= 60 else 0)


def test_change_is_new_within_ten_runs_after_detection() -> None:
    examined = series(3, 0.5)
    noticed = [
        int(np.searchsorted(examined.times, change.noticed))
        for change in survey_histories([examined]).analyses[0].changes
    ]
    assert noticed == [82]
    slower = {
        later: survey_histories([examined.select_runs_until(DAY * (82 + later))]).analyses[0].is_newly_slower
        for later in (0, 9, 10, 11)
    }
    assert slower == {0: True, 9: True, 10: False, 11: False}


def test_segment_level_is_the_median_from_the_first_run_on() -> None:
    (analysis,) = survey_histories([series(3, 0.5)]).analyses
    values = analysis.history.values
    assert [part.level for part in analysis.segments] == [np.median(values[:80]), np.median(values[80:])]
    assert analysis.current_level == np.median(values[80:])


def test_survey_uses_the_requested_detector_settings() -> None:
    histories = [series(2, 0.7)]
    dull = DetectorSettings(smallest_change=0.99, arl0=20_000, collapse_deviations=1e9, large_drop=0.999)
    assert find_alarms_in_histories(histories)
    assert find_alarms_in_histories(histories, DetectorSettings()) == find_alarms_in_histories(histories)
    assert find_alarms_in_histories(histories, dull) == find_alarms_in_histories(histories, [dull]) == []


def make_history_with_step(before: int, after: int, factor: float) -> History:
    values = 1e9 * np.exp(np.random.default_rng(7).normal(0, 0.1, before + after))
    values[before:] *= factor
    return History({}, DAY * np.arange(float(before + after)), values)


def test_how_a_series_moved_has_the_error_of_its_interval() -> None:
    examined = make_history_with_step(30, 30, 0.8)
    size = compare_rates(examined.values[:30], examined.values[30:])
    assert size.low is not None
    assert size.high is not None
    assert _measure_unnoticed_change(examined.values[:30], examined.values[30:]) == pytest.approx(
        (log(size.value), log(size.high / size.low) / 3.92)
    )


def test_error_of_few_runs_is_that_of_medians_in_the_noise() -> None:
    examined = make_history_with_step(20, 1, 0.8)
    error = compute_robust_sd(np.log(examined.values[:20])) * sqrt(pi / 2 * (1 / 20 + 1 / 1))
    assert _measure_unnoticed_change(examined.values[:20], examined.values[20:]) == pytest.approx(
        (log(examined.values[20] / np.median(examined.values[:20])), error), rel=0.02
    )
    assert _measure_unnoticed_change(examined.values[:0], examined.values) is None, "no run before"
    assert _measure_unnoticed_change(examined.values, examined.values[:0]) is None, "no run after"


@pytest.mark.parametrize(
    ("value", "error", "typical", "stood"),
    [
        (-0.05, 0.02, log(0.5), True),
        (-0.6, 0.02, log(0.5), False),
        (0.6, 0.02, log(0.5), True),  # the other way
        (-0.05, 0.3, log(0.5), False),  # unknown
        (0.05, 0.02, log(2), True),
        (0.6, 0.02, log(2), False),
        (-0.6, 0.02, log(2), True),
        (0.3, 0.02, log(2), True),  # 0.339 of 0.347
        (0.31, 0.02, log(2), False),  # 0.349
    ],
)
def test_series_is_unchanged_if_it_surely_moved_less_than_half(
    value: float, error: float, typical: float, stood: bool
) -> None:
    assert _is_surely_unchanged((value, error), typical) is stood


def test_a_size_without_an_interval_has_a_broad_error() -> None:
    with_interval, none = RateRatio(0.5, 0.4, 0.6, 0.01, 9, 9, 0.95), RateRatio(0.5, None, None, None, 1, 1, 0.95)
    with_later = Change(0, "collapse", 0.0, 1.0, 2.0, 2, none, with_interval)
    without = Change(0, "collapse", 0.0, 1.0, 2.0, 2, none, none)
    assert _estimate_log_change_and_error(with_later) == pytest.approx((log(0.5), log(1.5) / 3.92))
    assert _estimate_log_change_and_error(without) == pytest.approx((log(0.5), 0.15))


def test_cache_key_changes_with_value_time_label_or_unit() -> None:
    examined = series(1)
    values, times = examined.values.copy(), examined.times.copy()
    values[-1] *= 1.000001
    times[-1] += 1.0
    others = [History(examined.labels, examined.times, values), History(examined.labels, times, examined.values)]
    others += [
        History({"phase": "other"}, examined.times, examined.values),
        History(examined.labels, examined.times, examined.values, "op/s"),
    ]
    keys = [make_histories_key([candidate]) for candidate in (examined, *others)] + [
        make_histories_key([examined], 1),
        make_histories_key([]),
    ]
    assert len(set(keys)) == len(keys)
    assert make_histories_key([series(1)]) == keys[0]


def test_limit_on_runs_without_phases_is_rejected_with_the_reason() -> None:
    with pytest.raises(UserError, match=r"there is no finished phase of that name; there are none\."):
        check_limit_against_runs(parse_limit("write=1GB/s"), [])


def test_survey_cache_keeps_the_latest_and_no_partial_files(tmp_path: Path) -> None:
    memory = SurveyCache(tmp_path / "kept")
    for number in range(_MAX_CACHE_FILES + 3):
        memory.store_results(f"k{number:03}", ResultCache(), is_finished=True)
        os.utime(tmp_path / "kept" / f"k{number:03}.kept", (number, number))
    file_names = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert file_names == [f"k{number:03}.kept" for number in range(3, _MAX_CACHE_FILES + 3)]
    (tmp_path / "kept" / "taken.kept").mkdir()
    memory.store_results("taken", ResultCache(), is_finished=True)
    assert not list((tmp_path / "kept").glob(".*")), "what could not be put in its place is taken away"


def test_history_name_has_plan_phase_operation_and_storage() -> None:
    key = HistoryKey("a", "fs1", "hash", "24 cpus", "e", "p1", "read", "cold", "sonde total", "bytes_per_s")
    times = DAY * np.arange(2.0)
    stored = history.StoredHistory(key, "", times, np.array([1.0, 2.0]), ("r1", "r2"), ("", ""))
    (repeats,) = merge_repeats_into_histories([stored])
    assert repeats.labels == {
        "system": "a",
        "file_system": "fs1",
        "experiment": "hash",
        "phase": "p1",
        "operation": "read",
        "cache": "cold",
        "plan_hash": "hash",
        "node_class": "24 cpus",
        "epoch": "e",
        "history": key.id,
    }
    assert (repeats.unit, list(repeats.runs), repeats.values.tolist()) == ("bytes/s", ["r1", "r2"], [1.0, 2.0])


@pytest.mark.parametrize(("distance", "groups"), [(29, 1), (30, 1), (31, 2)])
@pytest.mark.parametrize("slow_first", [True, False])
def test_changes_are_joint_within_three_runs_of_the_slower_series(distance: int, groups: int, slow_first: bool) -> None:
    """One series has a run every ten days, the other every day."""
    slow = History({"phase": "slow"}, 10 * DAY * np.arange(20.0), np.full(20, 1e9))
    quick = History({"phase": "quick"}, DAY * np.arange(200.0), np.full(200, 1e9))
    size = RateRatio(0.5, 0.45, 0.55, 0.001, 9, 9, 0.95)
    begins = (100, 100 + distance) if slow_first else (100 + distance, 100)
    changes = [
        Change(index, "collapse", DAY * (day - 1), DAY * day, DAY * (day + 3), 3, size, size)
        for index, day in enumerate(begins)
    ]
    assert len(group_changes([slow, quick], changes)) == groups


@pytest.mark.parametrize(
    ("histories", "runs", "learned"), [(1, 2100, 2000), (100, 2100, 2000), (200, 2100, 1000), (450, 600, 500)]
)
def test_noise_is_learned_from_2000_or_500_runs_per_history(
    histories: int, runs: int, learned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All histories together need 200,000 runs; only runs before the Monday of the latest run count."""
    requests = []

    def record_noise_request(values: np.ndarray, cache: ResultCache) -> _NoiseEstimate:
        requests.append((values.size, float(values[-1])))
        return _NoiseEstimate(values, (), 0.1, None)

    monkeypatch.setattr("sonde.trends.survey._estimate_noise", record_noise_request)
    monkeypatch.setattr(
        "sonde.trends.survey._calibrate_detector_settings",
        lambda *_: DetectorCalibration(DetectorSettings(), None, 0, from_site_noise=False),
    )
    monkeypatch.setattr("sonde.trends.survey._find_changes", lambda *_: [])
    last = 9999 * 7 * DAY + 2 * DAY
    examined = History({}, last - DAY * np.arange(float(runs))[::-1], np.arange(1.0, runs + 1))
    survey_histories([examined] * histories)
    monday = (last - 4 * DAY) // (7 * DAY) * (7 * DAY) + 4 * DAY
    before = int(np.sum(examined.times < monday))
    assert requests == [(learned, float(before))] * histories


def test_visible_drop_compares_the_last_ten_runs_with_forty() -> None:
    examined = series(1, runs=50)
    noise = compute_log_residuals(examined.values)
    assert survey_histories([examined]).analyses[0].visible == simulate_detectable_drop(noise, 40, 10)
    assert survey_histories([examined]).analyses[0].noise == compute_robust_sd(noise)


def test_history_needs_five_runs() -> None:
    survey = survey_histories([series(1, runs=5), series(2, runs=4)])
    assert (len(survey.analyses), survey.short) == (1, 1)
    assert survey.analyses[0].visible is None
    assert survey.distinguishing_labels == ()
    assert survey.histories == (survey.analyses[0].history,)


@pytest.mark.parametrize(
    ("days", "pace"), [([1.0], 365.25), ([700.0], 1.0), ([1.0, 0.5, 2.0], 365.25), ([700.0, 0.5, 2.0], 365.25 / 2)]
)
def test_budget_uses_the_pace_of_the_site_or_one_run_a_year(
    days: list[float], pace: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sonde.trends.survey._calibrate_detector_settings",
        lambda *_: DetectorCalibration(DetectorSettings(), None, 0, from_site_noise=False),
    )
    site = [History({"op": str(number)}, DAY * number * np.arange(99.0), np.full(99, 1e9)) for number in days]
    budget_found = survey_histories(site, 0.5).budget
    assert (budget_found.alarms_per_year, budget_found.runs_per_year) == pytest.approx((0.5, pace))


def test_changes_belong_to_their_history() -> None:
    survey = survey_histories([series(1), series(2, 0.5), series(3, 0.6, changed_run=60)])
    assert [[change.history for change in analysis.changes] for analysis in survey.analyses] == [[], [1], [2]]
    assert [len(joint.changes) for joint in survey.joint] == [1, 1]
    assert survey.joint[0].begin_time == 60 * DAY


def test_change_at_the_first_run_creates_no_empty_segment() -> None:
    examined = series(1, runs=10)
    size = RateRatio(0.5, 0.4, 0.6, 0.01, 9, 9, 0.95)
    own_changes = [
        Change(0, "collapse", -DAY, 0.0, DAY, 2, size, size),
        Change(0, "collapse", 5 * DAY, 6 * DAY, 7 * DAY, 2, size, size),
    ]
    assert [(part.first, part.end) for part in _split_into_segments_at_changes(examined, own_changes)] == [
        (0, 6),
        (6, 10),
    ]


def test_watching_accounts_for_the_third_quarter_of_progress() -> None:
    progress: list[tuple[int, int]] = []
    histories = [series(1, runs=30), series(2, runs=120), series(3, runs=0), series(4, runs=30)]
    assert _find_changes(histories, DetectorSettings(), ResultCache(), lambda *step: progress.append(step)) == []
    assert progress == [(10, 16), (12, 16)]  # 90 and 180 of 180 runs
