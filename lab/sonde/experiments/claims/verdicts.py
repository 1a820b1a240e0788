# SPDX-License-Identifier: Apache-2.0
"""Evaluates the claims of an experiment: compares confidence intervals and returns one of four verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.experiments.claims.explanations import NO_INTERVAL_SENTENCE, explain_comparison_result
from sonde.experiments.claims.grid import CellGrid, ClaimContext
from sonde.experiments.claims.samples import MissingError, SampleSource
from sonde.experiments.claims.values import ClaimEvaluator, EvaluatedValue
from sonde.model.experiment.claim_verdicts import ClaimVerdict, combine_verdicts, compare_interval_with_threshold
from sonde.model.experiment.claims import ClaimComparison, MetricFunctionCall, NumberLiteral, ShapeName
from sonde.model.experiment.description import Expectation
from sonde.model.experiment.experiment import Experiment
from sonde.stats.bounds import MIN_VALUES, BoundedValue, estimate_more_runs


@dataclass(frozen=True)
class ComparisonResult:
    """The result of one comparison of a claim in one context.

    `value` is the measured value (None if data is missing); it was compared with `threshold` by `operator`.
    `runs_needed`: for an undecided comparison, the number of additional runs of each cell that would probably decide
    it; None if no number would. `missing`: the data that is missing, if the comparison does not apply. `explanation`:
    for a comparison that does not hold, what the numbers show about the reason.
    """

    outcome: ClaimVerdict
    operator: str = ""
    value: BoundedValue | None = None
    threshold: float | str = 0.0
    runs_needed: int | None = None
    missing: str = ""
    explanation: str = ""


@dataclass(frozen=True)
class ContextResult:
    """The result of a claim in one context: one value for every axis that the claim does not name."""

    context: ClaimContext
    comparisons: tuple[ComparisonResult, ...]

    @property
    def outcome(self) -> ClaimVerdict:
        return combine_verdicts(part.outcome for part in self.comparisons)


@dataclass(frozen=True)
class ClaimResult:
    """The verdict of one claim. `reason` explains why the claim does not apply; empty if it was evaluated."""

    expectation: Expectation
    contexts: tuple[ContextResult, ...] = ()
    reason: str = ""

    @property
    def outcome(self) -> ClaimVerdict:
        """The outcome over all contexts: one failure is enough.

        Contexts with missing data are ignored unless all are.
        """
        if self.reason:
            return ClaimVerdict.NOT_JUDGED
        applied = [cell.outcome for cell in self.contexts if cell.outcome is not ClaimVerdict.NOT_JUDGED]
        return combine_verdicts(applied)

    @property
    def runs_needed(self) -> int | None:
        """Additional runs of each cell that would probably decide all undecided comparisons; None if no number
        would."""
        estimates_needed = [
            part.runs_needed
            for cell in self.contexts
            for part in cell.comparisons
            if part.outcome is ClaimVerdict.UNDECIDED
        ]
        estimates = [estimate for estimate in estimates_needed if estimate is not None]
        return max(estimates) if estimates and len(estimates) == len(estimates_needed) else None


def evaluate_claims(
    experiment: Experiment,
    sample_source: SampleSource,
    confidence_levels: Sequence[str] = ("measured",),
    unmet_requirements: Mapping[str, str] | None = None,
    profile_name: str = "",
) -> list[ClaimResult]:
    """Evaluates every claim in the order of the file.

    `confidence_levels` are the levels that apply: ("measured",) on storage, ("simulated", "measured") on a simulated
    machine, ("math",) on published numbers. `unmet_requirements` has a sentence for each unmet requirement.
    `profile_name` is the one that was run.
    """
    grid = CellGrid(experiment)
    return [
        _evaluate_expectation(
            expectation, experiment, grid, sample_source, confidence_levels, unmet_requirements or {}, profile_name
        )
        for expectation in experiment.file.expect
    ]


def _evaluate_expectation(
    expectation: Expectation,
    experiment: Experiment,
    grid: CellGrid,
    sample_source: SampleSource,
    confidence_levels: Sequence[str],
    unmet_requirements: Mapping[str, str],
    profile_name: str,
) -> ClaimResult:
    if expectation.level not in confidence_levels:
        return ClaimResult(expectation, reason=_LEVEL_REASONS[expectation.level])
    if expectation.profiles and profile_name not in expectation.profiles:
        return ClaimResult(
            expectation, reason=f"it is evaluated only in the profile {' or '.join(expectation.profiles)}"
        )
    unmet = [unmet_requirements[need] for need in expectation.needs if need in unmet_requirements]
    if unmet:
        return ClaimResult(expectation, reason="; ".join(unmet))
    claim = experiment.claims[expectation.id]
    missing_cell = experiment.find_missing_cell(claim)
    if missing_cell is not None:
        return ClaimResult(expectation, reason=f"this profile has no cell {missing_cell}")
    try:
        contexts = grid.find_contexts(claim)
    except MissingError as reason:
        return ClaimResult(expectation, reason=str(reason))
    values = ClaimEvaluator(grid, sample_source.restrict_to_subjects(expectation.about), expectation.confidence)
    cells = tuple(
        ContextResult(context, tuple(_evaluate_comparison(part, values, context) for part in claim.comparisons))
        for context in contexts
    )
    if all(cell.outcome is ClaimVerdict.NOT_JUDGED for cell in cells):
        reasons = dict.fromkeys(part.missing for cell in cells for part in cell.comparisons if part.missing)
        return ClaimResult(expectation, cells, "; ".join(list(reasons)[:3]) or "no cell has what it compares")
    return ClaimResult(expectation, cells)


_LEVEL_REASONS: Mapping[str, str] = {
    "math": "it is arithmetic on published numbers, which Sonde's tests check",
    "simulated": "it is tested only with `sonde simulate`",
    "measured": "it is tested only on real or simulated storage",
}


_MIRRORED_OPERATORS: Mapping[str, str] = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "==": "=="}


def _evaluate_comparison(
    comparison: ClaimComparison, evaluator: ClaimEvaluator, context: ClaimContext
) -> ComparisonResult:
    if isinstance(
        comparison.left_operand, NumberLiteral
    ):  # so that the text shows the measured value, not a difference
        comparison = ClaimComparison(
            comparison.right_operand, _MIRRORED_OPERATORS[comparison.operator], comparison.left_operand
        )
    try:
        if isinstance(comparison.left_operand, ShapeName) or isinstance(comparison.right_operand, ShapeName):
            return _evaluate_form_comparison(comparison, evaluator, context)
        evaluated, threshold, scale = evaluator.evaluate_comparison(comparison, context)
    except MissingError as reason:
        return ComparisonResult(ClaimVerdict.NOT_JUDGED, comparison.operator, missing=str(reason))
    low, high = evaluated.bounds.limits
    outcome = compare_interval_with_threshold(low, high, comparison.operator, threshold, scale)
    runs_needed = _estimate_more_runs(evaluated, threshold) if outcome is ClaimVerdict.UNDECIDED else None
    explanation = explain_comparison_result(comparison, evaluator, context, outcome)
    if (
        outcome is ClaimVerdict.UNDECIDED
        and not evaluated.bounds.has_interval
        and evaluated.runs >= evaluated.runs_needed
    ):
        explanation = f"{NO_INTERVAL_SENTENCE} {explanation}".strip()
    return ComparisonResult(
        outcome, comparison.operator, evaluated.bounds, threshold, runs_needed, explanation=explanation
    )


def _estimate_more_runs(evaluated_value: EvaluatedValue, claimed_threshold: float) -> int | None:
    if not evaluated_value.bounds.has_interval:  # too few runs, or a divisor that may be 0
        return (
            evaluated_value.runs_needed - evaluated_value.runs
            if evaluated_value.runs < evaluated_value.runs_needed
            else None
        )
    return estimate_more_runs(evaluated_value.runs, evaluated_value.bounds, claimed_threshold)


def _evaluate_form_comparison(
    comparison: ClaimComparison, evaluator: ClaimEvaluator, context: ClaimContext
) -> ComparisonResult:
    function, word = (
        (comparison.left_operand, comparison.right_operand)
        if isinstance(comparison.right_operand, ShapeName)
        else (comparison.right_operand, comparison.left_operand)
    )
    assert isinstance(function, MetricFunctionCall)
    assert isinstance(word, ShapeName)
    share, form_counts = evaluator.compute_form_share_and_counts(function, word.text, context)
    low, high = share.limits
    # More than half of the runs must have the form.
    outcome = compare_interval_with_threshold(low, high, ">", 0.5)
    runs_needed = None
    if outcome is ClaimVerdict.UNDECIDED:
        runs_needed = (
            max(1, MIN_VALUES - form_counts.total())
            if form_counts.total() < MIN_VALUES
            else estimate_more_runs(form_counts.total(), share, 0.5)
        )
    return ComparisonResult(
        outcome, "==", share, word.text, runs_needed, ", ".join(f"{n} {form}" for form, n in form_counts.most_common())
    )


def convert_verdicts_to_json(claim_results: Sequence[ClaimResult]) -> list[dict[str, Any]]:
    """Returns the verdicts as JSON members."""
    return [
        {
            "id": verdict.expectation.id,
            "level": verdict.expectation.level,
            "claim": verdict.expectation.claim,
            "verdict": str(verdict.outcome),
            "reason": verdict.reason,
            "runs_needed": verdict.runs_needed,
            "cells": [
                {
                    "axis_values": {name: str(value) for name, value in cell.context.items()},
                    "verdict": str(cell.outcome),
                    "comparisons": [
                        {
                            "verdict": str(part.outcome),
                            "value": part.value.value if part.value else None,
                            "low": part.value.low if part.value else None,
                            "high": part.value.high if part.value else None,
                            "operator": part.operator,
                            "threshold": part.threshold,
                            "missing": part.missing,
                            "explanation": part.explanation,
                        }
                        for part in cell.comparisons
                    ],
                }
                for cell in verdict.contexts
            ],
        }
        for verdict in claim_results
    ]
