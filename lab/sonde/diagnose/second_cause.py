# SPDX-License-Identifier: Apache-2.0
"""Two causes at once: the model of a machine that has the first cause already, so that a second one can be asked for.

What two causes do together is not simulated. It lies between both effects one after the other (factors multiply) and
the larger of both (one bottleneck hides the other). The prediction is the middle, and half of the range is its error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np

from sonde.diagnose.diagnosis import DiagnosisStopRule, RankedHypothesis, choose_next, rank_hypotheses
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.hypotheses import CAUSE, FAULT, NOTHING, UNEXPLAINED, Hypothesis
from sonde.diagnose.likelihood import ExperimentResult, compute_log_density
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.next_experiment import ExperimentValue
from sonde.diagnose.posterior import Posterior
from sonde.diagnose.predictions import Prediction, VectorPrediction
from sonde.stats.ranks import Floats

# Probability that there is no second cause, once the first is known; an assumption.
_ALONE_PRIOR = 0.5
# How many hypotheses, and parts of each, are tried as the first cause.
_FIRST_CANDIDATES, _PARTS = 4, 2
# Error of a part's predicted value on a machine that has another fault too.
_VECTOR_SD = 0.15
# Experiments for both causes count.
SECOND_RULE = DiagnosisStopRule(most_experiments=20)


@dataclass(frozen=True)
class KnownCause:
    """A cause at a part with one of its strengths."""

    hypothesis: Hypothesis
    member: int
    strength: int

    @property
    def part(self) -> str:
        return self.hypothesis.members[self.member]


@dataclass(frozen=True)
class RemainingCause:
    """What is known about one of two causes when the other is there: its model, the results without the other, and the
    probabilities."""

    model: DiagnosisModel
    results: tuple[ExperimentResult, ...]
    posterior: Posterior


@dataclass(frozen=True)
class TwoCauses:
    """The first cause, and the ranking of what else is wrong; the first of the ranking is "nothing" if nothing is.

    `first_probability` compares the candidates for the first cause with each other. `reverse` is what is known about it
    when the most probable second cause is there; None when that is no cause.
    """

    first: KnownCause
    first_probability: float
    model: DiagnosisModel
    results: tuple[ExperimentResult, ...]
    posterior: Posterior
    reverse: RemainingCause | None = None

    @property
    def second(self) -> RankedHypothesis:
        return rank_hypotheses(self.posterior)[0]

    def to_json(self) -> dict[str, Any]:
        """The causes as a document."""
        return {
            "first": {
                "id": self.first.hypothesis.id,
                "part": self.first.part,
                "probability": self.first_probability,
            },
            "second": [
                {"id": item.hypothesis.id, "part": item.part, "probability": item.probability}
                for item in rank_hypotheses(self.posterior)
            ],
        }

    def choose_next(self, rule: DiagnosisStopRule, seed: int) -> tuple[ExperimentValue | None, str]:
        """Returns the experiment that says most about the second cause, or None with the reason.

        While the first cause is not decided, the experiment is one that separates its candidates: with a wrong first
        cause, the second follows from what that one leaves unexplained.
        """
        if self.reverse is not None and self.first_probability < rule.probability:
            reverse = self.reverse
            value, _, reason = choose_next(reverse.model, reverse.posterior, reverse.results, rule, seed)
            if value is not None:
                return value, reason
        value, _, reason = choose_next(self.model, self.posterior, self.results, rule, seed)
        return value, reason


def find_two_causes(model: DiagnosisModel, results: Sequence[ExperimentResult]) -> TwoCauses | None:
    """Returns the most probable first cause with what is known about a second; None when no hypothesis is a cause."""
    names = list(dict.fromkeys(result.experiment for result in results))
    weighed: dict[tuple[int, int, int], tuple[float, Posterior]] = {}

    def weigh(index: int, member: int, strengths: Iterable[int]) -> None:
        for strength in strengths:
            cause = KnownCause(model.hypotheses[index], member, int(strength))
            conditioned = condition_model(model, cause, index, names)
            remaining = [_subtract_cause(model, result, cause, index) for result in results]
            posterior, score = _weigh_second_causes(model, conditioned, remaining, index)
            prior = float(model.prior.log_weights[index][cause.strength, member])
            weighed[index, member, cause.strength] = score + prior, posterior

    for index, weights in _rank_first_causes(model, results):
        for member in np.argsort(-np.max(weights, axis=0))[:_PARTS]:
            weigh(index, int(member), np.flatnonzero(model.find_visible(index)))
    if not weighed:
        return None
    evidence: dict[tuple[int, int], float] = {}
    for (index, member, _), (score, _) in weighed.items():
        evidence[index, member] = float(np.logaddexp(evidence.get((index, member), -np.inf), score))
    index, member = max(evidence, key=lambda key: evidence[key])
    total = np.logaddexp.reduce(list(evidence.values()))
    best = max((key for key in weighed if key[:2] == (index, member)), key=lambda key: weighed[key][0])
    cause = KnownCause(model.hypotheses[index], member, best[2])
    return TwoCauses(
        cause,
        float(np.exp(evidence[index, member] - total)),
        condition_model(model, cause, index, [item.id for item in model.experiments]),
        tuple(_subtract_cause(model, result, cause, index) for result in results),
        weighed[best][1],
        _exchange_causes(model, results, weighed[best][1]),
    )


def _exchange_causes(
    model: DiagnosisModel, results: Sequence[ExperimentResult], posterior: Posterior
) -> RemainingCause | None:
    """Takes the most probable second cause as given, and returns what is known about the first."""
    position = int(np.argmax(posterior.probabilities))
    hypothesis, weights = posterior.hypotheses[position], posterior.log_weights[position]
    if hypothesis.kind not in (FAULT, CAUSE):
        return None
    strength, member = np.unravel_index(int(np.argmax(weights)), weights.shape)
    index = [item.id for item in model.hypotheses].index(hypothesis.id)
    cause = KnownCause(model.hypotheses[index], int(member), int(strength))
    conditioned = condition_model(model, cause, index, [item.id for item in model.experiments])
    remaining = tuple(_subtract_cause(model, result, cause, index) for result in results)
    return RemainingCause(conditioned, remaining, _weigh_second_causes(model, conditioned, remaining, index)[0])


def _rank_first_causes(model: DiagnosisModel, results: Sequence[ExperimentResult]) -> list[tuple[int, Floats]]:
    """Hypotheses that explain the results best alone, as indices with log weights of their strengths and parts."""
    densities = [model.compute_densities(result) for result in results]
    ranked = []
    for index, hypothesis in enumerate(model.hypotheses):
        if hypothesis.kind in (FAULT, CAUSE):
            weights = model.prior.log_weights[index] + sum(item[index] for item in densities)
            ranked.append((index, np.asarray(weights)))
    ranked.sort(key=lambda item: -float(np.logaddexp.reduce(item[1], axis=None)))
    return ranked[:_FIRST_CANDIDATES]


def _weigh_second_causes(
    model: DiagnosisModel, conditioned: DiagnosisModel, results: Sequence[ExperimentResult], index: int
) -> tuple[Posterior, float]:
    """Returns the probabilities of second causes when the first is there, and the log density of the results."""
    positions = [position for position in range(len(model.hypotheses)) if position != index]
    weights = [
        model.prior.log_weights[position] + log(hypothesis.prior / model.hypotheses[position].prior)
        for position, hypothesis in zip(positions, conditioned.hypotheses, strict=True)
    ]
    for result in results:
        predictions = conditioned.predictions[result.experiment]
        healthy = conditioned.get_healthy_prediction(result.experiment)
        experiment = model.find_experiment(result.experiment)
        for number, position in enumerate(positions):
            weights[number] = weights[number] + compute_log_density(
                conditioned.hypotheses[number],
                predictions[number],
                healthy,
                result.runs,
                model.masks[position],
                experiment,
                model.noise,
                result.reference_sd,
                result.part_sd,
            )
    score = float(np.logaddexp.reduce([np.logaddexp.reduce(item, axis=None) for item in weights]))
    return Posterior(conditioned.hypotheses, tuple(weights)).normalize(), score


def condition_model(model: DiagnosisModel, cause: KnownCause, index: int, experiments: Sequence[str]) -> DiagnosisModel:
    """Returns the model of the machine that has the cause: predictions are changes in addition to it."""
    positions = [position for position in range(len(model.hypotheses)) if position != index]
    others = [model.hypotheses[position] for position in positions]
    total = sum(item.prior for item in others if item.kind != NOTHING)
    hypotheses = tuple(
        replace(item, prior=_ALONE_PRIOR if item.kind == NOTHING else (1 - _ALONE_PRIOR) * item.prior / total)
        for item in others
    )
    predictions: dict[str, list[Prediction]] = {}
    for experiment in experiments:
        first = _select_effect(model, experiment, cause, index)
        predictions[experiment] = [
            _add_cause(model.predictions[experiment][position], first, model.hypotheses[position])
            for position in positions
        ]
    return replace(model, hypotheses=hypotheses, predictions=predictions)


def _select_effect(model: DiagnosisModel, experiment: str, cause: KnownCause, index: int) -> Prediction:
    """The prediction of the cause with one strength; that of a healthy machine where the experiment does not use it."""
    is_exposed = model.masks[index].select_exposed(model.find_experiment(experiment))[cause.member] > 0
    prediction = model.predictions[experiment][index] if is_exposed else model.get_healthy_prediction(experiment)
    strength = cause.strength if is_exposed else 0

    def select(values: Floats) -> Floats:
        return values[min(strength, len(values) - 1) :][:1]

    return Prediction(
        {phase: (select(mean), select(sd)) for phase, (mean, sd) in prediction.rates.items()},
        {},
        {kind: select(item) for kind, item in prediction.messages.items()},
    )


def _add_cause(prediction: Prediction, first: Prediction, hypothesis: Hypothesis) -> Prediction:
    rates = {}
    for phase, (mean, sd) in prediction.rates.items():
        effect, error = first.rates[phase]
        together = mean
        if hypothesis.kind not in (NOTHING, UNEXPLAINED) and effect[0] < 0:
            together = np.where(mean < 0, np.minimum(0.0, mean - effect), mean)
        rates[phase] = (mean + together) / 2, np.sqrt(sd**2 + error**2 + ((mean - together) / 2) ** 2)
    vectors: Mapping[tuple[str, str], VectorPrediction] = {
        key: VectorPrediction(
            item.inside, item.outside, np.hypot(item.inside_sd, _VECTOR_SD), np.hypot(item.outside_sd, _VECTOR_SD)
        )
        for key, item in prediction.vectors.items()
    }
    messages = {kind: 1 - (1 - item) * (1 - first.messages[kind]) for kind, item in prediction.messages.items()}
    return Prediction(rates, vectors, messages)


def _subtract_cause(model: DiagnosisModel, result: ExperimentResult, cause: KnownCause, index: int) -> ExperimentResult:
    """Returns the result relative to a machine that has the cause, without the parts that it slows."""
    effect = _select_effect(model, result.experiment, cause, index)
    runs = []
    for run in result.runs:
        rates = {phase: value - float(effect.rates[phase][0][0]) for phase, value in run.rates.items()}
        vectors = {}
        for key, values in run.vectors.items():
            names = tuple(values)
            touched = model.masks[index].select(key[1], names)[cause.member]
            remaining = {name: values[name] for name, is_touched in zip(names, touched, strict=True) if not is_touched}
            if len(remaining) > 1:
                middle = float(np.median(list(remaining.values())))
                vectors[key] = {name: value - middle for name, value in remaining.items()}
        runs.append(RunMeasurement(rates, vectors, run.messages))
    return replace(result, runs=tuple(runs))
