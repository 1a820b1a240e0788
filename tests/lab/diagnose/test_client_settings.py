# SPDX-License-Identifier: Apache-2.0
"""Settings of clients as evidence: predicted, read on the model, entered by hand, and recorded by two runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonde.diagnose.archive_evidence import EnvironmentEvidence, compare_run_environments
from sonde.diagnose.client_settings import (
    CHANGED_AS_CAUSE,
    CHANGED_BY_CHANCE,
    SETTINGS_EXPERIMENT,
    find_recorded_settings,
)
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.diagnose.diagnosis_state import DiagnosisState
from sonde.diagnose.diagnosis_text import describe_measured_changes
from sonde.diagnose.experiment_plan import scale_experiment_to_machine
from sonde.diagnose.hypotheses import FAULT_GRIDS, Hypothesis
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.predictions import predict_messages
from sonde.diagnose.simulation import Simulator
from sonde.diagnose.stated_results import parse_stated_result
from sonde.model.errors import UserError

EXPERIMENT = find_diagnosis_experiment(SETTINGS_EXPERIMENT)
SETTINGS = {fault.split()[1] for fault in FAULT_GRIDS if fault.startswith("tunable ")}


def test_each_tunable_of_the_model_is_a_setting() -> None:
    assert {phase.setting for phase in EXPERIMENT.phases} == SETTINGS
    assert all(phase.id == phase.setting for phase in EXPERIMENT.phases)


@pytest.mark.parametrize("setting", sorted(SETTINGS))
def test_only_the_changed_setting_is_predicted(diagnosis_model: DiagnosisModel, setting: str) -> None:
    hypothesis = Hypothesis(f"tunable-{setting}", "fault", "", "settings", fault=f"tunable {setting}")
    predicted = predict_messages(EXPERIMENT, diagnosis_model.machine, hypothesis).messages
    changed = {name for name, probability in predicted.items() if probability[0, 0] == pytest.approx(CHANGED_AS_CAUSE)}
    assert changed == {setting}
    assert sorted({round(float(item[0, 0]), 6) for item in predicted.values()}) == [CHANGED_BY_CHANCE, CHANGED_AS_CAUSE]


def test_settings_of_the_modeled_machine_show_its_faults(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    experiment = scale_experiment_to_machine(EXPERIMENT, diagnosis_model.machine)
    counts = dict.fromkeys(SETTINGS, 0)
    for seed in range(200):
        truth = ModeledTruth(("tunable dirty_limit 4194304", "slow-target t2 4"), seed=seed)
        for name, is_changed in (
            truth.run_experiment(experiment, 0, simulator, diagnosis_model.noise).runs[0].messages.items()
        ):
            counts[name] += is_changed
    assert 188 <= counts.pop("dirty_limit") < 200
    assert all(0 < count < 18 for count in counts.values())


def test_settings_entered_by_hand_are_described_as_changed() -> None:
    result = parse_stated_result(EXPERIMENT, ["read_ahead=yes", "rpc_size=no"])
    assert result.runs[0].messages == {"read_ahead": True, "rpc_size": False}
    assert describe_measured_changes(result) == "read_ahead changed: yes, rpc_size changed: no"
    with pytest.raises(UserError, match='"rpc_size=64k" does not say whether it changed; write rpc_size=yes or'):
        parse_stated_result(EXPERIMENT, ["rpc_size=64k"])


def write_runs_of_two_times(folder: Path) -> None:
    """Writes records of a slow and a fast run, which differ in requests in flight and read-ahead of a file."""
    for name, in_flight in (("slow", "1"), ("fast", "8")):
        lustre = {
            "osc": {"max_pages_per_rpc": "1024", "max_rpcs_in_flight": in_flight},
            "llite": {"max_read_ahead_mb": "64", "max_read_ahead_per_file_mb": in_flight},
        }
        (folder / name).mkdir()
        lines = [{"type": "run"}, {"type": "node", "node": 0, "file_system": {"lustre": lustre}}]
        (folder / name / "record.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")


def test_recorded_facts_answer_for_their_settings(tmp_path: Path) -> None:
    write_runs_of_two_times(tmp_path)
    environment = compare_run_environments(tmp_path / "slow", tmp_path / "fast")
    assert find_recorded_settings(environment) == {"rpc_size": False, "rpcs_in_flight": True, "read_ahead": True}
    assert find_recorded_settings(EnvironmentEvidence(changed=("mdc max rpcs in flight",))) == {}


def test_settings_of_stored_runs_are_entered_once(
    diagnosis_model: DiagnosisModel, simulator: Simulator, tmp_path: Path
) -> None:
    write_runs_of_two_times(tmp_path)
    session = DiagnosisSession(DiagnosisState("small"), diagnosis_model, simulator)
    for _ in range(2):
        sentences = session.add_archive_runs(tmp_path / "slow", tmp_path / "fast")
        assert [result.experiment for result in session.state.experiment_results] == [SETTINGS_EXPERIMENT]
    assert not any("settings" in sentence for sentence in sentences)
    session = DiagnosisSession(DiagnosisState("small"), diagnosis_model, simulator)
    assert "Of the settings rpc_size, rpcs_in_flight, read_ahead changed: rpcs_in_flight, read_ahead." in (
        session.add_archive_runs(tmp_path / "slow", tmp_path / "fast")
    )
