# SPDX-License-Identifier: Apache-2.0
"""Charts of the duration of each call against its number, from a run's operation log (``operations_file``)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sonde.charts.markup import Markup
from sonde.charts.scatter import DotSeries, build_scatter_chart
from sonde.experiments.claims.measured_runs import MeasuredRuns
from sonde.experiments.page.points import (
    PHASE_COORDINATE,
    format_axis_name_and_value,
    get_cell_coordinates,
    iterate_selected_phases,
)
from sonde.model.confined_files import open_file
from sonde.model.documents import read_bounded_lines
from sonde.model.experiment.description import FigureDescription

# Maximum calls in a chart: the longest half, and an evenly spaced half of the others.
MAX_DRAWN_CALLS = 2000
# Column of the log.
_SECONDS_COLUMN = "runtime"


def make_call_section(figure: FigureDescription, measured_runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """Returns messages and one chart with a color for each cell, from the first task of the first run."""
    dots: list[DotSeries] = []
    messages = dict[str, None]()
    for cell, phase in iterate_selected_phases(figure, measured_runs.experiment):
        name = _get_operations_file(measured_runs.experiment.plans[cell.plan]["phases"], phase)
        times = read_call_seconds(measured_runs.list_run_folders(cell), name) if name else []
        if not times:
            messages[f"Not drawn: no run of cell {cell.id} has a log of the operations of {phase}."] = None
            continue
        cell_axes = {**get_cell_coordinates(measured_runs.experiment, cell), PHASE_COORDINATE: phase}
        dots.append(
            DotSeries(
                format_axis_name_and_value(measured_runs.experiment, figure.series, cell_axes.get(figure.series)),
                *select_calls_to_draw(times),
            )
        )
    if not dots:
        return list(messages)[:3] or ["Nothing of this figure was measured."], []
    caption = "Each dot is one call of the first task of the first run."
    call_count = max(int(figure.x[-1]) + 1 for figure in dots if len(figure.x))
    if call_count > MAX_DRAWN_CALLS:
        caption += f" Of {call_count:,} calls the longest are all drawn, and the others at even intervals."
    return list(messages)[:3], [build_scatter_chart(figure.title or figure.id, caption, dots, "call number").render()]


def _get_operations_file(phase_tables: Sequence[Any], phase_id: str) -> str:
    names = [str(phase.get("operations_file", "")) for phase in phase_tables if phase["id"] == phase_id]
    return Path(names[0]).name if names else ""


def read_call_seconds(run_folders: Sequence[Path], log_name: str) -> list[float]:
    """Returns the seconds of each operation of the first task of the first run with a log; empty without a log."""
    for folder in run_folders:
        file = folder / f"{log_name}-00000.csv"
        try:
            with open_file(file) as content:
                lines = (line.decode() for line in read_bounded_lines(content))
                return [float(row[_SECONDS_COLUMN]) for row in csv.DictReader(lines)]
        except (OSError, KeyError, TypeError, ValueError, csv.Error):
            continue
    return []


def select_calls_to_draw(call_seconds: Sequence[float]) -> tuple[list[float], list[float]]:
    """Returns number and seconds of the drawn calls: all, or the longest and evenly spaced ones up to
    `MAX_SYNTHESIZED_CALLS`."""
    values = np.asarray(call_seconds, dtype=float)
    if values.size <= MAX_DRAWN_CALLS:
        return [float(index) for index in range(values.size)], values.tolist()
    longest = np.argsort(-values, kind="stable")[: MAX_DRAWN_CALLS // 2]
    evenly_spaced = np.linspace(0, values.size - 1, MAX_DRAWN_CALLS // 2).astype(int)
    chosen = np.unique(np.concatenate([longest, evenly_spaced]))
    return [float(index) for index in chosen], values[chosen].tolist()
