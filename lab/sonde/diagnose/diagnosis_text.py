# SPDX-License-Identifier: Apache-2.0
"""A diagnosis in sentences: the answer, the evidence for and against a hypothesis, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from sonde.diagnose.diagnosis import DiagnosisAnswer, RankedHypothesis
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.experiment_plan import ScaledExperiment
from sonde.diagnose.hypotheses import FAULT, NOTHING, UNEXPLAINED
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import NODES
from sonde.diagnose.posterior import Posterior
from sonde.diagnose.predictions import Prediction
from sonde.diagnose.second_cause import SECOND_CAUSE_STOP_RULE, TwoCauses
from sonde.diagnose.server_messages import compute_message_probability, describe_messages
from sonde.stats.ranks import Floats

_DECISIVE_BAYES_FACTOR, _CLEAR_BAYES_FACTOR = 10.0, 3.0
_MIN_CERTAIN_PART_PROBABILITY = 0.95  # a part below this probability is named with it
_MIN_PRINTED_SECOND_PROBABILITY = 0.02  # a second cause below this probability is not named
# Repeats whose rates differ by more than this factor are named: noise and load by others explain less.
_MAX_REPEAT_FACTOR = 2.5
_LOAD_CATEGORY, _NOTHING_CATEGORIES = "load", ("nothing", "unexplained")


def format_log_ratio_as_change(log_ratio: float) -> str:
    """Returns a change of a rate in percent."""
    return f"{100 * (exp(log_ratio) - 1):+.0f} %"


def format_duration(seconds: float) -> str:
    """Returns minutes or hours."""
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def format_probability(probability: float) -> str:
    """Returns a probability in percent; never 0 or 100."""
    return "< 1 %" if probability < 0.005 else "> 99 %" if probability > 0.995 else f"{100 * probability:.0f} %"


def describe_candidate(ranked_hypothesis: RankedHypothesis) -> str:
    """Returns hypothesis and most probable part in one phrase."""
    hypothesis = ranked_hypothesis.hypothesis
    if not ranked_hypothesis.part:
        return hypothesis.title
    if ranked_hypothesis.part_probability < 0.5 and len(hypothesis.members) > 1:
        first, last = hypothesis.members[0], hypothesis.members[-1]
        return f"{hypothesis.title} (one of {len(hypothesis.members)}: {first} to {last})"
    if ranked_hypothesis.part_probability < _MIN_CERTAIN_PART_PROBABILITY:
        probability = format_probability(ranked_hypothesis.part_probability)
        return f"{hypothesis.title}: perhaps {ranked_hypothesis.part} ({probability})"
    return f"{hypothesis.title}: {ranked_hypothesis.part}"


def describe_second_cause(causes: TwoCauses) -> list[str]:
    """Returns the most probable pair of causes in sentences, with what else is possible."""
    first = f"{causes.first.hypothesis.title}{': ' if causes.first.part else ''}{causes.first.part}"
    second = causes.second_cause
    sentences = [f"If there are two causes, the first is ({format_probability(causes.first_probability)}): {first}."]
    probability = format_probability(second.probability)
    if second.hypothesis.kind == NOTHING:
        sentences.append(f"Beside it nothing else is wrong ({probability}).")
    elif second.hypothesis.kind == UNEXPLAINED:
        sentences.append(f"Beside it something else is wrong that no hypothesis explains ({probability}).")
    else:
        sentences.append(f"The second is ({probability}): {describe_candidate(second)}.")
    if not causes.is_decided(SECOND_CAUSE_STOP_RULE):
        others = [f"{describe_candidate(item)} ({format_probability(item.probability)})" for item in causes.seconds[1:3]
                  if item.probability >= _MIN_PRINTED_SECOND_PROBABILITY]  # fmt: skip
        excluded = f"; not excluded beside the first: {'; '.join(others)}" if others else ""
        sentences.append(f"This is not decided: both together have {format_probability(causes.probability)}{excluded}.")
    if causes.unexplained >= _MIN_PRINTED_SECOND_PROBABILITY:
        sentences.append(f"That no pair explains the results has {format_probability(causes.unexplained)}.")
    return sentences


def describe_answer(answer: DiagnosisAnswer) -> list[str]:
    """Returns the answer in one to three sentences."""
    first = answer.most_probable
    probability = format_probability(first.probability)
    if answer.status == "contradicted":
        sentences = [
            "None of the hypotheses explains the results.",
            f"The most probable of them, {describe_candidate(first)} ({probability}), contradicts "
            f"{answer.check.measurement} of {answer.check.experiment} (p = {answer.check.p_value:.1g}).",
        ]
    elif first.hypothesis.kind == UNEXPLAINED and answer.status != "open":
        sentences = [f"None of the hypotheses explains the results ({probability})."]
    elif first.hypothesis.kind == NOTHING and answer.status != "open":
        sentences = [f"Nothing is wrong in what was tested ({probability})."]
    elif answer.status == "decided":
        sentences = [f"The cause is: {describe_candidate(first)} ({probability})."]
    else:
        sentences = [f"Most probable: {describe_candidate(first)} ({probability})."]
    if answer.status == "several_remain" and len(answer.remaining) > 1:
        others = "; ".join(
            f"{describe_candidate(item)} ({format_probability(item.probability)})" for item in answer.remaining[1:4]
        )
        more = len(answer.remaining) - 4
        sentences.append(f"Not excluded: {others}{f'; and {more} more' if more > 0 else ''}.")
    if answer.reason:
        sentences.append(f"No experiment follows: {answer.reason}.")
    return sentences


def describe_contradicting_repeats(results: Sequence[ExperimentResult]) -> list[str]:
    """Returns one sentence for each phase whose rate differs between repeats more than noise allows."""
    rates: dict[tuple[str, str], list[float]] = {}
    for result in results:
        for run in result.runs:
            for phase, value in run.rates.items():
                rates.setdefault((result.experiment, phase), []).append(value)
    return [
        f"Repeats of {experiment} contradict each other: {phase} {format_log_ratio_as_change(min(values))} and "
        f"{format_log_ratio_as_change(max(values))}; check how they were measured, and repeat it."
        for (experiment, phase), values in rates.items()
        if exp(max(values) - min(values)) > _MAX_REPEAT_FACTOR
    ]


def describe_results_after_fix(results: Sequence[ExperimentResult]) -> list[str]:
    """Returns what experiments after a fix gave, which the probabilities do not contain."""
    return [
        f"The probabilities are about the time before the fix; after it {result.experiment} gave "
        f"{describe_measured_changes(result)}."
        for result in results[-1:]
    ]


def describe_load_or_fault_probability(posterior: Posterior) -> str:
    """Returns whether load by others or a fault is the cause."""
    sums = posterior.sum_probabilities_by_category()
    load = sums.get(_LOAD_CATEGORY, 0.0)
    cause = sum(value for name, value in sums.items() if name not in (_LOAD_CATEGORY, *_NOTHING_CATEGORIES))
    return f"Load by others: {format_probability(load)}; a fault, setting or software: {format_probability(cause)}."


@dataclass(frozen=True)
class EvidenceRow:
    """How one experiment speaks about a hypothesis: `factor` is how much more probable its result is under it than
    under all others."""

    experiment: str
    title: str
    measured: str
    predicted: str
    factor: float

    @property
    def comment(self) -> str:
        """For or against, in words."""
        if self.factor >= _CLEAR_BAYES_FACTOR:
            return "strongly for" if self.factor >= _DECISIVE_BAYES_FACTOR else "for"
        if self.factor <= 1 / _CLEAR_BAYES_FACTOR:
            return "strongly against" if self.factor <= 1 / _DECISIVE_BAYES_FACTOR else "against"
        return "neutral"


def list_evidence(
    model: DiagnosisModel, results: Sequence[ExperimentResult], hypothesis_index: int
) -> list[EvidenceRow]:
    """Returns one row for each result, in order."""
    rows = []
    posterior = model.prior_probabilities
    for position, result in enumerate(results):
        before = posterior
        posterior = model.compute_posterior(results[: position + 1])
        factor = _compute_bayes_factor(
            float(before.hypothesis_probabilities[hypothesis_index]),
            float(posterior.hypothesis_probabilities[hypothesis_index]),
        )
        experiment = model.find_experiment(result.experiment)
        prediction = model.predictions[result.experiment][hypothesis_index]
        strengths = posterior.compute_strength_probabilities(hypothesis_index)
        rows.append(
            EvidenceRow(
                result.experiment,
                experiment.description.title,
                describe_measured_changes(result),
                _describe_predicted(prediction, strengths, _choose_noun(result.experiment)),
                factor,
            )
        )
    return rows


def list_passive_evidence(model: DiagnosisModel, hypothesis_index: int) -> list[EvidenceRow]:
    """Returns one row for each kind of evidence that needs no experiment, where it tells hypotheses apart."""
    rows = []
    shares = np.array([item.prior for item in model.hypotheses])
    for name, evidence in model.passive_evidence.items():
        sentences = evidence.describe(model.hypotheses)
        factors = np.exp([evidence.compute_log_factor(item) for item in model.hypotheses])
        if sentences and np.ptp(factors) > 0:
            after = shares * factors / np.sum(shares * factors)
            factor = _compute_bayes_factor(float(shares[hypothesis_index]), float(after[hypothesis_index]))
            rows.append(EvidenceRow(name, name, sentences[0].removesuffix("."), "", factor))
            shares = after
    return rows


def _compute_bayes_factor(prior_probability: float, posterior_probability: float) -> float:
    """Returns the factor on the odds."""
    tiny = 1e-12
    odds_before = max(prior_probability, tiny) / max(1 - prior_probability, tiny)
    return max(posterior_probability, tiny) / max(1 - posterior_probability, tiny) / odds_before


def describe_measured_changes(result: ExperimentResult) -> str:
    """Returns changes of rates against the reference, and the slowest part that stands out."""
    texts = []
    for phase in result.runs[0].rates:
        values = [run.rates[phase] for run in result.runs if phase in run.rates]
        texts.append(f"{phase} {format_log_ratio_as_change(float(np.median(values)))}")
    run = result.runs[-1]
    noun = _choose_noun(result.experiment)
    texts += [f"{name} {noun}: {answer}" for name, answer in describe_messages(run.messages).items()]
    for (phase, kind), parts in run.vectors.items():
        slowest = min(parts, key=lambda name: parts[name])
        if parts[slowest] < -0.25 and "median" not in kind:
            noun = "node" if kind == NODES else "target"
            texts.append(f"slowest {noun} in {phase}: {slowest} {format_log_ratio_as_change(parts[slowest])}")
    return ", ".join(texts)


def _choose_noun(experiment_id: str) -> str:
    """What the names of a yes-or-no result are about."""
    phases = find_diagnosis_experiment(experiment_id).yes_or_no_phases
    if any(phase.setting for phase in phases):
        return "changed"
    return "observed" if any(phase.counter for phase in phases) else "messages"


def _describe_predicted(prediction: Prediction, strengths: Floats, noun: str) -> str:
    if any(len(mean) != len(strengths) for mean, _ in prediction.rates.values()):
        return "any change that no hypothesis predicts"

    def compute_weighted_mean(values: Floats) -> float:
        return float(np.sum(strengths * values))

    texts = [
        f"{phase} {format_log_ratio_as_change(compute_weighted_mean(mean))}"
        for phase, (mean, _) in prediction.rates.items()
    ]
    for message_id in dict.fromkeys(name.partition(" ")[0] for name in prediction.messages):
        probability = compute_message_probability(prediction.messages, message_id)
        if probability is not None:
            share = compute_weighted_mean(np.broadcast_to(np.mean(probability, axis=1), len(strengths)))
            texts.append(f"{message_id} {noun} with {format_probability(share)}")
    for (phase, kind), vector in prediction.vectors.items():
        change = compute_weighted_mean(vector.inside) - compute_weighted_mean(vector.outside)
        if change < -0.1 and "median" not in kind:
            texts.append(f"the part against its peers in {phase} {format_log_ratio_as_change(change)}")
    return ", ".join(texts)


def describe_answer_with_advice(model: DiagnosisModel, posterior: Posterior, answer: DiagnosisAnswer) -> list[str]:
    """Returns the answer, whether load or a fault is the cause, and what to do; the answer is the first sentence."""
    return [
        *describe_answer(answer),
        describe_load_or_fault_probability(posterior),
        *describe_next_steps(model, answer),
    ]


def describe_next_steps(model: DiagnosisModel, answer: DiagnosisAnswer) -> list[str]:
    """Returns what to do about a decided cause, and which hypothesis is closest to the most probable one."""
    advice = describe_advice(answer.most_probable) if answer.status == "decided" else ""
    return [text for text in (advice, describe_closest_alternative(model, answer)) if text]


def describe_next_experiment(experiment: ScaledExperiment, cost_s: float) -> str:
    """Returns which experiment follows, and its cost."""
    return f"Next: {experiment.description.title} ({experiment.id}), for a cost of {format_duration(cost_s)}."


def describe_closest_alternative(model: DiagnosisModel, answer: DiagnosisAnswer) -> str:
    """Returns which other hypothesis is closest, and the experiment whose predictions differ most from it."""
    if len(answer.ranking) < 2:
        return ""
    first, second = answer.ranking[0].hypothesis, answer.ranking[1].hypothesis
    indexes = [model.hypotheses.index(item) for item in (first, second)]
    best_name, best_difference = "", 0.0
    for experiment in model.experiments:
        pair = [model.predictions[experiment.id][index] for index in indexes]
        for phase in pair[0].rates:
            middle = [float(np.median(item.rates[phase][0])) for item in pair if phase in item.rates]
            if len(middle) == 2 and abs(middle[0] - middle[1]) > best_difference:
                best_name, best_difference = experiment.id, abs(middle[0] - middle[1])
    if not best_name:
        return f"No experiment separates it from the second hypothesis: {second.title}."
    return f"The second hypothesis: {second.title}; the experiment {best_name} separates them most."


def describe_advice(ranked_hypothesis: RankedHypothesis) -> str:
    """Returns what to do when the first candidate is the cause."""
    hypothesis = ranked_hypothesis.hypothesis
    if hypothesis.cause is not None:
        return hypothesis.cause.advice + "."
    if hypothesis.kind == FAULT:
        where = (
            f" at {ranked_hypothesis.part}"
            if ranked_hypothesis.part and ranked_hypothesis.part_probability >= 0.5
            else ""
        )
        return f"Check{where}: {hypothesis.title}. After the fix run `sonde diagnose confirm`."
    if hypothesis.kind == UNEXPLAINED:
        return "Describe the cause in a file of its own, or check whether the system file describes this machine."
    return ""
