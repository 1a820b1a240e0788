# SPDX-License-Identifier: Apache-2.0
"""Verdicts of claims in sentences, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.charts.curves import format_value_with_unit
from sonde.experiments.claims.verdicts import ClaimResult, ComparisonResult, ContextResult
from sonde.model.experiment.claim_verdicts import ClaimVerdict
from sonde.model.quantities import display_count_with_noun
from sonde.model.units import format_significant_digits
from sonde.stats.bounds import BoundedValue

_MAX_LISTED_CELLS = 3


def format_number(value: float, significant_digits: int = 3) -> str:
    """Formats a number with significant digits, and a letter for a power of 1000 if it is large."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{format_significant_digits(value / size, significant_digits)} {letter}"
    return f"{value:.{significant_digits}g}"


def format_unit_suffix(metric_unit: str) -> str:
    """Returns the unit to print after a number; empty for a ratio."""
    return "" if metric_unit == "1" else metric_unit


def format_amount(value: float, unit: str) -> str:
    """Formats a value with its unit: 1.60 GB/s, 20 kop/s, 34.8 s, 0.5."""
    return format_value_with_unit(value, format_unit_suffix(unit))


def format_interval(bounded_value: BoundedValue, significant_digits: int = 3) -> str:
    """Formats a value with its interval, for example 1.99 [1.87, 2.11]; without an interval only the value."""
    if bounded_value.low is None or bounded_value.high is None:
        return format_number(bounded_value.value, significant_digits)
    if bounded_value.low == bounded_value.high:
        return format_number(bounded_value.value, significant_digits)
    low, high = (
        format_number(bounded_value.low, significant_digits),
        format_number(bounded_value.high, significant_digits),
    )
    return f"{format_number(bounded_value.value, significant_digits)} [{low}, {high}]"


def _describe_comparison(comparison_result: ComparisonResult) -> str:
    if comparison_result.value is None:
        return comparison_result.missing
    if isinstance(comparison_result.threshold, str):
        return f'{comparison_result.missing}, wanted "{comparison_result.threshold}"'
    for digits in (3, 4, 5, 6):
        value, threshold = (
            format_interval(comparison_result.value, digits),
            format_number(comparison_result.threshold, digits),
        )
        numbers = {comparison_result.value.value, *comparison_result.value.limits, comparison_result.threshold}
        if len({format_number(number, digits) for number in numbers}) == len(numbers):
            break
    difference = comparison_result.value.value - comparison_result.threshold
    equal_text = f", by {abs(difference):.1g}" if difference and value == threshold else ""
    return f"{value} {comparison_result.operator} {threshold}{equal_text}"


def _describe_context_result(context_result: ContextResult) -> str:
    context_text = ", ".join(f"{name}={value}" for name, value in context_result.context.items())
    comparisons = "; ".join(_describe_comparison(part) for part in context_result.comparisons)
    return f"{context_text}: {comparisons}" if context_text else comparisons


def describe_verdict(claim_result: ClaimResult) -> str:
    """Returns the result of a claim in one or more sentences, and what would decide it if it is undecided."""
    if claim_result.outcome is ClaimVerdict.NOT_JUDGED:
        return f"Not judged, because {claim_result.reason.rstrip('.')}."
    chosen = [cell for cell in claim_result.contexts if cell.outcome is claim_result.outcome]
    text = "; ".join(_describe_context_result(cell) for cell in chosen[:_MAX_LISTED_CELLS])
    if len(chosen) > _MAX_LISTED_CELLS:
        text += f"; and {len(chosen) - _MAX_LISTED_CELLS} more"
    missing_cells = sum(cell.outcome is ClaimVerdict.NOT_JUDGED for cell in claim_result.contexts)
    if claim_result.outcome is ClaimVerdict.FAILS and len(chosen) < len(claim_result.contexts) - missing_cells:
        text += f" (in {len(chosen)} of {display_count_with_noun(len(claim_result.contexts) - missing_cells, 'cell')})"
    text += "."
    if claim_result.outcome is ClaimVerdict.UNDECIDED:
        text += _describe_deciding_runs(claim_result)
    explanations = dict.fromkeys(part.explanation for cell in chosen for part in cell.comparisons if part.explanation)
    text += "".join(f" {claim_result}" for claim_result in list(explanations)[:_MAX_LISTED_CELLS])
    if missing_cells:
        text += f" In {display_count_with_noun(missing_cells, 'cell')} compared data is missing."
    return text.replace("\N{NO-BREAK SPACE}", " ")


def _describe_deciding_runs(claim_result: ClaimResult) -> str:
    """Returns how many more runs would decide the claim, or that more runs would hardly help."""
    if claim_result.runs_needed is not None:
        return f" About {display_count_with_noun(claim_result.runs_needed, 'more run')} of each cell would decide it."
    parts = [
        part for cell in claim_result.contexts for part in cell.comparisons if part.outcome is ClaimVerdict.UNDECIDED
    ]
    if any(part.runs_needed is None and part.value is not None and part.value.has_interval for part in parts):
        return " More runs would hardly decide it: the interval is wide, and the value is close to the threshold."
    return ""


def count_verdicts(claim_results: Sequence[ClaimResult]) -> str:
    """Returns the counts, for example "3 hold, 1 fails, 2 are undecided"."""
    names = {
        ClaimVerdict.HOLDS: ("holds", "hold"),
        ClaimVerdict.FAILS: ("fails", "fail"),
        ClaimVerdict.UNDECIDED: ("is undecided", "are undecided"),
        ClaimVerdict.NOT_JUDGED: ("is not judged", "are not judged"),
    }
    counts_by_outcome = {outcome: sum(verdict.outcome is outcome for verdict in claim_results) for outcome in names}
    return ", ".join(f"{count} {names[outcome][count != 1]}" for outcome, count in counts_by_outcome.items() if count)


def list_verdict_lines(claim_results: Sequence[ClaimResult]) -> list[str]:
    """Returns one line for each claim: outcome, id, sentence."""
    width = max((len(verdict.expectation.id) for verdict in claim_results), default=0)
    return [
        f"{verdict.outcome:10} {verdict.expectation.id:{width}}  {describe_verdict(verdict)}"
        for verdict in claim_results
    ]
