# SPDX-License-Identifier: Apache-2.0
"""Evidence from two stored runs without an experiment."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest

from sonde.diagnose.archive_evidence import EnvironmentEvidence, compare_run_environments, measure_relative_target_rates
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.diagnosis_state import DiagnosisState, read_diagnosis_state, write_diagnosis_state


def write_run(folder: Path, node: dict[str, Any], latencies: dict[str, int], direct: bool = True) -> Path:
    """A run with one read phase, and the latency of requests at each target in nanoseconds."""
    folder.mkdir()
    columns = ["target", "ops", "single_ops", "single_ns", "p50_ns"]
    lines: list[dict[str, Any]] = [
        {"type": "run", "schema": "sonde-record/2"},
        {"type": "node", "node": 0, "host": "n1", **node},
        {"type": "phase_begin", "phase": "any", "index": 0, "op": "read", "backend": "posix", "direct": direct},
        {
            "type": "targets",
            "phase": "any",
            "columns": columns,
            "rows": [[name, 10, 10, 10 * value, value] for name, value in latencies.items()],
        },
        {"type": "phase_end", "phase": "any", "rates": {"total": {"bytes_per_s": 1e8, "ops_per_s": 100.0}}},
    ]
    (folder / "record.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_differing_fact_speaks_for_its_causes(model: DiagnosisModel) -> None:
    evidence = EnvironmentEvidence(changed=("kernel release",), equal=("network mtu", "os"))
    by_id = {item.id: evidence.compute_log_factor(item) for item in model.hypotheses}
    assert by_id["client-kernel"] == pytest.approx(log(4))
    assert by_id["network-wide"] == pytest.approx(-log(4))
    assert by_id["forwarders" if "forwarders" in by_id else "journal-device"] == 0  # nothing recorded
    assert by_id["nothing"] == by_id["slow-target:t0-t7"] == 0
    before = {
        item.id: value
        for item, value in zip(model.hypotheses, model.prior_probabilities.hypothesis_probabilities, strict=True)
    }
    after_model = replace(model, environment=evidence)
    after = {
        item.id: value
        for item, value in zip(model.hypotheses, after_model.prior_probabilities.hypothesis_probabilities, strict=True)
    }
    ratio = after["client-kernel"] / after["nothing"] / (before["client-kernel"] / before["nothing"])
    assert ratio == pytest.approx(4)
    assert any("journal-device" in text for text in evidence.describe(model.hypotheses))


def test_facts_of_a_single_side_are_no_evidence(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"kernel": "6.1", "memory": 3}, {})
    reference = write_run(tmp_path / "reference", {"kernel": "5.4"}, {})
    evidence = compare_run_environments(run, reference)
    assert evidence.changed == ("kernel",)
    assert "memory" not in evidence.equal
    assert "host" in evidence.equal


def test_slow_target_of_any_direct_run_is_evidence(model: DiagnosisModel, tmp_path: Path) -> None:
    usual = {f"t{index}": 1_000_000 for index in range(8)}
    reference = write_run(tmp_path / "reference", {}, usual)
    run = write_run(tmp_path / "run", {}, {**usual, "t3": 5_000_000})
    result = measure_relative_target_rates(run, reference, model.machine.targets)
    assert result is not None
    assert result.runs[0].vectors["read", "targets"]["t3"] == pytest.approx(-log(5))
    index = next(number for number, item in enumerate(model.hypotheses) if item.id == "slow-target:t0-t7")
    posterior = model.compute_posterior([result])
    assert posterior.compute_part_probabilities(index)["t3"] > 0.95
    assert posterior.hypothesis_probabilities[index] > 5 * model.prior_probabilities.hypothesis_probabilities[index]


def test_targets_of_another_machine_or_cached_runs_are_no_evidence(model: DiagnosisModel, tmp_path: Path) -> None:
    usual = {f"t{index}": 1_000_000 for index in range(8)}
    reference = write_run(tmp_path / "reference", {}, usual)
    other = write_run(tmp_path / "other", {}, {f"x{index}": 1_000_000 for index in range(8)})
    buffered = write_run(tmp_path / "buffered", {}, usual, direct=False)
    assert measure_relative_target_rates(other, other, model.machine.targets) is None
    assert measure_relative_target_rates(buffered, reference, model.machine.targets) is None


def test_environment_is_stored_with_the_diagnosis(tmp_path: Path) -> None:
    state = DiagnosisState("edison", environment=EnvironmentEvidence(("kernel",), ("os",)))
    write_diagnosis_state(tmp_path / "case.json", state)
    assert read_diagnosis_state(tmp_path / "case.json") == state
