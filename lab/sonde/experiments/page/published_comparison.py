# SPDX-License-Identifier: Apache-2.0
"""Compares published numbers of the source document with measured ones: as a table with ratios, and as chart lines.

The published numbers are of another machine, so their magnitude is not evaluated. The table compares shapes: each
number / the first number of the same phase, published and measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.experiments.claims.grid import CellGrid, ClaimContext
from sonde.experiments.claims.measured_runs import MeasuredRuns
from sonde.experiments.claims.samples import MissingError
from sonde.experiments.claims.values import ClaimEvaluator
from sonde.experiments.page.points import (
    METRIC_COORDINATE,
    PHASE_COORDINATE,
    PLAN_COORDINATE,
    canonicalize_axis_values,
    format_axis_value,
)
from sonde.experiments.page.sentences import format_amount, format_number
from sonde.model.experiment.claim_parser import (
    find_unit_of_value,
    parse_claim_value,
    parse_published_number,
    wrap_value_in_claim,
)
from sonde.model.experiment.claims import ClaimExpression, MetricReference
from sonde.model.experiment.description import FigureDescription, PublishedNumber
from sonde.stats.bounds import BoundedValue
from sonde.stats.stopping import CONFIDENCE

SECTION_TITLES = {False: "Published and measured numbers", True: "Published and simulated numbers"}
PUBLISHED_NUMBERS_EXPLANATION = (
    "Published numbers are of another machine, often of another size: compare the shape, not the height."
)
# Maximum places on axes that a published number leaves open; the table of all cells has the others.
MAX_PUBLISHED_CONTEXTS = 8
_LIMIT_PREFIXES = {"": "", "about": "about ", "at_least": "at least ", "at_most": "at most "}


@dataclass(frozen=True)
class PublishedComparison:
    """A published number and the measured value for the same cell, in base units."""

    published: PublishedNumber
    value_expression: ClaimExpression
    unit: str
    value: float
    upper: float | None
    context: ClaimContext  # values on the axes that the published number leaves open
    measured: BoundedValue | None
    missing: str = ""  # why there is no measured value
    cell: str = ""  # id of the metric's cell; empty for a calculated value
    phase: str = ""

    @property
    def ratio(self) -> BoundedValue | None:
        """Measured / published; None without a measured value, for a published range, and for zero."""
        if self.measured is None or self.upper is not None or self.value == 0:
            return None
        return self.measured / BoundedValue.from_exact_value(self.value)


def compare_published(
    measured_runs: MeasuredRuns, max_contexts: int | None = MAX_PUBLISHED_CONTEXTS
) -> list[PublishedComparison]:
    """Returns a comparison for every published number, at up to `most_places` values of its open axes."""
    grid = CellGrid(measured_runs.experiment)
    values = ClaimEvaluator(grid, measured_runs, CONFIDENCE)
    return [
        comparison
        for published in measured_runs.experiment.file.published
        for comparison in _compare_published_number(published, grid, values, max_contexts)
    ]


def _compare_published_number(
    published_number: PublishedNumber, grid: CellGrid, evaluator: ClaimEvaluator, max_contexts: int | None
) -> list[PublishedComparison]:
    value_expression = parse_claim_value(published_number.of)
    unit = find_unit_of_value(value_expression)
    value, upper = (
        parse_published_number(published_number.value, unit),
        None if published_number.to is None else parse_published_number(published_number.to, unit),
    )
    try:
        contexts = grid.find_contexts(wrap_value_in_claim(published_number.of, value_expression))
    except MissingError as reason:
        return [PublishedComparison(published_number, value_expression, unit, value, upper, {}, None, str(reason))]
    comparisons = []
    for context in contexts[:max_contexts]:
        cell, phase = _find_cell_and_phase(value_expression, context, grid)
        try:
            comparisons.append(
                PublishedComparison(
                    published_number,
                    value_expression,
                    unit,
                    value,
                    upper,
                    context,
                    evaluator.evaluate_expression(value_expression, context).bounds,
                    "",
                    cell,
                    phase,
                )
            )
        except MissingError as reason:
            comparisons.append(
                PublishedComparison(
                    published_number, value_expression, unit, value, upper, context, None, str(reason), cell, phase
                )
            )
    return comparisons


def _find_cell_and_phase(value_expression: ClaimExpression, context: ClaimContext, grid: CellGrid) -> tuple[str, str]:
    """Returns cell id and phase of a metric; empty for a value calculated from several."""
    if not isinstance(value_expression, MetricReference):
        return "", ""
    cell = grid.find_cell(value_expression, context)
    try:
        return cell.id, grid.get_phase_of_metric(value_expression, cell)
    except MissingError:  # several phases, and the metric names none
        return cell.id, ""


def make_published_section(measured_runs: MeasuredRuns, is_simulated: bool = False) -> tuple[list[str], list[Markup]]:
    """Returns messages and the table; both empty if the document has no numbers. `is_simulated`: the runs are of a
    model."""
    comparisons = compare_published(measured_runs)
    if not comparisons:
        return [], []
    origin = "simulated" if is_simulated else "measured"
    columns = ["of", "source", "published", origin, f"{origin} ÷ published", "shape: published", origin]
    body = [_make_table_row(measured_runs, comparison, comparisons) for comparison in comparisons]
    reasons = list(dict.fromkeys(comparison.missing for comparison in comparisons if comparison.measured is None))
    messages = [PUBLISHED_NUMBERS_EXPLANATION, "Shape: the number / the first number of the same phase in this table."]
    if reasons:
        messages.append(f"Not {origin} here: {'; '.join(reasons[:3])}{' …' if len(reasons) > 3 else ''}.")
    return messages, [render_html_table(columns, body, SECTION_TITLES[is_simulated], text_columns=2)]


def _make_table_row(
    measured_runs: MeasuredRuns, comparison: PublishedComparison, comparisons: Sequence[PublishedComparison]
) -> list[str]:
    context_text = ", ".join(
        f"{name} {format_axis_value(measured_runs.experiment, name, value)}"
        for name, value in comparison.context.items()
    )
    name = f"{comparison.published.of} ({context_text})" if context_text else comparison.published.of
    description = f"{name}: {comparison.published.quote}" if comparison.published.quote else name
    reference = next(other for other in comparisons if _make_shape_key(other) == _make_shape_key(comparison))
    return [
        description,
        comparison.published.source,
        format_published(comparison),
        _format_median_and_bounds(comparison.measured, comparison.unit),
        _format_measured_to_published_ratio(comparison.ratio),
        *_make_shape_columns(comparison, reference),
    ]


def format_published(comparison: PublishedComparison) -> str:
    """Formats a published number, for example "about 1.60 GB/s" or "3.20 GB/s … 4.00 GB/s"."""
    range_text = "" if comparison.upper is None else f" … {format_amount(comparison.upper, comparison.unit)}"
    return (
        f"{_LIMIT_PREFIXES[comparison.published.limit]}{format_amount(comparison.value, comparison.unit)}{range_text}"
    )


def _format_median_and_bounds(bounded_value: BoundedValue | None, unit: str) -> str:
    if bounded_value is None:
        return "–"
    if bounded_value.low is None or bounded_value.high is None:
        return format_amount(bounded_value.value, unit)
    value, low, high = (
        format_amount(number, unit) for number in (bounded_value.value, bounded_value.low, bounded_value.high)
    )
    return f"{value} [{low}, {high}]"


def _format_measured_to_published_ratio(measured_to_published: BoundedValue | None) -> str:
    return "–" if measured_to_published is None else format_number(measured_to_published.value)


def _make_shape_key(comparison: PublishedComparison) -> object:
    """Returns the key of the numbers that form a shape: metric, phase, plan."""
    if not isinstance(comparison.value_expression, MetricReference):
        return id(comparison)
    return (
        comparison.value_expression.name,
        comparison.value_expression.phase,
        str({**comparison.value_expression.coordinates, **comparison.context}.get(PLAN_COORDINATE)),
    )


def _make_shape_columns(comparison: PublishedComparison, first_of_group: PublishedComparison) -> list[str]:
    """Returns this number / the first of its group: published, and measured."""
    if (
        comparison.published is first_of_group.published
        or comparison.upper is not None
        or first_of_group.upper is not None
        or first_of_group.value == 0
    ):
        return ["–", "–"]
    ours = (
        comparison.measured.value / first_of_group.measured.value
        if comparison.measured and first_of_group.measured and first_of_group.measured.value
        else None
    )
    return [format_number(comparison.value / first_of_group.value), "–" if ours is None else format_number(ours)]


@dataclass(frozen=True)
class PublishedLine:
    """The published numbers of one line of a chart: place on the x axis -> value in base units."""

    series: Any
    values: Mapping[Any, float]


def make_published_curves(
    figure: FigureDescription,
    measured_runs: MeasuredRuns,
    shared_coordinates: Mapping[str, Any],
    measured_axis_values: Sequence[Any],
) -> list[PublishedLine]:
    """Returns the lines of published numbers in one chart. `shared_coordinates` has the coordinates that all its points
    share; `measured_axis_values` are the measured places on the x axis. A number without such a place is drawn at each
    of them."""
    lines: dict[str, tuple[Any, dict[Any, float]]] = {}
    fixed_places = {**canonicalize_axis_values(measured_runs.experiment, figure.where or {}), **shared_coordinates}
    for published in measured_runs.experiment.file.published:
        metric = parse_claim_value(published.of)
        if (
            not isinstance(metric, MetricReference)
            or metric.name not in figure.metrics
            or figure.per
            or published.to is not None
        ):
            continue
        if published.limit in ("at_least", "at_most") or (
            figure.plans and metric.coordinates.get(PLAN_COORDINATE) not in (None, *figure.plans)
        ):
            continue
        metric_places = {
            **canonicalize_axis_values(measured_runs.experiment, metric.coordinates),
            PHASE_COORDINATE: metric.phase,
            METRIC_COORDINATE: metric.name,
        }
        is_elsewhere = any(str(metric_places.get(name, value)) != str(value) for name, value in fixed_places.items())
        if is_elsewhere or (figure.phases and metric.phase not in figure.phases):
            continue
        series = metric_places.get(figure.series) if figure.series else None
        line = lines.setdefault(json.dumps(series, default=str), (series, {}))[1]
        value = parse_published_number(published.value, find_unit_of_value(metric))
        line.update(
            {metric_places[figure.x]: value}
            if figure.x in metric_places
            else dict.fromkeys(measured_axis_values, value)
        )
    return [PublishedLine(series, values) for series, values in lines.values()]


def compute_published_scale(measured_values: Sequence[float], published_values: Sequence[float]) -> float:
    """Returns the factor for published numbers in a chart that makes both shapes visible; 1 if the largest values
    differ by at most a factor of 4."""
    largest_measured, largest_published = max(measured_values, default=0.0), max(published_values, default=0.0)
    if largest_measured <= 0 or largest_published <= 0 or 0.25 <= largest_measured / largest_published <= 4:
        return 1.0
    return float(f"{largest_measured / largest_published:.1g}")
