# SPDX-License-Identifier: Apache-2.0
"""A survey of histories whose changes are planted, and the judgement of what stood still beside them."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import log, pi, sqrt
from pathlib import Path

import numpy as np
import pytest

from sonde.model.errors import UserError
from sonde.model.series import SeriesKey
from sonde.stats.ratio import Ratio, ratio, simulated_visible
from sonde.stats.spread import robust_sd
from sonde.store import history
from sonde.trends import budget
from sonde.trends.budget import Budget, Calibration, residuals
from sonde.trends.changes import Change, _around, _size_and_error, _stood, joint_changes
from sonde.trends.history import watched
from sonde.trends.known import Known
from sonde.trends.lanes import Settings
from sonde.trends.limits import hold, read_limit
from sonde.trends.remembered import _MOST_KEPT, Memory, of_histories
from sonde.trends.series import Series
from sonde.trends.survey import _calibrated, _learn, _Learned, _levels, _noticed, survey
from sonde.trends.watch import watch

DAY = 86400.0


@pytest.fixture(autouse=True)
def small_years(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings are learned on few simulated runs: how good they are is not asked here."""
    monkeypatch.setattr(budget, "_SIMULATED_RUNS", 2000)


def series(seed: int, factor: float = 1.0, runs: int = 120, at: int = 80) -> Series:
    """Noise of 2 % that falls by a factor at one run."""
    values = 1e9 * np.exp(np.random.default_rng(seed).normal(0, 0.02, runs))
    values[at:] *= factor
    return Series({"phase": f"p{seed}"}, DAY * np.arange(float(runs)), values)


def test_what_is_smaller_than_was_asked_for_is_no_change() -> None:
    histories = [series(1), series(2, 0.8), series(3, 0.5)]
    changed = {
        smallest: [len(one.changes) for one in survey(histories, smallest=smallest).standings]
        for smallest in (0.05, 0.35, 0.6)
    }
    assert changed == {0.05: [0, 1, 1], 0.35: [0, 0, 1], 0.6: [0, 0, 0]}


def test_where_a_history_stands() -> None:
    found = survey([series(3, 0.5), series(4, runs=4)])
    (one,) = found.standings
    assert found.short == 1
    assert one.now == pytest.approx(float(np.median(one.series.values[-3:])))
    assert one.level == pytest.approx(0.5e9, rel=0.02)
    assert [(part.first, part.end) for part in one.stretches] == [(0, 80), (80, 120)]
    assert one.noise == pytest.approx(0.02, rel=0.3)
    assert one.visible is not None
    assert 0.005 < one.visible < 0.1


