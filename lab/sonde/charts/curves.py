# SPDX-License-Identifier: Apache-2.0
"""Rates over a quantity that is swept (clients, tasks, transfer size): a curve for each of what is compared."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sonde.charts.axes import Axis, Tick, build_amount_axis
from sonde.charts.markup import Markup
from sonde.charts.plot import Chart, ChartTooltip, Panel, format_coordinate, render_html_table
from sonde.model.units import format_bytes, format_ops, format_rate

_CHART_HEIGHT_PX = 220
# As many colors, each with a dash pattern of its own, as the style sheet has.
CURVE_COLOR_COUNT = 6
_MAX_TICKS = 6


@dataclass(frozen=True)
class Curve:
    """Values over places, ascending; `low` and `high` are bounds of an interval at each place, or empty."""

    name: str
    places: Sequence[float]
    values: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class CurveChartData:
    """A figure. `unit` is "B/s" or "op/s"; `name_of` writes a place on the axis, which is logarithmic where the places
    reach far and are above zero."""

    title: str
    summary: str
    curves: Sequence[Curve]
    unit: str
    x_unit: str
    name_of: Callable[[float], str] = "{:,.0f}".format
    log_values: bool = False
    log_places: bool | None = None  # None: by how far the places reach


def build_curve_chart(curves: CurveChartData) -> Chart:
    """The chart, with the values as a table. Raises ValueError when there is nothing to draw."""
    places = sorted({x for curve in curves.curves for x in curve.places})
    if not places:
        raise ValueError("a chart needs values")
    axis = _build_x_axis(places, curves.name_of, curves.log_places)
    scale = _build_y_axis(curves)
    panel = Panel(axis, scale, _CHART_HEIGHT_PX, scale.unit)
    for index, curve in enumerate(curves.curves):
        tone = f"c{index % CURVE_COLOR_COUNT}"
        for position, low, high in zip(curve.places, curve.low, curve.high, strict=False):
            panel.add_path(f"curve whisker {tone}", _make_vertical_line_path(panel, position, low, high))
        panel.add_path(f"curve {tone}", _make_line_path(panel, curve), curve.name)
        dots = "".join(
            f"M{format_coordinate(panel.scale_x(x))} {format_coordinate(panel.scale_y(y))}h0"
            for x, y in zip(curve.places, curve.values, strict=True)
        )
        panel.add_path(f"curve points {tone}", dots)
    panel.tips = _make_tooltips(curves, places, axis)
    return Chart(
        "curves",
        curves.title,
        curves.summary,
        [panel],
        curves.x_unit,
        _make_caption(curves),
        _make_value_table(curves, places),
    )


def _build_x_axis(
    x_positions: Sequence[float], format_position: Callable[[float], str], is_log: bool | None = None
) -> Axis:
    low, high = x_positions[0], x_positions[-1]
    if low == high:
        low, high = low * 0.5 if low > 0 else low - 1, high * 2 if high > 0 else high + 1
    log = low > 0 and (high / low > _MAX_TICKS if is_log is None else is_log)
    plain = Axis(low, high, log=log)
    every = max(1, math.ceil(len(x_positions) / _MAX_TICKS))
    stored = [value for index, value in enumerate(reversed(x_positions)) if index % every == 0]
    minor = {position for index, position in enumerate(stored) if index % 2 and len(stored) > 3}
    ticks = tuple(
        Tick(plain.scale_to_share(position), format_position(position), position in minor)
        for position in reversed(stored)
    )
    return Axis(low, high, ticks, "", log)


def _build_y_axis(curves: CurveChartData) -> Axis:
    values = [value for curve in curves.curves for value in (*curve.values, *curve.high)]
    top = max(values)
    if not curves.log_values or min(values) <= 0:
        return build_amount_axis(top, curves.unit)
    low, high = 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(top * 1.02))
    decades = round(math.log10(high / low))
    step = max(1, math.ceil(decades / 4))
    marks = [low * 10.0**power for power in range(0, decades + 1, step)]
    plain = Axis(low, high, log=True)
    return Axis(
        low,
        high,
        tuple(Tick(plain.scale_to_share(mark), _format_power_of_ten(mark)) for mark in marks),
        curves.unit,
        True,
    )


def _format_power_of_ten(tick_value: float) -> str:
    """A power of ten in little room: 100, 10k, 1M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if tick_value >= size:
            return f"{tick_value / size:.0f}{letter}"
    return f"{tick_value:g}"


def format_value_with_unit(value: float, unit: str) -> str:
    """A value with its unit."""
    if unit in ("B/s", "op/s"):
        return format_rate(value) if unit == "B/s" else format_ops(value)
    if unit == "B":
        return format_bytes(value)
    number = f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"  # no exponent
    return f"{number} {unit}".strip()


def _make_line_path(panel: Panel, curve: Curve) -> str:
    pairs = [
        f"{format_coordinate(panel.scale_x(x))} {format_coordinate(panel.scale_y(y))}"
        for x, y in zip(curve.places, curve.values, strict=True)
    ]
    return "M" + "L".join(pairs)


def _make_vertical_line_path(panel: Panel, x_position: float, low_value: float, high_value: float) -> str:
    x = format_coordinate(panel.scale_x(x_position))
    return f"M{x} {format_coordinate(panel.scale_y(low_value))}V{format_coordinate(panel.scale_y(high_value))}"


def _format_curve_value(curve: Curve, x_position: float, unit: str) -> str | None:
    """The value of a curve at `x_position`, with its unit; None if the curve has no value there."""
    return next(
        (
            format_value_with_unit(value, unit)
            for x, value in zip(curve.places, curve.values, strict=True)
            if x == x_position
        ),
        None,
    )


def _make_tooltips(curves: CurveChartData, x_positions: Sequence[float], x_axis: Axis) -> list[ChartTooltip]:
    positions = [x_axis.scale_to_share(value) for value in x_positions]
    edges = [0.0, *((previous + following) / 2 for previous, following in itertools.pairwise(positions)), 1.0]
    tips = []
    for number, position in enumerate(x_positions):
        values = [(curve.name, _format_curve_value(curve, position, curves.unit)) for curve in curves.curves]
        rows = [curves.name_of(position), *(f"{name}: {value}" for name, value in values if value is not None)]
        tips.append(ChartTooltip(edges[number], edges[number + 1], "\n".join(rows)))
    return tips


def _make_caption(curves: CurveChartData) -> Markup:
    keys = Markup("").join(
        Markup('<span class="ki"><span class="key curve c{}"></span>{}</span>').format(
            index % CURVE_COLOR_COUNT, curve.name
        )
        for index, curve in enumerate(curves.curves)
    )
    return Markup('<span class="caption-text">{}</span> <span class="keys">{}</span>').format(curves.summary, keys)


def _make_value_table(curves: CurveChartData, x_positions: Sequence[float]) -> Markup:
    rows = [
        [curves.name_of(value), *(_format_curve_value(curve, value, curves.unit) for curve in curves.curves)]
        for value in x_positions
    ]
    return render_html_table([curves.x_unit, *(curve.name for curve in curves.curves)], rows)
