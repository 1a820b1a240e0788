# SPDX-License-Identifier: Apache-2.0
"""Probabilities of pairs of causes, of single causes, of nothing and of causes that nobody described, all together.

Each pair is one hypothesis and is compared with all results. So a pair that explains a part of the results
only is not certain, however well it explains that part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from sonde.diagnose.diagnosis_model import DiagnosisModel, merge_results_by_experiment
from sonde.diagnose.hypotheses import CAUSE, FAULT, UNEXPLAINED
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.pair_weights import (
    MAX_LOG_WEIGHT_DIFFERENCE,
    TWO_PRIOR,
    UNEXPLAINED_SECOND,
    compute_log_weights_of_pairs,
    find_hypothesis_index,
    integrate_over_strengths,
    list_visible_states,
)
from sonde.stats.ranks import Floats

# Coarse search: parts and strengths of each hypothesis, and which pairs are weighed again with more strengths, by the
# logarithm of how much less probable than the best they are.
_MAX_PROBABLE_PARTS, _COARSE_STRENGTHS, _MAX_GROUPS = 4, 4, 200
# Parts of each hypothesis that are added because they are the most probable ones beside a leading cause. A slow target
# of a lost server is not among the parts that explain the results best alone: all targets of the server are.
_MAX_PARTS_BESIDE_CAUSE = 2
_FINE_STRENGTHS = 10
# Causes beside which other parts and an unexplained second cause are weighed, and drawn causes that stand for
# "unexplained".
_LEADING_CAUSES, _DRAWN_CAUSE_COUNT = 3, 40
# A cause at a part: hypothesis and member by their indices. Nothing and "unexplained" have the member 0.
PartKey = tuple[int, int]
GroupKey = tuple[PartKey, PartKey]


@dataclass(frozen=True)
class CausePairs:
    """Alternatives as pairs of states with log weights, normalized over all; `groups` are (cause, part) twice, the
    second of which is "nothing" for single causes."""

    states: CauseStates
    first: Indices
    second: Indices
    log_weights: Floats
    group_numbers: Indices
    groups: tuple[GroupKey, ...]

    @property
    def group_log_weights(self) -> Floats:
        """Logarithm of the probability of each group."""
        totals = np.full(len(self.groups), -np.inf)
        np.logaddexp.at(totals, self.group_numbers, self.log_weights)
        return totals


def compute_pair_probabilities(model: DiagnosisModel, results: Sequence[ExperimentResult]) -> CausePairs:
    """Compares pairs of causes with all results."""
    merged = merge_results_by_experiment(results)
    densities = [model.compute_log_densities(result) for result in merged]
    single = [
        np.asarray(weights + sum(item[index] for item in densities))
        for index, weights in enumerate(model.prior_probabilities.log_weights)
    ]
    parts = {
        index: _list_most_probable_parts(single[index], _MAX_PROBABLE_PARTS)
        for index, hypothesis in enumerate(model.hypotheses)
        if hypothesis.kind in (FAULT, CAUSE)
    }
    coarse, first, second, weights = _weigh_coarse_pairs(model, merged, parts)
    if added := _find_parts_beside_causes(model, merged, parts, coarse, first, second, weights):
        parts = {index: np.append(chosen, added.get(index, chosen[:0])) for index, chosen in parts.items()}
        coarse, first, second, weights = _weigh_pairs_with_parts(model, merged, added, coarse, first, second, weights)
    likely = _select_likely_groups(coarse, first, second, weights)
    states = list_visible_states(model, parts, _FINE_STRENGTHS)
    first, second = _list_pairs_of_groups(states, likely)
    weights = compute_log_weights_of_pairs(model, merged, states, first, second, is_exact=True)
    weights = integrate_over_strengths(model, merged, states, first, second, weights)
    return _add_unexplained_cause(model, merged, single, states, first, second, weights)


def _list_most_probable_parts(part_weights: Floats, max_parts: int) -> Indices:
    """The most probable parts of a hypothesis, however much less probable than the best: beside another cause, which
    explains what another part cannot, a part can be the right one that is improbable alone. `part_weights` has
    strengths by parts."""
    return np.asarray(np.argsort(-np.max(part_weights, axis=0), kind="stable")[:max_parts])


def _weigh_coarse_pairs(
    model: DiagnosisModel, results: Sequence[ExperimentResult], parts_by_hypothesis: Mapping[int, Indices]
) -> tuple[CauseStates, Indices, Indices, Floats]:
    """States of some parts, all pairs of them as indices, and the log weights of the pairs."""
    states = list_visible_states(model, parts_by_hypothesis, _COARSE_STRENGTHS)
    first, second = _list_pairs_of_different_causes(states)
    return states, first, second, compute_log_weights_of_pairs(model, results, states, first, second, is_exact=False)


def _weigh_pairs_with_parts(
    model: DiagnosisModel,
    results: Sequence[ExperimentResult],
    added_parts: Mapping[int, Indices],
    states: CauseStates,
    first_states: Indices,
    second_states: Indices,
    log_weights: Floats,
) -> tuple[CauseStates, Indices, Indices, Floats]:
    """Adds the states of further parts, and all pairs with one of them."""
    added = list_visible_states(model, added_parts, _COARSE_STRENGTHS)
    joined = CauseStates(
        np.append(states.hypotheses, added.hypotheses[1:]),
        np.append(states.members, added.members[1:]),
        np.append(states.strengths, added.strengths[1:]),
    )
    first, second = _list_pairs_of_different_causes(joined)
    is_new = second >= len(states)
    first, second = first[is_new], second[is_new]
    weights = compute_log_weights_of_pairs(model, results, joined, first, second, is_exact=False)
    together = np.append(first_states, first), np.append(second_states, second), np.append(log_weights, weights)
    return joined, *together


def _list_pairs_of_different_causes(states: CauseStates) -> tuple[Indices, Indices]:
    first, second = np.triu_indices(len(states), 1)
    differs = states.hypotheses[first] != states.hypotheses[second]
    return first[differs], second[differs]


def _find_parts_beside_causes(
    model: DiagnosisModel,
    results: Sequence[ExperimentResult],
    parts_by_hypothesis: Mapping[int, Indices],
    states: CauseStates,
    first_states: Indices,
    second_states: Indices,
    log_weights: Floats,
) -> dict[int, Indices]:
    """Returns further parts by hypothesis: the most probable ones beside a leading cause."""
    wider = dict(parts_by_hypothesis)
    for cause in _list_most_probable_causes(states, first_states, second_states, log_weights):
        is_cause = (states.hypotheses == cause[0]) & (states.members == cause[1])
        best = np.argmax(np.where(is_cause[first_states] | is_cause[second_states], log_weights, -np.inf))
        state = first_states[best] if is_cause[first_states[best]] else second_states[best]
        for index in wider:
            if index != cause[0] and len(model.hypotheses[index].members) > len(wider[index]):
                weights = _compute_part_weights_beside_state(model, results, states, int(state), index)
                added = _list_most_probable_parts(weights, _MAX_PARTS_BESIDE_CAUSE)
                wider[index] = np.union1d(wider[index], added)
    added_parts = {index: np.setdiff1d(wider[index], parts) for index, parts in parts_by_hypothesis.items()}
    return {index: parts for index, parts in added_parts.items() if len(parts)}


def _compute_part_weights_beside_state(
    model: DiagnosisModel,
    results: Sequence[ExperimentResult],
    states: CauseStates,
    state_index: int,
    hypothesis_index: int,
) -> Floats:
    """Log weights of a hypothesis beside one state: strengths by parts."""
    member_count = len(model.hypotheses[hypothesis_index].members)
    every_part = {hypothesis_index: np.arange(member_count)}
    added = list_visible_states(model, every_part, _COARSE_STRENGTHS)
    joined = CauseStates(
        np.append(added.hypotheses, states.hypotheses[state_index]),
        np.append(added.members, states.members[state_index]),
        np.append(added.strengths, states.strengths[state_index]),
    )
    others = np.arange(1, len(added))
    pairs = np.full(len(others), len(added))
    weights = compute_log_weights_of_pairs(model, results, joined, pairs, others, is_exact=False)
    return weights.reshape(member_count, -1).T


def _number_groups_of_pairs(
    states: CauseStates, first_states: Indices, second_states: Indices
) -> tuple[list[GroupKey], Indices]:
    columns = (
        states.hypotheses[first_states],
        states.members[first_states],
        states.hypotheses[second_states],
        states.members[second_states],
    )
    sizes = tuple(int(np.max(column, initial=0)) + 1 for column in columns)
    # One number for each row: np.unique() sorts numbers ten times as fast as rows.
    row_codes, numbers = np.unique(np.ravel_multi_index(columns, sizes), return_inverse=True)
    rows = zip(*(column.tolist() for column in np.unravel_index(row_codes, sizes)), strict=True)
    groups = [((a, b), (c, d)) for a, b, c, d in rows]
    return groups, np.asarray(numbers).reshape(-1)


def _select_likely_groups(
    states: CauseStates, first_states: Indices, second_states: Indices, log_weights: Floats
) -> list[GroupKey]:
    groups, numbers = _number_groups_of_pairs(states, first_states, second_states)
    totals = np.full(len(groups), -np.inf)
    np.logaddexp.at(totals, numbers, log_weights)
    ordered = np.argsort(-totals)[:_MAX_GROUPS]
    return [groups[number] for number in ordered if totals[number] > totals[ordered[0]] - MAX_LOG_WEIGHT_DIFFERENCE]


def _list_pairs_of_groups(states: CauseStates, groups: Sequence[GroupKey]) -> tuple[Indices, Indices]:
    """All strengths of both causes of each group."""
    rows: dict[PartKey, list[int]] = {}
    for number, key in enumerate(zip(states.hypotheses.tolist(), states.members.tolist(), strict=True)):
        rows.setdefault(key, []).append(number)
    pairs = [np.array(np.meshgrid(rows[first], rows[second])).reshape(2, -1) for first, second in groups]
    together = np.concatenate(pairs, axis=1)
    return together[0], together[1]


def _add_unexplained_cause(
    model: DiagnosisModel,
    results: Sequence[ExperimentResult],
    single_log_weights: Sequence[Floats],
    states: CauseStates,
    first_states: Indices,
    second_states: Indices,
    pair_log_weights: Floats,
) -> CausePairs:
    """Adds nothing, "unexplained" alone, and "unexplained" beside the most probable causes."""
    unexplained = find_hypothesis_index(model, UNEXPLAINED)
    firsts, seconds, added = (
        [np.zeros(1, dtype=np.int64)],
        [np.zeros(1, dtype=np.int64)],
        [single_log_weights[states.hypotheses[0]].ravel()],
    )
    elements: list[int] = []

    def append_drawn_causes(state_index: int, total_log_weight: float, drawn_log_weights: Floats) -> None:
        """Adds the drawn causes with the largest weights, scaled so that their sum is `total_log_weight`."""
        chosen = np.argsort(-drawn_log_weights)[:_DRAWN_CAUSE_COUNT]
        numbers = len(states) + len(elements) + np.arange(len(chosen))
        elements.extend(int(number) for number in chosen)
        firsts.append(np.full(len(chosen), state_index))
        seconds.append(numbers)
        added.append(drawn_log_weights[chosen] + total_log_weight - np.logaddexp.reduce(drawn_log_weights[chosen]))

    count = model.unknown_causes.count
    alone = single_log_weights[unexplained].ravel()
    even = np.logaddexp(alone[:count], alone[count : 2 * count]) if count else alone
    append_drawn_causes(0, float(np.logaddexp.reduce(alone)), even)
    for group in _list_most_probable_causes(states, first_states, second_states, pair_log_weights) if count else ():
        rows = np.flatnonzero((states.hypotheses == group[0]) & (states.members == group[1]))
        by_state = {
            int(row): _compute_log_weights_of_drawn_causes(model, results, states, int(row), unexplained)
            - log(len(rows))
            for row in rows
        }
        best = max(by_state, key=lambda row: float(np.logaddexp.reduce(by_state[row])))
        total = np.logaddexp.reduce(np.stack(list(by_state.values())), axis=0)
        append_drawn_causes(best, float(np.logaddexp.reduce(total)), total)
    extended = CauseStates(
        np.append(states.hypotheses, np.full(len(elements), unexplained)),
        np.append(states.members, np.zeros(len(elements), dtype=np.int64)),
        np.append(states.strengths, np.array(elements, dtype=np.int64)),
    )
    first_states, second_states = np.concatenate([first_states, *firsts]), np.concatenate([second_states, *seconds])
    pair_log_weights = np.concatenate([pair_log_weights, *added])
    groups, numbers = _number_groups_of_pairs(extended, first_states, second_states)
    normalized = pair_log_weights - np.logaddexp.reduce(pair_log_weights)
    return CausePairs(extended, first_states, second_states, normalized, numbers, tuple(groups))


def _list_most_probable_causes(
    states: CauseStates, first_states: Indices, second_states: Indices, log_weights: Floats
) -> list[PartKey]:
    """Causes of the most probable pairs."""
    chosen: dict[PartKey, None] = {}
    for number in np.argsort(-log_weights):
        for state in (first_states[number], second_states[number]):
            if state:
                chosen.setdefault((int(states.hypotheses[state]), int(states.members[state])))
        if len(chosen) >= _LEADING_CAUSES:
            break
    return list(chosen)[:_LEADING_CAUSES]


def _compute_log_weights_of_drawn_causes(
    model: DiagnosisModel,
    results: Sequence[ExperimentResult],
    states: CauseStates,
    state_index: int,
    unexplained_index: int,
) -> Floats:
    """Log weights of drawn causes beside one state with the prior of all strengths. Drawn causes change no part, so
    parts are those of the state."""
    index, member = states.hypotheses[state_index], states.members[state_index]
    count = model.unknown_causes.count
    prior = float(np.logaddexp.reduce(model.prior_probabilities.log_weights[index][:, member])) + log(
        TWO_PRIOR * UNEXPLAINED_SECOND / max(1, count)
    )
    both = np.array([0, state_index])
    nothing_and_cause = CauseStates(states.hypotheses[both], states.members[both], states.strengths[both])
    for result in results:
        parts_only = replace(result, runs=tuple(RunMeasurement({}, run.vectors) for run in result.runs))
        single = predict_states(model, nothing_and_cause, result.experiment, list_vector_names(result.runs))
        pair = combine_predictions_of_pairs(single, np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64))
        prior += float(compute_pair_density(pair, parts_only, model.noise)[0])

    def compute_density_of_rates(drawn_causes: Indices, is_exact: bool) -> Floats:
        members = np.zeros_like(drawn_causes)
        chosen = CauseStates(
            np.append(nothing_and_cause.hypotheses, members + unexplained_index),
            np.append(nothing_and_cause.members, members),
            np.append(nothing_and_cause.strengths, drawn_causes),
        )
        total = np.zeros(len(drawn_causes))
        for result in results:
            rates_only = replace(result, runs=tuple(replace(run, vectors={}) for run in result.runs))
            predictions = predict_states(model, chosen, result.experiment, {})
            pairs = combine_predictions_of_pairs(predictions, members + 1, 2 + np.arange(len(members)))
            total += compute_pair_density(pairs, rates_only, model.noise, is_exact)
        return total

    coarse = compute_density_of_rates(np.arange(count), is_exact=False)
    probable = np.flatnonzero(coarse > np.max(coarse) - MAX_LOG_WEIGHT_DIFFERENCE)
    weights = np.full(count, -np.inf)
    weights[probable] = prior + compute_density_of_rates(probable, is_exact=True)
    return weights
