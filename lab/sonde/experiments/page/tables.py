# SPDX-License-Identifier: Apache-2.0
"""Tables of an experiment: those that its file asks for, and the one that has everything."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sonde.charts.plot import table
from sonde.experiments.judging.measured import MeasuredRuns
from sonde.experiments.judging.samples import MissingError
from sonde.experiments.page.points import Point, apart, label, left_out, points_of
from sonde.experiments.page.words import amount
from sonde.model.experiment.claims import METRICS
from sonde.model.experiment.description import Table
from sonde.model.experiment.experiment import Cell
from sonde.stats.spread import COVERS, variation

# Rows of a table on the page; all of them are in the export.
MOST_ROWS = 200


def table_parts(one: Table, runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """Sentences and the table: a row for each combination of `rows`, a column for each metric; the medians with their
    intervals, and the scatter of the runs."""
    found = points_of(one, runs)
    words = [left_out("Left out", reason) for reason in found.missing[:3]]
    if not found.points:
        return words or ["Nothing of it was measured."], []
    rows = list(one.rows)
    # what differs and is no row must be seen, or two numbers would stand in one place
    more = sorted({name for at, _ in apart(found.points, (*rows, "metric")) for name in at})
    names = [*rows, *more]
    lines: dict[tuple[str, ...], dict[str, Point]] = {}
    for point in found.points:
        key = tuple(label(runs.experiment, name, point.at.get(name, "")) for name in names)
        lines.setdefault(key, {})[point.metric] = point
    columns = [*names, *(column for metric in one.metrics for column in (metric, "95 % interval", "COV")), "runs"]
    body = [[*key, *_cells(mine, one.metrics), _runs(mine)] for key, mine in list(lines.items())[:MOST_ROWS]]
    if len(lines) > MOST_ROWS:
        words.append(f"{len(lines) - MOST_ROWS} more rows are in the export.")
    per = f" For each {one.per}." if one.per else ""
    if per:
        words.append(per.strip())
    return words, [table(columns, body, one.title or one.id, text_columns=len(names))]


def _cells(mine: dict[str, Point], metrics: Sequence[str]) -> list[str]:
    cells = []
    for metric in metrics:
        point = mine.get(metric)
        if point is None:
            cells += ["–", "–", "–"]
            continue
        bounds, unit = point.samples.bounds(), METRICS[metric][0]
        low, high = bounds.low, bounds.high
        told = "–" if low is None or high is None else f"{amount(low, unit)} … {amount(high, unit)}"
        cells += [amount(bounds.value, unit), told, _scatter(point)]
    return cells


def _scatter(point: Point) -> str:
    try:
        return variation(point.samples.values).words
    except ValueError:
        return "–"


def _runs(mine: dict[str, Point]) -> str:
    return str(max(point.samples.count for point in mine.values()))


def everything(runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """Each phase of each cell: its rate, interval and scatter."""
    columns = ["cell", "phase", "rate", "95 % interval", "COV", "time", "runs"]
    body, reasons = [], dict[str, None]()
    for cell in runs.experiment.cells:
        for phase in runs.experiment.plans[cell.plan]["phases"]:
            if not phase.get("measure", True):
                continue
            try:
                body.append(_row(runs, cell, str(phase["id"])))
            except MissingError as reason:
                reasons[str(reason)] = None
    words = [left_out("Left out", reason) for reason in list(reasons)[:5]]
    words.append(COVERS)
    if len(body) > MOST_ROWS:
        words.append(f"{len(body) - MOST_ROWS} more rows are in the export.")
    return words, [table(columns, body[:MOST_ROWS], "Medians of all cells", text_columns=2)] if body else []


def _row(runs: MeasuredRuns, cell: Cell, phase: str) -> list[str]:
    try:
        metric, samples = "bandwidth", runs.samples("bandwidth", phase, cell)
    except MissingError:
        metric, samples = "operations", runs.samples("operations", phase, cell)
    bounds, unit = samples.bounds(), METRICS[metric][0]
    known = bounds.low is not None and bounds.high is not None
    told = f"{amount(bounds.ends[0], unit)} … {amount(bounds.ends[1], unit)}" if known else "–"
    time = runs.samples("time", phase, cell).bounds().value
    rate, scatter = amount(bounds.value, unit), _scatter(Point({}, cell, phase, metric, samples))
    return [cell.id, phase, rate, told, scatter, f"{time:.3g} s", str(samples.count)]
