# SPDX-License-Identifier: Apache-2.0
"""Predictions of single causes and of pairs of causes, as arrays over states: a cause at one part with one strength.

Two causes together are not simulated. On a small machine, 55 pairs of faults were: most rates are those of the slower
cause alone (one bottleneck hides the other), some approach the product of both factors, and load by others beside a
slow part falls below the product, because queues grow until all requests of the others wait. The mean is a share of the
way from the slower cause to the product, and the error a share of that range. A lost server delays a run by the timeout
of its clients, during which no queue grows: beside load by others, the times that both causes cost add up (16
simulations on two machines).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.hypotheses import NOTHING, UNEXPLAINED
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.predictions import SPREAD_MULTIPLES
from sonde.diagnose.server_messages import compute_message_probability
from sonde.stats.ranks import Floats

Indices = NDArray[np.int64]
# Mean and error of two causes, as shares of the way from the slower one alone to the product of both factors.
_GAP_SHARE, _GAP_SD = 0.3, 0.4
# Beside load by others: mean and error as multiples of the product, as logarithms; the same of the value of a part.
_LOAD_FACTOR, _LOAD_SD, _LOAD_PART_FACTOR = 1.8, 0.6, 1.5
# Error of a part's value where another cause slows the rate too, as a share of the value.
_PART_SHARE_SD = 0.3
_SLOW_LOG_RATE = -0.1  # relative log rate below which a cause slows a measurement
# One cause can hide the parts of another: all parts wait for the same bottleneck. In simulations of 57 pairs on a small
# machine, 69 % of the parts were hidden by the slower cause, 15 % by the faster one, and 10 % by one that was not slow.
_HIDDEN_BY_SLOWER, _HIDDEN_BY_FASTER, _HIDDEN_BY_OTHERS = 0.7, 0.15, 0.1
_TARGET_LOAD_CAUSE_ID, _DELAYING_FAULT = "noisy-neighbor", "server-lost"
# Two causes sometimes act together in ways that no rule predicts: this share of the experiments, of the vectors, and of
# the parts of others has a wide error instead. In the simulations, 1.7 % of the vectors changed without any reason.
_ODD_SHARE, _ODD_SD = 0.1, 0.8
_ODD_VECTOR_SHARE, _ODD_PART_SHARE, _ODD_PART_SD = 0.02, 0.002, 1.5
VectorKey = tuple[str, str]


@dataclass(frozen=True)
class CauseStates:
    """Hypotheses, parts and strengths by their indices in a model. State 0 is "nothing".

    A state of "unexplained" is one drawn cause, by its number as the strength.
    """

    hypotheses: Indices
    members: Indices
    strengths: Indices

    def __len__(self) -> int:
        return len(self.hypotheses)


@dataclass(frozen=True)
class VectorStates:
    """Values of the parts of a vector, with states as the first axis of all arrays: means and errors by part, the share
    of runs with uneven nodes, and how much they differ. `spread_sd` is the error of parts that are not at the cause,
    where it is known by SPREAD_MULTIPLES only, else 0. `healthy_sd` is the error of a healthy machine."""

    mean: Floats
    sd: Floats
    spread_sd: Floats
    healthy_sd: float
    uneven_share: Floats
    uneven_sd: Floats


@dataclass(frozen=True)
class StatePredictions:
    """Means and errors of one experiment, with states as the first axis: rates by phase, vectors by part, and
    probabilities of messages."""

    phases: tuple[str, ...]
    rates: Floats
    rates_sd: Floats
    healthy_sd: Floats  # of the rates of a machine without causes
    vectors: Mapping[VectorKey, VectorStates]
    messages: Mapping[str, Floats]
    is_load: NDArray[np.bool_]
    is_delay: NDArray[np.bool_]  # causes that delay a run once
    names: Mapping[VectorKey, tuple[str, ...]]


@dataclass(frozen=True)
class PartPrediction:
    """One way in which pairs of causes show in the parts of a vector. The first axis is the pairs, the second the parts
    of mean and error. `log_weights` are the logarithms of its probability in a run, given the spread between parts.

    The spread is the same in all runs of an experiment: `spread` is its number, `spread_log_weights` its log
    probabilities."""

    log_weights: Floats
    spread: int
    spread_log_weights: Floats
    mean: Floats
    sd: Floats

    @property
    def log_weights_of_run(self) -> Floats:
        """Logarithms of the probability in one run alone."""
        return self.log_weights + self.spread_log_weights


@dataclass(frozen=True)
class CombinedPredictions:
    """Predictions of pairs of states; the first axis is the pairs. Parts have one or more alternatives."""

    phases: tuple[str, ...]
    rates: Floats
    rates_sd: Floats
    vectors: Mapping[VectorKey, tuple[PartPrediction, ...]]
    messages: Mapping[str, Floats]
    names: Mapping[VectorKey, tuple[str, ...]]
    is_single: NDArray[np.bool_]  # pairs with state 0, whose predictions are as certain as those of their cause


def predict_states(
    model: DiagnosisModel, states: CauseStates, experiment_id: str, part_names: Mapping[VectorKey, tuple[str, ...]]
) -> StatePredictions:
    """Returns what each state predicts for an experiment. `part_names` are the parts of its vectors, in order."""
    scaled_experiment = model.find_experiment(experiment_id)
    healthy = model.get_healthy_prediction(experiment_id)
    phases = tuple(healthy.rates)
    count = len(states)
    healthy_sd = np.array([healthy.rates[phase][1][0] for phase in phases])
    rates, rates_sd = np.zeros((count, len(phases))), np.tile(healthy_sd, (count, 1))
    keys = [key for key in part_names if key in healthy.vectors]
    vectors = {
        key: VectorStates(
            np.zeros((count, len(part_names[key]))),
            np.full((count, len(part_names[key])), healthy.vectors[key].outside_sd[0]),
            np.zeros((count, len(part_names[key]))),
            float(healthy.vectors[key].outside_sd[0]),
            np.zeros(count),
            np.zeros(count),
        )
        for key in keys
    }
    messages = {name: np.full(count, probability[0, 0]) for name, probability in healthy.messages.items()}
    is_load, is_delay = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    for index in np.unique(states.hypotheses):
        hypothesis, prediction = model.hypotheses[index], model.predictions[experiment_id][index]
        if hypothesis.kind == NOTHING:
            continue
        exposed = model.part_masks[index].select_exposed_parts(scaled_experiment)
        rows = np.flatnonzero(states.hypotheses == index)
        is_load[rows] = hypothesis.fault == _TARGET_LOAD_CAUSE_ID
        is_delay[rows] = hypothesis.fault == _DELAYING_FAULT
        rows = rows[exposed[states.members[rows]] > 0]
        strengths, members = states.strengths[rows], states.members[rows]
        for column, phase in enumerate(phases):
            mean, sd = prediction.rates[phase]
            chosen = np.minimum(strengths, len(mean) - 1)
            rates[rows, column], rates_sd[rows, column] = mean[chosen], sd[chosen]
        for name in messages:
            probability = prediction.messages[name]
            strength_rows = np.minimum(strengths, len(probability) - 1)
            messages[name][rows] = probability[strength_rows, np.minimum(members, probability.shape[1] - 1)]
        for key in keys if hypothesis.kind != UNEXPLAINED else ():
            vector = prediction.vectors[key]
            inside = model.part_masks[index].select_vector_parts(key[1], part_names[key])[members] > 0
            vectors[key].mean[rows] = np.where(inside, vector.inside[strengths, None], vector.outside[strengths, None])
            vectors[key].sd[rows] = np.where(
                inside, vector.inside_sd[strengths, None], vector.outside_sd[strengths, None]
            )
            if vector.has_uncertain_spread:
                vectors[key].spread_sd[rows] = np.where(inside, 0.0, vector.outside_sd[strengths, None])
            if vector.uneven is not None:
                vectors[key].uneven_share[rows] = vector.uneven.share
                vectors[key].uneven_sd[rows] = vector.uneven.root_mean_square[strengths]
    return StatePredictions(phases, rates, rates_sd, healthy_sd, vectors, messages, is_load, is_delay, part_names)


def combine_predictions_of_pairs(
    predictions: StatePredictions, first_states: Indices, second_states: Indices
) -> CombinedPredictions:
    """Returns what pairs of states predict; a pair with state 0 predicts what its other state does."""
    first_rates, second_rates = predictions.rates[first_states], predictions.rates[second_states]
    slower, product = np.minimum(first_rates, second_rates), first_rates + second_rates
    has_load = (predictions.is_load[first_states] | predictions.is_load[second_states])[:, None]
    has_delay = (predictions.is_delay[first_states] | predictions.is_delay[second_states])[:, None]
    are_slow = (first_rates < 0) & (second_rates < 0)
    gap = np.where(are_slow, slower - product, 0.0)
    queues = has_load & ~has_delay & (np.maximum(first_rates, second_rates) < _SLOW_LOG_RATE)
    rates = np.where(queues, _LOAD_FACTOR * product, slower - _GAP_SHARE * gap)
    rates_sd = np.where(queues, _LOAD_SD * product, _GAP_SD * gap)
    total_times = np.exp(-np.minimum(first_rates, 0)) + np.exp(-np.minimum(second_rates, 0)) - 1
    is_sum = has_load & has_delay & are_slow
    rates_sd = np.where(is_sum, slower + np.log(total_times), rates_sd)
    rates = np.where(are_slow, np.where(is_sum, -np.log(total_times), rates), product)
    variance = (
        predictions.rates_sd[first_states] ** 2 + predictions.rates_sd[second_states] ** 2 - predictions.healthy_sd**2
    )
    rates_sd = np.sqrt(variance + rates_sd**2)
    is_single = ((first_states == 0) | (second_states == 0))[:, None]
    vectors = {}
    for key, vector in predictions.vectors.items():
        column = predictions.phases.index(key[0])
        vectors[key] = _combine_part_predictions(
            vector,
            (first_states, second_states),
            (first_rates[:, column], second_rates[:, column]),
            queues[:, column],
            is_single[:, 0],
        )
    messages = {kind: 1 - (1 - share[first_states]) * (1 - share[second_states]) / (1 - share[0])
                for kind, share in predictions.messages.items()}  # fmt: skip
    return CombinedPredictions(
        predictions.phases, rates, rates_sd, vectors, messages, predictions.names, is_single[:, 0]
    )


def _combine_part_predictions(
    vector: VectorStates,
    states_of_pairs: tuple[Indices, Indices],
    rates_of_pairs: tuple[Floats, Floats],
    queues: NDArray[np.bool_],
    is_single: NDArray[np.bool_],
) -> tuple[PartPrediction, ...]:
    """Parts of a vector under pairs of states: those of both causes, or of one where the other hides them."""
    mean, sd = vector.mean, vector.sd
    (first_states, second_states), (first_rates, second_rates) = states_of_pairs, rates_of_pairs
    values, other_values = mean[first_states], mean[second_states]
    together = np.where(
        (values < 0) & (other_values < 0),
        np.minimum(values, other_values) + 0.5 * np.maximum(values, other_values),
        values + other_values,
    )
    together = np.where(queues[:, None] & (together < 0), _LOAD_PART_FACTOR * together, together)
    changes = np.where(second_rates[:, None] < _SLOW_LOG_RATE, values, 0.0) ** 2
    changes += np.where(first_rates[:, None] < _SLOW_LOG_RATE, other_values, 0.0) ** 2
    variance = sd[first_states] ** 2 + sd[second_states] ** 2 - vector.healthy_sd**2
    extra = np.where(is_single[:, None], 0.0, _PART_SHARE_SD**2 * changes)
    shows_first, shows_second = (
        np.any(mean[states] != 0, axis=1) | (vector.uneven_share[states] > 0) for states in states_of_pairs
    )
    hides_second = _compute_hiding_probability(first_rates, second_rates, shows_second & ~is_single)
    hides_first = _compute_hiding_probability(second_rates, first_rates, shows_first & ~is_single)
    centered = together - np.median(together, axis=1)[:, None] * ~is_single[:, None]
    centered_sd = np.sqrt(variance + extra)
    odd_share = np.where(is_single, 0.0, _ODD_VECTOR_SHARE)
    usual_share = 1 - odd_share
    # The causes that are not hidden can make nodes uneven.
    alternatives = (
        ((1 - hides_first - hides_second) * usual_share, centered, centered_sd, states_of_pairs),
        (hides_first * usual_share, mean[second_states], sd[second_states], (second_states,)),
        (hides_second * usual_share, mean[first_states], sd[first_states], (first_states,)),
        (odd_share, centered, np.hypot(centered_sd, _ODD_PART_SD), ()),
    )
    with np.errstate(divide="ignore"):
        return tuple(
            PartPrediction(
                np.log(share * uneven_share),
                number,
                np.log(spread_share),
                value,
                np.sqrt(np.maximum(error**2 + uneven_sd[:, None] ** 2 - missing_share * uncertain_variance, 0.0)),
            )
            for share, value, error, states_of_causes in alternatives
            for uncertain_variance in [sum(vector.spread_sd[states] ** 2 for states in states_of_causes)]
            for uneven_share, uneven_sd in _list_uneven_alternatives(vector, states_of_causes, len(share))
            for number, (spread_share, missing_share) in enumerate(_list_spreads(vector, states_of_pairs))
        )


def _list_spreads(vector: VectorStates, states_of_pairs: tuple[Indices, Indices]) -> list[tuple[Floats, float]]:
    """Probabilities of spreads between the parts that the causes are not at, and the share of their variance that is
    missing. Taken as exact, a wide spread counts against a pair with each repeat."""
    is_uncertain = np.any([np.any(vector.spread_sd[states] > 0, axis=1) for states in states_of_pairs], axis=0)
    if not np.any(is_uncertain):
        return [(np.ones(len(is_uncertain)), 0.0)]
    return [
        (np.where(is_uncertain, share, float(multiple == 1)), 1 - multiple**2) for share, multiple in SPREAD_MULTIPLES
    ]


def _list_uneven_alternatives(
    vector: VectorStates, states_of_causes: Sequence[Indices], pair_count: int
) -> list[tuple[Floats, Floats]]:
    """Probabilities of even nodes and of nodes that one or more of the causes make uneven, each with the spread between
    nodes: the largest of these causes."""
    alternatives: list[tuple[Floats, Floats]] = [(np.ones(pair_count), np.zeros(pair_count))]
    for states in states_of_causes:
        share, spread = vector.uneven_share[states], vector.uneven_sd[states]
        if np.any(share > 0):
            even = [(probability * (1 - share), others) for probability, others in alternatives]
            uneven = [(probability * share, np.maximum(others, spread)) for probability, others in alternatives]
            alternatives = [*even, *uneven]
    return alternatives


def _compute_hiding_probability(hiding_rates: Floats, hidden_rates: Floats, can_be_hidden: NDArray[np.bool_]) -> Floats:
    """Returns the probability that a cause with `hiding_rates` hides what another one does to single parts."""
    is_slower = hiding_rates < hidden_rates
    by_slow_cause = np.where(is_slower, _HIDDEN_BY_SLOWER, _HIDDEN_BY_FASTER)
    probability = np.where(hiding_rates < _SLOW_LOG_RATE, by_slow_cause, _HIDDEN_BY_OTHERS)
    return np.where(can_be_hidden, probability, 0.0)


def list_vector_names(run_measurements: Sequence[RunMeasurement]) -> dict[VectorKey, tuple[str, ...]]:
    """Returns the parts of each vector of the first run."""
    return {key: tuple(values) for key, values in run_measurements[0].vectors.items()}


def compute_pair_density(
    predictions: CombinedPredictions, result: ExperimentResult, noise_model: NoiseModel, is_exact: bool = True
) -> Floats:
    """Returns the log density of a result under each pair. Inexact: repeats count as one run, which takes less time."""
    total = np.zeros(len(predictions.rates))
    runs = result.runs
    columns = [number for number, phase in enumerate(predictions.phases) if any(phase in run.rates for run in runs)]
    if columns:
        phases = [predictions.phases[column] for column in columns]
        scatter = np.array([result.scatter.get(phase, 0.0) for phase in phases])
        sd = np.sqrt(predictions.rates_sd[:, columns] ** 2 + result.reference_sd**2 + scatter**2)
        values = np.array([[run.rates.get(phase, np.nan) for phase in phases] for run in runs])
        deviations = values - predictions.rates[:, None, columns]
        usual, odd = (
            _compute_rates_density(deviations, error, noise_model, is_exact) for error in (sd, np.hypot(sd, _ODD_SD))
        )
        total += np.where(predictions.is_single, usual, _mix_log_densities(usual, odd, _ODD_SHARE))
    for key in predictions.vectors:
        total += _compute_vector_density(predictions, key, result, noise_model)
    for run in runs:
        for name, is_logged in run.messages.items():
            probability = compute_message_probability(predictions.messages, name)
            if probability is not None:
                total += np.log(probability if is_logged else 1 - probability)
    return total


def _compute_vector_density(
    predictions: CombinedPredictions, key: VectorKey, result: ExperimentResult, noise_model: NoiseModel
) -> Floats:
    """Log density of the parts of a vector in all runs: its spread is the same in all of them."""
    by_spread: dict[int, Floats] = {}
    for run in result.runs if all(key in run.vectors for run in result.runs) else ():
        values = np.array([run.vectors[key].get(name, np.nan) for name in predictions.names[key]])
        densities: dict[int, Floats] = {}
        for item in predictions.vectors[key]:
            density = np.full(len(item.log_weights), -np.inf)
            rows = np.flatnonzero(item.log_weights_of_run > -np.inf)
            sd = np.hypot(item.sd[rows], np.where(item.mean[rows] < 0, result.part_sd, 0))
            is_single = predictions.is_single[rows]
            of_parts = _compute_parts_density(values - item.mean[rows], sd, is_single, noise_model)
            density[rows] = item.log_weights[rows] + of_parts
            densities[item.spread] = np.logaddexp(densities.get(item.spread, -np.inf), density)
        for spread, density in densities.items():
            by_spread[spread] = by_spread.get(spread, 0.0) + density
    if not by_spread:
        return np.zeros(len(predictions.rates))
    shares = {item.spread: item.spread_log_weights for item in predictions.vectors[key]}
    return np.asarray(np.logaddexp.reduce([shares[spread] + density for spread, density in by_spread.items()]))


def _compute_rates_density(deviations: Floats, sd: Floats, noise_model: NoiseModel, is_exact: bool) -> Floats:
    if (is_exact and deviations.shape[1] > 1) or np.any(np.isnan(deviations[0])):
        return noise_model.compute_joint_log_density_of_runs(deviations, sd)
    return np.asarray(np.mean(noise_model.compute_log_density_of_run(deviations, sd[:, None, :]), axis=1))


def _compute_parts_density(
    deviations: Floats, sd: Floats, is_single: NDArray[np.bool_], noise_model: NoiseModel
) -> Floats:
    usual = noise_model.compute_log_density_of_part(deviations, sd)
    odd = noise_model.compute_log_density_of_part(deviations, _ODD_PART_SD)
    mixed = np.where(is_single[:, None], usual, _mix_log_densities(usual, odd, _ODD_PART_SHARE))
    return np.asarray(np.nansum(mixed, axis=1))


def _mix_log_densities(usual_log_density: Floats, outlier_log_density: Floats, outlier_share: float) -> Floats:
    return np.asarray(
        np.logaddexp(log(1 - outlier_share) + usual_log_density, log(outlier_share) + outlier_log_density)
    )
