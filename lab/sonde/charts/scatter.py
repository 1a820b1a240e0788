# SPDX-License-Identifier: Apache-2.0
"""Single values against their number, on a logarithmic scale of time: which calls took long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.charts.axes import Axis, Tick, build_latency_axis
from sonde.charts.curves import CURVE_COLOR_COUNT
from sonde.charts.markup import Markup
from sonde.charts.plot import Chart, Panel, format_coordinate, render_html_table
from sonde.model.units import format_latency

_CHART_HEIGHT_PX = 240
_NS_PER_S = 1e9


@dataclass(frozen=True)
class DotSeries:
    """Seconds `y` of what has the numbers `x`."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def build_scatter_chart(title: str, chart_caption: str, dot_series: Sequence[DotSeries], x_unit: str) -> Chart:
    """The chart, with the spread of each series as a table. Raises ValueError when there is no value above 0."""
    times = [value * _NS_PER_S for dots in dot_series for value in dots.y if value > 0]
    if not times:
        raise ValueError("a chart needs values")
    last = max(max(dots.x, default=0.0) for dots in dot_series) or 1.0
    ticks = tuple(Tick(share, f"{share * last:,.0f}", share in (0.25, 0.75)) for share in (0.0, 0.25, 0.5, 0.75, 1.0))
    panel = Panel(
        Axis(0.0, last, ticks), build_latency_axis(min(times), max(times)), _CHART_HEIGHT_PX, "time of a call"
    )
    for index, item in enumerate(dot_series):
        dots = dict.fromkeys(
            f"M{format_coordinate(panel.scale_x(x))} {format_coordinate(panel.scale_y(y * _NS_PER_S))}h0"
            for x, y in zip(item.x, item.y, strict=True)
            if y > 0
        )
        panel.add_path(f"curve points fine c{index % CURVE_COLOR_COUNT}", "".join(dots), item.name)
    keys = Markup("").join(
        Markup('<span class="ki"><span class="key dot c{}"></span>{}</span>').format(
            index % CURVE_COLOR_COUNT, dots.name
        )
        for index, dots in enumerate(dot_series)
    )
    caption = Markup('<span class="caption-text">{}</span> <span class="keys">{}</span>').format(chart_caption, keys)
    rows = [
        (dots.name, *(_format_quantile(dots.y, share) for share in (0.5, 0.9, 0.99, 1.0)))
        for dots in dot_series
        if len(dots.y)
    ]
    values = render_html_table(["", "Half below", "90 % below", "99 % below", "Longest"], rows)
    return Chart("calls", title, chart_caption, [panel], x_unit, caption, values)


def _format_quantile(seconds_of_calls: Sequence[float], quantile_probability: float) -> str:
    ordered = sorted(seconds_of_calls)
    return format_latency(ordered[min(len(ordered) - 1, int(quantile_probability * len(ordered)))] * _NS_PER_S)
