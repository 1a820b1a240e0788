# SPDX-License-Identifier: Apache-2.0
"""Stored runs as results: names of targets in records, and rates of targets that are entered twice."""

from __future__ import annotations

from math import log
from pathlib import Path

import pytest
from target_runs import write_run

from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.diagnose.diagnosis_state import DiagnosisState
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.simulation import Simulator
from sonde.diagnose.stored_runs import measure_relative_target_rates

# Latencies in nanoseconds, by the names that Lustre has for the targets t0 to t7.
USUAL = {f"OST{index:04x}": 1_000_000 for index in range(8)}
SLOW = {**USUAL, "OST0003": 5_000_000}


@pytest.fixture
def session(diagnosis_model: DiagnosisModel, simulator: Simulator) -> DiagnosisSession:
    return DiagnosisSession(DiagnosisState("small"), diagnosis_model, simulator)


def test_slow_target_of_any_direct_run_is_evidence(diagnosis_model: DiagnosisModel, tmp_path: Path) -> None:
    usual = {f"t{index}": 1_000_000 for index in range(8)}
    reference = write_run(tmp_path / "reference", {}, usual)
    run = write_run(tmp_path / "run", {}, {**usual, "t3": 5_000_000})
    result = measure_relative_target_rates(run, reference, diagnosis_model.machine)
    assert result is not None
    assert result.runs[0].vectors["read", "targets"]["t3"] == pytest.approx(-log(5))
    index = next(number for number, item in enumerate(diagnosis_model.hypotheses) if item.id == "slow-target:t0-t7")
    posterior = diagnosis_model.compute_posterior([result])
    assert posterior.compute_part_probabilities(index)["t3"] > 0.95
    assert (
        posterior.hypothesis_probabilities[index]
        > 5 * diagnosis_model.prior_probabilities.hypothesis_probabilities[index]
    )


def test_targets_of_another_machine_or_cached_runs_are_no_evidence(
    diagnosis_model: DiagnosisModel, tmp_path: Path
) -> None:
    usual = {f"t{index}": 1_000_000 for index in range(8)}
    reference = write_run(tmp_path / "reference", {}, usual)
    other = write_run(tmp_path / "other", {}, {f"x{index}": 1_000_000 for index in range(8)})
    buffered = write_run(tmp_path / "buffered", {}, usual, direct=False)
    assert measure_relative_target_rates(other, other, diagnosis_model.machine) is None
    assert measure_relative_target_rates(buffered, reference, diagnosis_model.machine) is None


def test_slow_target_of_lustre_has_the_id_of_the_system_file(session: DiagnosisSession, tmp_path: Path) -> None:
    reference = write_run(tmp_path / "reference", {}, USUAL, phase="write", op="write")
    run = write_run(tmp_path / "run", {}, SLOW, phase="write", op="write", rate=6e7)
    session.add_stored_run(find_diagnosis_experiment("every-target"), run, [reference])
    vectors = session.state.experiment_results[0].runs[0].vectors
    assert vectors["write", "targets"]["t3"] == pytest.approx(-log(5))
    candidate = session.find_candidate("slow-target:t0-t7")
    assert (candidate.part, candidate.part_probability > 0.95) == ("t3", True)


def test_rates_of_targets_in_any_run_have_ids(session: DiagnosisSession, tmp_path: Path) -> None:
    reference = write_run(tmp_path / "reference", {}, USUAL)
    run = write_run(tmp_path / "run", {}, SLOW)
    assert "Rates of targets: slowest target in read: t3" in session.add_archive_runs(run, reference)[-1]


def test_rates_of_targets_of_a_run_count_once(session: DiagnosisSession, simulator: Simulator, tmp_path: Path) -> None:
    reference = write_run(tmp_path / "reference", {}, USUAL, phase="write", op="write")
    run = write_run(tmp_path / "run", {}, SLOW, phase="write", op="write")
    experiment = find_diagnosis_experiment("every-target")
    session.add_stored_run(experiment, run, [reference])
    results = session.state.results
    assert (
        session.add_archive_runs(run, reference)[-1]
        == "The rates of targets of run were entered already and count once."
    )
    assert session.state.results == results
    later = DiagnosisSession(DiagnosisState("small"), session.model, simulator)
    later.add_archive_runs(run, reference)
    later.add_stored_run(experiment, run, [reference])
    assert later.state.results == results
