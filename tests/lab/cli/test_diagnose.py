# SPDX-License-Identifier: Apache-2.0
"""Arguments and output of `sonde diagnose` on a local file system, which needs no simulation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from diagnosis_machine import write_small_system

from sonde.cli.main import main

Diagnose = Callable[..., tuple[int, str, str]]


@pytest.fixture
def diagnose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Diagnose:
    """Runs `sonde diagnose` with its archive in a folder of the test; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SONDE_ARCHIVE", str(tmp_path / "archive"))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["diagnose", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, " ".join(captured.err.split())

    return run


@pytest.fixture
def case(diagnose: Diagnose, tmp_path: Path) -> Path:
    assert diagnose("start", "case.json", "--directory", ".")[0] == 0
    return tmp_path / "case.json"


@pytest.mark.parametrize(
    "arguments",
    [("report", "case.json", "--out"), ("bundle", "case.json", "--out"), ("next", "case.json", "--plan")],
    ids=["report", "bundle", "plan"],
)
@pytest.mark.parametrize("output", ["case.json", "./case.json"])
def test_output_that_is_the_diagnosis_is_refused(
    diagnose: Diagnose, case: Path, arguments: tuple[str, ...], output: str
) -> None:
    (case.parent / "archive").mkdir()
    before = case.read_bytes()
    code, _, errors = diagnose(*arguments, output)
    assert (code, case.read_bytes()) == (2, before)
    assert "case.json would replace the diagnosis itself; name another file." in errors


@pytest.mark.parametrize("command", [("answer", "case.json", "streamed-file"), ("confirm", "case.json")])
def test_phase_with_two_changes_is_refused(diagnose: Diagnose, case: Path, command: tuple[str, ...]) -> None:
    before = case.read_bytes()
    code, _, errors = diagnose(*command, "write=-4%", "read=-2%", "write=-90%")
    assert (code, case.read_bytes()) == (2, before)
    assert errors == 'sonde: "write" is given 2 times: write=-4%, write=-90%; give it once.'


@pytest.mark.parametrize(
    ("arguments", "expected_problem"),
    [
        (("--complaint", "api=posix", "--complaint", "api=mpiio"), '"api" is given 2 times'),
        (("--on-model", "--fault", "slow-target t5 4x", "--cause", "checksums"), "Give either --fault or --cause"),
        (("--on-model", "--fault", "slow-taget t5 4x"), "there is none of that name"),
        (("--on-model", "--fault", "slow-target t500 4x"), 'has no target "t500"'),
    ],
    ids=["two complaints", "fault and cause", "fault", "part"],
)
def test_wrong_start_of_a_diagnosis_is_refused(
    diagnose: Diagnose, tmp_path: Path, arguments: tuple[str, ...], expected_problem: str
) -> None:
    code, _, errors = diagnose("start", "case.json", "--system", str(write_small_system(tmp_path)), *arguments)
    assert code == 2
    assert expected_problem in errors
    assert not (tmp_path / "case.json").exists()


def test_plan_that_cannot_be_written_is_one_sentence(diagnose: Diagnose, case: Path) -> None:
    code, _, errors = diagnose("next", case.name, "--plan", "/proc/plan.json")
    assert code == 3
    assert errors == "sonde: /proc/plan.json cannot be written: No such file or directory."
