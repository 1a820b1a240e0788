# SPDX-License-Identifier: Apache-2.0
"""Figures of an experiment, each in the form of its source document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sonde.charts.amount_bars import AmountBar, render_amount_bars
from sonde.charts.change_bars import ChangeRow, render_change_bars
from sonde.charts.curves import CURVE_COLOR_COUNT, Curve, CurveChartData, build_curve_chart
from sonde.charts.markup import Markup
from sonde.experiments.claims.measured_runs import MeasuredRuns
from sonde.experiments.claims.samples import MissingError
from sonde.experiments.claims.values import parse_axis_number
from sonde.experiments.page.call_chart import make_call_section
from sonde.experiments.page.median_curves import make_curve_of_medians
from sonde.experiments.page.points import (
    MAX_CHARTS_PER_FIGURE,
    FigurePoint,
    collect_points,
    compute_point_ratio,
    format_axis_name_and_value,
    format_axis_value,
    make_chart_title,
    make_not_drawn_sentence,
    order_axis_values,
    parse_axis_numbers,
    split_points_into_charts,
)
from sonde.experiments.page.published_comparison import PublishedLine, compute_published_scale, make_published_curves
from sonde.experiments.page.rate_figures import make_node_section, make_rate_over_time_section
from sonde.experiments.page.scaling_table import compute_scaling_ratio, make_scaling_table
from sonde.experiments.page.sentences import format_amount, format_unit_suffix
from sonde.model.experiment.description import FigureDescription
from sonde.stats.bounds import BoundedValue
from sonde.stats.stopping import MIN_RUNS


def make_figure_section(figure: FigureDescription, measured_runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """Returns the messages and charts of a figure."""
    parts = {"over_time": make_rate_over_time_section, "calls": make_call_section, "nodes": make_node_section}.get(
        figure.kind, _make_point_section
    )(figure, measured_runs)
    return parts


def _make_point_section(figure: FigureDescription, measured_runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    selection = collect_points(figure, measured_runs)
    messages = [make_not_drawn_sentence("Not drawn", reason) for reason in selection.missing[:3]]
    if not selection.points:
        return messages or ["Nothing of this figure was measured."], []
    groups = split_points_into_charts(selection.points, (figure.x, figure.series))
    draw = {
        "curve": _draw_curves,
        "scaling": _draw_scaling_chart,
        "bars": _draw_bar_chart,
        "percent": _draw_percent_change_chart,
    }[figure.kind]
    parts = []
    for shared, points in groups[:MAX_CHARTS_PER_FIGURE]:
        chart = draw(figure, make_chart_title(measured_runs.experiment, shared), points, measured_runs)
        if chart is not None:
            parts.append(chart)
    if len(groups) > MAX_CHARTS_PER_FIGURE:
        messages.append(
            f"{len(groups) - MAX_CHARTS_PER_FIGURE} more charts would follow; their numbers are in the table below."
        )
    return messages, parts


def _group_by_series(
    figure: FigureDescription, points: Sequence[FigurePoint], measured_runs: MeasuredRuns
) -> list[tuple[str, list[FigurePoint]]]:
    """Returns name and points of each line or color."""
    if not figure.series:
        return [(figure.title or figure.id, list(points))]
    values = order_axis_values(
        measured_runs.experiment, figure.series, [point.coordinates.get(figure.series) for point in points]
    )
    return [
        (
            format_axis_name_and_value(measured_runs.experiment, figure.series, value),
            [p for p in points if str(p.coordinates.get(figure.series)) == str(value)],
        )
        for value in values
    ]


def _arrange_x_axis_values(
    figure: FigureDescription, points: Sequence[FigurePoint], measured_runs: MeasuredRuns
) -> tuple[list[Any], list[float], dict[float, str]]:
    """Returns the places on the x axis, the position of each, and the label by position."""
    values = order_axis_values(
        measured_runs.experiment, figure.x, [point.coordinates.get(figure.x) for point in points]
    )
    positions = parse_axis_numbers(values)
    if positions is None:
        positions = [float(position) for position in range(len(values))]
    else:
        values = [value for _, value in sorted(zip(positions, values, strict=True), key=lambda pair: pair[0])]
        positions = sorted(positions)
    return (
        values,
        positions,
        {
            position: format_axis_value(measured_runs.experiment, figure.x, value)
            for position, value in zip(positions, values, strict=True)
        },
    )


def _make_chart_heading(heading_text: str) -> Markup:
    return Markup("<h4>{}</h4>").format(heading_text) if heading_text else Markup("")


def _describe_run_count(points: Sequence[FigurePoint]) -> str:
    counts = sorted({point.samples.count for point in points})
    run_count = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    interval_text = (
        "; lines: 95 % interval" if any(point.samples.compute_median_bounds().has_interval for point in points) else ""
    )
    return f"Medians of {run_count} runs{interval_text}" + (
        "." if interval_text else f"; an interval needs {MIN_RUNS}."
    )


def _draw_curves(
    figure: FigureDescription, title: str, points: Sequence[FigurePoint], measured_runs: MeasuredRuns
) -> Markup | None:
    values, numbers_at, names = _arrange_x_axis_values(figure, points, measured_runs)
    positions = {str(value): number for value, number in zip(values, numbers_at, strict=True)}
    curves = []
    for name, series_points in _group_by_series(figure, points, measured_runs):
        curves.append(make_curve_of_medians(name, _list_medians_by_x_position(positions, figure, series_points)))
    if not curves:
        return None
    published, published_text = _make_published_curves(figure, points, measured_runs, positions)
    caption = f"{_describe_run_count(points)}{published_text}"
    return build_curve_chart(
        CurveChartData(
            title,
            caption,
            [*curves, *published],
            format_unit_suffix(points[0].unit),
            figure.x,
            lambda x: names.get(x, f"{x:g}"),
            log_places=figure.logarithmic,
        )
    ).render()


def _make_published_curves(
    figure: FigureDescription,
    points: Sequence[FigurePoint],
    measured_runs: MeasuredRuns,
    x_positions: Mapping[str, float],
) -> tuple[list[Curve], str]:
    """Returns the published lines of this chart and a sentence on them. A numeric axis also has values that were not
    measured."""
    lines, factor, published_text = _scale_published_lines(figure, points, measured_runs)
    is_numeric = parse_axis_numbers([point.coordinates.get(figure.x) for point in points[:1]]) is not None
    curves = []
    for line in lines:
        values_at = {
            x_positions.get(str(key), parse_axis_number(key) if is_numeric else None): value
            for key, value in line.values.items()
        }
        pairs = sorted((x, factor * value) for x, value in values_at.items() if x is not None)
        if pairs:
            name = (
                format_axis_name_and_value(measured_runs.experiment, figure.series, line.series)
                if figure.series
                else figure.title or figure.id
            )
            curves.append(Curve(f"{name}, published", [x for x, _ in pairs], [value for _, value in pairs]))
    return curves, published_text if curves else ""


def _scale_published_lines(
    figure: FigureDescription, points: Sequence[FigurePoint], measured_runs: MeasuredRuns
) -> tuple[list[PublishedLine], float, str]:
    """Returns the published lines of a chart, their scale factor, and a sentence that explains the factor."""
    shared = {
        name: points[0].coordinates.get(name)
        for name in points[0].coordinates
        if name not in (figure.x, figure.series) and len({str(point.coordinates.get(name)) for point in points}) == 1
    }
    lines = make_published_curves(figure, measured_runs, shared, [point.coordinates.get(figure.x) for point in points])
    factor = compute_published_scale(
        [point.samples.compute_median_bounds().value for point in points],
        [value for line in lines for value in line.values.values()],
    )
    scaled = "" if factor == 1 else f", drawn {factor:g} times as high as they are so that both can be seen"
    return lines, factor, f" Published numbers are of another machine{scaled}: compare the shape, not the height."


def _list_medians_by_x_position(
    x_positions: Mapping[str, float], figure: FigureDescription, series_points: Sequence[FigurePoint]
) -> list[tuple[float, BoundedValue]]:
    medians = [
        (x_positions[str(point.coordinates.get(figure.x))], point.samples.compute_median_bounds())
        for point in series_points
    ]
    return sorted(medians, key=lambda pair: pair[0])


def _draw_scaling_chart(
    figure: FigureDescription, title: str, points: Sequence[FigurePoint], measured_runs: MeasuredRuns
) -> Markup | None:
    """Draws the rate over the size: a number, or the storage units of a pool. The dotted line is proportional."""
    sizes: dict[str, float] = {}
    for point in points:
        value = point.coordinates.get(figure.x)
        number = parse_axis_numbers([value])
        try:
            sizes[str(value)] = number[0] if number is not None else measured_runs.count_storage_units(point.cell)
        except MissingError:
            return _draw_bar_chart(figure, title, points, measured_runs)
    names = {size: format_axis_value(measured_runs.experiment, figure.x, value) for value, size in sizes.items()}
    curves, growth_texts = [], []
    series = [
        (name, sorted(series_points, key=lambda point: sizes[str(point.coordinates.get(figure.x))]))
        for name, series_points in _group_by_series(figure, points, measured_runs)
    ]
    for name, series_points in series:
        pairs = _list_medians_by_x_position(sizes, figure, series_points)
        curves.append(make_curve_of_medians(name, pairs))
        (first_size, _), (last_size, _), growth = (
            pairs[0],
            pairs[-1],
            compute_scaling_ratio(series_points[0], series_points[-1]),
        )
        if last_size > first_size and growth is not None:
            growth_texts.append(f"{name}: {growth.value:.2f} times at {last_size / first_size:g} times the size")
    ideal_sizes, reference = sorted(names), curves[0]
    start_size, start_rate = reference.places[0], reference.values[0]
    curves.append(
        Curve(f"{reference.name}, proportional", ideal_sizes, [start_rate * size / start_size for size in ideal_sizes])
    )
    published, published_text = _make_published_curves(figure, points, measured_runs, sizes)
    curves += published
    caption = f"{_describe_run_count(points)} {'; '.join(growth_texts)}.{published_text}"
    chart = CurveChartData(
        title, caption, curves, format_unit_suffix(points[0].unit), figure.x, lambda x: names.get(x, f"{x:g}")
    )
    return build_curve_chart(chart).render() + make_scaling_table(figure, measured_runs, series, sizes)


def _draw_bar_chart(
    figure: FigureDescription, title: str, points: Sequence[FigurePoint], measured_runs: MeasuredRuns
) -> Markup | None:
    series = _group_by_series(figure, points, measured_runs)
    keys = [(f"c{index % CURVE_COLOR_COUNT}", name) for index, (name, _) in enumerate(series)]
    rows = []
    published, factor, published_text = _scale_published_lines(figure, points, measured_runs)
    for value in _arrange_x_axis_values(figure, points, measured_runs)[0]:
        amounts = []
        for (color, _), (_, series_points) in zip(keys, series, strict=True):
            for point in series_points:
                if str(point.coordinates.get(figure.x)) == str(value):
                    bounds = point.samples.compute_median_bounds()
                    amounts.append(
                        AmountBar(
                            bounds.value, bounds.low, bounds.high, color, format_amount(bounds.value, points[0].unit)
                        )
                    )
        amounts += [
            AmountBar(
                factor * published_value,
                None,
                None,
                "unknown",
                f"{format_amount(published_value, points[0].unit)} published"
                + (
                    f", {format_axis_name_and_value(measured_runs.experiment, figure.series, line.series)}"
                    if figure.series
                    else ""
                ),
            )
            for line in published
            for key, published_value in line.values.items()
            if str(key) == str(value)
        ]
        rows.append((format_axis_value(measured_runs.experiment, figure.x, value), amounts))
    note = f" For each {figure.per}." if figure.per else ""
    note += published_text if published else ""
    return (
        _make_chart_heading(title)
        + render_amount_bars(rows, title, keys)
        + Markup('<p class="note">{}{}</p>').format(_describe_run_count(points), note)
    )


def _draw_percent_change_chart(
    figure: FigureDescription, title: str, points: Sequence[FigurePoint], measured_runs: MeasuredRuns
) -> Markup | None:
    """Draws the change of every series against the baseline series."""
    rows = []
    for value in _arrange_x_axis_values(figure, points, measured_runs)[0]:
        points_here = [point for point in points if str(point.coordinates.get(figure.x)) == str(value)]
        base = next(
            (point for point in points_here if str(point.coordinates.get(figure.series)) == figure.baseline), None
        )
        for point in points_here:
            if base is None or point is base or (change := compute_point_ratio(base, point)) is None:
                continue
            color = "unknown" if change.low is None else "same"
            if change.differs:
                color = "slower" if change.value < 1 else "faster"
            rows.append(
                ChangeRow(
                    group=format_axis_value(measured_runs.experiment, figure.x, value),
                    name=f"{_make_series_label(figure, measured_runs, point)} · {point.phase}",
                    change=change.value - 1,
                    low=None if change.low is None else change.low - 1,
                    high=None if change.high is None else change.high - 1,
                    tone=color,
                    label=f"{100 * (change.value - 1):+.0f} %",
                    comment=change.why,
                )
            )
    if not rows:
        return Markup('<p class="note">{}</p>').format(
            f"There is nothing to compare with {figure.baseline} here, so there are no percentages."
        )
    return _make_chart_heading(title) + render_change_bars(rows, title)


def _make_series_label(figure: FigureDescription, measured_runs: MeasuredRuns, point: FigurePoint) -> str:
    return format_axis_value(measured_runs.experiment, figure.series, point.coordinates.get(figure.series))
