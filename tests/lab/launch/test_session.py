# SPDX-License-Identifier: Apache-2.0
"""Sessions: all stages of a run, with signals, time limits and launchers that fail."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from launch_builders import PLAN, Fake, make_launch, run_session, signal_this_process

from sonde.launch import child_process as child_module
from sonde.launch import session as session_module
from sonde.launch.launchers.local import LocalLauncher
from sonde.launch.session import EngineSession
from sonde.model.errors import UserError


def read_commands(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize(
    ("engine_end", "expected_exit_code", "expected_text"),
    [
        ("ok", 0, ""),
        ("enospc", 1, "no space left on device"),
        ("mismatch", 4, "not what was written"),
        ("refuse", 2, "not what this fake engine likes"),
        ("environment", 3, "/fake cannot be written: permission denied."),
        ("silent", 3, "exit code 3"),
        ("crash", 1, "SIGKILL"),
        ("torn", 1, "SIGKILL"),
        ("no-end", 1, "without completing its record"),
    ],
)
def test_engine_end_becomes_exit_code_and_one_sentence(
    fake_engine: Fake, tmp_path: Path, engine_end: str, expected_exit_code: int, expected_text: str
) -> None:
    fake_engine(engine_end)
    outcome, _ = run_session(make_launch(tmp_path))
    assert outcome.exit_code == expected_exit_code
    assert expected_text in outcome.text
    assert "\n" not in outcome.text
    assert bool(outcome.text) == (expected_exit_code != 0)


def test_record_lines_arrive_while_the_engine_runs(fake_engine: Fake, tmp_path: Path) -> None:
    fake_engine(seconds="600")
    line_types: list[str] = []

    def observe(kind: str, line: object) -> None:
        line_types.append(kind)
        if line_types.count("progress") == 3:
            signal_this_process(signal.SIGINT)  # without following, the lines would arrive after ten minutes

    assert EngineSession(make_launch(tmp_path), observe).run_all_stages().exit_code == 5
    assert line_types.count("progress") >= 3


def test_stages_are_separate_launches_with_one_record(fake_engine: Fake, tmp_path: Path) -> None:
    plan = {**PLAN, "phases": [PLAN["phases"][0], {**PLAN["phases"][1], "process": "separate"}]}
    log = fake_engine()
    outcome, line_types = run_session(make_launch(tmp_path, stages=2, plan=plan))
    assert outcome.exit_code == 0
    assert [arguments[-2:] for arguments in read_commands(log)] == [["--stage", "0"], ["--stage", "1"]]
    assert line_types.count("phase_end") == 2
    kinds = [json.loads(line)["type"] for line in (tmp_path / "record.ndjson").read_text().splitlines()]
    assert kinds.count("run") == 1
    assert kinds.count("end") == 1
    assert kinds.count("phase_end") == 2
    assert not list(tmp_path.glob("stage-*"))


def test_failed_stage_is_the_last(fake_engine: Fake, tmp_path: Path) -> None:
    plan = {**PLAN, "phases": [{"id": f"w{i}", "op": "write", "process": "separate"} for i in range(3)]}
    log = fake_engine("enospc")
    outcome, _ = run_session(make_launch(tmp_path, stages=3, plan=plan))
    assert outcome.exit_code == 1
    assert len(read_commands(log)) == 2
    assert "no space left" in outcome.text


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signal_ends_the_run_in_good_order(fake_engine: Fake, tmp_path: Path, signal_number: int) -> None:
    fake_engine(seconds="20")
    before = signal.getsignal(signal.SIGINT)
    outcome, line_types = run_session(make_launch(tmp_path), lambda: signal_this_process(signal_number))
    assert outcome.exit_code == 5
    assert outcome.record.status == "interrupted"
    assert line_types[-1] == "end"
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signal_during_engine_start_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signal_number: int
) -> None:
    """The signal may arrive before the engine has a handler: the engine dies, which counts as an interruption."""
    engine = tmp_path / "sonde-engine"
    engine.write_text("#!/bin/sh\nexec sleep 300\n")
    engine.chmod(0o755)
    monkeypatch.setenv("SONDE_ENGINE", str(engine))
    began = time.monotonic()
    outcome = EngineSession(
        make_launch(tmp_path / "run"), lambda kind, line: None, on_start=lambda pid: signal_this_process(signal_number)
    ).run_all_stages()
    assert outcome.exit_code == 5
    assert time.monotonic() - began < 300


def test_second_signal_kills_after_grace_period(
    fake_engine: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "TERMINATE_GRACE_S", 0.3)
    fake_engine("deaf", seconds="30")

    def twice() -> None:
        signal_this_process(signal.SIGINT)
        threading.Timer(0.4, signal_this_process, [signal.SIGINT]).start()

    outcome, _ = run_session(make_launch(tmp_path), twice)
    assert outcome.exit_code == 1
    assert "SIGKILL" in outcome.text


def test_single_signal_never_kills(fake_engine: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "TERMINATE_GRACE_S", 0.1)
    fake_engine("deaf", seconds="1.2")
    outcome, _ = run_session(make_launch(tmp_path), lambda: signal_this_process(signal.SIGINT))
    assert outcome.exit_code == 0


class _HangingLauncher(LocalLauncher):
    """Does not return after the engine has ended, like a launcher that has lost a node."""

    def make_command_line(self, engine: Sequence[str]) -> list[str]:
        return ["/bin/sh", "-c", '"$@"; exec sleep 100', "sh", *super().make_command_line(engine)]


def test_launcher_hanging_after_failed_run_is_ended(
    fake_engine: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "LAUNCHER_GRACE_S", 0.2)
    fake_engine("enospc")
    outcome, _ = run_session(make_launch(tmp_path, _HangingLauncher()))
    assert outcome.exit_code == 1
    assert "no space left on device" in outcome.text


def test_phase_beyond_the_time_limit_is_ended(
    fake_engine: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like a call to storage that does not return: the engine cannot end the phase itself."""
    monkeypatch.setenv("SONDE_STORAGE_PATIENCE", "0.1")
    fake_engine("deaf", seconds="30")
    outcome, _ = run_session(replace(make_launch(tmp_path), time_limit_s=0.1))
    assert outcome.exit_code == 5
    assert outcome.text == (
        "Phase write waited for storage that did not answer, and was ended; finished phases are stored, and"
        " `sonde clean` removes the remaining files when the storage answers."
    )


