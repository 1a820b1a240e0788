# SPDX-License-Identifier: Apache-2.0
"""The table of scaling with pools, units or tasks: S(k) and E(k) with intervals, rate per unit, fraction of the
peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.experiments.claims.measured_runs import MeasuredRuns
from sonde.experiments.claims.samples import MissingError
from sonde.experiments.page.points import FigurePoint, compute_point_ratio, format_axis_value
from sonde.experiments.page.sentences import format_amount, format_interval
from sonde.model.experiment.description import FigureDescription
from sonde.stats.bounds import BoundedValue

SCALING_EXPLANATION = (
    "S(k): rate / rate at the smallest size. E(k): S(k) / growth of the size; 1 is proportional. Both with"
)
" 95 % intervals."


def compute_scaling_ratio(smallest_size_point: FigurePoint, point: FigurePoint) -> BoundedValue | None:
    """Returns S(k): the rate / the rate at the smallest size; None if a rate is not positive."""
    if point is smallest_size_point:
        return BoundedValue.from_exact_value(1.0)
    growth = compute_point_ratio(smallest_size_point, point)
    return None if growth is None else BoundedValue(growth.value, growth.low, growth.high)


def make_scaling_table(
    figure: FigureDescription,
    measured_runs: MeasuredRuns,
    named_lines: Sequence[tuple[str, Sequence[FigurePoint]]],
    sizes_by_place: Mapping[str, float],
) -> Markup:
    """Returns a table with a row for each point of each line, the smallest size first; `sizes_by_place` has the size by
    place."""
    rows = []
    for name, points in named_lines:
        smallest = sizes_by_place[str(points[0].coordinates.get(figure.x))]
        for point in points:
            size = sizes_by_place[str(point.coordinates.get(figure.x))]
            growth = compute_scaling_ratio(points[0], point)
            rate = point.samples.compute_median_bounds()
            efficiency = (
                "–" if growth is None else format_interval(growth / BoundedValue.from_exact_value(size / smallest))
            )
            rows.append(
                [
                    name,
                    format_axis_value(measured_runs.experiment, figure.x, point.coordinates.get(figure.x)),
                    f"{size:g}",
                    format_amount(rate.value, point.unit),
                    "–" if growth is None else format_interval(growth),
                    efficiency,
                    format_amount(rate.value / size, point.unit),
                    _format_peak_share(measured_runs, point),
                ]
            )
    columns = ["", figure.x, "size", "rate", "S(k)", "E(k)", "for each unit of size", "of the stated peak"]
    return Markup('<p class="note">{}</p>').format(SCALING_EXPLANATION) + render_html_table(
        columns, rows, "Scaling", text_columns=2
    )


def _format_peak_share(measured_runs: MeasuredRuns, point: FigurePoint) -> str:
    """Returns the fraction of the stated peak in percent; a dash if no peak is stated or no bytes are counted."""
    if point.unit != "B/s":
        return "–"
    phases = measured_runs.experiment.plans[point.cell.plan]["phases"]
    op = next(str(phase["op"]) for phase in phases if phase["id"] == point.phase)
    try:
        peak = measured_runs.get_peak_rate(point.cell, "read" if "read" in op else "write")
    except MissingError:
        return "–"
    return f"{100 * point.samples.compute_median_bounds().value / peak:.3g} %"
