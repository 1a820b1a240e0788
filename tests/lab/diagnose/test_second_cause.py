# SPDX-License-Identifier: Apache-2.0
"""Two causes at once: both are named, and a single cause has no second one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sonde.diagnose.diagnosis import choose_next, is_decided, rank_hypotheses
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.second_cause import SECOND_RULE, TwoCauses, find_two_causes
from sonde.diagnose.simulation import Simulator

NAMES = ("every-target", "names", "warm-cache", "server-messages")


def find_causes(model: DiagnosisModel, simulator: Simulator, *faults: str) -> TwoCauses:
    truth = ModeledTruth(faults, seed=8)
    results: list[ExperimentResult] = [
        truth.run_experiment(model.find_experiment(name), number, simulator, model.noise)
        for number, name in enumerate(NAMES)
    ]
    causes = find_two_causes(model, results)
    assert causes is not None
    return causes


@pytest.mark.parametrize(
    ("faults", "answers"),
    [
        (("slow-target t5 6", "mds-saturated 0.8"), {("slow-target:t0-t7", "t5"), ("mds-saturated", "")}),
        (("slow-target t2 6", "slow-node n3 12"), {("slow-target:t0-t7", "t2"), ("slow-node:n1-n4", "n3")}),
    ],
)
def test_two_faults_are_both_named(
    model: DiagnosisModel, simulator: Simulator, faults: tuple[str, ...], answers: set[tuple[str, str]]
) -> None:
    causes = find_causes(model, simulator, *faults)
    assert {
        (causes.first.hypothesis.id, causes.first.part),
        (causes.second.hypothesis.id, causes.second.part),
    } == answers


def test_single_fault_has_no_second_cause(model: DiagnosisModel, simulator: Simulator) -> None:
    causes = find_causes(model, simulator, "slow-target t5 6")
    assert (causes.first.hypothesis.id, causes.first.part) == ("slow-target:t0-t7", "t5")
    assert causes.second.hypothesis.id == "nothing"


def test_undecided_first_cause_gets_the_next_experiment(model: DiagnosisModel, simulator: Simulator) -> None:
    truth = ModeledTruth(("noisy-neighbor 0.6", "mds-saturated 0.8"), seed=8)
    results = [
        truth.run_experiment(model.find_experiment(name), number, simulator, model.noise)
        for number, name in enumerate(("names", "every-target"))
    ]
    causes = find_two_causes(model, results)
    assert causes is not None
    assert causes.reverse is not None
    assert causes.reverse.posterior.hypotheses  # the second cause is given, so it is no candidate
    assert causes.second.hypothesis.id not in [item.id for item in causes.reverse.posterior.hypotheses]
    first = rank_hypotheses(causes.reverse.posterior)[0]
    undecided = replace(causes, first_probability=0.5)
    expected = choose_next(causes.reverse.model, causes.reverse.posterior, causes.reverse.results, SECOND_RULE, 1)[0]
    assert (expected is None) == is_decided(first, SECOND_RULE)
    if expected is not None:
        assert undecided.choose_next(SECOND_RULE, 1)[0] == expected
    decided = replace(causes, first_probability=0.99)
    by_second = choose_next(causes.model, causes.posterior, causes.results, SECOND_RULE, 1)[0]
    assert decided.choose_next(SECOND_RULE, 1)[0] == by_second


def test_single_fault_has_nothing_to_exchange(model: DiagnosisModel, simulator: Simulator) -> None:
    assert find_causes(model, simulator, "slow-target t5 6").reverse is None
