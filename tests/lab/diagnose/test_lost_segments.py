# SPDX-License-Identifier: Apache-2.0
"""A link that loses segments delays operations of a real machine that the simulator has unaffected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from diagnosis_machine import read_small_machine

from sonde.diagnose.experiment_plan import scale_experiment_to_machine
from sonde.diagnose.hypotheses import Hypothesis, list_hypotheses
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.likelihood import PartMasks, compute_joint_log_density
from sonde.diagnose.lost_segments import delay_operations
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import NODES, RunMeasurement
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.predictions import (
    Prediction,
    count_strengths,
    fill_missing_measurements_as_healthy,
    predict_healthy_machine,
)
from sonde.diagnose.real_effects import REAL_EFFECT_SD

NAMES = find_diagnosis_experiment("names")


@pytest.fixture
def machine(tmp_path: Path) -> DiagnosedMachine:
    return read_small_machine(tmp_path)


def find_hypothesis(machine: DiagnosedMachine, fault: str, part_kind: str) -> Hypothesis:
    return next(
        item
        for item in list_hypotheses(machine, ())
        if item.fault == fault and item.group and item.group.kind == part_kind
    )


def predict_unaffected_names(machine: DiagnosedMachine, hypothesis: Hypothesis) -> Prediction:
    """The prediction of the simulator, in which no operation on names waits for a lost segment."""
    healthy = predict_healthy_machine(NAMES, scale_experiment_to_machine(NAMES, machine).vector_keys)
    return fill_missing_measurements_as_healthy(Prediction({}), healthy, count_strengths(hypothesis))


def predict_real_names(machine: DiagnosedMachine, fault: str, part_kind: str) -> Prediction:
    hypothesis = find_hypothesis(machine, fault, part_kind)
    simulated = predict_unaffected_names(machine, hypothesis)
    return delay_operations(hypothesis, simulated, scale_experiment_to_machine(NAMES, machine))


def test_lossy_link_of_a_node_delays_some_names(machine: DiagnosedMachine) -> None:
    prediction = predict_real_names(machine, "lossy-link", "node")
    unaffected, delayed = prediction.list_alternatives("create")
    assert unaffected.share + delayed.share == pytest.approx(1)
    assert not np.any(unaffected.mean)
    assert delayed.mean[[0, -1]] == pytest.approx([-np.log(1 + 60 * 0.005), -np.log(1 + 60 * 0.03)])
    assert prediction.vectors["create", NODES].chance is not None


def test_lossy_link_of_a_server_of_data_spares_names(machine: DiagnosedMachine) -> None:
    assert not predict_real_names(machine, "lossy-link", "server").chance_rates


def test_slow_target_has_no_delays_of_segments(machine: DiagnosedMachine) -> None:
    assert not predict_real_names(machine, "slow-target", "target").chance_rates


def test_real_names_slowed_by_losses_are_explained(machine: DiagnosedMachine) -> None:
    """Rates that a client of Ceph had whose link lost 11 of 1,000 packets."""
    hypothesis = find_hypothesis(machine, "lossy-link", "node")
    run = RunMeasurement({"create": -0.58, "stat": -0.02, "remove": -0.95})
    on_model, on_real_machine = (
        float(
            np.max(
                compute_joint_log_density(
                    hypothesis,
                    predict_unaffected_names(machine, hypothesis),
                    predict_healthy_machine(NAMES),
                    [run],
                    PartMasks(hypothesis, machine),
                    scale_experiment_to_machine(NAMES, machine),
                    NoiseModel(),
                    effect_sd=effect_sd,
                )
            )
        )
        for effect_sd in (0.0, REAL_EFFECT_SD)
    )
    assert on_real_machine > on_model + 4
