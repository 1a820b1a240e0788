# SPDX-License-Identifier: Apache-2.0
"""Counters of servers that somebody reads: which faults show load by others, and what that says."""

from __future__ import annotations

import pytest

from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.diagnosis_text import describe_measured_changes
from sonde.diagnose.experiment_plan import scale_experiment_to_machine
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.predictions import predict_messages
from sonde.diagnose.simulation import Simulator
from sonde.diagnose.stated_results import parse_stated_result

SERVER_LOAD = find_diagnosis_experiment("server-load")


def read_counters(simulator: Simulator, fault: str, seed: int) -> dict[str, bool]:
    experiment = scale_experiment_to_machine(SERVER_LOAD, simulator.machine)
    result = ModeledTruth((fault,), seed=seed).run_experiment(experiment, 0, simulator, NoiseModel())
    return dict(result.runs[0].messages)


def test_counters_of_servers_predict_load(diagnosis_model: DiagnosisModel) -> None:
    likely: dict[str, set[str]] = {"metadata": set(), "storage": set()}
    for hypothesis in diagnosis_model.hypotheses:
        for name, chance in predict_messages(SERVER_LOAD, diagnosis_model.machine, hypothesis).messages.items():
            if float(chance[0, 0]) > 0.5:
                likely[name].add(hypothesis.id)
    assert likely == {"metadata": {"mds-saturated"}, "storage": {"noisy-neighbor"}}


@pytest.mark.parametrize(
    ("fault", "counts"),
    [
        ("mds-saturated 0.8", {"metadata": (85, 100), "storage": (5, 30)}),
        ("noisy-neighbor 0.5", {"metadata": (5, 30), "storage": (85, 100)}),
        ("slow-target t2 4", {"metadata": (5, 30), "storage": (5, 30)}),
    ],
)
def test_modeled_servers_count_the_load(simulator: Simulator, fault: str, counts: dict[str, tuple[int, int]]) -> None:
    readings = [read_counters(simulator, fault, seed) for seed in range(100)]
    for name, (least, most) in counts.items():
        assert least <= sum(reading[name] for reading in readings) <= most


def test_idle_server_speaks_for_slow_operations(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    """A loaded metadata server and access control slow the same operations."""
    names = diagnosis_model.find_experiment("names")
    measured = ModeledTruth(("mds-saturated 0.6",), seed=3).run_experiment(names, 0, simulator, diagnosis_model.noise)

    def compute_odds(*stated_texts: str) -> float:
        stated = [parse_stated_result(SERVER_LOAD, list(stated_texts))] if stated_texts else []
        posterior = diagnosis_model.compute_posterior([measured, *stated])
        shares = {
            item.id: share
            for item, share in zip(diagnosis_model.hypotheses, posterior.hypothesis_probabilities, strict=True)
        }
        return float(shares["mds-saturated"] / shares["access-control"])

    assert compute_odds("metadata=yes", "storage=no") > 5 * compute_odds()
    assert compute_odds("metadata=no", "storage=no") < compute_odds() / 10


def test_reading_entered_by_hand_is_described() -> None:
    result = parse_stated_result(SERVER_LOAD, ["metadata=yes", "storage=no"])
    assert describe_measured_changes(result) == "metadata observed: yes, storage observed: no"
