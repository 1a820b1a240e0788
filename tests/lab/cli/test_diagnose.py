# SPDX-License-Identifier: Apache-2.0
"""Arguments and output of `sonde diagnose` on a local file system, which needs no simulation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from diagnosis_machine import write_small_system

from sonde.cli.main import main
from sonde.diagnose.diagnosis import DiagnosisStopRule
from sonde.diagnose.diagnosis_state import DiagnosisState, write_diagnosis_state
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.stated_results import parse_stated_result

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


@pytest.fixture
def healthy_case(tmp_path: Path) -> Path:
    """A diagnosis of a healthy machine with as many experiments as are ever done."""
    state, experiments = (
        DiagnosisState(directory=str(tmp_path)),
        ("streamed-file", "device-transfers", "random-requests"),
    )
    for number in range(DiagnosisStopRule().max_experiments):
        experiment = find_diagnosis_experiment(experiments[number % len(experiments)])
        state = state.with_result(parse_stated_result(experiment, ["write=-3%", "read=+2%"]), "hand")
    write_diagnosis_state(tmp_path / "case.json", state)
    return tmp_path / "case.json"


def test_final_answer_is_the_same_in_all_outputs(diagnose: Diagnose, healthy_case: Path) -> None:
    show_text, next_text = diagnose("show", healthy_case.name)[1], diagnose("next", healthy_case.name)[1]
    document = json.loads(diagnose("show", healthy_case.name, "--json")[1])
    assert diagnose("report", healthy_case.name, "--out", "case.html")[0] == 0
    page = (healthy_case.parent / "case.html").read_text(encoding="utf-8")
    assert show_text == next_text
    assert "No experiment follows: 12 experiments were done." in document["sentences"]
    assert (document["status"], document["next"]) == ("several_remain", None)
    assert document["sentences"][0].startswith("Nothing is wrong in what was tested (")
    for sentence in document["sentences"]:
        assert sentence in " ".join(show_text.split())
        assert sentence.replace("<", "&lt;").replace(">", "&gt;") in page


def test_open_answer_ends_with_the_next_experiment(diagnose: Diagnose, case: Path) -> None:
    last_line = diagnose("show", case.name)[1].splitlines()[-1]
    assert last_line.startswith("Next: One task writes a file, makes it durable, ")
    assert last_line.endswith(" (streamed-file), for a cost of 2 min.")
    assert json.loads(diagnose("show", case.name, "--json")[1])["next"] == "streamed-file"


def test_explanation_counts_only_experiments_before_a_fix(diagnose: Diagnose, case: Path) -> None:
    assert diagnose("answer", case.name, "streamed-file", "write=-2%", "read=-80%")[0] == 0
    assert diagnose("confirm", case.name, "write=+1%", "read=-2%")[0] == 0
    explanation = ("show", case.name, "--explain", "no-read-ahead")
    document = json.loads(diagnose(*explanation, "--json")[1])
    assert diagnose(*explanation)[1].splitlines()[0] == document["sentence"]
    assert document["sentence"].endswith("% after 1 experiment.")
    assert round(100 * document["probability"]) == int(document["sentence"].split(": ")[1].split(" %")[0])
