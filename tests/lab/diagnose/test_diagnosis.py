# SPDX-License-Identifier: Apache-2.0
"""Diagnoses of the small machine: what is planted is named, and what does not fit is said."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest

from sonde.diagnose import diagnosis
from sonde.diagnose.diagnosis import (
    DiagnosisAnswer,
    DiagnosisStopRule,
    build_answer,
    choose_next_experiment,
    rank_hypotheses,
)
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.next_experiment import ExperimentValue, estimate_information_bits
from sonde.diagnose.posterior import Posterior
from sonde.diagnose.predictive_check import check_runs_against_hypothesis, combine_repeated_p_values
from sonde.diagnose.simulation import Simulator
from sonde.diagnose.unknown_causes import MIN_SEPARATION, compute_separation, list_rate_phases


def diagnose(diagnosis_model: DiagnosisModel, simulator: Simulator, truth: ModeledTruth) -> tuple[DiagnosisAnswer, int]:
    results: list[ExperimentResult] = []
    while True:
        posterior = diagnosis_model.compute_posterior(results)
        value, _, reason = choose_next_experiment(diagnosis_model, posterior, results, DiagnosisStopRule(), truth.seed)
        if value is None:
            return build_answer(diagnosis_model, results, DiagnosisStopRule(), reason), len(results)
        experiment = diagnosis_model.find_experiment(value.experiment)
        results.append(truth.run_experiment(experiment, len(results), simulator, diagnosis_model.noise))


@pytest.mark.parametrize(
    ("fault", "hypothesis", "part"),
    [
        ("slow-target t5 4", "slow-target:t0-t7", "t5"),
        ("slow-node n3 8", "slow-node:n1-n4", "n3"),
        ("slow-link oss3 6", "slow-link:oss1-oss4", "oss3"),
    ],
)
def test_planted_fault_is_diagnosed_with_its_part(
    diagnosis_model: DiagnosisModel, simulator: Simulator, fault: str, hypothesis: str, part: str
) -> None:
    answer, experiments = diagnose(diagnosis_model, simulator, ModeledTruth((fault,), seed=5))
    assert (answer.most_probable.hypothesis.id, answer.most_probable.part) == (hypothesis, part)
    assert answer.status == "decided"
    assert experiments <= 4


def test_healthy_machine_has_nothing_wrong(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    answer, _ = diagnose(diagnosis_model, simulator, ModeledTruth(seed=4))
    assert answer.most_probable.hypothesis.id == "nothing"


def test_change_that_nothing_predicts_is_unexplained(diagnosis_model: DiagnosisModel) -> None:
    """Metadata operations are three times as fast and cached writes take a fifth of the rate: no fault does both."""
    runs = (RunMeasurement({"create": log(3), "stat": log(3), "remove": log(3)}),)
    odd = (RunMeasurement({"write": log(0.2), "read_warm": log(3)}),)
    posterior = diagnosis_model.compute_posterior(
        [ExperimentResult("names", runs), ExperimentResult("warm-cache", odd)]
    )
    first = rank_hypotheses(posterior)[0]
    assert first.hypothesis.id == "unexplained"
    assert first.probability > 0.9


def test_measurement_outside_the_noise_contradicts_the_first(
    diagnosis_model: DiagnosisModel, simulator: Simulator
) -> None:
    """Results that fit a slow target, but a second target is slow in one of them."""
    truth = ModeledTruth(("slow-target t5 4",), seed=5)
    fitting = truth.run_experiment(diagnosis_model.find_experiment("every-target"), 0, simulator, diagnosis_model.noise)
    index = next(number for number, item in enumerate(diagnosis_model.hypotheses) if item.id == "slow-target:t0-t7")
    assert not check_runs_against_hypothesis(
        diagnosis_model, diagnosis_model.compute_posterior([fitting]), [fitting], index
    ).is_contradicted
    run = fitting.runs[0]
    values = {**run.vectors["read", "targets"], "t2": log(0.2)}
    second = ExperimentResult("every-target", (replace(run, vectors={**run.vectors, ("read", "targets"): values}),))
    check = check_runs_against_hypothesis(
        diagnosis_model, diagnosis_model.compute_posterior([fitting, second]), [fitting, second], index
    )
    assert check.is_contradicted
    assert check.measurement == "t2"


def test_first_result_leaves_undescribed_causes_possible(diagnosis_model: DiagnosisModel) -> None:
    """Slow names alone do not show that nothing else is slow."""
    slow = ExperimentResult("names", (RunMeasurement(dict.fromkeys(("create", "stat", "remove"), log(0.4))),))
    usual = ExperimentResult("every-target", (RunMeasurement({"write": 0.0, "read": 0.0}),))
    index = next(number for number, item in enumerate(diagnosis_model.hypotheses) if item.id == "unexplained")
    before = diagnosis_model.compute_posterior([slow]).hypothesis_probabilities[index]
    assert before > 0.02
    assert diagnosis_model.compute_posterior([slow, usual]).hypothesis_probabilities[index] < before


def test_random_causes_differ_from_every_hypothesis(diagnosis_model: DiagnosisModel) -> None:
    phases = list_rate_phases(diagnosis_model.experiments)
    causes = diagnosis_model.unknown_causes
    changes = np.stack([causes.predictions[name].rates[phase][0] for name, phase in phases], axis=1)
    assert 2400 < len(changes) <= 4800
    assert float(np.sum(causes.prior_shares)) == pytest.approx(1)
    for index, hypothesis in enumerate(diagnosis_model.hypotheses):
        if hypothesis.id != "unexplained":
            predictions = {item.id: diagnosis_model.predictions[item.id][index] for item in diagnosis_model.experiments}
            assert np.all(compute_separation(changes, phases, predictions, diagnosis_model.noise) >= MIN_SEPARATION)


def test_fault_without_a_hypothesis_is_unexplained(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    without = diagnosis_model.remove_hypotheses_of_fault("slow-node")
    assert "slow-node:n1-n4" not in {item.id for item in without.hypotheses}
    answer, _ = diagnose(without, simulator, ModeledTruth(("slow-node n3 30",), seed=8))
    assert answer.is_unexplained


def test_contradicting_result_widens_the_answer(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    truth = ModeledTruth(("slow-target t5 4",), seed=5)
    fitting = truth.run_experiment(diagnosis_model.find_experiment("every-target"), 0, simulator, diagnosis_model.noise)
    against = ExperimentResult("every-target", (RunMeasurement({"write": log(1.8), "read": log(0.4)}, {}),))
    assert rank_hypotheses(diagnosis_model.compute_posterior([fitting]))[0].hypothesis.id == "slow-target:t0-t7"
    both = rank_hypotheses(diagnosis_model.compute_posterior([fitting, against]))
    assert both[0].hypothesis.id == "unexplained"


def test_wrong_reference_widens_the_answer(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    """With an unknown error of the reference the same numbers say less."""
    result = ExperimentResult("names", (RunMeasurement({"create": log(0.5), "stat": log(0.5), "remove": log(0.5)}),))
    unsure = ExperimentResult("names", result.runs, reference_sd=0.7)
    sure_entropy = diagnosis_model.compute_posterior([result]).entropy_bits
    assert diagnosis_model.compute_posterior([unsure]).entropy_bits > sure_entropy + 0.5


def test_order_of_results_does_not_matter(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    truth = ModeledTruth(("slow-node n3 8",), seed=6)
    results = [
        truth.run_experiment(diagnosis_model.find_experiment(name), number, simulator, diagnosis_model.noise)
        for number, name in enumerate(("names", "every-target", "names"))
    ]
    forward = diagnosis_model.compute_posterior(results).hypothesis_probabilities
    backward = diagnosis_model.compute_posterior(results[::-1]).hypothesis_probabilities
    assert forward.tolist() == pytest.approx(backward.tolist())


def test_fault_without_a_described_part_is_refused(diagnosis_model: DiagnosisModel) -> None:
    assert "no link" in diagnosis_model.refused["slow-link:n1-n4"]


def test_causes_outside_the_complaint_are_excluded(diagnosis_model: DiagnosisModel) -> None:
    names = {item.id for item in diagnosis_model.hypotheses}
    assert "mpiio-library" not in names
    assert "small-records" not in names
    assert "client-kernel" in names


def test_repeats_with_hardly_any_information_are_not_done(
    diagnosis_model: DiagnosisModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [ExperimentValue("warm-cache", 0.05, 1.0), ExperimentValue("previous-software", 0.9, 4000.0)]
    monkeypatch.setattr(diagnosis, "estimate_experiment_values", lambda *arguments: values)
    choice, _, _ = choose_next_experiment(
        diagnosis_model, diagnosis_model.prior_probabilities, [], DiagnosisStopRule(), 1
    )
    assert choice is values[1]
    choice, _, _ = choose_next_experiment(
        diagnosis_model, diagnosis_model.prior_probabilities, [], DiagnosisStopRule(min_share=0.05), 1
    )
    assert choice is values[0]


def test_separating_experiment_is_worth_the_entropy(diagnosis_model: DiagnosisModel) -> None:
    """An experiment that certainly distinguishes two hypotheses is worth one bit, one that sees neither is worth
    zero."""
    chosen = [
        index for index, item in enumerate(diagnosis_model.hypotheses) if item.id in ("nothing", "slow-node:n1-n4")
    ]
    weights = []
    for index in chosen:
        shape = diagnosis_model.prior_probabilities.log_weights[index].shape
        only = np.full(shape, -np.inf)
        only[-1, 0] = log(0.5)  # the strongest, at the first part
        weights.append(only)
    two = Posterior(tuple(diagnosis_model.hypotheses[index] for index in chosen), tuple(weights))

    def estimate(name: str) -> float:
        predictions = [diagnosis_model.predictions[name][index] for index in chosen]
        return estimate_information_bits(
            two, diagnosis_model.find_experiment(name), predictions,
            [diagnosis_model.part_masks[index] for index in chosen], diagnosis_model.machine,
            diagnosis_model.noise, np.random.default_rng(1),
        )  # fmt: skip

    assert estimate("warm-cache") == pytest.approx(1, abs=0.01)
    assert estimate("previous-software") == pytest.approx(0, abs=0.01)


def test_all_hypotheses_predict_the_same_measurements(diagnosis_model: DiagnosisModel) -> None:
    for name, predictions in diagnosis_model.predictions.items():
        measurements = {(frozenset(item.rates), frozenset(item.vectors)) for item in predictions}
        assert len(measurements) == 1, name


def test_repeat_that_fits_removes_a_contradiction_by_chance() -> None:
    assert combine_repeated_p_values([1e-4]) == pytest.approx(1e-4)
    assert combine_repeated_p_values([1e-4, 0.5]) == pytest.approx(5.5e-4, rel=0.05)
    assert combine_repeated_p_values([1e-4, 1e-4]) == pytest.approx(2e-4)
    assert combine_repeated_p_values([1e-30, 0.5]) < 1e-20


def test_contradicted_hypothesis_has_its_experiment_repeated(
    diagnosis_model: DiagnosisModel, simulator: Simulator
) -> None:
    """A target that is slow by chance in one run is not slow in its repeat, and then the slow target is the answer."""
    truth = ModeledTruth(("slow-target t5 4",), seed=5)
    experiment = diagnosis_model.find_experiment("every-target")
    fitting = truth.run_experiment(experiment, 0, simulator, diagnosis_model.noise)
    run = fitting.runs[0]
    values = {**run.vectors["read", "targets"], "t2": log(0.42)}
    disturbed = replace(fitting, runs=(replace(run, vectors={**run.vectors, ("read", "targets"): values}),))
    posterior = diagnosis_model.compute_posterior([disturbed])
    assert rank_hypotheses(posterior)[0].probability > DiagnosisStopRule().probability
    rule = DiagnosisStopRule()
    assert build_answer(diagnosis_model, [disturbed], rule, "").status == "contradicted"
    value, _, _ = choose_next_experiment(diagnosis_model, posterior, [disturbed], rule, 1)
    assert value is not None
    assert value.experiment == "every-target"
    both = [disturbed, truth.run_experiment(experiment, 1, simulator, diagnosis_model.noise)]
    value, _, reason = choose_next_experiment(diagnosis_model, diagnosis_model.compute_posterior(both), both, rule, 1)
    assert value is None
    assert build_answer(diagnosis_model, both, rule, reason).status == "decided"
    value, _, _ = choose_next_experiment(diagnosis_model, posterior, [disturbed], replace(rule, max_experiments=1), 1)
    assert value is None
