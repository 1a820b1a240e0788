# SPDX-License-Identifier: Apache-2.0
"""One history: every run a dot, the levels it was on, what is usual there, its changes and those of others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonde.charts.axes import Axis, build_amount_axis, format_rate_with_unit
from sonde.charts.dates import build_date_axis, format_utc_date
from sonde.charts.markup import Markup
from sonde.charts.plot import Chart, ChartTooltip, Panel, format_coordinate, format_css_percentage, render_html_table
from sonde.model import quantities

# Dots that fall on the same half pixel of a wide screen are drawn once.
_ROUNDING_STEPS_PER_UNIT = 2.0
_MAX_TOOLTIPS = 60
_CHART_HEIGHT_PX = 150
_LABEL_WIDTH_SHARE = 0.022


@dataclass(frozen=True)
class LevelSegment:
    """Runs from `start` to `end` (seconds since 1970) on one level; `low` to `high` holds eight of ten of them."""

    start: float
    end: float
    level: float
    low: float
    high: float


@dataclass(frozen=True)
class ChangeMark:
    """A change of this history (`is_own`) or a joint change of other histories, with its time; `down` applies to
    changes of this history only."""

    time: float
    text: str
    is_own: bool = True
    down: bool = False


@dataclass(frozen=True)
class EventLine:
    """Something that happened outside of the runs: its time, the label of its line, and the text of its tip."""

    time: float
    label: str
    text: str


@dataclass(frozen=True)
class HistoryCurve:
    """`unit` is B/s or op/s; `times` ascend."""

    title: str
    summary: str
    unit: str
    times: Sequence[float]
    values: Sequence[float]
    segments: Sequence[LevelSegment]
    marks: Sequence[ChangeMark]
    events: Sequence[EventLine] = ()


def build_history_chart(history_curve: HistoryCurve, begin_time: float, end_time: float) -> Chart:
    """The chart from `begin_time` to `end_time`, so that several of them lie above each other on one time scale."""
    axis = build_date_axis(begin_time, end_time)
    values = np.asarray(history_curve.values, dtype=float)
    scale = build_amount_axis(_choose_top_value(values), history_curve.unit)
    panel = Panel(axis, scale, _CHART_HEIGHT_PX, scale.unit)
    for segment in history_curve.segments:
        panel.add_rectangle(
            "band all",
            segment.start,
            max(segment.end, segment.start + (end_time - begin_time) / 500),
            segment.low,
            min(segment.high, scale.high),
        )
    panel.add_path("dots", _make_dots_path(panel, np.asarray(history_curve.times, dtype=float), values), "Runs")
    for segment in history_curve.segments:
        panel.add_horizontal_line("level", segment.level, segment.start, segment.end)
    _draw_events(panel, history_curve.events)
    _draw_change_marks(panel, history_curve.marks)
    panel.tips = _make_tooltips(history_curve, axis)
    return Chart(
        kind="history",
        title=history_curve.title,
        summary=history_curve.summary,
        panels=[panel],
        caption=Markup('<span class="caption-text">{}</span>').format(history_curve.summary),
        table=_make_table(history_curve),
    )


def _choose_top_value(run_values: np.ndarray) -> float:
    """The highest run, unless a single one stands far above all others."""
    return float(min(run_values.max(), 1.6 * np.quantile(run_values, 0.99)))


def _make_dots_path(panel: Panel, run_times: np.ndarray, run_values: np.ndarray) -> str:
    x = (
        np.round(_ROUNDING_STEPS_PER_UNIT * np.array([panel.scale_x(time) for time in run_times]))
        / _ROUNDING_STEPS_PER_UNIT
    )
    y = (
        np.round(_ROUNDING_STEPS_PER_UNIT * np.array([panel.scale_y(value) for value in run_values]))
        / _ROUNDING_STEPS_PER_UNIT
    )
    places = dict.fromkeys(zip(x.tolist(), y.tolist(), strict=True))
    return "".join(f"M{format_coordinate(x)} {format_coordinate(top)}h0" for x, top in places)


def _draw_change_marks(panel: Panel, change_marks: Sequence[ChangeMark]) -> None:
    occupied: list[tuple[float, int]] = []
    for mark in sorted(change_marks, key=lambda change_mark: change_mark.is_own):
        css = ("change down" if mark.down else "change up") if mark.is_own else "elsewhere"
        panel.add_vertical_line(css, mark.time)
        if mark.is_own:
            position = panel.x.scale_to_share(mark.time)
            row = next(
                row
                for row in range(len(occupied) + 1)
                if all(abs(position - x) > 0.09 or row != r for x, r in occupied)
            )
            occupied.append((position, row))
            if row < 3:
                # To the left where a narrow screen has no room to the right of it.
                panel.add_note_above_plot("left" if position > 0.6 else "", position, mark.text, row)


def _draw_events(panel: Panel, events: Sequence[EventLine]) -> None:
    last = -1.0
    for event in sorted(events, key=lambda line: line.time):
        position = panel.x.scale_to_share(event.time)
        if not 0 <= position <= 1:
            continue
        panel.add_vertical_line("event", event.time)
        if position - last > _LABEL_WIDTH_SHARE:  # a label that would cover the one before is left out
            panel.labels.append(
                Markup('<span class="lb event" style="left:{}">{}</span>').format(
                    format_css_percentage(position), event.label
                )
            )
            last = position


def _make_tooltips(history_curve: HistoryCurve, axis: Axis) -> list[ChartTooltip]:
    """One tip for each interval of the time axis that holds runs or events."""
    times, values = np.asarray(history_curve.times, dtype=float), np.asarray(history_curve.values, dtype=float)
    edges = np.linspace(axis.low, axis.high, min(_MAX_TOOLTIPS, max(2, len(times))) + 1)
    tips = []
    for left_edge, right_edge in itertools.pairwise(edges.tolist()):
        inside = (times >= left_edge) & (times <= right_edge)
        events = [event.text for event in history_curve.events if left_edge <= event.time < right_edge]
        text = ""
        if inside.any():
            rate = format_rate_with_unit(float(np.median(values[inside])), history_curve.unit)
            text = f"{format_utc_date(float(times[inside][0]))}\n{rate}"
            text += f"\n{quantities.display_count_with_noun(int(inside.sum()), 'run')}" if inside.sum() > 1 else ""
        if text or events:
            text = "\n".join(filter(None, (text, *events)))
            tips.append(
                ChartTooltip(axis.scale_to_share(float(left_edge)), axis.scale_to_share(float(right_edge)), text)
            )
    return tips


def _make_table(history_curve: HistoryCurve) -> Markup:
    rows = [
        (
            f"{format_utc_date(segment.start)} – {format_utc_date(segment.end)}",
            format_rate_with_unit(segment.level, history_curve.unit),
            f"{format_rate_with_unit(segment.low, history_curve.unit)} – "
            f"{format_rate_with_unit(segment.high, history_curve.unit)}",
        )
        for segment in history_curve.segments
    ]
    return render_html_table(["Time", "Level", "Eight of ten runs"], rows, "Levels of the history")
