# SPDX-License-Identifier: Apache-2.0
"""The shortest description of histories that changed together, and the cause that it points to.

Simultaneous changes may have several causes, so they are divided by direction and size first. For each part the module
searches the shortest conditions on labels that hold for its histories and not for unchanged ones: a condition costs
half a history, each history on the wrong side costs one. Histories whose noise hides such a change do not count.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Literal

# Labels that say how something was counted or named, not what it is.
IGNORED_LABELS = ("history", "plan_hash", "epoch")
# Prices, in histories: of one condition, and of one more description for the same part.
_COST_PER_TERM, _COST_PER_CLAUSE = 0.5, 1.0
_MAX_TERMS, _MAX_CLAUSES = 4, 3
# Share of the largest logarithm of a part that another must reach, or how many standard errors it may lie below it.
_SAME, _DEVIATIONS, _WIDEST = 0.5, 2.5, log(2.0)

Labels = Mapping[str, str]
Cause = Literal["clients", "storage", "machine", "machine or storage", "test", "everything", "unknown"]
Certainty = Literal["clear", "likely", "one of several explanations"]


@dataclass(frozen=True)
class Scope:
    """One description: every label in `where` has that value. It holds for `changed` histories of the part and for
    `spared` that stood. `spans` has the labels that vary among the changed histories: name -> (number of values in
    changed histories, number of values in all histories under the other conditions)."""

    conditions: Labels
    changed: int
    spared: int
    spans: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class JointChangeExplanation:
    """Why a part of the changes belongs together.

    `scopes` cover it; `uncovered` of its histories are in none. `unchanged` is the number of histories without this
    change; `unjudged` is the number for which noise or age prevents a verdict. `cause` is where to look first,
    `certainty` how much cheaper the best description with that cause is than the best with another: two histories'
    worth is clear, one is likely.
    """

    scopes: tuple[Scope, ...]
    uncovered: int
    unchanged: int
    unjudged: int
    cause: Cause
    certainty: Certainty

    @classmethod
    def from_json(cls, explanation_document: Mapping[str, Any]) -> JointChangeExplanation:
        """Rebuilds the explanation from the JSON object that `dataclasses.asdict` made."""
        scopes = tuple(
            Scope(**{**scope, "spans": {name: (span[0], span[1]) for name, span in scope["spans"].items()}})
            for scope in explanation_document["scopes"]
        )
        return cls(**{**explanation_document, "scopes": scopes})


# Of one history nothing is common, so there is nothing to explain.
UNEXPLAINED = JointChangeExplanation((), 1, 0, 0, "unknown", "one of several explanations")


def group_changes_by_size(log_ratios_with_errors: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Positions of changes that have one direction and about one size, the largest first.

    `log_ratios_with_errors` are logarithms of ratios, each with its standard error. A change that is at least half as
    large as the largest one of a group, or may be within the error of both, belongs to that group: one cause rarely
    slows different tests by the same share."""
    parts: list[list[int]] = []
    for down in (True, False):
        indexes = [index for index, (size, _) in enumerate(log_ratios_with_errors) if (size < 0) == down]
        for position in sorted(indexes, key=lambda item: -abs(log_ratios_with_errors[item][0])):
            size, error = log_ratios_with_errors[position]
            if parts and (log_ratios_with_errors[parts[-1][0]][0] < 0) == down:
                first, first_error = log_ratios_with_errors[parts[-1][0]]
                slack = min(_WIDEST, _DEVIATIONS * (error**2 + first_error**2) ** 0.5)
                if abs(size) >= min(abs(first) * _SAME, abs(first) - slack):
                    parts[-1].append(position)
                    continue
            parts.append([position])
    return sorted(parts, key=lambda part: -abs(log_ratios_with_errors[part[0]][0]))


def explain_changes(
    changed_labels: Sequence[Labels], unchanged_labels: Sequence[Labels], uncertain_count: int = 0
) -> JointChangeExplanation:
    """The description with the lowest price of the histories that changed, held against those that stood."""
    names = _select_distinguishing_labels([*changed_labels, *unchanged_labels])
    clauses = _list_clauses(changed_labels, unchanged_labels, names)
    best = _select_cheapest_clauses(len(changed_labels), clauses)
    scopes = tuple(_make_scope(clause, changed_labels, unchanged_labels, names) for clause in best.clauses)
    cause = _determine_likely_cause(scopes, changed_labels, unchanged_labels)
    rival = min(
        (
            _compute_cost_of_clauses(len(changed_labels), [clause]).price
            for clause in clauses
            if _determine_likely_cause(
                [_make_scope(clause, changed_labels, unchanged_labels, names)], changed_labels, unchanged_labels
            )
            != cause
        ),
        default=float("inf"),
    )
    margin = rival - best.price
    sure: Certainty = "clear" if margin >= 2 else "likely" if margin >= 1 else "one of several explanations"
    return JointChangeExplanation(scopes, best.missed, len(unchanged_labels), uncertain_count, cause, sure)


