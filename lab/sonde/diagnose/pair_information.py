# SPDX-License-Identifier: Apache-2.0
"""Expected information of an experiment about which pair of causes a machine has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sonde.diagnose.cause_pairs import CausePairs
from sonde.diagnose.cause_states import (
    CauseStates,
    CombinedPredictions,
    Indices,
    PartPrediction,
    combine_predictions_of_pairs,
    predict_states,
)
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.next_experiment import list_measured_parts
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.posterior import compute_entropy_bits
from sonde.stats.ranks import Floats

_DRAWS, _MAX_ALTERNATIVES = 48, 300


def estimate_pair_information_bits(
    model: DiagnosisModel, pairs: CausePairs, experiment_id: str, generator: np.random.Generator
) -> float:
    """Returns the expected decrease of entropy over pairs with their parts by one repeat, in bits."""
    live = _select_probable_pairs(pairs)
    weights = pairs.log_weights[live] - np.logaddexp.reduce(pairs.log_weights[live])
    numbers = np.unique(pairs.group_numbers[live], return_inverse=True)[1].reshape(-1)
    used, positions = np.unique(np.stack([pairs.first[live], pairs.second[live]]), return_inverse=True)
    positions = positions.reshape(2, -1)
    used, positions = _prepend_healthy_state(used, positions)
    states = CauseStates(pairs.states.hypotheses[used], pairs.states.members[used], pairs.states.strengths[used])
    scaled_experiment = model.find_experiment(experiment_id)
    names = {
        key: list_measured_parts(key[1], scaled_experiment, model.machine)
        for key in model.get_healthy_prediction(experiment_id).vectors
    }  # fmt: skip
    combined = combine_predictions_of_pairs(
        predict_states(model, states, experiment_id, names), positions[0], positions[1]
    )
    levels = (np.arange(_DRAWS) + generator.random(_DRAWS)) / _DRAWS
    alternatives = np.minimum(np.searchsorted(np.cumsum(np.exp(weights)), levels), len(weights) - 1)
    densities = _compute_densities(combined, alternatives, model.noise, generator)
    before = float(_compute_group_entropies(weights[None], numbers)[0])
    later = _compute_group_entropies(weights + densities, numbers)
    return max(0.0, before - float(np.mean(later)))


def _select_probable_pairs(pairs: CausePairs) -> Indices:
    ordered = np.argsort(-pairs.log_weights)[:_MAX_ALTERNATIVES]
    return np.asarray(ordered)


def _prepend_healthy_state(used_states: Indices, pair_positions: Indices) -> tuple[Indices, Indices]:
    """State 0 stands for "nothing" in combinations, so it is always the first."""
    if used_states[0] == 0:
        return used_states, pair_positions
    return np.append(np.zeros(1, dtype=np.int64), used_states), pair_positions + 1


def _compute_densities(
    combined_predictions: CombinedPredictions,
    alternative_indices: Indices,
    noise_model: NoiseModel,
    generator: np.random.Generator,
) -> Floats:
    """Draws a result under each of some alternatives, and returns its log density under all: draws are first."""
    total = np.zeros((len(alternative_indices), len(combined_predictions.rates)))
    if combined_predictions.phases:
        factors = np.stack(
            [noise_model.draw_run_deviations(generator, len(combined_predictions.phases)) for _ in alternative_indices]
        )
        errors = generator.normal(size=factors.shape) * combined_predictions.rates_sd[alternative_indices]
        values = combined_predictions.rates[alternative_indices] + errors + factors
        total += noise_model.compute_log_density_of_run(
            values[:, None, :] - combined_predictions.rates, combined_predictions.rates_sd
        )
    for predictions in combined_predictions.vectors.values():
        parts = _draw_parts(predictions, alternative_indices, noise_model, generator)
        parts -= np.median(parts, axis=1)[:, None]
        for number, row in enumerate(parts):
            total[number] += np.logaddexp.reduce([
                item.log_weights_of_run
                + np.sum(noise_model.compute_log_density_of_part(row - item.mean, item.sd), axis=1)
                for item in predictions
            ])  # fmt: skip
    for share in combined_predictions.messages.values():
        is_logged = generator.random(len(alternative_indices)) < share[alternative_indices]
        total += np.where(is_logged[:, None], np.log(share), np.log(1 - share))
    return total


def _draw_parts(
    predictions: Sequence[PartPrediction],
    pair_numbers: Indices,
    noise_model: NoiseModel,
    generator: np.random.Generator,
) -> Floats:
    """Draws the values of the parts for each pair, each by one of its alternatives."""
    levels = np.cumsum([np.exp(item.log_weights_of_run[pair_numbers]) for item in predictions], axis=0)
    chosen = np.minimum(np.sum(levels < generator.random(len(pair_numbers)), axis=0), len(predictions) - 1)
    rows = []
    for alternative, pair in zip(chosen, pair_numbers, strict=True):
        item = predictions[alternative]
        deviations = noise_model.draw_part_deviations(generator, item.mean.shape[1])
        rows.append(item.mean[pair] + deviations + generator.normal(size=item.mean.shape[1]) * item.sd[pair])
    return np.stack(rows)


def _compute_group_entropies(log_weights: Floats, group_numbers: Indices) -> Floats:
    """Entropy over groups of alternatives, for each row of log weights."""
    entropies = []
    for row in log_weights:
        totals = np.full(int(group_numbers.max()) + 1, -np.inf)
        np.logaddexp.at(totals, group_numbers, row)
        entropies.append(compute_entropy_bits(totals - np.logaddexp.reduce(totals)))
    return np.array(entropies)
