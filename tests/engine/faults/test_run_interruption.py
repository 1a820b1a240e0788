# SPDX-License-Identifier: Apache-2.0
"""However a run is ended, it ends in good order: signals, time limits, killed processes, a task that hangs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_under_test import FAILED, INTERRUPTED, LIMIT_S, Engine, Plan, Running, list_tree, write_plan

# The second phase runs until something ends it.
LONG: list[Plan] = [{"id": "first", "op": "write"}, {"id": "long", "op": "rewrite", "stop": {"time": "60s"}}]
OBSERVE: Plan = {"progress": "20ms"}

ONE: Plan = {}
THREADS: Plan = {"threads": 3}
FORKED: Plan = {"processes": 3}
TEAMS = pytest.mark.parametrize("tasks", [ONE, THREADS, FORKED], ids=["one", "threads", "forked"])


def start_long(engine: Engine, target: Path, tasks: Plan, **members: object) -> Running:
    """A run that is in its endless phase when this returns."""
    running = engine.start(write_plan(target, *LONG, tasks=tasks, observe=OBSERVE, **members))
    running.wait_for_phase("long")
    return running


def list_workers(running: Running) -> list[int]:
    """Forked workers, the root first."""
    return running.children()


@TEAMS
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_one_signal_ends_the_phase_and_the_run_in_good_order(
    engine: Engine, target: Path, tasks: Plan, signal_number: signal.Signals
) -> None:
    with start_long(engine, target, tasks) as running:
        running.process.send_signal(signal_number)
        result = running.result()
    assert result.code == INTERRUPTED
    assert result.only_sentence == "interrupted in phase long; finished phases are kept"
    assert result.end["status"] == "interrupted"
    assert result.end["exit_code"] == INTERRUPTED
    assert result.finished("first")["stopped_by"] == "volume"
    # What the running phase had done is kept as well, and said to be partial.
    assert result.finished("long")["stopped_by"] == "interrupt"
    assert result.finished("long")["ops"]["done"] > 0
    assert list_tree(target) == []


@TEAMS
def test_signal_to_process_and_group_counts_once(engine: Engine, target: Path, tasks: Plan) -> None:
    # `timeout`, shells and launchers send to a process and to its group.
    plan = write_plan(target, *LONG, tasks=tasks, observe=OBSERVE)
    with engine.start(plan, process_group=0) as running:
        running.wait_for_phase("long")
        running.process.send_signal(signal.SIGTERM)
        os.killpg(running.process.pid, signal.SIGTERM)
        result = running.result()
    assert result.code == INTERRUPTED
    assert result.only_sentence == "interrupted in phase long; finished phases are kept"
    assert result.end["files_left"] == []
    assert list_tree(target) == []


@pytest.fixture
def hanging_storage(failing_calls: Callable[..., dict[str, str]], tmp_path: Path) -> dict[str, str]:
    """Environment in which a write hangs, as on a server that does not answer; FAIL_MARK is made when it begins."""
    return {**failing_calls("write", "HANG", after=80), "FAIL_MARK": str(tmp_path / "hangs")}


@TEAMS
def test_second_signal_ends_the_run_at_once(
    engine: Engine, target: Path, tasks: Plan, hanging_storage: dict[str, str]
) -> None:
    with engine.start(write_plan(target, *LONG, tasks=tasks, observe=OBSERVE), env=hanging_storage) as running:
        until = time.monotonic() + LIMIT_S
        while not Path(hanging_storage["FAIL_MARK"]).exists():
            assert time.monotonic() < until
            time.sleep(0.02)
        running.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert running.process.poll() is None
        # A person presses again because nothing happens; two signals that come together are one to the kernel.
        while running.process.poll() is None:
            assert time.monotonic() < until
            running.process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        result = running.result()
    assert result.code == INTERRUPTED
    assert "ended at once by a second signal" in result.only_sentence
    assert result.end["status"] == "lost"
    assert result.finished("first")["stopped_by"] == "volume"
    assert list_tree(target) != []
    code, report = engine.clean(target)
    assert (code, len(report)) == (0, 1)
    assert list_tree(target) == []


@TEAMS
def test_the_time_limit_of_a_plan_ends_the_run(engine: Engine, target: Path, tasks: Plan) -> None:
    result = engine.run(write_plan(target, *LONG, tasks=tasks, limits={"time": "2s"}))
    assert result.code == INTERRUPTED
    assert result.only_sentence == "the time limit of the run ended phase long; finished phases are kept"
    assert result.end["status"] == "interrupted"
    assert result.finished("long")["stopped_by"] == "time_limit"
    assert list_tree(target) == []


def test_a_time_limit_between_two_phases_names_the_next(engine: Engine, target: Path) -> None:
    plan = write_plan(
        target,
        {"id": "first", "op": "write"},
        {"id": "later", "op": "rewrite", "before": [{"kind": "sleep", "time": "600s"}]},
        limits={"time": "3s"},
    )
    result = engine.run(plan)
    assert result.code == INTERRUPTED
    assert "later" in result.only_sentence
    assert result.finished("first")["stopped_by"] == "volume"
    assert list_tree(target) == []


@pytest.mark.parametrize("victim", [1, 2])
def test_killed_worker_is_reported_and_peers_clean_up(engine: Engine, target: Path, victim: int) -> None:
    with start_long(engine, target, FORKED) as running:
        os.kill(list_workers(running)[victim], signal.SIGKILL)
        result = running.result()
    assert result.code == FAILED
    assert result.only_sentence.startswith(f"process {victim} on ")
    assert result.only_sentence.endswith(" died in phase long; finished phases are kept")
    assert result.end["status"] == "failed"
    assert result.end["exit_code"] == FAILED
    assert result.finished("first")["stopped_by"] == "volume"
    assert list_tree(target) == []


def test_when_the_root_is_killed_the_monitor_completes_the_record(engine: Engine, target: Path) -> None:
    with start_long(engine, target, FORKED) as running:
        os.kill(list_workers(running)[0], signal.SIGKILL)
        result = running.result()
    assert result.code == FAILED
    assert "process 0 was killed by signal 9" in result.only_sentence
    assert result.end["status"] == "lost"
    assert result.finished("first")["stopped_by"] == "volume"
    engine.clean(target)
    assert list_tree(target) == []


@pytest.mark.parametrize("tasks", [ONE, THREADS], ids=["one", "threads"])
def test_monitor_completes_record_when_only_process_is_killed(engine: Engine, target: Path, tasks: Plan) -> None:
    with start_long(engine, target, tasks) as running:
        running.process.kill()
        result = running.result()
    assert result.code == -signal.SIGKILL
    assert result.err == ""
    assert result.end["status"] == "lost"
    assert "sonde clean" in result.end["text"]
    assert result.finished("first")["stopped_by"] == "volume"
    code, report = engine.clean(target)
    assert (code, len(report)) == (0, 1)
    assert report[0]["files"] == tasks.get("threads", 1)
    assert list_tree(target) == []


def test_workers_end_cleanly_when_parent_is_killed(engine: Engine, target: Path) -> None:
    with start_long(engine, target, FORKED) as running:
        running.process.kill()
        result = running.result()
    assert result.end["status"] == "interrupted"
    assert result.finished("long")["stopped_by"] == "interrupt"
    assert list_tree(target) == []


def test_run_continues_after_its_monitor_is_killed(engine: Engine, target: Path) -> None:
    phases: list[Plan] = [LONG[0], {"id": "long", "op": "rewrite", "stop": {"time": "2s"}}]
    with engine.start(write_plan(target, *phases, observe=OBSERVE)) as running:
        running.wait_for_phase("long")
        (monitor,) = running.children()
        os.kill(monitor, signal.SIGKILL)
        result = running.result()
    assert result.code == 0, result.err
    assert result.end["status"] == "done"
    assert list_tree(target) == []


def test_stopped_and_continued_task_only_delays_the_run(engine: Engine, target: Path) -> None:
    phases: list[Plan] = [{"id": "w", "op": "write", "stop": {"time": "2s"}}]
    with engine.start(write_plan(target, *phases, tasks=FORKED, observe=OBSERVE)) as running:
        running.wait_for_phase("w")
        hung = list_workers(running)[1]
        os.kill(hung, signal.SIGSTOP)
        time.sleep(2.5)
        assert running.process.poll() is None, "the others must wait for a task that may come back"
        os.kill(hung, signal.SIGCONT)
        result = running.result()
    assert result.code == 0, result.err
    end = result.finished("w")
    assert end["seconds"]["elapsed"] > 2.4
    assert end["imbalance"]["slowest"]
    assert list_tree(target) == []


def test_signal_reaches_a_run_with_a_hanging_task(engine: Engine, target: Path) -> None:
    with start_long(engine, target, FORKED) as running:
        hung = list_workers(running)[2]
        os.kill(hung, signal.SIGSTOP)
        running.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert running.process.poll() is None
        os.kill(hung, signal.SIGCONT)
        result = running.result()
    assert result.code == INTERRUPTED
    assert result.end["status"] == "interrupted"
    assert list_tree(target) == []


def test_a_signal_ends_a_treatment(engine: Engine, target: Path) -> None:
    sleep: Plan = {"kind": "command", "command": "exec sleep 600", "need": "required"}
    plan = write_plan(target, {"id": "w", "op": "write"}, {"id": "r", "op": "read", "before": [sleep]})
    with engine.start(plan) as running:
        running.wait_for('"phase_end"')
        time.sleep(0.2)
        running.process.send_signal(signal.SIGINT)
        result = running.result()
    assert result.code == INTERRUPTED
    assert "interrupted" in result.only_sentence
    assert result.finished("w")["stopped_by"] == "volume"
    assert list_tree(target) == []


def test_a_closed_terminal_ends_the_run_in_good_order(engine: Engine, target: Path) -> None:
    # Nobody reads standard output any more: no SIGPIPE may kill the run before it has cleaned up.
    plan = write_plan(target, *LONG, observe=OBSERVE)
    command = [str(engine.path), "run", str(engine.plan_file(plan)), "--record", "-"]
    with Running(command, None, {}) as running:
        assert running.process.stdout is not None
        while '"progress"' not in (line := running.process.stdout.readline()):
            assert line
        running.process.stdout.close()
        time.sleep(0.3)  # so that it writes to nobody before it is told to end
        running.process.send_signal(signal.SIGHUP)
        code = running.process.wait(timeout=LIMIT_S)
    assert code == INTERRUPTED
    assert list_tree(target) == []
