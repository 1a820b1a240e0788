# SPDX-License-Identifier: Apache-2.0
"""The course of a diagnosis: which experiment is next, when it ends, and what the answer is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.hypotheses import UNEXPLAINED, Hypothesis
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.next_experiment import ExperimentValue, estimate_information_bits
from sonde.diagnose.posterior import Posterior
from sonde.diagnose.predictive_check import PredictiveCheck, check_runs_against_hypothesis

# Information of a repeat that shows whether a contradiction was chance: the answer to one question.
_CONFIRMATION_BITS = 1.0
DiagnosisStatus = Literal["decided", "several_remain", "contradicted", "open"]


@dataclass(frozen=True)
class DiagnosisStopRule:
    """A diagnosis ends when one part and cause has this `probability`, when no experiment promises `min_bits`, after
    `max_experiments`, or when the next experiment would exceed `max_seconds` of cost.

    Experiments with less than `min_share` of the information of the most informative one are not done: however cheap,
    repeats of them would use up the number of experiments.
    """

    probability: float = 0.995
    min_bits: float = 0.02
    min_share: float = 0.1
    max_experiments: int = 12
    max_repeats: int = 4
    max_seconds: float = 8 * 3600.0


@dataclass(frozen=True)
class RankedHypothesis:
    """One hypothesis in the ranking. `part` is the most probable one, with its probability given the hypothesis."""

    hypothesis: Hypothesis
    probability: float
    part: str
    part_probability: float
    strength: float  # position between the weakest (0) and the strongest (1) simulated strength

    def to_json(self) -> dict[str, Any]:
        """The hypothesis with its probabilities, as a document."""
        return {
            "id": self.hypothesis.id,
            "title": self.hypothesis.title,
            "category": self.hypothesis.category,
            "probability": self.probability,
            "part": self.part,
            "part_probability": self.part_probability,
        }


@dataclass(frozen=True)
class DiagnosisAnswer:
    """`remaining` are the fewest hypotheses that have the probability of the stop rule together.

    Status `contradicted`: the first hypothesis is the most probable, and yet a measurement is far outside of what it
    allows (`check`): none of the hypotheses explains the results.
    """

    status: DiagnosisStatus
    ranking: tuple[RankedHypothesis, ...]
    remaining: tuple[RankedHypothesis, ...]
    reason: str
    check: PredictiveCheck = field(default_factory=PredictiveCheck)

    @property
    def is_unexplained(self) -> bool:
        """Whether the answer is that no hypothesis explains the results."""
        return self.status == "contradicted" or (
            self.status != "open" and self.most_probable.hypothesis.kind == UNEXPLAINED
        )

    @property
    def most_probable(self) -> RankedHypothesis:
        return self.ranking[0]


def rank_hypotheses(posterior: Posterior) -> tuple[RankedHypothesis, ...]:
    """All hypotheses, the most probable first."""
    candidates = []
    for index, probability in enumerate(posterior.hypothesis_probabilities):
        members = posterior.compute_part_probabilities(index)
        part = max(members, key=lambda name: members[name])
        strengths = posterior.compute_strength_probabilities(index)
        position = float(np.sum(strengths * np.linspace(0, 1, len(strengths)))) if len(strengths) > 1 else 0.0
        candidates.append(
            RankedHypothesis(posterior.hypotheses[index], float(probability), part, members[part], position)
        )
    return tuple(sorted(candidates, key=lambda item: -item.probability))


def estimate_experiment_values(
    model: DiagnosisModel, posterior: Posterior, seed: int, experiment_ids: Sequence[str]
) -> list[ExperimentValue]:
    """Expected information of the experiments, the most for its cost first."""
    values = []
    for name in experiment_ids:
        experiment = model.find_experiment(name)
        bits = estimate_information_bits(
            posterior,
            experiment,
            model.predictions[name],
            model.part_masks,
            model.machine,
            model.noise,
            np.random.default_rng([seed, *name.encode()]),
        )
        values.append(ExperimentValue(name, bits, model.compute_cost_s(name)))
    return sorted(values, key=lambda item: -item.bits_per_minute)


def choose_next_experiment(
    model: DiagnosisModel,
    posterior: Posterior,
    results: Sequence[ExperimentResult],
    stop_rule: DiagnosisStopRule,
    seed: int,
    allowed_experiments: Sequence[str] | None = None,
) -> tuple[ExperimentValue | None, list[ExperimentValue], str]:
    """Returns the next experiment or None, the values of all, and why there is none."""
    first = rank_hypotheses(posterior)[0]
    values: list[ExperimentValue] = []
    value, reason = None, "one hypothesis is as probable as the stop rule asks"
    if not is_probable_enough(first, stop_rule):
        value, values, reason = select_most_informative_experiment(
            model,
            results,
            stop_rule,
            lambda names: estimate_experiment_values(model, posterior, seed, names),
            allowed_experiments,
        )
    if value is None:
        value = _find_experiment_to_confirm(model, posterior, results, stop_rule, allowed_experiments)
    return value, values, reason if value is None else ""


def _find_experiment_to_confirm(
    model: DiagnosisModel,
    posterior: Posterior,
    results: Sequence[ExperimentResult],
    stop_rule: DiagnosisStopRule,
    allowed_experiments: Sequence[str] | None,
) -> ExperimentValue | None:
    """Returns the experiment with one run that contradicts the most probable hypothesis; None if there is none, or if
    the stop rule allows no further run."""
    hypothesis = rank_hypotheses(posterior)[0].hypothesis
    check = check_runs_against_hypothesis(model, posterior, results, posterior.hypotheses.index(hypothesis))
    names = [item.experiment for item in results for _ in item.runs]
    is_allowed = allowed_experiments is None or check.experiment in allowed_experiments
    if not check.is_contradicted or not is_allowed or names.count(check.experiment) > 1:
        return None
    cost = model.compute_cost_s(check.experiment)
    spent = sum(model.compute_cost_s(name) for name in names)
    if len(names) >= stop_rule.max_experiments or spent + cost > stop_rule.max_seconds:
        return None
    return ExperimentValue(check.experiment, _CONFIRMATION_BITS, cost)


def select_most_informative_experiment(
    model: DiagnosisModel,
    results: Sequence[ExperimentResult],
    stop_rule: DiagnosisStopRule,
    estimate_values: Callable[[Sequence[str]], list[ExperimentValue]],
    allowed_experiments: Sequence[str] | None = None,
) -> tuple[ExperimentValue | None, list[ExperimentValue], str]:
    """Returns the experiment with the most information for its cost within the rule or None, the values of all, and why
    there is none. `estimate_values` returns the values of the named experiments, the most for its cost first."""
    runs: dict[str, int] = {}
    for result in results:
        runs[result.experiment] = runs.get(result.experiment, 0) + len(result.runs)
    if sum(runs.values()) >= stop_rule.max_experiments:
        return None, [], f"{stop_rule.max_experiments} experiments were done"
    spent = sum(count * model.compute_cost_s(name) for name, count in runs.items())
    names = [
        item.id
        for item in model.experiments
        if runs.get(item.id, 0) < (1 if item.description.yes_or_no_phases else stop_rule.max_repeats)
        and (allowed_experiments is None or item.id in allowed_experiments)
    ]
    values = estimate_values(names)
    useful = [item for item in values if item.bits >= stop_rule.min_bits]
    if not useful:
        return None, values, "no experiment promises more information"
    affordable = [item for item in useful if spent + item.cost_s <= stop_rule.max_seconds]
    max_bits = max((item.bits for item in affordable), default=0.0)
    affordable = [item for item in affordable if item.bits >= stop_rule.min_share * max_bits]
    if not affordable:
        return None, values, f"the next experiment would exceed the limit of {stop_rule.max_seconds:.0f} s"
    return affordable[0], values, ""


def is_probable_enough(most_probable: RankedHypothesis, stop_rule: DiagnosisStopRule) -> bool:
    """Whether hypothesis and part are as probable as the rule asks."""
    return (
        most_probable.probability >= stop_rule.probability and most_probable.part_probability >= stop_rule.probability
    )


def build_answer(
    model: DiagnosisModel, results: Sequence[ExperimentResult], stop_rule: DiagnosisStopRule, stop_reason: str
) -> DiagnosisAnswer:
    """Returns the answer at this point. `stop_reason` is why no experiment follows; empty while the diagnosis goes
    on."""
    posterior = model.compute_posterior(results)
    ranking = rank_hypotheses(posterior)
    remaining: list[RankedHypothesis] = []
    total = 0.0
    for candidate in ranking:
        remaining.append(candidate)
        total += candidate.probability
        if total >= stop_rule.probability:
            break
    check = check_runs_against_hypothesis(model, posterior, results, posterior.hypotheses.index(ranking[0].hypothesis))
    if not stop_reason and not is_probable_enough(ranking[0], stop_rule):
        status: DiagnosisStatus = "open"
    elif check.is_contradicted:
        status = "contradicted"
    else:
        status = "decided" if is_probable_enough(ranking[0], stop_rule) else "several_remain"
    return DiagnosisAnswer(status, ranking, tuple(remaining), stop_reason, check)
