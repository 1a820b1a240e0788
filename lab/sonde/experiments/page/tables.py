# SPDX-License-Identifier: Apache-2.0
"""Tables of an experiment: those that its file defines, and the table of all cells."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.experiments.claims.measured_runs import MeasuredRuns
from sonde.experiments.claims.samples import MissingError
from sonde.experiments.page.points import (
    FigurePoint,
    collect_points,
    format_axis_value,
    make_not_drawn_sentence,
    split_points_into_charts,
)
from sonde.experiments.page.sentences import format_amount
from sonde.model.experiment.claims import METRICS
from sonde.model.experiment.description import TableDescription
from sonde.model.experiment.experiment import Cell
from sonde.model.units import format_seconds
from sonde.stats.spread import COVERAGE_STATEMENT, estimate_coefficient_of_variation

# Maximum rows of a table on the page; the export has all rows.
MAX_ROWS = 200


def make_table_section(table_entry: TableDescription, measured_runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """Returns messages and the table: a row for each combination of `rows`; for each metric the median, its interval
    and the scatter of the runs."""
    selection = collect_points(table_entry, measured_runs)
    messages = [make_not_drawn_sentence("Left out", reason) for reason in selection.missing[:3]]
    if not selection.points:
        return messages or ["Nothing of this table was measured."], []
    rows = list(table_entry.rows)
    # Other coordinates that differ become columns, so that each number has its own row.
    other_names = sorted(
        {name for shared, _ in split_points_into_charts(selection.points, (*rows, "metric")) for name in shared}
    )
    names = [*rows, *other_names]
    lines: dict[tuple[str, ...], dict[str, FigurePoint]] = {}
    for point in selection.points:
        key = tuple(
            format_axis_value(measured_runs.experiment, name, point.coordinates.get(name, "")) for name in names
        )
        lines.setdefault(key, {})[point.metric] = point
    columns = [
        *names,
        *(column for metric in table_entry.metrics for column in (metric, "95 % interval", "COV")),
        "runs",
    ]
    body = [
        [*key, *_format_metric_cells(points, table_entry.metrics), _format_run_count(points)]
        for key, points in list(lines.items())[:MAX_ROWS]
    ]
    if len(lines) > MAX_ROWS:
        messages.append(f"{len(lines) - MAX_ROWS} more rows are in the export.")
    note = f" For each {table_entry.per}." if table_entry.per else ""
    if note:
        messages.append(note.strip())
    return messages, [render_html_table(columns, body, table_entry.title or table_entry.id, text_columns=len(names))]


def _format_metric_cells(points_by_metric: dict[str, FigurePoint], metric_names: Sequence[str]) -> list[str]:
    cells = []
    for metric in metric_names:
        point = points_by_metric.get(metric)
        if point is None:
            cells += ["–", "–", "–"]
            continue
        bounds, unit = point.samples.compute_median_bounds(), METRICS[metric][0]
        # No metric is negative; an interval of values near 0 may be.
        low, high = None if bounds.low is None else max(0.0, bounds.low), bounds.high
        interval_text = (
            "–" if low is None or high is None else f"{format_amount(low, unit)} … {format_amount(high, unit)}"
        )
        cells += [format_amount(bounds.value, unit), interval_text, _format_scatter(point)]
    return cells


def _format_scatter(point: FigurePoint) -> str:
    try:
        return estimate_coefficient_of_variation(point.samples.values).text
    except ValueError:
        return "–"


def _format_run_count(points_by_metric: dict[str, FigurePoint]) -> str:
    return str(max(point.samples.count for point in points_by_metric.values()))


def make_all_cells_section(measured_runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """Returns messages and the table of all phases of all cells: rate, interval and scatter."""
    columns = ["cell", "phase", "rate", "95 % interval", "COV", "time", "runs"]
    body, reasons = [], dict[str, None]()
    for cell in measured_runs.experiment.cells:
        for phase in measured_runs.experiment.plans[cell.plan]["phases"]:
            if not phase.get("measure", True):
                continue
            try:
                body.append(_make_cell_row(measured_runs, cell, str(phase["id"])))
            except MissingError as reason:
                reasons[str(reason)] = None
    messages = [make_not_drawn_sentence("Left out", reason) for reason in list(reasons)[:5]]
    messages.append(COVERAGE_STATEMENT)
    if len(body) > MAX_ROWS:
        messages.append(f"{len(body) - MAX_ROWS} more rows are in the export.")
    return messages, [
        render_html_table(columns, body[:MAX_ROWS], "Medians of all cells", text_columns=2)
    ] if body else []


def _make_cell_row(measured_runs: MeasuredRuns, cell: Cell, phase_id: str) -> list[str]:
    try:
        metric, samples = "bandwidth", measured_runs.collect_samples("bandwidth", phase_id, cell)
    except MissingError:
        metric, samples = "operations", measured_runs.collect_samples("operations", phase_id, cell)
    bounds, unit = samples.compute_median_bounds(), METRICS[metric][0]
    has_interval = bounds.low is not None and bounds.high is not None
    interval_text = (
        f"{format_amount(bounds.limits[0], unit)} … {format_amount(bounds.limits[1], unit)}" if has_interval else "–"
    )
    time = measured_runs.collect_samples("time", phase_id, cell).compute_median_bounds().value
    rate, scatter = format_amount(bounds.value, unit), _format_scatter(FigurePoint({}, cell, phase_id, metric, samples))
    return [cell.id, phase_id, rate, interval_text, scatter, format_seconds(time), str(samples.count)]
