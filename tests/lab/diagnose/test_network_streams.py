# SPDX-License-Identifier: Apache-2.0
"""Streams of bytes without storage: what faults of links do to them, and what their counters show."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from diagnosis_machine import read_small_machine

from sonde.diagnose.contrast_predictions import predict_fault_in_contrast
from sonde.diagnose.counter_evidence import CounterEvidence
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.diagnosis_text import describe_measured_changes
from sonde.diagnose.experiment_plan import scale_experiment_to_machine
from sonde.diagnose.hypotheses import Hypothesis, list_hypotheses
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.likelihood import compute_rate_densities
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.predictions import STRENGTH_STEP, Prediction, count_strengths, predict_messages
from sonde.diagnose.simulation import Simulator
from sonde.diagnose.stated_results import parse_stated_result
from sonde.model.errors import UserError

STREAM, LOSSES = find_diagnosis_experiment("network-alone"), find_diagnosis_experiment("network-losses")


@pytest.fixture(scope="module")
def hypotheses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Hypothesis]:
    machine = read_small_machine(tmp_path_factory.mktemp("machine"))
    return {item.fault: item for item in list_hypotheses(machine, ())}


def predict_hidden_effect(hypothesis: Hypothesis) -> Prediction:
    """The prediction for files whose storage is slower than the network: no effect."""
    strengths = count_strengths(hypothesis)
    return Prediction({"write": (np.zeros(strengths), np.full(strengths, 0.03))})


def test_slow_link_shows_in_a_stream_where_storage_hides_it(hypotheses: dict[str, Hypothesis]) -> None:
    hypothesis = hypotheses["slow-link"]
    mean, sd = predict_fault_in_contrast(hypothesis, STREAM, predict_hidden_effect(hypothesis)).rates["ratio"]
    assert mean[[0, STRENGTH_STEP, -1]] == pytest.approx([-math.log(2), -math.log(4), -math.log(15)])
    assert np.all(sd < 0.3)


def test_slow_stream_is_no_cause_where_files_are_fast(diagnosis_model: DiagnosisModel) -> None:
    """The complaint is about files."""
    index = [item.fault for item in diagnosis_model.hypotheses].index("slow-link")
    assert diagnosis_model.find_visible_strengths(index)[-1] == 1
    fast = {item.id: diagnosis_model.get_healthy_prediction(item.id) for item in diagnosis_model.experiments}
    stream = predict_fault_in_contrast(diagnosis_model.hypotheses[index], STREAM, None)
    assert stream.rates["ratio"][0][-1] < -2
    model = replace(
        diagnosis_model,
        experiments=(*diagnosis_model.experiments, scale_experiment_to_machine(STREAM, diagnosis_model.machine)),
        predictions={name: [prediction] * (index + 1) for name, prediction in (fast | {STREAM.id: stream}).items()},
    )
    assert not np.any(model.find_visible_strengths(index))


@pytest.mark.parametrize("fault", ["slow-target", "slow-node", "mds-saturated", "router-lost", "unbalanced-path"])
def test_other_faults_do_not_slow_the_stream_of_a_link(hypotheses: dict[str, Hypothesis], fault: str) -> None:
    hypothesis = hypotheses.get(fault) or Hypothesis(fault, "fault", "", "fault", fault=fault)
    mean, _ = predict_fault_in_contrast(hypothesis, STREAM, predict_hidden_effect(hypothesis)).rates["ratio"]
    assert not np.any(mean)


@pytest.mark.parametrize("log_ratio", [0.05, -0.02, -3.1, -6.0])
def test_stream_with_losses_stalls_or_is_as_fast(hypotheses: dict[str, Hypothesis], log_ratio: float) -> None:
    """A link without delay repairs single losses at once; others wait for timeouts."""
    lossy, healthy = hypotheses["lossy-link"], hypotheses["slow-node"]
    densities = [
        compute_rate_densities(
            predict_fault_in_contrast(item, STREAM, predict_hidden_effect(item)),
            [RunMeasurement({"ratio": log_ratio})],
            NoiseModel(),
            0.05,
        )[0, -1]
        for item in (lossy, healthy)
    ]
    assert densities[0] > max(densities[1] - 1, -4)


def test_modeled_slow_link_slows_a_stream_by_its_factor(simulator: Simulator) -> None:
    experiment = scale_experiment_to_machine(STREAM, simulator.machine)
    ratios = [
        ModeledTruth(("slow-link oss1 6",), seed=seed)
        .run_experiment(experiment, 0, simulator, NoiseModel())
        .runs[0]
        .rates["ratio"]
        for seed in range(40)
    ]
    assert statistics.fmean(ratios) == pytest.approx(-math.log(6), abs=0.1)


def test_only_a_lossy_link_has_streams_with_losses(hypotheses: dict[str, Hypothesis], simulator: Simulator) -> None:
    predicted = {
        name: float(predict_messages(LOSSES, simulator.machine, item).messages["retransmissions"][0, 0])
        for name, item in hypotheses.items()
        if name
    }
    assert [name for name, probability in predicted.items() if probability > 0.5] == ["lossy-link"]
    experiment = scale_experiment_to_machine(LOSSES, simulator.machine)
    counts = {
        fault: sum(
            ModeledTruth((fault,), seed=seed)
            .run_experiment(experiment, 0, simulator, NoiseModel())
            .runs[0]
            .messages["retransmissions"]
            for seed in range(100)
        )
        for fault in ("lossy-link oss1 0.01", "slow-target t2 4")
    }
    assert counts["lossy-link oss1 0.01"] > 85
    assert counts["slow-target t2 4"] < 15


def test_slow_receivers_can_explain_retransmissions_of_files(hypotheses: dict[str, Hypothesis]) -> None:
    """TCP drops and repeats segments that a slow program has no buffer for."""
    factors = {
        name: math.exp(CounterEvidence({"retransmissions": True}).compute_log_factor(item))
        for name, item in hypotheses.items()
    }
    assert factors["lossy-link"] == pytest.approx(2 * factors["slow-target"])
    assert factors["slow-node"] == factors["slow-target"] == pytest.approx(4 * factors["mds-saturated"])


def test_losses_are_entered_by_hand_and_described(tmp_path: Path) -> None:
    result = parse_stated_result(LOSSES, ["retransmissions=yes"])
    assert result.runs[0].messages == {"retransmissions": True}
    assert describe_measured_changes(result) == "retransmissions observed: yes"
    with pytest.raises(UserError, match="does not say whether they show it; write retransmissions=yes or"):
        parse_stated_result(LOSSES, ["retransmissions=3"])
