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
from sonde.diagnose.hypotheses import CAUSE, FAULT, NOTHING, UNEXPLAINED
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import RunMeasurement
from sonde.stats.ranks import Floats

# Prior share of two causes among machines that have one or two; an assumption. Of two causes, one was described by
# nobody with this share.
_TWO_PRIOR, _UNEXPLAINED_SECOND = 0.5, 0.12
# Coarse search: parts and strengths of each hypothesis, and which pairs are weighed again with more strengths, by the
# logarithm of how much less probable than the best they are. What two causes do together is predicted with wide errors,
# so ten strengths of each are close enough.
_MAX_PROBABLE_PARTS, _COARSE_STRENGTHS, _MAX_LOG_WEIGHT_DIFFERENCE, _MAX_GROUPS = 4, 4, 12.0, 200
# Parts of each hypothesis that are added because they are the most probable ones beside a leading cause. A slow target
# of a lost server is not among the parts that explain the results best alone: all targets of the server are.
_MAX_PARTS_BESIDE_CAUSE = 2
_FINE_STRENGTHS = 10
# Causes beside which other parts and an unexplained second cause are weighed, and drawn causes that stand for
# "unexplained".
_LEADING_CAUSES, _DRAWN_CAUSE_COUNT = 3, 40
_PAIRS_PER_CHUNK = 20_000
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
    if wider := _add_parts_beside_causes(model, merged, parts, coarse, first, second, weights):
        parts = wider
        coarse, first, second, weights = _weigh_coarse_pairs(model, merged, parts)
    likely = _select_likely_groups(coarse, first, second, weights)
    states = _list_visible_states(model, parts, _FINE_STRENGTHS)
    first, second = _list_pairs_of_groups(states, likely)
    weights = _compute_log_weights_of_pairs(model, merged, states, first, second, is_exact=True)
    return _add_unexplained_cause(model, merged, single, states, first, second, weights)


def _find_hypothesis_index(model: DiagnosisModel, hypothesis_kind: str) -> int:
    return next(index for index, item in enumerate(model.hypotheses) if item.kind == hypothesis_kind)


def _list_visible_states(
    model: DiagnosisModel, parts_by_hypothesis: Mapping[int, Indices], max_strengths: int
) -> CauseStates:
    """Visible strengths of causes at some of their parts, evenly chosen if there are too many; the first state is
    "nothing"."""
    rows = [(_find_hypothesis_index(model, NOTHING), 0, 0)]
    for index, parts in parts_by_hypothesis.items():
        strengths = np.flatnonzero(model.find_visible_strengths(index))
        if len(strengths) > max_strengths:
            strengths = strengths[np.linspace(0, len(strengths) - 1, max_strengths).round().astype(int)]
        rows += [(index, int(member), int(strength)) for member in parts for strength in strengths]
    table = np.array(rows, dtype=np.int64)
    return CauseStates(table[:, 0], table[:, 1], table[:, 2])


def _list_most_probable_parts(part_weights: Floats, max_parts: int) -> Indices:
    """The most probable parts of a hypothesis, however much less probable than the best: beside another cause, which
    explains what another part cannot, a part can be the right one that is improbable alone. `part_weights` has
    strengths by parts."""
    return np.asarray(np.argsort(-np.max(part_weights, axis=0), kind="stable")[:max_parts])


def _weigh_coarse_pairs(
    model: DiagnosisModel, results: Sequence[ExperimentResult], parts_by_hypothesis: Mapping[int, Indices]
) -> tuple[CauseStates, Indices, Indices, Floats]:
    """States of some parts, all pairs of them as indices, and the log weights of the pairs."""
    states = _list_visible_states(model, parts_by_hypothesis, _COARSE_STRENGTHS)
    first, second = np.triu_indices(len(states), 1)
    differs = states.hypotheses[first] != states.hypotheses[second]
    first, second = first[differs], second[differs]
    return states, first, second, _compute_log_weights_of_pairs(model, results, states, first, second, is_exact=False)


def _add_parts_beside_causes(
    model: DiagnosisModel,
    results: Sequence[ExperimentResult],
    parts_by_hypothesis: Mapping[int, Indices],
    states: CauseStates,
    first_states: Indices,
    second_states: Indices,
    log_weights: Floats,
) -> dict[int, Indices]:
    """Returns the parts with those that are the most probable ones beside a leading cause; empty if none is new."""
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
    return wider if any(len(wider[index]) > len(parts) for index, parts in parts_by_hypothesis.items()) else {}


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
    added = _list_visible_states(model, every_part, _COARSE_STRENGTHS)
    joined = CauseStates(
        np.append(added.hypotheses, states.hypotheses[state_index]),
        np.append(added.members, states.members[state_index]),
        np.append(added.strengths, states.strengths[state_index]),
    )
    others = np.arange(1, len(added))
    pairs = np.full(len(others), len(added))
    weights = _compute_log_weights_of_pairs(model, results, joined, pairs, others, is_exact=False)
    return weights.reshape(member_count, -1).T


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
        log(_TWO_PRIOR * (1 - _UNEXPLAINED_SECOND) / (total * distinct))
        + weights[first_states]
        + weights[second_states]
    )
    return np.where(first_states == 0, log(1 - _TWO_PRIOR) + weights[second_states], pair)


def _compute_log_weights_of_pairs(
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
    return [groups[number] for number in ordered if totals[number] > totals[ordered[0]] - _MAX_LOG_WEIGHT_DIFFERENCE]


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
    unexplained = _find_hypothesis_index(model, UNEXPLAINED)
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
    """Log weights of drawn causes beside one state. Drawn causes change no part, so parts are those of the state."""
    index, member, strength = states.hypotheses[state_index], states.members[state_index], states.strengths[state_index]
    count = model.unknown_causes.count
    prior = model.prior_probabilities.log_weights[index][strength, member] + log(
        _TWO_PRIOR * _UNEXPLAINED_SECOND / max(1, count)
    )
    weights = np.full(count, prior)
    chosen = CauseStates(
        np.append(states.hypotheses[[0, state_index]], np.full(count, unexplained_index)),
        np.append(states.members[[0, state_index]], np.zeros(count, dtype=np.int64)),
        np.append(states.strengths[[0, state_index]], np.arange(count)),
    )
    alone = CauseStates(chosen.hypotheses[:2], chosen.members[:2], chosen.strengths[:2])
    nothing_state, cause_state = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    for result in results:
        rates_only = replace(result, runs=tuple(replace(run, vectors={}) for run in result.runs))
        parts_only = replace(result, runs=tuple(RunMeasurement({}, run.vectors) for run in result.runs))
        predictions = predict_states(model, chosen, result.experiment, {})
        pairs = combine_predictions_of_pairs(predictions, np.full(count, 1), np.arange(2, count + 2))
        weights += compute_pair_density(pairs, rates_only, model.noise)
        single = predict_states(model, alone, result.experiment, list_vector_names(result.runs))
        weights += compute_pair_density(
            combine_predictions_of_pairs(single, nothing_state, cause_state), parts_only, model.noise
        )[0]
    return weights
