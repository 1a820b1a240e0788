# SPDX-License-Identifier: Apache-2.0
"""Effects on a real machine that deviate from the simulated ones, and faults that spare an operation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from target_runs import write_run

from sonde.diagnose.diagnosis_model import DiagnosisModel, merge_results_by_experiment
from sonde.diagnose.experiment_plan import scale_experiment_to_machine
from sonde.diagnose.hypotheses import NOTHING, UNEXPLAINED
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import NODES, TARGET_MEDIANS, TARGETS, RunMeasurement
from sonde.diagnose.predictions import (
    Prediction,
    count_strengths,
    fill_missing_measurements_as_healthy,
    predict_healthy_machine,
)
from sonde.diagnose.predictive_check import check_runs_against_hypothesis
from sonde.diagnose.real_effects import (
    REAL_EFFECT_SD,
    add_real_effect_error,
    list_partial_effects,
    list_real_effects,
)
from sonde.diagnose.stored_runs import find_effect_sd

SLOW_TARGET = "slow-target:t0-t7"


def find_index(diagnosis_model: DiagnosisModel, hypothesis_id: str) -> int:
    return next(index for index, item in enumerate(diagnosis_model.hypotheses) if item.id == hypothesis_id)


def make_result(write: float, slow_part: float, effect_sd: float) -> ExperimentResult:
    """All targets are as before but t3; the simulated effect of a slow part on the rate is larger."""
    parts = {**dict.fromkeys((f"t{index}" for index in range(8)), 0.0), "t3": slow_part}
    vectors = {("write", kind): parts for kind in (TARGETS, TARGET_MEDIANS)}
    return ExperimentResult(
        "every-target", (RunMeasurement({"write": write, "read": 0.0}, vectors),), effect_sd=effect_sd
    )


def test_real_slow_target_is_recognized_by_its_part(diagnosis_model: DiagnosisModel) -> None:
    index = find_index(diagnosis_model, SLOW_TARGET)
    simulated, real = (
        diagnosis_model.compute_posterior([make_result(-0.15, -4.2, effect_sd)]) for effect_sd in (0.0, REAL_EFFECT_SD)
    )
    assert real.hypothesis_probabilities[index] > 0.95 > simulated.hypothesis_probabilities[index]
    assert real.compute_part_probabilities(index)["t3"] > 0.98
    assert not check_runs_against_hypothesis(
        diagnosis_model, real, [make_result(-0.15, -4.2, REAL_EFFECT_SD)], index
    ).is_contradicted


def test_real_result_without_a_change_is_healthy(diagnosis_model: DiagnosisModel) -> None:
    posterior = diagnosis_model.compute_posterior([make_result(0.0, 0.0, REAL_EFFECT_SD)])
    probabilities = dict(
        zip((item.id for item in diagnosis_model.hypotheses), posterior.hypothesis_probabilities, strict=True)
    )
    assert max(probabilities, key=lambda name: probabilities[name]) == NOTHING
    assert probabilities[UNEXPLAINED] < probabilities[NOTHING]


def test_spared_operations_are_predicted_as_healthy(diagnosis_model: DiagnosisModel) -> None:
    experiment = diagnosis_model.find_experiment("every-target")
    prediction = diagnosis_model.predictions[experiment.id][find_index(diagnosis_model, SLOW_TARGET)]
    healthy = diagnosis_model.get_healthy_prediction(experiment.id)
    effects = list_partial_effects(prediction, healthy, experiment)
    assert np.sum(np.exp([share for share, _ in effects])) == pytest.approx(1)
    assert len(effects) == 4
    share, all_affected = effects[0]
    assert np.exp(share) == pytest.approx(0.64)
    assert all_affected.rates["write"] == prediction.rates["write"]
    spared = effects[-1][1]
    assert not np.any(spared.rates["write"][0])
    assert not np.any(spared.vectors["write", TARGETS].inside)
    only_reads_affected = effects[2][1]
    assert not np.any(only_reads_affected.rates["write"][0])
    assert only_reads_affected.rates["read"] == prediction.rates["read"]


def test_error_of_a_real_effect_is_proportional_to_it(diagnosis_model: DiagnosisModel) -> None:
    prediction = diagnosis_model.predictions["every-target"][find_index(diagnosis_model, SLOW_TARGET)]
    mean, sd = prediction.rates["write"]
    wider = add_real_effect_error(prediction, 0.5).rates["write"]
    assert wider[0] is mean
    assert wider[1] ** 2 - sd**2 == pytest.approx((0.5 * mean) ** 2)


def test_runs_on_the_model_have_no_error_of_real_effects(tmp_path: Path) -> None:
    real = write_run(tmp_path / "real", {}, {"OST0000": 1000})
    assert find_effect_sd(real) == REAL_EFFECT_SD
    simulated = write_run(tmp_path / "simulated", {}, {"t0": 1000}, simulated=True)
    assert find_effect_sd(simulated) == 0


def test_results_with_other_errors_are_not_merged() -> None:
    real = make_result(-0.5, -4.2, REAL_EFFECT_SD)
    merged = merge_results_by_experiment([real, replace(real, effect_sd=0.0), real])
    assert [(len(item.runs), item.effect_sd) for item in merged] == [(2, REAL_EFFECT_SD), (1, 0.0)]


def make_names_result(rates: tuple[float, float, float], slow_node: float, effect_sd: float) -> ExperimentResult:
    """All nodes are as before but n2, which creates files slowly."""
    parts = {("create", NODES): {"n1": 0.0, "n2": slow_node, "n3": 0.03, "n4": -0.02}}
    run = RunMeasurement(dict(zip(("create", "stat", "remove"), rates, strict=True)), parts)
    return ExperimentResult("names", (run,), effect_sd=effect_sd)


def test_node_slow_at_names_is_no_saturated_server(diagnosis_model: DiagnosisModel) -> None:
    result = make_names_result((-0.65, -0.4, -0.3), -0.75, REAL_EFFECT_SD)
    posterior = diagnosis_model.compute_posterior([result])
    index = find_index(diagnosis_model, "slow-node:n1-n4")
    probabilities = dict(
        zip((item.id for item in diagnosis_model.hypotheses), posterior.hypothesis_probabilities, strict=True)
    )
    assert probabilities["slow-node:n1-n4"] > 20 * probabilities["mds-saturated"]
    assert posterior.compute_part_probabilities(index)["n2"] > 0.98
    assert not check_runs_against_hypothesis(diagnosis_model, posterior, [result], index).is_contradicted


def test_names_slow_on_all_nodes_are_a_saturated_server(diagnosis_model: DiagnosisModel) -> None:
    posterior = diagnosis_model.compute_posterior([make_names_result((-1.2, -1.2, -1.2), 0.02, REAL_EFFECT_SD)])
    probabilities = dict(
        zip((item.id for item in diagnosis_model.hypotheses), posterior.hypothesis_probabilities, strict=True)
    )
    assert probabilities["mds-saturated"] > 20 * probabilities["slow-node:n1-n4"]


def test_slow_node_on_the_model_spares_names(diagnosis_model: DiagnosisModel) -> None:
    hypothesis = diagnosis_model.hypotheses[find_index(diagnosis_model, "slow-node:n1-n4")]
    experiment = diagnosis_model.find_experiment("names")
    prediction = diagnosis_model.predictions["names"][find_index(diagnosis_model, "slow-node:n1-n4")]
    healthy = diagnosis_model.get_healthy_prediction("names")
    assert list_real_effects(hypothesis, prediction, healthy, experiment, 0.0) == [(0.0, prediction)]
    effects = list_real_effects(hypothesis, prediction, healthy, experiment, REAL_EFFECT_SD)
    assert np.sum(np.exp([share for share, _ in effects])) == pytest.approx(1)
    # A client that works for 40 % of the time of an operation and is 30 times as slow: 0.6 + 0.4 * 30.
    slowest = min(float(effect.vectors["create", NODES].inside[-1]) for _, effect in effects)
    assert slowest == pytest.approx(-np.log(0.6 + 0.4 * 30))


def make_names_result_of_waiting_peers() -> ExperimentResult:
    """n4 is slow. Its files are looked up by n3, and it has looked up those of n1: both wait for n4."""
    parts = {
        ("create", NODES): {"n1": 0.1, "n2": 0.0, "n3": -0.1, "n4": -2.0},
        ("stat", NODES): {"n1": 0.7, "n2": 0.7, "n3": -0.7, "n4": -0.7},
        ("remove", NODES): {"n1": -1.1, "n2": 1.1, "n3": 1.1, "n4": -1.1},
    }
    return ExperimentResult(
        "names",
        (RunMeasurement({"create": -1.6, "stat": -1.0, "remove": -1.6}, parts),),
        effect_sd=REAL_EFFECT_SD,
    )


def test_peers_that_wait_for_a_slow_node_are_explained(diagnosis_model: DiagnosisModel) -> None:
    result = make_names_result_of_waiting_peers()
    posterior = diagnosis_model.compute_posterior([result])
    index = find_index(diagnosis_model, "slow-node:n1-n4")
    probabilities = dict(
        zip((item.id for item in diagnosis_model.hypotheses), posterior.hypothesis_probabilities, strict=True)
    )
    assert probabilities["slow-node:n1-n4"] > 0.9
    assert posterior.compute_part_probabilities(index)["n4"] > 0.98
    assert not check_runs_against_hypothesis(diagnosis_model, posterior, [result], index).is_contradicted


def test_two_slow_nodes_without_shared_files_are_not_one_fault(diagnosis_model: DiagnosisModel) -> None:
    """n2 and n4 do not share files, so one does not wait for the other."""
    result = make_names_result_of_waiting_peers()
    parts = {
        key: {**dict.fromkeys(values, 1.1), "n2": -1.1, "n4": -1.1} for key, values in result.runs[0].vectors.items()
    }
    other = replace(result, runs=(replace(result.runs[0], vectors=parts),))
    index = find_index(diagnosis_model, "slow-node:n1-n4")
    waiting, independent = (
        float(np.max(diagnosis_model.compute_log_densities(item)[index])) for item in (result, other)
    )
    assert waiting > independent + 20


def test_slow_node_is_slow_at_small_requests_on_a_real_machine(diagnosis_model: DiagnosisModel) -> None:
    """Storage is slow enough to hide the node on the model, but clients work for each request."""
    experiment = scale_experiment_to_machine(find_diagnosis_experiment("small-reads"), diagnosis_model.machine)
    hypothesis = diagnosis_model.hypotheses[find_index(diagnosis_model, "slow-node:n1-n4")]
    healthy = predict_healthy_machine(experiment.description, experiment.vector_keys)
    hidden = fill_missing_measurements_as_healthy(Prediction({}), healthy, count_strengths(hypothesis))
    effects = list_real_effects(hypothesis, hidden, healthy, experiment, REAL_EFFECT_SD)
    assert np.sum(np.exp([share for share, _ in effects])) == pytest.approx(1)
    slowest = min(float(effect.vectors["read", NODES].inside[-1]) for _, effect in effects)
    assert slowest == pytest.approx(-np.log(0.6 + 0.4 * 30))
    assert {effect.vectors["read", NODES].peer_offset for _, effect in effects} == {0}


def make_stopping_target_result(median_of_target: float, effect_sd: float) -> ExperimentResult:
    """t3 stops and resumes: its requests take longer on average, and all targets together are a little slower."""
    means = {**dict.fromkeys((f"t{index}" for index in range(8)), 0.0), "t3": -1.5}
    vectors = {("write", TARGETS): means, ("write", TARGET_MEDIANS): {**means, "t3": median_of_target}}
    return ExperimentResult(
        "every-target", (RunMeasurement({"write": -0.25, "read": 0.0}, vectors),), effect_sd=effect_sd
    )


def test_target_slow_at_some_requests_is_recognized(diagnosis_model: DiagnosisModel) -> None:
    """Requests between two stops are as fast as before, or faster, so the median shows no delay."""
    index = find_index(diagnosis_model, SLOW_TARGET)
    result = make_stopping_target_result(0.4, REAL_EFFECT_SD)
    posterior = diagnosis_model.compute_posterior([result])
    others = [
        float(probability)
        for item, probability in zip(diagnosis_model.hypotheses, posterior.hypothesis_probabilities, strict=True)
        if item.id not in (SLOW_TARGET, UNEXPLAINED)
    ]
    assert posterior.hypothesis_probabilities[index] > 20 * max(others)
    assert posterior.compute_part_probabilities(index)["t3"] > 0.98
    assert not check_runs_against_hypothesis(diagnosis_model, posterior, [result], index).is_contradicted


def test_slow_medians_are_more_probable_for_a_slow_target(diagnosis_model: DiagnosisModel) -> None:
    """On the model a slow target delays each request, and on a real machine in most cases."""
    index = find_index(diagnosis_model, SLOW_TARGET)
    slow_medians, fast_medians = (
        {
            effect_sd: float(
                np.max(diagnosis_model.compute_log_densities(make_stopping_target_result(median, effect_sd))[index])
            )
            for effect_sd in (0.0, REAL_EFFECT_SD)
        }
        for median in (-1.5, 0.4)
    )
    assert slow_medians[0.0] > fast_medians[0.0] + 10
    assert slow_medians[REAL_EFFECT_SD] > fast_medians[REAL_EFFECT_SD] > slow_medians[REAL_EFFECT_SD] - 3