@dataclass(frozen=True)
class _LabelClause:
    """One conjunction: its conditions, which changed histories it covers, and how many that stood it covers too."""

    conditions: tuple[tuple[str, str], ...]
    covers: frozenset[int]
    wrong: frozenset[int]


@dataclass(frozen=True)
class _ClauseSelection:
    clauses: tuple[_LabelClause, ...]
    missed: int
    price: float


def _select_distinguishing_labels(labels_of_histories: Iterable[Labels]) -> list[str]:
    """Labels with more than one value; of labels that part the histories in the same way the first."""
    rows = list(labels_of_histories)
    result: dict[tuple[int, ...], str] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        if name in IGNORED_LABELS:
            continue
        values = [row.get(name, "") for row in rows]
        if len(set(values)) > 1:
            codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
            result.setdefault(tuple(codes[value] for value in values), name)
    return list(result.values())


def _list_clauses(
    changed_labels: Sequence[Labels], unchanged_labels: Sequence[Labels], label_names: Sequence[str]
) -> list[_LabelClause]:
    """Every conjunction of values that occur among the changed histories, the short ones first, each effect once."""
    observed: dict[tuple[frozenset[int], frozenset[int]], _LabelClause] = {}
    for length in range(min(_MAX_TERMS, len(label_names)) + 1):
        for subset in itertools.combinations(label_names, length):
            groups: dict[tuple[str, ...], set[int]] = {}
            for index, labels in enumerate(changed_labels):
                groups.setdefault(tuple(labels.get(name, "") for name in subset), set()).add(index)
            for values, covers in groups.items():
                location = tuple(zip(subset, values, strict=True))
                wrong = frozenset(
                    index
                    for index, labels in enumerate(unchanged_labels)
                    if all(labels.get(name, "") == value for name, value in location)
                )
                observed.setdefault((frozenset(covers), wrong), _LabelClause(location, frozenset(covers), wrong))
    return list(observed.values())


def _select_cheapest_clauses(changed_count: int, clauses: Sequence[_LabelClause]) -> _ClauseSelection:
    """The cheapest set of clauses, built greedily; at least one."""
    chosen: list[_LabelClause] = []
    best = _compute_cost_of_clauses(changed_count, chosen)
    while len(chosen) < _MAX_CLAUSES:
        step = min(
            (_compute_cost_of_clauses(changed_count, [*chosen, clause]) for clause in clauses),
            key=lambda item: item.price,
            default=None,
        )
        if step is None or (chosen and step.price >= best.price):
            break
        best, chosen = step, list(step.clauses)
    return best


def _compute_cost_of_clauses(changed_count: int, chosen_clauses: Sequence[_LabelClause]) -> _ClauseSelection:
    covered = frozenset[int]().union(*(clause.covers for clause in chosen_clauses))
    wrong = frozenset[int]().union(*(clause.wrong for clause in chosen_clauses))
    price = (
        sum(_COST_PER_CLAUSE + _COST_PER_TERM * len(clause.conditions) for clause in chosen_clauses)
        + len(wrong)
        + changed_count
        - len(covered)
    )
    return _ClauseSelection(tuple(chosen_clauses), changed_count - len(covered), price)


def _make_scope(
    clause: _LabelClause,
    changed_labels: Sequence[Labels],
    unchanged_labels: Sequence[Labels],
    label_names: Sequence[str],
) -> Scope:
    location = dict(clause.conditions)
    inside = [changed_labels[cover] for cover in sorted(clause.covers)]
    fitting = inside + [unchanged_labels[index] for index in clause.wrong]
    spans = {}
    for name in label_names:
        values = {labels.get(name, "") for labels in inside}
        if name not in location and len(values) > 1:
            spans[name] = (len(values), len({labels.get(name, "") for labels in fitting}))
    return Scope(location, len(clause.covers), len(clause.wrong), spans)


def _determine_likely_cause(
    scopes: Sequence[Scope], changed_labels: Sequence[Labels], unchanged_labels: Sequence[Labels]
) -> Cause:
    """Determines where to look first, from the labels that are equal and those that vary.

    What one storage shares with no other points to that storage; what is common to several storages and named by the
    machine, to the machine; what is common to several storages and named by the kind of access only, to the client
    software or the test that all of them go through.
    """
    if len(scopes) != 1:
        return "unknown"
    everywhere = [*changed_labels, *unchanged_labels]
    location, spans = scopes[0].conditions, scopes[0].spans
    storages = len({labels.get("file_system", "") for labels in everywhere})
    if "file_system" in location:
        return "storage"
    if "system" in location or "node_class" in location:
        return "machine" if "file_system" in spans else "machine or storage"
    if not location:
        return "everything"
    if "file_system" in spans:
        return "clients"
    return "test" if storages < 2 else "unknown"
