# SPDX-License-Identifier: Apache-2.0
"""Rounds of a watch: noise stays silent, a drop is one notice, the fix another, a kill loses and repeats nothing."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

from watch_builders import START, ModelRunner, make_watch, read_notices, run_day

from sonde.trends.detectors import DetectorSettings
from sonde.watch.history_gate import detect_drop_in_newest_value
from sonde.watch.watch_state import HistoryState, StateStore

KILLS = 50


def make_runner(folder: Path, drops: dict[str, tuple[int, int, float]], noise: float = 0.04) -> ModelRunner:
    """`drops`: beginning of "directory plan phase" -> first day, last day, factor."""

    def rate(name: str, day: int) -> float:
        factors = [
            factor for begin, (first, last, factor) in drops.items() if name.startswith(begin) and first <= day <= last
        ]
        return min(factors, default=1.0)

    return ModelRunner(folder / "runs.ndjson", rate, [START], noise)


def test_noise_alone_gives_no_notice(tmp_path: Path) -> None:
    watch, runner = make_watch(tmp_path, 2, 2), make_runner(tmp_path, {})
    for day in range(60):
        run_day(watch, tmp_path, runner, day)
    assert read_notices(tmp_path) == []


def test_drop_of_one_file_system_is_one_notice_and_one_fix(tmp_path: Path) -> None:
    """Two tests with two phases each fall together: one joint change with its scope."""
    watch, runner = make_watch(tmp_path, 3, 2, localize="targets"), make_runner(tmp_path, {"/fs1": (20, 29, 0.6)})
    for day in range(40):
        report = run_day(watch, tmp_path, runner, day)
        assert bool(report.opened) == (day == 20)
        assert bool(report.closed) == (day == 30)
    slower, fixed = read_notices(tmp_path)
    assert "4 histories fell by" in slower["text"]
    assert "directory /fs1" in slower["text"]
    assert "OST 7 is slow" in slower["text"]
    assert len(runner.localizations) == 1
    assert (slower["kind"], fixed["kind"]) == ("slower", "fixed")
    assert "after 10.0 days" in fixed["text"]


def test_slow_run_by_chance_is_repeated_without_notice(tmp_path: Path) -> None:
    watch, runner = make_watch(tmp_path), make_runner(tmp_path, {})
    for day in range(10):
        run_day(watch, tmp_path, runner, day)
    attempts = iter((0.3, 1.0))
    runner.rate = lambda name, day: next(attempts)
    runner.phases = ("write",)
    assert len(run_day(watch, tmp_path, runner, 10).runs) == 2
    assert read_notices(tmp_path) == []


def test_slow_drift_is_noticed_by_the_detectors(tmp_path: Path) -> None:
    """A loss of 12 % is within the limit of the gate."""
    watch, runner = make_watch(tmp_path), make_runner(tmp_path, {"/fs0": (40, 99, 0.88)}, noise=0.03)
    opened = [day for day in range(70) if run_day(watch, tmp_path, runner, day).opened]
    assert len(opened) == 1
    assert 40 <= opened[0] <= 60


def test_round_without_due_probe_runs_none(tmp_path: Path) -> None:
    watch, runner = make_watch(tmp_path), make_runner(tmp_path, {})
    assert len(run_day(watch, tmp_path, runner, 0).runs) == 1
    assert run_day(watch, tmp_path, runner, 0).runs == []


def test_silenced_directory_gives_no_notice(tmp_path: Path) -> None:
    watch, runner = make_watch(tmp_path), make_runner(tmp_path, {"/fs0": (20, 99, 0.5)})
    for day in range(20):
        run_day(watch, tmp_path, runner, day)
    store = StateStore(tmp_path / "watch")
    state = store.load_state()
    state.silences["/fs0"] = START * 2
    store.save_state(state)
    assert run_day(watch, tmp_path, runner, 20).opened
    assert read_notices(tmp_path) == []


def test_new_value_costs_milliseconds() -> None:
    history = HistoryState({}, "bytes/s", [1e9 + number for number in range(400)], [0.0] * 400, filled=80)
    begin = time.process_time()
    for _ in range(50):
        detect_drop_in_newest_value(history, DetectorSettings())
    assert (time.process_time() - begin) / 50 < 0.05


def _run_days(folder: Path, days: int) -> None:
    """Runs the unfinished days of a process that restarts after each kill."""
    watch, runner = make_watch(folder, 2, 2), make_runner(folder, {"/fs1": (12, 19, 0.5), "/fs0 p1": (25, 99, 0.6)})
    for day in range(int((folder / "day").read_text()) if (folder / "day").exists() else 0, days):
        run_day(watch, folder, runner, day)
        (folder / "day.part").write_text(str(day + 1))
        os.replace(folder / "day.part", folder / "day")


def test_kill_at_any_moment_loses_and_repeats_nothing(tmp_path: Path) -> None:
    expected, killed = tmp_path / "expected", tmp_path / "killed"
    expected.mkdir()
    killed.mkdir()
    _run_days(expected, 30)
    generator = random.Random(7)
    kills = 0
    for _ in range(100 * KILLS):
        child = os.fork()
        if not child:
            _run_days(killed, 30)
            os._exit(0)
        if kills < KILLS:
            time.sleep(generator.uniform(0.0, 0.01))  # fast machines are done soon
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        kills += os.WIFSIGNALED(status)
        if os.WIFEXITED(status):
            assert status == 0
            break
    assert kills == KILLS
    assert [replace_incident_time(entry) for entry in read_notices(killed)] == [
        replace_incident_time(entry) for entry in read_notices(expected)
    ]
    assert (killed / "runs.ndjson").read_text() == (expected / "runs.ndjson").read_text()
    states = [StateStore(folder / "watch").load_state() for folder in (expected, killed)]
    assert replace(states[0], rounds=0) == replace(states[1], rounds=0)


def replace_incident_time(entry: dict[str, str]) -> dict[str, str]:
    """A notice without the folder of the test."""
    return {name: value for name, value in entry.items() if name != "path"}
