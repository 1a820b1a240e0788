# SPDX-License-Identifier: Apache-2.0
"""Rates over time laid over each other, in seconds: of several phases or cells, each of one run or of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonde.charts.axes import build_amount_axis, build_time_axis
from sonde.charts.curves import CURVE_COLOR_COUNT, format_value_with_unit
from sonde.charts.markup import Markup
from sonde.charts.plot import Chart, Panel, render_html_table
from sonde.stats.ranks import Floats

_CHART_HEIGHT_PX = 220
_MAX_BINS = 120


@dataclass(frozen=True)
class TimeChartLine:
    """Curves of one phase: of each run the rates in slices, and the width of a slice in seconds."""

    name: str
    runs: Sequence[tuple[Sequence[float], float]]


def build_time_chart(title: str, chart_caption: str, lines: Sequence[TimeChartLine], rate_unit: str) -> Chart:
    """The median of each line's runs, and the area that holds them all. A line ends when half of its runs have ended.

    Raises ValueError when there is no curve.
    """
    if not any(line.runs for line in lines):
        raise ValueError("a chart needs values")
    drawing = [(line, *_summarize_runs_of_line(line)) for line in lines if line.runs]
    longest = max(float(edges[-1]) for _, edges, *_ in drawing)
    # a single slice that is served from memory must not press all others to the ground
    top = max(float(np.quantile(middle, 0.99)) for _, _, middle, _, _ in drawing)
    axis, scale = build_time_axis(longest), build_amount_axis(top, rate_unit)
    panel = Panel(axis, scale, _CHART_HEIGHT_PX, scale.unit)
    for index, (line, edges, middle, low, high) in enumerate(drawing):
        if len(line.runs) > 1:
            panel.add_path(
                f"overlaid c{index % CURVE_COLOR_COUNT}",
                panel.make_area_path(edges.tolist(), low.tolist(), high.tolist()),
            )
        panel.add_path(
            f"curve c{index % CURVE_COLOR_COUNT}", panel.make_step_path(edges.tolist(), middle.tolist()), line.name
        )
    keys = Markup("").join(
        Markup('<span class="ki"><span class="key curve c{}"></span>{}</span>').format(
            index % CURVE_COLOR_COUNT, line.name
        )
        for index, (line, *_) in enumerate(drawing)
    )
    caption = Markup('<span class="caption-text">{}</span> <span class="keys">{}</span>').format(chart_caption, keys)
    rows = [
        (
            line.name,
            f"{float(edges[-1]):.3g} s",
            *(format_value_with_unit(float(part.mean()), rate_unit) for part in np.array_split(middle, 4)),
        )
        for line, edges, middle, _, _ in drawing
    ]
    values = render_html_table(["", "Time", "First quarter", "Second", "Third", "Last"], rows)
    return Chart("overlaid", title, chart_caption, [panel], axis.unit, caption, values)


def _summarize_runs_of_line(line: TimeChartLine) -> tuple[Floats, Floats, Floats, Floats]:
    """Edges of equal slices up to the median end of the runs; median, lowest and highest rate in each."""
    ends = [len(rates) * width for rates, width in line.runs]
    end = float(np.median(ends))
    count = min(_MAX_BINS, max(len(rates) for rates, _ in line.runs))
    edges: Floats = np.linspace(0.0, end, count + 1)
    width = end / count
    sampled = []
    for rates, slice_s in line.runs:
        running = np.concatenate([[0.0], np.cumsum(np.asarray(rates, dtype=float) * slice_s)])
        cumulated = np.interp(edges, np.arange(running.size) * slice_s, running)
        sampled.append(np.diff(cumulated) / width)
    values = np.array(sampled)
    return edges, np.median(values, axis=0), values.min(axis=0), values.max(axis=0)
