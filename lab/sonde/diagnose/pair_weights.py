# SPDX-License-Identifier: Apache-2.0
"""Weights of pairs of states: prior times density of all results, at chosen strengths or at all near them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

import numpy as np

from sonde.diagnose.cause_states import (
    CauseStates,
    Indices,
    combine_predictions_of_pairs,
    compute_pair_density,
    list_vector_names,
    predict_states,
)
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.hypotheses import CAUSE, FAULT, NOTHING
from sonde.diagnose.likelihood import ExperimentResult
from sonde.stats.ranks import Floats

# Prior share of two causes among machines that have one or two; an assumption. Of two causes, one was described by
# nobody with this share.
TWO_PRIOR, UNEXPLAINED_SECOND = 0.5, 0.12
# Pairs that are less probable than the best one by this logarithm are not weighed again.
MAX_LOG_WEIGHT_DIFFERENCE = 12.0
# Pairs that are weighed with all strengths near theirs, the most probable ones.
_INTEGRATED_PAIRS = 1000
_PAIRS_PER_CHUNK = 20_000


def find_hypothesis_index(model: DiagnosisModel, hypothesis_kind: str) -> int:
    return next(index for index, item in enumerate(model.hypotheses) if item.kind == hypothesis_kind)


def list_visible_states(
    model: DiagnosisModel, parts_by_hypothesis: Mapping[int, Indices], max_strengths: int | None
) -> CauseStates:
    """Visible strengths of causes at some of their parts, evenly chosen if there are too many; the first state is
    "nothing"."""
    rows = [(find_hypothesis_index(model, NOTHING), 0, 0)]
    for index, parts in parts_by_hypothesis.items():
        strengths = np.flatnonzero(model.find_visible_strengths(index))
        if max_strengths is not None and len(strengths) > max_strengths:
            strengths = strengths[np.linspace(0, len(strengths) - 1, max_strengths).round().astype(int)]
        rows += [(index, int(member), int(strength)) for member in parts for strength in strengths]
    table = np.array(rows, dtype=np.int64)
    return CauseStates(table[:, 0], table[:, 1], table[:, 2])


def _compute_log_prior_of_pairs(
    model: DiagnosisModel, states: CauseStates, first_states: Indices, second_states: Indices
) -> Floats:
    """Log prior of pairs of states; a pair with state 0 is a single cause."""
    # The strengths of a cause at a part that were chosen share the prior of all.
    parts = np.stack([states.hypotheses, states.members])
    _, part_numbers, chosen_counts = np.unique(parts, axis=1, return_inverse=True, return_counts=True)
    weights = np.array([
        np.logaddexp.reduce(model.prior_probabilities.log_weights[index][:, member])
        for index, member in zip(states.hypotheses, states.members, strict=True)
    ]) - np.log(chosen_counts[part_numbers.reshape(-1)])  # fmt: skip
    shares = np.array([
        np.exp(np.logaddexp.reduce(logs, axis=None)) if item.kind in (FAULT, CAUSE) else 0.0
        for item, logs in zip(model.hypotheses, model.prior_probabilities.log_weights, strict=True)
    ])  # fmt: skip
    total = float(np.sum(shares))
    distinct = (1 - float(np.sum((shares / total) ** 2))) / 2  # two draws that differ, in either order
    pair = (
        log(TWO_PRIOR * (1 - UNEXPLAINED_SECOND) / (total * distinct)) + weights[first_states] + weights[second_states]
    )
    return np.where(first_states == 0, log(1 - TWO_PRIOR) + weights[second_states], pair)


def compute_log_weights_of_pairs(
    model: DiagnosisModel,
    results: Sequence[ExperimentResult],
    states: CauseStates,
    first_states: Indices,
    second_states: Indices,
    is_exact: bool,
) -> Floats:
    """Log prior and density of pairs of states."""
    weights = _compute_log_prior_of_pairs(model, states, first_states, second_states)
    for result in results:
        predictions = predict_states(model, states, result.experiment, list_vector_names(result.runs))
        for start in range(0, len(first_states), _PAIRS_PER_CHUNK):
            part = slice(start, start + _PAIRS_PER_CHUNK)
            combined = combine_predictions_of_pairs(predictions, first_states[part], second_states[part])
            weights[part] += compute_pair_density(combined, result, model.noise, is_exact)
    return weights


def integrate_over_strengths(
    model: DiagnosisModel,
    results: Sequence[ExperimentResult],
    states: CauseStates,
    first_states: Indices,
    second_states: Indices,
    log_weights: Floats,
) -> Floats:
    """Weighs the most probable pairs by all strengths for which theirs stand, the nearest ones.

    Several results together are more exact than the distance between the chosen strengths.
    """
    best = np.argsort(-log_weights)[:_INTEGRATED_PAIRS]
    best = best[log_weights[best] > log_weights[best[0]] - MAX_LOG_WEIGHT_DIFFERENCE]
    used = np.unique(np.stack([first_states[best], second_states[best]]))
    parts: dict[int, Indices] = {}
    for index in np.unique(states.hypotheses[used[used > 0]]).tolist():
        parts[index] = np.unique(states.members[used][states.hypotheses[used] == index])
    every = list_visible_states(model, parts, max_strengths=None)
    nearest = {state: _list_nearest_strengths(states, every, state) for state in used.tolist()}
    pairs = [
        np.array(np.meshgrid(nearest[first], nearest[second])).reshape(2, -1)
        for first, second in zip(first_states[best].tolist(), second_states[best].tolist(), strict=True)
    ]
    first, second = np.concatenate(pairs, axis=1)
    weights = compute_log_weights_of_pairs(model, results, every, first, second, is_exact=True)
    totals = np.full(len(best), -np.inf)
    np.logaddexp.at(totals, np.repeat(np.arange(len(best)), [pair.shape[1] for pair in pairs]), weights)
    integrated = log_weights.copy()
    integrated[best] = totals
    return integrated


def _list_nearest_strengths(states: CauseStates, every_state: CauseStates, state_index: int) -> Indices:
    """Indices of the states of the same cause to whose strength none of `states` is nearer."""

    def list_rows(candidates: CauseStates) -> Indices:
        is_same = candidates.hypotheses == states.hypotheses[state_index]
        return np.flatnonzero(is_same & (candidates.members == states.members[state_index]))

    chosen, rows = list_rows(states), list_rows(every_state)
    distances = np.abs(every_state.strengths[rows][:, None] - states.strengths[chosen])
    return np.asarray(rows[chosen[np.argmin(distances, axis=1)] == state_index])
