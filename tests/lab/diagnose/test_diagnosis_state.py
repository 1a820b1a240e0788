# SPDX-License-Identifier: Apache-2.0
"""The state of a diagnosis: stored completely, and whole after a kill at any moment."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from sonde.cli.main import main
from sonde.diagnose.diagnosis_state import (
    DiagnosisState,
    check_suspects,
    make_truth,
    parse_complaint,
    read_diagnosis_state,
    write_diagnosis_state,
)
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import RunMeasurement
from sonde.model.errors import UserError

RESULT = ExperimentResult(
    "every-target", (RunMeasurement({"write": -0.5}, {("write", "targets"): {"t0": -1.0, "t1": 0.0}}),), 0.05
)


def write_states_forever(path: Path) -> None:
    """Simulates a diagnosis: adds results one by one and replaces the state file each time."""
    state = DiagnosisState("edison", "fs3")
    number = 0
    while True:
        state = state.with_result(ExperimentResult("names", (RunMeasurement({"create": float(number)}),)), "hand")
        write_diagnosis_state(path, state)
        number += 1


@pytest.mark.parametrize(
    ("fault", "expected_problem"),
    [
        ("slow-tarjet 3 10x", "there is none of that name"),
        ("slow-target 999 4x", 'has no target "999"'),
        ("slow-target 3 0.1x", '"0.1x" is no factor'),
        ("cache-limit 1GiB", "would change nothing"),
    ],
)
def test_wrong_planted_fault_is_refused_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str, expected_problem: str
) -> None:
    case = tmp_path / "case.json"
    arguments = ["--system", "edison", "--mount", "fs3", "--targets", "8", "--on-model", "--fault"]
    assert main(["diagnose", "start", str(case), *arguments, fault]) == 2
    assert expected_problem in " ".join(capsys.readouterr().err.split())
    assert not case.exists()


def test_state_is_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    truth = make_truth(["slow-target 3 10x"], "mount-options", 0.25, 9)
    state = DiagnosisState("edison", "fs3", 32, {"api": "mpiio"}, ("slow-target",), 4, truth=truth).with_result(
        RESULT, "hand"
    )
    write_diagnosis_state(tmp_path / "case.json", state.with_result(RESULT, "model", is_after_fix=True))
    stored = read_diagnosis_state(tmp_path / "case.json")
    assert stored == state.with_result(RESULT, "model", is_after_fix=True)
    assert stored.experiment_results == [RESULT]  # what was measured after a fix is no evidence about the fault


def test_killed_writer_leaves_a_complete_state(tmp_path: Path) -> None:
    generator = random.Random(3)
    for trial in range(20):
        path = tmp_path / f"case-{trial}.json"
        writer = os.fork()
        if writer == 0:
            try:
                write_states_forever(path)
            finally:
                os._exit(1)
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(generator.uniform(0, 0.02))
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        results = read_diagnosis_state(path).experiment_results
        # Every result up to the last one is there, in order.
        assert [result.runs[0].rates["create"] for result in results] == list(range(len(results)))
        assert results


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"schema": "sonde-diagnosis/1"}', '{"schema": "sonde-diagnosis/1", "truth": 3}']
)
def test_damaged_state_is_refused_in_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "case.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"is not a diagnosis: .*; name the file"):
        read_diagnosis_state(tmp_path / "case.json")


def test_unknown_experiment_in_a_state_is_refused(tmp_path: Path) -> None:
    document = DiagnosisState("edison").with_result(RESULT, "hand").to_json()
    document["results"][0]["experiment"] = "no-such"
    (tmp_path / "case.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(UserError, match='no diagnosis experiment "no-such"'):
        read_diagnosis_state(tmp_path / "case.json")


def test_missing_state_is_refused_with_the_first_command(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="begin one with `sonde diagnose start"):
        read_diagnosis_state(tmp_path / "none.json")


def test_complaint_with_an_unknown_name_is_refused() -> None:
    assert parse_complaint(("api=mpiio", "op=read")) == {"api": "mpiio", "op": "read"}
    with pytest.raises(UserError, match=r"Did you mean .?api|api"):
        parse_complaint(("apy=mpiio",))


def test_unknown_suspect_error_lists_the_valid_suspects() -> None:
    with pytest.raises(UserError, match='no fault "slow-targets"; there are slow-target'):
        check_suspects(["slow-targets"])


def test_unknown_cause_is_rejected() -> None:
    with pytest.raises(UserError, match='no cause "mount-option"'):
        make_truth([], "mount-option", 0.5, 1)


@pytest.mark.parametrize(
    ("result_changes", "noise_changes", "expected_problem"),
    [
        ({"reference_sd": -1.0}, {}, "result 1 has an error"),
        ({"reference_sd": float("nan")}, {}, "result 1 has an error"),
        ({"runs": []}, {}, "result 1 has no run"),
        ({"runs": [{"rates": {"create": float("nan")}}]}, {}, "result 1 has a change"),
        ({"runs": [{"rates": {"create": 1e308}}]}, {}, "result 1 has a change"),
        ({}, {"run_sd": -1.0}, "a standard deviation of its noise"),
        ({}, {"busy_share": 1.0}, "busy_share of its noise"),
    ],
)
def test_state_with_impossible_numbers_is_refused(
    tmp_path: Path, result_changes: dict[str, Any], noise_changes: dict[str, float], expected_problem: str
) -> None:
    document = DiagnosisState("edison").with_result(RESULT, "hand").to_json()
    document["results"][0] |= result_changes
    document["noise"] |= noise_changes
    (tmp_path / "case.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(UserError, match=f"is not a diagnosis: {expected_problem}"):
        read_diagnosis_state(tmp_path / "case.json")