def test_run_ending_after_its_time_limit_is_not_stuck(
    fake_engine: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(seconds="0.3")
    outcome, _ = run_session(replace(make_launch(tmp_path), time_limit_s=0.0))
    assert (outcome.exit_code, outcome.text) == (0, "")
    monkeypatch.setenv("SONDE_STORAGE_PATIENCE", "long")
    with pytest.raises(UserError, match='SONDE_STORAGE_PATIENCE is "long", which is no number of seconds'):
        run_session(replace(make_launch(tmp_path), time_limit_s=1.0))


def test_unkillable_engine_is_abandoned(fake_engine: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands for a process that waits in the kernel: here kill() does nothing."""
    monkeypatch.setattr(child_module, "MAX_WAIT_AFTER_KILL_S", 0.2)
    monkeypatch.setattr(child_module.ChildProcess, "kill_group", lambda self: None)
    monkeypatch.setenv("SONDE_STORAGE_PATIENCE", "0.1")
    fake_engine("deaf", seconds="30")
    pids: list[int] = []
    outcome = EngineSession(
        replace(make_launch(tmp_path), time_limit_s=0.1), lambda kind, line: None, pids.append
    ).run_all_stages()
    os.kill(pids[0], signal.SIGKILL)
    os.waitpid(pids[0], 0)
    assert outcome.exit_code == 5
    assert outcome.text.endswith(
        f"when the storage answers; process {pids[0]} of the engine cannot be killed before that."
    )


def test_waiting_takes_almost_no_cpu_time(fake_engine: Fake, tmp_path: Path) -> None:
    """The lab uses the same cores as the engine."""
    fake_engine(seconds="1")
    begin, before = time.monotonic(), time.process_time()
    run_session(make_launch(tmp_path))
    assert time.process_time() - before < 0.12 * (time.monotonic() - begin)
