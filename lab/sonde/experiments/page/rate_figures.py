# SPDX-License-Identifier: Apache-2.0
"""Figures of an experiment over time and over nodes."""

from __future__ import annotations

from typing import Any

from sonde.charts.curves import Curve, CurveChartData, build_curve_chart
from sonde.charts.markup import Markup
from sonde.charts.time_chart import TimeChartLine, build_time_chart
from sonde.experiments.claims.measured_runs import MeasuredRuns
from sonde.experiments.claims.samples import MissingError, compute_median_bounds
from sonde.experiments.page.median_curves import make_curve_of_medians
from sonde.experiments.page.points import (
    MAX_CHARTS_PER_FIGURE,
    PHASE_COORDINATE,
    format_axis_name_and_value,
    get_cell_coordinates,
    iterate_selected_phases,
    make_chart_title,
    make_not_drawn_sentence,
)
from sonde.model.experiment.description import FigureDescription
from sonde.model.quantities import display_count_with_noun

# Maximum runs of a cell whose curves over time are overlaid.
MAX_DRAWN_RUNS = 12


def make_rate_over_time_section(
    figure: FigureDescription, measured_runs: MeasuredRuns
) -> tuple[list[str], list[Markup]]:
    """Draws the overlaid curves of all runs of each phase (or series) over seconds."""
    curves_by_cell: list[tuple[dict[str, Any], list[tuple[tuple[float, ...], float]]]] = []
    messages = dict[str, None]()
    for cell, phase in iterate_selected_phases(figure, measured_runs.experiment):
        try:
            curves = measured_runs.collect_rate_curves(figure.metrics[0], phase, cell)
        except MissingError as reason:
            messages[make_not_drawn_sentence("Not drawn", reason)] = None
            continue
        lines = [
            (tuple(value / curve.slice_s for value in curve.amounts), curve.slice_s)
            for curve in curves[:MAX_DRAWN_RUNS]
        ]
        curves_by_cell.append(
            ({**get_cell_coordinates(measured_runs.experiment, cell), PHASE_COORDINATE: phase}, lines)
        )
    if not curves_by_cell:
        return list(messages)[:3] or ["Nothing of this figure was measured."], []
    names = sorted({name for coordinates, _ in curves_by_cell for name in coordinates})
    split_names = [
        n
        for n in names
        if n != figure.series and len({str(coordinates.get(n)) for coordinates, _ in curves_by_cell}) > 1
    ]
    groups: dict[tuple[str, ...], list[tuple[dict[str, Any], list[tuple[tuple[float, ...], float]]]]] = {}
    for cell_axes, lines in curves_by_cell:
        groups.setdefault(tuple(str(cell_axes.get(name)) for name in split_names), []).append((cell_axes, lines))
    parts = []
    for members in list(groups.values())[:MAX_CHARTS_PER_FIGURE]:
        title = make_chart_title(measured_runs.experiment, {name: members[0][0].get(name) for name in split_names})
        lines_drawn = [
            TimeChartLine(
                format_axis_name_and_value(
                    measured_runs.experiment,
                    figure.series or PHASE_COORDINATE,
                    coordinates.get(figure.series or PHASE_COORDINATE),
                ),
                lines,
            )
            for coordinates, lines in members
        ]
        max_runs = max(len(lines) for _, lines in members)
        caption = (
            f"Lines: the median of {display_count_with_noun(max_runs, 'run')}; areas: all runs. Time runs from the "
            "start"
        )
        " of the phase."
        unit = "op/s" if figure.metrics[0].startswith("operations") else "B/s"
        parts.append(build_time_chart(title, caption, lines_drawn, unit).render())
    if len(groups) > MAX_CHARTS_PER_FIGURE:
        messages[
            f"{len(groups) - MAX_CHARTS_PER_FIGURE} more cells have curves; `sonde report RUN` draws each run."
        ] = None
    return list(messages)[:3], parts


def make_node_section(figure: FigureDescription, measured_runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """Draws the rate of each node or task, as the median over runs: one line for each phase."""
    member_kind = "task" if figure.x == "task" else "node"
    groups: dict[tuple[str, ...], tuple[dict[str, Any], list[Curve]]] = {}
    messages = dict[str, None]()
    for cell, phase in iterate_selected_phases(figure, measured_runs.experiment):
        try:
            members = measured_runs.collect_member_values(figure.metrics[0], phase, cell, member_kind)
        except MissingError as reason:
            messages[make_not_drawn_sentence("Not drawn", reason)] = None
            continue
        member_count = min(len(run) for run in members)
        bounds = [
            compute_median_bounds([run[member_index] for run in members], measured_runs.determine_interim_look(cell))
            for member_index in range(member_count)
        ]
        axis_values = get_cell_coordinates(measured_runs.experiment, cell)
        key = tuple(str(value) for value in axis_values.values())
        curve = make_curve_of_medians(phase, [(float(number), bound) for number, bound in enumerate(bounds)])
        groups.setdefault(key, (axis_values, []))[1].append(curve)
    parts = [
        build_curve_chart(
            CurveChartData(
                make_chart_title(measured_runs.experiment, axis_values),
                f"Medians over the runs, for each {member_kind}.",
                curves,
                "B/s",
                member_kind,
            )
        ).render()
        for axis_values, curves in list(groups.values())[:MAX_CHARTS_PER_FIGURE]
    ]
    return list(messages)[:3], parts
