# SPDX-License-Identifier: Apache-2.0
"""Evidence from two stored runs without an experiment."""

from __future__ import annotations

from dataclasses import replace
from math import log
from pathlib import Path

import pytest
from target_runs import write_run

from sonde.diagnose.archive_evidence import EnvironmentEvidence, compare_run_environments
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.diagnosis_state import DiagnosisState, read_diagnosis_state, write_diagnosis_state


def test_differing_fact_speaks_for_its_causes(diagnosis_model: DiagnosisModel) -> None:
    evidence = EnvironmentEvidence(changed=("kernel release",), equal=("network mtu", "os"))
    by_id = {item.id: evidence.compute_log_factor(item) for item in diagnosis_model.hypotheses}
    assert by_id["client-kernel"] == pytest.approx(log(4))
    assert by_id["network-wide"] == pytest.approx(-log(4))
    assert by_id["forwarders" if "forwarders" in by_id else "journal-device"] == 0  # nothing recorded
    assert by_id["nothing"] == by_id["slow-target:t0-t7"] == 0
    before = {
        item.id: value
        for item, value in zip(
            diagnosis_model.hypotheses, diagnosis_model.prior_probabilities.hypothesis_probabilities, strict=True
        )
    }
    after_model = replace(diagnosis_model, environment=evidence)
    after = {
        item.id: value
        for item, value in zip(
            diagnosis_model.hypotheses, after_model.prior_probabilities.hypothesis_probabilities, strict=True
        )
    }
    ratio = after["client-kernel"] / after["nothing"] / (before["client-kernel"] / before["nothing"])
    assert ratio == pytest.approx(4)
    assert any("journal-device" in text for text in evidence.describe(diagnosis_model.hypotheses))


def test_facts_of_a_single_side_are_no_evidence(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"kernel": "6.1", "memory": 3}, {})
    reference = write_run(tmp_path / "reference", {"kernel": "5.4"}, {})
    evidence = compare_run_environments(run, reference)
    assert evidence.changed == ("kernel",)
    assert "memory" not in evidence.equal
    assert "host" in evidence.equal


def test_environment_is_stored_with_the_diagnosis(tmp_path: Path) -> None:
    state = DiagnosisState("edison", environment=EnvironmentEvidence(("kernel",), ("os",)))
    write_diagnosis_state(tmp_path / "case.json", state)
    assert read_diagnosis_state(tmp_path / "case.json") == state
