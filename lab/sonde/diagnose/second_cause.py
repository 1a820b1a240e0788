# SPDX-License-Identifier: Apache-2.0
"""Two causes at once: which pair explains the results, how sure that is, and which experiment says most about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sonde.diagnose.cause_pairs import CausePairs, GroupKey, PartKey, compute_pair_probabilities
from sonde.diagnose.description import DiagnosisExperiment, ExperimentCost
from sonde.diagnose.diagnosis import DiagnosisStopRule, RankedHypothesis, select_most_informative_experiment
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.hypotheses import CAUSE, FAULT, UNEXPLAINED
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.next_experiment import ExperimentValue
from sonde.diagnose.pair_information import estimate_pair_information_bits

# Experiments for both causes count.
SECOND_CAUSE_STOP_RULE = DiagnosisStopRule(max_experiments=20)
_QUICK_READING_S = 300.0


@dataclass(frozen=True)
class TwoCauses:
    """The most probable pair: `first` is the cause that is more probable than the other, with its probability whatever
    the other one is. `seconds` are ranked given the first, and begin with "nothing" if nothing else is wrong.

    `probability` is that of both causes with their parts, or of the single cause, among all alternatives.
    `unexplained` is the probability that no cause or pair explains the results.
    """

    model: DiagnosisModel
    results: tuple[ExperimentResult, ...]
    pairs: CausePairs
    first: RankedHypothesis
    seconds: tuple[RankedHypothesis, ...]
    probability: float
    unexplained: float

    @property
    def second_cause(self) -> RankedHypothesis:
        return self.seconds[0]

    @property
    def first_probability(self) -> float:
        return self.first.probability

    def is_decided(self, rule: DiagnosisStopRule) -> bool:
        """Whether both causes with their parts are together as probable as the rule asks."""
        return self.probability >= rule.probability and self.second_cause.hypothesis.kind != UNEXPLAINED

    def to_json(self) -> dict[str, Any]:
        """The causes as a document."""
        return {
            "probability": self.probability,
            "unexplained": self.unexplained,
            "first": {"id": self.first.hypothesis.id, "part": self.first.part, "probability": self.first_probability},
            "second": [
                {"id": item.hypothesis.id, "part": item.part, "probability": item.probability} for item in self.seconds
            ],
        }

    def choose_next(self, rule: DiagnosisStopRule, seed: int) -> tuple[ExperimentValue | None, str]:
        """Returns the experiment that separates the probable pairs best for its cost, or None with the reason.

        Logs, settings and counters are read first: what two causes do to rates is predicted roughly, and reading is
        cheap.
        """

        def estimate_values(experiment_ids: Sequence[str]) -> list[ExperimentValue]:
            values = [
                ExperimentValue(
                    name,
                    estimate_pair_information_bits(
                        self.model, self.pairs, name, np.random.default_rng([seed, *name.encode()])
                    ),
                    self.model.compute_cost_s(name),
                )
                for name in experiment_ids
            ]
            return sorted(values, key=lambda item: -item.bits_per_minute)

        done = {result.experiment for result in self.results}
        unread = [item.id for item in self.model.experiments if _is_read_quickly(item.description)]
        if unread := [name for name in unread if name not in done]:
            return estimate_values(unread)[0], ""
        if self.is_decided(rule):
            return None, "one pair is as probable as the stop rule asks"
        value, _, reason = select_most_informative_experiment(self.model, self.results, rule, estimate_values)
        return value, reason


def find_most_probable_pair(model: DiagnosisModel, results: Sequence[ExperimentResult]) -> TwoCauses | None:
    """Returns the most probable pair of causes, or cause alone; None when no hypothesis is a cause."""
    if not any(item.kind in (FAULT, CAUSE) for item in model.hypotheses):
        return None
    pairs = compute_pair_probabilities(model, results)
    shares = dict(zip(pairs.groups, np.exp(pairs.group_log_weights).tolist(), strict=True))
    causes = {
        group: share for group, share in shares.items() if any(_is_fault_or_known_cause(model, key) for key in group)
    }  # fmt: skip
    best = max(causes, key=lambda group: causes[group])
    marginal = {key: sum(share for group, share in causes.items() if key in group) for key in best}
    first_key = max((key for key in best if _is_fault_or_known_cause(model, key)), key=lambda key: marginal[key])
    total = sum(causes.values())
    strengths = _find_probable_strengths(model, pairs)
    first = RankedHypothesis(
        model.hypotheses[first_key[0]],
        marginal[first_key] / total,
        model.hypotheses[first_key[0]].members[first_key[1]],
        1.0,
        strengths.get((best, first_key), 0.0),
    )
    return TwoCauses(
        model,
        tuple(results),
        pairs,
        first,
        _rank_second_causes(model, causes, first_key, strengths),
        causes[best],
        sum(share for group, share in shares.items() if all(_is_unexplained(model, key) for key in group)),
    )


def _is_read_quickly(experiment: DiagnosisExperiment) -> bool:
    """Whether somebody only reads what is there already."""
    cost = experiment.cost or ExperimentCost()
    return bool(experiment.yes_or_no_phases) and (cost.person or 0.0) <= _QUICK_READING_S


def _is_fault_or_known_cause(model: DiagnosisModel, part_key: PartKey) -> bool:
    return model.hypotheses[part_key[0]].kind in (FAULT, CAUSE)


def _is_unexplained(model: DiagnosisModel, part_key: PartKey) -> bool:
    return not _is_fault_or_known_cause(model, part_key) and part_key != (0, 0)


def _rank_second_causes(
    model: DiagnosisModel,
    cause_weights: Mapping[GroupKey, float],
    first_cause: PartKey,
    strengths: Mapping[tuple[GroupKey, PartKey], float],
) -> tuple[RankedHypothesis, ...]:
    """Ranks the second causes given the first cause, the most probable first."""
    with_first = {group: share for group, share in cause_weights.items() if first_cause in group}
    total = sum(with_first.values())
    parts: dict[int, dict[PartKey, tuple[float, float]]] = {}
    for group, share in with_first.items():
        other = group[1] if group[0] == first_cause else group[0]
        parts.setdefault(other[0], {})[other] = share, strengths.get((group, other), 0.0)
    ranked = []
    for index, by_part in parts.items():
        share = sum(item[0] for item in by_part.values())
        key = max(by_part, key=lambda item: by_part[item][0])
        hypothesis = model.hypotheses[index]
        part_share = by_part[key][0] / share if share else 1.0
        ranked.append(
            RankedHypothesis(hypothesis, share / total, hypothesis.members[key[1]], part_share, by_part[key][1])
        )
    return tuple(sorted(ranked, key=lambda item: -item.probability))


def _find_probable_strengths(model: DiagnosisModel, pairs: CausePairs) -> dict[tuple[GroupKey, PartKey], float]:
    """The most probable strength of both causes of each group, between its weakest (0) and strongest (1)."""
    order = np.argsort(pairs.log_weights)
    best = dict(zip(pairs.group_numbers[order].tolist(), order.tolist(), strict=True))  # the last one wins
    strengths = {}
    for number, alternative in best.items():
        group = pairs.groups[number]
        for key, state in zip(group, (pairs.first[alternative], pairs.second[alternative]), strict=True):
            if _is_fault_or_known_cause(model, key):
                most = pairs.states.strengths[pairs.states.hypotheses == key[0]].max()
                strengths[group, key] = float(pairs.states.strengths[state] / most) if most else 0.0
    return strengths
