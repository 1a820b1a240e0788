# SPDX-License-Identifier: Apache-2.0
"""Judges the expectations of an experiment: what is compared is the interval, and the answer is one of four."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.experiments.judging.grid import Context, Grid
from sonde.experiments.judging.reasons import NO_INTERVAL, remark
from sonde.experiments.judging.samples import MissingError, Source
from sonde.experiments.judging.values import Valued, Values
from sonde.model.experiment.claims import Comparison, Function, Number, Word
from sonde.model.experiment.description import Expectation
from sonde.model.experiment.experiment import Experiment
from sonde.model.experiment.outcomes import Outcome, compared, joined
from sonde.stats.bounds import LEAST, Bounded, more_runs


@dataclass(frozen=True)
class Compared:
    """One comparison of a claim in one context.

    `value` is what was found (None where something is missing), `operator` and `threshold` what it was held against.
    `more` says, where it is inconclusive, how many more runs of each cell would probably decide it; None when no number
    would. `missing` says, where it does not apply, what is not there. `remark` says, where it does not hold, what the
    numbers tell of the reason.
    """

    outcome: Outcome
    operator: str = ""
    value: Bounded | None = None
    threshold: float | str = 0.0
    more: int | None = None
    missing: str = ""
    remark: str = ""


@dataclass(frozen=True)
class InCell:
    """A claim in one context: the place on every axis that it does not name."""

    at: Context
    parts: tuple[Compared, ...]

    @property
    def outcome(self) -> Outcome:
        return joined(one.outcome for one in self.parts)


@dataclass(frozen=True)
class Judgement:
    """What came of one expectation. `reason` says why it does not apply as a whole; empty when it was looked at."""

    expectation: Expectation
    cells: tuple[InCell, ...] = ()
    reason: str = ""

    @property
    def outcome(self) -> Outcome:
        """The one of all contexts: a single failure is enough. Contexts in which something is missing do not count as
        long as one is left: the sentence says how many there are."""
        if self.reason:
            return Outcome.NOT_APPLICABLE
        applied = [one.outcome for one in self.cells if one.outcome is not Outcome.NOT_APPLICABLE]
        return joined(applied)

    @property
    def more(self) -> int | None:
        """How many more runs of each cell would probably decide what is open; None when no number would."""
        wanted = [part.more for cell in self.cells for part in cell.parts if part.outcome is Outcome.INCONCLUSIVE]
        known = [one for one in wanted if one is not None]
        return max(known) if known and len(known) == len(wanted) else None


def judge(
    experiment: Experiment,
    source: Source,
    levels: Sequence[str] = ("measured",),
    lacks: Mapping[str, str] | None = None,
    profile: str = "",
) -> list[Judgement]:
    """Judges every expectation, in the order of the file.

    `levels` are those that are asserted here: ("measured",) on storage, ("simulated", "measured") on a simulated
    machine, ("math",) on published numbers. `lacks` has a sentence for each of an expectation's `needs` that is not
    there. `profile` is the one that was run.
    """
    grid = Grid(experiment)
    return [_judge(one, experiment, grid, source, levels, lacks or {}, profile) for one in experiment.file.expect]


def _judge(
    one: Expectation,
    experiment: Experiment,
    grid: Grid,
    source: Source,
    levels: Sequence[str],
    lacks: Mapping[str, str],
    profile: str,
) -> Judgement:
    if one.level not in levels:
        return Judgement(one, reason=_ELSEWHERE[one.level])
    if one.profiles and profile not in one.profiles:
        return Judgement(one, reason=f"it is looked at in the profile {' or '.join(one.profiles)} only")
    needed = [lacks[need] for need in one.needs if need in lacks]
    if needed:
        return Judgement(one, reason="; ".join(needed))
    claim = experiment.claims[one.id]
    gone = experiment.missing(claim)
    if gone is not None:
        return Judgement(one, reason=f"this profile has no cell {gone}")
    try:
        contexts = grid.contexts(claim)
    except MissingError as reason:
        return Judgement(one, reason=str(reason))
    values = Values(grid, source, one.confidence)
    cells = tuple(InCell(at, tuple(_compare(part, values, at) for part in claim.comparisons)) for at in contexts)
    if all(cell.outcome is Outcome.NOT_APPLICABLE for cell in cells):
        reasons = dict.fromkeys(part.missing for cell in cells for part in cell.parts if part.missing)
        return Judgement(one, cells, "; ".join(list(reasons)[:3]) or "no cell has what it compares")
    return Judgement(one, cells)


_ELSEWHERE: Mapping[str, str] = {
    "math": "it is arithmetic on published numbers, which the tests of Sonde do",
    "simulated": "it is asserted on a simulated machine",
    "measured": "it is asserted on real or simulated storage",
}


_TURNED: Mapping[str, str] = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "==": "=="}


def _compare(one: Comparison, values: Values, at: Context) -> Compared:
    if isinstance(one.left, Number):  # so that the sentence shows what was found, not a difference
        one = Comparison(one.right, _TURNED[one.operator], one.left)
    try:
        if isinstance(one.left, Word) or isinstance(one.right, Word):
            return _form(one, values, at)
        found, threshold, scale = values.difference(one, at)
    except MissingError as reason:
        return Compared(Outcome.NOT_APPLICABLE, one.operator, missing=str(reason))
    low, high = found.bounds.ends
    outcome = compared(low, high, one.operator, threshold, scale)
    more = _more(found, threshold) if outcome is Outcome.INCONCLUSIVE else None
    told = remark(one, values, at, outcome)
    if outcome is Outcome.INCONCLUSIVE and not found.bounds.known and found.runs >= found.needs:
        told = f"{NO_INTERVAL} {told}".strip()
    return Compared(outcome, one.operator, found.bounds, threshold, more, remark=told)


def _more(found: Valued, threshold: float) -> int | None:
    if not found.bounds.known:  # too few, or divided by what may be 0
        return found.needs - found.runs if found.runs < found.needs else None
    return more_runs(found.runs, found.bounds, threshold)


def _form(one: Comparison, values: Values, at: Context) -> Compared:
    function, word = (one.left, one.right) if isinstance(one.right, Word) else (one.right, one.left)
    assert isinstance(function, Function)
    assert isinstance(word, Word)
    share, seen = values.form_share(function, word.text, at)
    low, high = share.ends
    # it is the form of most runs
    outcome = compared(low, high, ">", 0.5)
    more = None
    if outcome is Outcome.INCONCLUSIVE:
        more = max(1, LEAST - seen.total()) if seen.total() < LEAST else more_runs(seen.total(), share, 0.5)
    return Compared(outcome, "==", share, word.text, more, ", ".join(f"{n} {form}" for form, n in seen.most_common()))


def as_document(judged: Sequence[Judgement]) -> list[dict[str, Any]]:
    """The same for machines."""
    return [
        {
            "id": one.expectation.id,
            "level": one.expectation.level,
            "claim": one.expectation.claim,
            "outcome": str(one.outcome),
            "reason": one.reason,
            "more_runs": one.more,
            "cells": [
                {
                    "at": {name: str(value) for name, value in cell.at.items()},
                    "outcome": str(cell.outcome),
                    "parts": [
                        {
                            "outcome": str(part.outcome),
                            "value": part.value.value if part.value else None,
                            "low": part.value.low if part.value else None,
                            "high": part.value.high if part.value else None,
                            "operator": part.operator,
                            "threshold": part.threshold,
                            "missing": part.missing,
                            "remark": part.remark,
                        }
                        for part in cell.parts
                    ],
                }
                for cell in one.cells
            ],
        }
        for one in judged
    ]
