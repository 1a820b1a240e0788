# SPDX-License-Identifier: Apache-2.0
"""Two causes at once: both are named or the answer is not sure, and a single cause has no second one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from sonde.diagnose import cause_pairs
from sonde.diagnose.cause_pairs import compute_pair_probabilities
from sonde.diagnose.cause_states import (
    StatePredictions,
    VectorStates,
    combine_predictions_of_pairs,
    compute_pair_density,
)
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.second_cause import SECOND_CAUSE_STOP_RULE, TwoCauses, find_most_probable_pair
from sonde.diagnose.simulation import Simulator

NAMES = ("every-target", "names", "warm-cache", "server-messages")
SLOW_TARGET = "slow-target t5 6"


def measure(
    diagnosis_model: DiagnosisModel,
    simulator: Simulator,
    faults: Sequence[str],
    names: Sequence[str] = NAMES,
    seed: int = 8,
) -> list[ExperimentResult]:
    truth = ModeledTruth(tuple(faults), seed=seed)
    return [
        truth.run_experiment(diagnosis_model.find_experiment(name), number, simulator, diagnosis_model.noise)
        for number, name in enumerate(names)
    ]


def find_causes(diagnosis_model: DiagnosisModel, simulator: Simulator, *faults: str) -> TwoCauses:
    causes = find_most_probable_pair(diagnosis_model, measure(diagnosis_model, simulator, faults))
    assert causes is not None
    return causes


def name_causes(causes: TwoCauses) -> set[tuple[str, str]]:
    return {(item.hypothesis.id, item.part) for item in (causes.first, causes.second_cause)}


@pytest.mark.parametrize(
    ("faults", "answers"),
    [
        ((SLOW_TARGET, "mds-saturated 0.8"), {("slow-target:t0-t7", "t5"), ("mds-saturated", "")}),
        (("slow-target t2 6", "slow-node n3 12"), {("slow-target:t0-t7", "t2"), ("slow-node:n1-n4", "n3")}),
        (("slow-link oss2 8", "mds-saturated 0.8"), {("slow-link:oss1-oss4", "oss2"), ("mds-saturated", "")}),
        (("slow-link oss2 8", SLOW_TARGET), {("slow-link:oss1-oss4", "oss2"), ("slow-target:t0-t7", "t5")}),
    ],
)
def test_two_faults_are_both_diagnosed(
    diagnosis_model: DiagnosisModel, simulator: Simulator, faults: tuple[str, ...], answers: set[tuple[str, str]]
) -> None:
    assert name_causes(find_causes(diagnosis_model, simulator, *faults)) == answers


@pytest.mark.parametrize("target", ["t0", "t5"])
def test_part_with_stronger_cause_is_diagnosed(
    diagnosis_model: DiagnosisModel, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """Alone, a target behind the slow link explains the results better than the slow one."""
    monkeypatch.setattr(cause_pairs, "_MAX_PROBABLE_PARTS", 1)
    causes = find_causes(diagnosis_model, simulator, "slow-link oss2 20", f"slow-target {target} 3")
    assert name_causes(causes) == {("slow-link:oss1-oss4", "oss2"), ("slow-target:t0-t7", target)}


@pytest.mark.parametrize("seeds", [(3,), pytest.param((4, 5), marks=pytest.mark.nightly)], ids=["day", "night"])
@pytest.mark.parametrize("names", [("every-target",), ("names", "every-target"), NAMES])
@pytest.mark.parametrize(
    ("faults", "answers"),
    [
        (("slow-target t2 6", "slow-link oss2 8"), {("slow-target:t0-t7", "t2"), ("slow-link:oss1-oss4", "oss2")}),
        (("noisy-neighbor 0.6", "mds-saturated 0.8"), {("noisy-neighbor", ""), ("mds-saturated", "")}),
        (("noisy-neighbor 0.6", SLOW_TARGET), {("noisy-neighbor", ""), ("slow-target:t0-t7", "t5")}),
    ],
)
def test_wrong_pair_is_never_sure(
    diagnosis_model: DiagnosisModel,
    simulator: Simulator,
    names: Sequence[str],
    faults: tuple[str, ...],
    answers: set[tuple[str, str]],
    seeds: Sequence[int],
) -> None:
    for seed in seeds:
        causes = find_most_probable_pair(diagnosis_model, measure(diagnosis_model, simulator, faults, names, seed))
        assert causes is not None
        assert name_causes(causes) == answers or not causes.is_decided(SECOND_CAUSE_STOP_RULE)


def test_single_fault_has_no_second_cause(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    causes = find_causes(diagnosis_model, simulator, SLOW_TARGET)
    assert (causes.first.hypothesis.id, causes.first.part) == ("slow-target:t0-t7", "t5")
    assert causes.second_cause.hypothesis.id == "nothing"


def test_slow_part_behind_the_first_cause_is_not_ignored(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    # Both are at the same server: a slow link explains the reads of its targets, and not that one of them is slower.
    causes = find_causes(diagnosis_model, simulator, "slow-target t2 10", "slow-link oss2 4")
    assert causes.second_cause.hypothesis.id != "nothing"
    alone = [
        find_most_probable_pair(diagnosis_model, measure(diagnosis_model, simulator, ("slow-link oss2 4",), seed=seed))
        for seed in (8, 9, 10)
    ]
    seconds = [item.second_cause for item in alone if item is not None]
    assert [item.hypothesis.id for item in seconds].count("nothing") >= 2
    assert max((item.probability for item in seconds if item.hypothesis.id != "nothing"), default=0) < 0.6


NOT_LOAD = np.zeros(3, dtype=np.bool_)


@pytest.mark.parametrize(("load", "both"), [((-0.53, -0.52, -0.46), (-3.12, -2.5, -5.79)),
                                            ((-1.21, -1.16, -0.9), (-3.18, -2.62, -5.8))])  # fmt: skip
def test_times_of_load_and_a_lost_server_add_up(load: tuple[float, ...], both: tuple[float, ...]) -> None:
    """Writes of one machine as they were simulated: of a shared file, of own files, and by one client."""
    rates = np.array([[0.0] * 3, [-3.09, -2.44, -5.79], load])
    phases = ("shared", "own", "one")
    is_load, is_delay = np.array([False, False, True]), np.array([False, True, False])
    predictions = StatePredictions(
        phases, rates, np.full((3, 3), 0.03), np.full(3, 0.03), {}, {}, is_load, is_delay, {}
    )  # fmt: skip
    pairs = combine_predictions_of_pairs(predictions, np.array([1]), np.array([2]))
    assert pairs.rates[0] == pytest.approx(np.array(both), abs=0.05)
    assert np.all(pairs.rates_sd < 0.3)


@pytest.mark.parametrize(("own_rate", "probability"), [(-0.5, 0.7), (-1.5, 0.15)])
def test_other_bottleneck_can_hide_the_slow_part(own_rate: float, probability: float) -> None:
    # State 1 slows the read by exp(-1) without parts, state 2 has a slow target and slows it by exp(own_rate).
    rates = np.array([[0.0], [-1.0], [own_rate]])
    means = np.array([[0.0] * 4, [0.0] * 4, [0.0, -0.6, 0.0, 0.0]])
    key = ("read", "targets")
    vector = VectorStates(means, np.full((3, 4), 0.02), np.zeros((3, 4)), 0.02, np.zeros(3), np.zeros(3))
    predictions = StatePredictions(
        ("read",), rates, np.full((3, 1), 0.03), np.array([0.03]), {key: vector}, {}, NOT_LOAD, NOT_LOAD,
        {key: ("t0", "t1", "t2", "t3")},
    )  # fmt: skip
    pairs = combine_predictions_of_pairs(predictions, np.array([1, 0, 0]), np.array([2, 1, 2]))
    densities = {}
    for slow_part in (0.0, -0.6):
        parts = {"t0": 0.0, "t1": slow_part, "t2": 0.0, "t3": 0.0}
        result = ExperimentResult("every-target", (RunMeasurement({}, {key: parts}),), 0.02)
        densities[slow_part] = compute_pair_density(pairs, result, NoiseModel())
    both, without_parts, with_parts = densities[0.0]
    assert both - without_parts == pytest.approx(np.log(0.98 * probability), abs=0.05)
    assert both > with_parts + 5
    both, without_parts, with_parts = densities[-0.6]
    assert both > without_parts + 5
    assert both == pytest.approx(with_parts, abs=1.5 - np.log(1 - probability))


@pytest.mark.parametrize(("own_rate", "probability"), [(-0.5, 0.7), (-1.5, 0.15)])
def test_other_bottleneck_can_hide_uneven_nodes(own_rate: float, probability: float) -> None:
    # State 1 slows the read by exp(-1) with even nodes in 90 % of the runs; state 2 always makes nodes slightly uneven.
    rates = np.array([[0.0], [-1.0], [own_rate]])
    key = ("read", "nodes")
    vector = VectorStates(
        np.zeros((3, 4)),
        np.full((3, 4), 0.02),
        np.zeros((3, 4)),
        0.02,
        np.array([0.0, 0.1, 1.0]),
        np.array([0.0, 2.0, 0.3]),
    )
    predictions = StatePredictions(
        ("read",), rates, np.full((3, 1), 0.03), np.array([0.03]), {key: vector}, {}, NOT_LOAD, NOT_LOAD,
        {key: ("n1", "n2", "n3", "n4")},
    )  # fmt: skip
    pairs = combine_predictions_of_pairs(predictions, np.array([1, 0, 0]), np.array([2, 1, 2]))
    densities = {}
    for spread in (0.0, 0.3):
        nodes = {"n1": spread, "n2": -spread, "n3": spread, "n4": -spread}
        result = ExperimentResult("every-target", (RunMeasurement({}, {key: nodes}),), 0.02)
        densities[spread] = compute_pair_density(pairs, result, NoiseModel())
    both, with_even_nodes, with_uneven_nodes = densities[0.0]
    assert both - with_even_nodes == pytest.approx(np.log(0.98 * probability), abs=0.15)
    assert both > with_uneven_nodes + 1
    both, with_even_nodes, with_uneven_nodes = densities[0.3]
    assert both > with_even_nodes + 1
    # The spread is that of the cause that makes the nodes uneven, not that of the other one.
    assert both == pytest.approx(with_uneven_nodes + np.log(1 - probability), abs=0.3)


def test_vector_without_any_explanation_is_one_surprise() -> None:
    # The simulator spreads the reads of nodes over their caches: parts change that no cause touches, all together.
    rates = np.array([[0.0], [-1.0], [-0.5]])
    key = ("read", "nodes")
    vector = VectorStates(np.zeros((3, 4)), np.full((3, 4), 0.02), np.zeros((3, 4)), 0.02, np.zeros(3), np.zeros(3))
    predictions = StatePredictions(
        ("read",), rates, np.full((3, 1), 0.03), np.array([0.03]), {key: vector}, {}, NOT_LOAD, NOT_LOAD,
        {key: ("n1", "n2", "n3", "n4")},
    )  # fmt: skip
    pairs = combine_predictions_of_pairs(predictions, np.array([1]), np.array([2]))
    surprises = []
    for count in (1, 4):
        parts = {f"n{number}": (1.2 if number <= count else 0.0) for number in range(1, 5)}
        result = ExperimentResult("warm-cache", (RunMeasurement({}, {key: parts}),), 0.02)
        surprises.append(-float(compute_pair_density(pairs, result, NoiseModel())[0]))
    assert surprises[0] < surprises[1] < surprises[0] + 12


def test_wide_spread_counts_once_against_repeats() -> None:
    # Parts that a cause is simulated to spread widely are even: the spread is smaller than simulated, in all runs.
    key = ("read", "targets")
    spread = np.array([[0.0], [0.0], [0.3]])
    vector = VectorStates(
        np.zeros((3, 4)), np.full((3, 4), 0.02) + spread, np.zeros((3, 4)) + spread, 0.02, np.zeros(3), np.zeros(3)
    )
    predictions = StatePredictions(
        ("read",), np.array([[0.0], [0.0], [-1.0]]), np.full((3, 1), 0.03), np.array([0.03]), {key: vector}, {},
        NOT_LOAD, NOT_LOAD, {key: ("t1", "t2", "t3", "t4")},
    )  # fmt: skip
    pairs = combine_predictions_of_pairs(predictions, np.array([1, 0]), np.array([2, 1]))
    run = RunMeasurement({}, {key: {f"t{number}": 0.07 * (-1) ** number for number in range(1, 5)}})
    costs = []
    for repeats in (1, 4):
        result = ExperimentResult("small-reads", (run,) * repeats)
        wide, narrow = compute_pair_density(pairs, result, NoiseModel())
        costs.append(float(narrow - wide))
    assert costs[1] < 3.5 * costs[0]


def test_part_improbable_alone_is_compared_in_pairs(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    # A slow link is probable at the server of the slow target only, until the target explains its own reads.
    pairs = compute_pair_probabilities(diagnosis_model, measure(diagnosis_model, simulator, (SLOW_TARGET,)))
    ids = [item.id for item in diagnosis_model.hypotheses]
    link = ids.index("slow-link:oss1-oss4")
    assert set(pairs.states.members[pairs.states.hypotheses == link].tolist()) == {0, 1, 2, 3}


def test_all_alternatives_explain_the_same_measurements(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    pairs = compute_pair_probabilities(diagnosis_model, measure(diagnosis_model, simulator, (SLOW_TARGET,)))
    probabilities = np.exp(pairs.group_log_weights)
    assert np.sum(probabilities) == pytest.approx(1.0)
    single = diagnosis_model.compute_posterior(measure(diagnosis_model, simulator, (SLOW_TARGET,)))
    by_group = dict(zip(pairs.groups, pairs.group_log_weights, strict=True))
    indices = {item.id: index for index, item in enumerate(diagnosis_model.hypotheses)}
    nothing, unexplained, slow = (indices[name] for name in ("nothing", "unexplained", "slow-target:t0-t7"))
    # Without second causes, the odds are those of the diagnosis of one cause, times the share of single causes.
    expected = single.log_weights[unexplained] - np.logaddexp.reduce(single.log_weights[slow][:, 5])
    measured = by_group[(nothing, 0), (unexplained, 0)] - by_group[(nothing, 0), (slow, 5)]
    assert measured == pytest.approx(float(np.logaddexp.reduce(expected, axis=None)) - np.log(0.5), abs=0.1)


def test_probability_of_pair_does_not_depend_on_chosen_strengths(
    diagnosis_model: DiagnosisModel, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Repeats are more exact than the distance between the chosen strengths.
    results = measure(diagnosis_model, simulator, (SLOW_TARGET, "mds-saturated 0.7"), ("names", "every-target") * 3)
    probabilities = []
    for count in (10, 100):
        monkeypatch.setattr(cause_pairs, "_FINE_STRENGTHS", count)
        pairs = compute_pair_probabilities(diagnosis_model, results)
        ids = [item.id for item in diagnosis_model.hypotheses]
        group = (ids.index("slow-target:t0-t7"), 5), (ids.index("mds-saturated"), 0)
        weights = dict(zip(pairs.groups, pairs.group_log_weights, strict=True))
        probabilities.append(weights[group] - weights[group[0], (ids.index("access-control"), 0)])
    assert probabilities[0] == pytest.approx(probabilities[1], abs=0.1)


READINGS = ("server-messages", "client-settings", "server-load")


def test_next_experiment_separates_probable_pairs(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    results = measure(diagnosis_model, simulator, (SLOW_TARGET, "mds-saturated 0.8"), ("every-target", *READINGS))
    causes = find_most_probable_pair(diagnosis_model, results)
    assert causes is not None
    value, _ = causes.choose_next(SECOND_CAUSE_STOP_RULE, 1)
    assert value is not None
    assert value.experiment not in READINGS
    assert value.bits > 0.02
    decided = find_most_probable_pair(
        diagnosis_model,
        measure(diagnosis_model, simulator, ("slow-target t2 6", "slow-node n3 12"), (*NAMES, *READINGS)),
    )
    assert decided is not None
    assert decided.choose_next(SECOND_CAUSE_STOP_RULE, 1) == (None, "one pair is as probable as the stop rule asks")


def test_logs_settings_and_counters_are_read_before_pairs(
    diagnosis_model: DiagnosisModel, simulator: Simulator
) -> None:
    results = measure(diagnosis_model, simulator, ("slow-target t2 6", "slow-node n3 12"), ("every-target", "names"))
    experiments = []
    for number in range(len(READINGS)):
        causes = find_most_probable_pair(diagnosis_model, results)
        assert causes is not None
        value, _ = causes.choose_next(SECOND_CAUSE_STOP_RULE, 1)
        assert value is not None
        experiments.append(value.experiment)
        results += measure(diagnosis_model, simulator, ("slow-target t2 6", "slow-node n3 12"), experiments[number:])
    assert sorted(experiments) == sorted(READINGS)


def test_model_without_causes_has_no_pairs(diagnosis_model: DiagnosisModel) -> None:
    assert find_most_probable_pair(replace(diagnosis_model, hypotheses=diagnosis_model.hypotheses[:2]), []) is None