def test_progress_goes_from_the_first_step_to_the_last() -> None:
    told: list[tuple[int, int]] = []
    survey([series(1), series(2)], step=lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {8}
    done = [one for one, _ in told]
    assert done == sorted(done)
    assert (done[:2], done[-2:]) == ([1, 2], [7, 8])
    assert {3, 6} <= set(done), "settings and watches take time, and say so"


def test_settings_take_nobody_knows_how_many_tries_and_each_goes_a_tenth_of_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Calibration(Settings(), 0.2, 120, True)

    def calibrate(residuals: object, budget: object, settings: object, step: Callable[[], None]) -> Calibration:
        for _ in range(3):
            step()
        return made

    monkeypatch.setattr("sonde.trends.survey.calibrate", calibrate)
    learned = [_learn(series(seed, runs=10).values, Known()) for seed in range(10)]
    told: list[tuple[int, int]] = []
    found = _calibrated(learned, Budget(1.0, 365.0), Settings(), Known(), lambda *at: told.append(at))
    assert found == made
    assert told == [(10, 40), (11, 40), (12, 40)]  # 0.99…, 1.9 and 2.71 of the second quarter


@pytest.mark.parametrize(("begin", "learned"), [(0, 74), (14, 60), (15, 65), (70, 10)])
def test_noise_and_pace_are_learned_from_the_weeks_before_where_these_are_enough(begin: int, learned: int) -> None:
    """Day 74 is a Monday at 0:00. With fewer than 60 runs before it the whole history teaches. From that day on five
    times as much is measured."""
    days = (
        np.concatenate([np.arange(begin, 74.0), np.arange(74.0, 75.0, 0.17)])
        if learned in (74, 60)
        else np.arange(begin, 80.0)
    )
    values = 1e9 * np.exp(np.random.default_rng(8).normal(0, 0.05, days.size))
    one = Series({"experiment": "e"}, DAY * days, values)
    taught = Series(one.labels, one.times[:learned], one.values[:learned])
    found = survey([one])
    assert found.standings[0].noise == robust_sd(residuals(taught.values))
    assert found.budget.runs_per_year == pytest.approx(taught.runs_per_year)
    assert found.calibration.runs == (learned if learned >= 60 else 0)


def test_what_is_fresh_was_noticed_within_the_last_ten_runs() -> None:
    whole = series(3, 0.5)
    noticed = [int(np.searchsorted(whole.times, one.noticed)) for one in survey([whole]).standings[0].changes]
    assert noticed == [82]
    slower = {later: survey([whole.until(DAY * (82 + later))]).standings[0].slower for later in (0, 9, 10, 11)}
    assert slower == {0: True, 9: True, 10: False, 11: False}


def test_a_level_begins_with_the_first_run_after_a_change_and_is_a_median() -> None:
    (one,) = survey([series(3, 0.5)]).standings
    values = one.series.values
    assert [part.level for part in one.stretches] == [np.median(values[:80]), np.median(values[80:])]
    assert one.level == np.median(values[80:])


def test_a_watch_has_the_settings_that_it_is_given() -> None:
    one = [series(2, 0.7)]
    dull = Settings(smallest_change=0.99, arl0=20_000, gate_deviations=1e9, collapse=0.999)
    assert watch(one)
    assert watch(one, Settings()) == watch(one)
    assert watch(one, dull) == watch(one, [dull]) == []


def moved(before: int, after: int, factor: float) -> Series:
    values = 1e9 * np.exp(np.random.default_rng(7).normal(0, 0.1, before + after))
    values[before:] *= factor
    return Series({}, DAY * np.arange(float(before + after)), values)


def test_how_a_series_moved_has_the_error_of_its_interval() -> None:
    one = moved(30, 30, 0.8)
    size = ratio(one.values[:30], one.values[30:])
    assert size.low is not None
    assert size.high is not None
    assert _around(one, [], 30 * DAY) == pytest.approx((log(size.value), log(size.high / size.low) / 3.92))


def test_where_there_are_too_few_runs_for_an_interval_the_error_is_that_of_medians_in_the_noise() -> None:
    one = moved(20, 1, 0.8)
    error = robust_sd(np.log(one.values[:20])) * sqrt(pi / 2 * (1 / 20 + 1 / 1))
    assert _around(one, [], 20 * DAY) == pytest.approx(
        (log(one.values[20] / np.median(one.values[:20])), error), rel=0.02
    )
    assert _around(one, [], 0.0) is None, "no run before"
    assert _around(one, [], 99 * DAY) is None, "no run after"


@pytest.mark.parametrize(
    ("value", "error", "typical", "stood"),
    [
        (-0.05, 0.02, log(0.5), True),
        (-0.6, 0.02, log(0.5), False),
        (0.6, 0.02, log(0.5), True),  # the other way
        (-0.05, 0.3, log(0.5), False),  # it cannot be told
        (0.05, 0.02, log(2), True),
        (0.6, 0.02, log(2), False),
        (-0.6, 0.02, log(2), True),
        (0.3, 0.02, log(2), True),  # 0.339 of 0.347
        (0.31, 0.02, log(2), False),  # 0.349
    ],
)
def test_a_series_stood_when_it_surely_moved_by_less_than_half(
    value: float, error: float, typical: float, stood: bool
) -> None:
    assert _stood((value, error), typical) is stood


def test_a_size_without_an_interval_has_a_broad_error() -> None:
    known, none = Ratio(0.5, 0.4, 0.6, 0.01, 9, 9, 0.95), Ratio(0.5, None, None, None, 1, 1, 0.95)
    with_later = Change(0, "gate", 0.0, 1.0, 2.0, 2, none, known)
    without = Change(0, "gate", 0.0, 1.0, 2.0, 2, none, none)
    assert _size_and_error(with_later) == pytest.approx((log(0.5), log(1.5) / 3.92))
    assert _size_and_error(without) == pytest.approx((log(0.5), 0.15))


def test_a_history_with_one_other_number_time_or_label_has_another_key() -> None:
    one = series(1)
    values, times = one.values.copy(), one.times.copy()
    values[-1] *= 1.000001
    times[-1] += 1.0
    others = [Series(one.labels, one.times, values), Series(one.labels, times, one.values)]
    others += [Series({"phase": "other"}, one.times, one.values), Series(one.labels, one.times, one.values, "op/s")]
    keys = [of_histories([found]) for found in (one, *others)] + [of_histories([one], 1), of_histories([])]
    assert len(set(keys)) == len(keys)
    assert of_histories([series(1)]) == keys[0]


def test_a_limit_on_runs_without_phases_says_that_there_are_none() -> None:
    with pytest.raises(UserError, match=r"there is no finished phase of that name; there are none\."):
        hold(read_limit("write=1GB/s"), [])


def test_of_what_is_remembered_the_latest_stay_and_nothing_half_written(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "kept")
    for number in range(_MOST_KEPT + 3):
        memory.keep_known(f"k{number:03}", Known(), finished=True)
        os.utime(tmp_path / "kept" / f"k{number:03}.kept", (number, number))
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert kept == [f"k{number:03}.kept" for number in range(3, _MOST_KEPT + 3)]
    (tmp_path / "kept" / "taken.kept").mkdir()
    memory.keep_known("taken", Known(), finished=True)
    assert not list((tmp_path / "kept").glob(".*")), "what could not be put in its place is taken away"


def test_a_history_is_called_by_what_was_measured_where() -> None:
    key = SeriesKey("a", "fs1", "hash", "24 cpus", "e", "p1", "read", "cold", "sonde total", "bytes_per_s")
    times = DAY * np.arange(2.0)
    stored = history.Series(key, "", times, np.array([1.0, 2.0]), ("r1", "r2"), ("", ""))
    (one,) = watched([stored])
    assert one.labels == {
        "system": "a",
        "file_system": "fs1",
        "experiment": "hash",
        "phase": "p1",
        "operation": "read",
        "cache": "cold",
        "plan_hash": "hash",
        "node_class": "24 cpus",
        "epoch": "e",
        "series": key.id,
    }
    assert (one.unit, list(one.runs), one.values.tolist()) == ("bytes/s", ["r1", "r2"], [1.0, 2.0])


@pytest.mark.parametrize(("apart", "groups"), [(29, 1), (30, 1), (31, 2)])
@pytest.mark.parametrize("slow_first", [True, False])
def test_changes_are_joint_within_three_runs_of_the_slower_series(apart: int, groups: int, slow_first: bool) -> None:
    """One series has a run every ten days, the other every day."""
    slow = Series({"phase": "slow"}, 10 * DAY * np.arange(20.0), np.full(20, 1e9))
    quick = Series({"phase": "quick"}, DAY * np.arange(200.0), np.full(200, 1e9))
    size = Ratio(0.5, 0.45, 0.55, 0.001, 9, 9, 0.95)
    begins = (100, 100 + apart) if slow_first else (100 + apart, 100)
    found = [
        Change(at, "gate", DAY * (day - 1), DAY * day, DAY * (day + 3), 3, size, size) for at, day in enumerate(begins)
    ]
    assert len(joint_changes([slow, quick], found)) == groups


@pytest.mark.parametrize(
    ("histories", "runs", "learned"), [(1, 2100, 2000), (100, 2100, 2000), (200, 2100, 1000), (450, 600, 500)]
)
def test_noise_is_learned_from_2000_runs_of_a_history_and_from_500_where_there_are_many(
    histories: int, runs: int, learned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all together from 200,000; of the runs before the Monday of the latest one."""
    asked = []

    def learn(values: np.ndarray, known: Known) -> _Learned:
        asked.append((values.size, float(values[-1])))
        return _Learned(values, (), 0.1, None)

    monkeypatch.setattr("sonde.trends.survey._learn", learn)
    monkeypatch.setattr("sonde.trends.survey._calibrated", lambda *_: Calibration(Settings(), None, 0, own=False))
    monkeypatch.setattr("sonde.trends.survey._noticed", lambda *_: [])
    last = 9999 * 7 * DAY + 2 * DAY
    one = Series({}, last - DAY * np.arange(float(runs))[::-1], np.arange(1.0, runs + 1))
    survey([one] * histories)
    monday = (last - 4 * DAY) // (7 * DAY) * (7 * DAY) + 4 * DAY
    before = int(np.sum(one.times < monday))
    assert asked == [(learned, float(before))] * histories


def test_the_drop_that_would_show_is_that_of_ten_runs_against_forty() -> None:
    one = series(1, runs=50)
    noise = residuals(one.values)
    assert survey([one]).standings[0].visible == simulated_visible(noise, 40, 10)
    assert survey([one]).standings[0].noise == robust_sd(noise)


def test_five_runs_are_a_history_and_four_are_none() -> None:
    found = survey([series(1, runs=5), series(2, runs=4)])
    assert (len(found.standings), found.short) == (1, 1)
    assert found.standings[0].visible is None
    assert found.telling == ()
    assert found.series == (found.standings[0].series,)


@pytest.mark.parametrize(
    ("days", "pace"), [([1.0], 365.25), ([700.0], 1.0), ([1.0, 0.5, 2.0], 365.25), ([700.0, 0.5, 2.0], 365.25 / 2)]
)
def test_the_budget_is_for_runs_at_the_pace_of_the_site_but_for_one_a_year_at_least(
    days: list[float], pace: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonde.trends.survey._calibrated", lambda *_: Calibration(Settings(), None, 0, own=False))
    site = [Series({"op": str(one)}, DAY * one * np.arange(99.0), np.full(99, 1e9)) for one in days]
    found = survey(site, 0.5).budget
    assert (found.alarms_per_year, found.runs_per_year) == pytest.approx((0.5, pace))


def test_each_history_has_its_own_changes() -> None:
    found = survey([series(1), series(2, 0.5), series(3, 0.6, at=60)])
    assert [[change.series for change in one.changes] for one in found.standings] == [[], [1], [2]]
    assert [len(joint.changes) for joint in found.joint] == [1, 1]
    assert found.joint[0].time == 60 * DAY


def test_a_change_at_the_first_run_leaves_one_stretch() -> None:
    one = series(1, runs=10)
    size = Ratio(0.5, 0.4, 0.6, 0.01, 9, 9, 0.95)
    own = [
        Change(0, "gate", -DAY, 0.0, DAY, 2, size, size),
        Change(0, "gate", 5 * DAY, 6 * DAY, 7 * DAY, 2, size, size),
    ]
    assert [(part.first, part.end) for part in _levels(one, own)] == [(0, 6), (6, 10)]


def test_the_third_quarter_of_the_work_is_watching_run_by_run() -> None:
    told: list[tuple[int, int]] = []
    histories = [series(1, runs=30), series(2, runs=120), series(3, runs=0), series(4, runs=30)]
    assert _noticed(histories, Settings(), Known(), lambda *at: told.append(at)) == []
    assert told == [(10, 16), (12, 16)]  # 90 and 180 of 180 runs
