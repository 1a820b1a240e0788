# SPDX-License-Identifier: Apache-2.0
"""The verb run: its output, its exit code, its tasks and its target."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fake = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("short_report")


def test_run_prints_progress_on_stderr_and_results_on_stdout(quick_result: Any) -> None:
    assert "write: 500 MB/s" in quick_result.err
    assert "500 MB/s" in quick_result.out
    assert "Report" in quick_result.out
    assert "\x1b" not in quick_result.out + quick_result.err, "no terminal, no colors"


def test_json_option_prints_only_json(sonde: Any, fake_engine: Fake, target: Path, archive: Path) -> None:
    for arguments in (
        ["run", "quick", "--on", target],
        ["check", target],
        ["list"],
        ["show", "last"],
        ["report", "last"],
        ["plan", "quick", "--on", target],
        ["doctor", target],
    ):
        result = sonde(*arguments, "--json")
        assert result.code == 0, result.err
        assert result.json


def test_json_of_failed_run_is_valid(sonde: Any, fake_engine: Fake, target: Path) -> None:
    fake_engine("enospc")
    result = sonde("run", "quick", "--on", target, "--json")
    assert result.code == 1
    assert result.json["status"] == "failed"
    assert result.sentences == ["sonde: read: no space left on device."] or "no space left" in result.sentences[0]


def test_quiet_prints_only_run_name(sonde: Any, fake_engine: Fake, target: Path) -> None:
    result = sonde("run", "quick", "--on", target, "--quiet")
    assert (result.code, result.err) == (0, "")
    assert [run["id"] for run in sonde("list", "--json").json] == [result.out.strip()]


@pytest.mark.parametrize(
    ("failure", "expected_exit_code", "expected_text"),
    [
        ("enospc", 1, "no space left"),
        ("crash", 1, "SIGKILL"),
        ("no-end", 1, "without completing"),
        ("mismatch", 4, "not what was written"),
        ("environment", 3, "permission denied"),
        ("silent", 3, "exit code 3"),
    ],
)
def test_failure_prints_one_sentence_and_sets_exit_code(
    sonde: Any, fake_engine: Fake, target: Path, failure: str, expected_exit_code: int, expected_text: str
) -> None:
    fake_engine(failure)
    result = sonde("run", "quick", "--on", target)
    assert result.code == expected_exit_code
    assert len(result.sentences) == 1
    assert expected_text in result.sentences[0]
    assert "Traceback" not in result.err


def test_failed_report_does_not_fail_run(
    sonde: Any, fake_engine: Fake, target: Path, monkeypatch: pytest.MonkeyPatch, archive: Path
) -> None:
    from sonde.model.errors import ReportError

    def fail_report(runs: Any, out: Path, title: str | None = None, before: Any = (), system: Any = None) -> Path:
        raise ReportError("no ink")

    monkeypatch.setattr("sonde.report.write_report", fail_report)
    result = sonde("run", "quick", "--on", target)
    assert result.code == 0
    assert result.sentences == ["sonde: no report was written: no ink"]
    assert sonde("report").code == 2


def test_tasks_are_divided_over_processes(sonde: Any, fake_engine: Fake, target: Path) -> None:
    def tasks(*arguments: str) -> dict[str, int]:
        result = sonde("plan", "quick", "--on", target, "--json", *arguments)
        tasks = result.json["tasks"]
        return {name: tasks[name] for name in ("processes", "threads")}

    assert tasks() == {"processes": 1, "threads": 2}
    assert tasks("--tasks", "8") == {"processes": 1, "threads": 8}
    assert tasks("--tasks", "8", "--processes", "4") == {"processes": 4, "threads": 2}
    assert tasks("--processes", "3") == {"processes": 3, "threads": 2}


def test_plan_under_launcher_has_no_processes(
    sonde: Any, fake_engine: Fake, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text(
        '#!/bin/sh\nwhile [ "$1" != -n ]; do shift; done; export FAKE_PROCESSES=$2; shift 2; exec "$@"\n'
    )
    mpiexec.chmod(0o755)
    monkeypatch.setenv("SONDE_MPIEXEC", str(mpiexec))
    result = sonde("run", "quick", "--on", target, "--launcher", "mpiexec", "--tasks", "6", "--json")
    assert result.code == 0, result.err
    assert result.json["tasks"] == 6
    plan = json.loads((Path(result.json["folder"]) / "plan.json").read_text())
    assert plan["tasks"] == {"threads": 1}
    result = sonde(
        "run", "quick", "--on", target, "--launcher", "mpiexec", "--tasks", "6", "--processes", "3", "--json"
    )
    assert (result.json["tasks"], result.json["threads"]) == (6, 2)


def test_target_is_stored_as_absolute_path(
    sonde: Any, fake_engine: Fake, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(target)
    result = sonde("run", "quick", "--on", ".", "--json")
    assert result.json["target"] == str(target)


def test_run_without_engine_is_rejected(
    sonde: Any, target: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SONDE_ENGINE", "/no/such/engine")
    for arguments in (["run", "quick", "--on", target], ["check", target], ["clean", target]):
        result = sonde(*arguments)
        assert result.code == 3
        assert "SONDE_ENGINE" in result.sentences[0]
    assert sonde("doctor").code == 3
