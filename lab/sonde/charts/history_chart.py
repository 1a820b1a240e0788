# SPDX-License-Identifier: Apache-2.0
"""One history: every run a dot, the levels it was on, what is usual there, its changes and those of others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from sonde.charts.axes import Axis, amount_axis
from sonde.charts.dates import date_axis, day
from sonde.charts.plot import Chart, Panel, Tip, fixed, table
from sonde.model import quantities

# Dots that fall on the same half pixel of a wide screen are drawn once.
_GRID = 2.0
_MOST_TIPS = 60
_HEIGHT = 150


@dataclass(frozen=True)
class Stretch:
    """Runs from `start` to `end` (seconds since 1970) on one level; `low` to `high` holds eight of ten of them."""

    start: float
    end: float
    level: float
    low: float
    high: float


@dataclass(frozen=True)
class Mark:
    """A change of this history (`own`), or a joint change elsewhere, at a time; `down` only matters for own ones."""

    time: float
    words: str
    own: bool = True
    down: bool = False


@dataclass(frozen=True)
class History:
    """`unit` is B/s or op/s; `times` ascend."""

    title: str
    words: str
    unit: str
    times: Sequence[float]
    values: Sequence[float]
    stretches: Sequence[Stretch]
    marks: Sequence[Mark]


def history_chart(history: History, begin: float, end: float) -> Chart:
    """The chart from `begin` to `end`, so that several of them lie above each other on one time scale."""
    axis = date_axis(begin, end)
    values = np.asarray(history.values, dtype=float)
    scale = amount_axis(_top(values), history.unit)
    panel = Panel(axis, scale, _HEIGHT, scale.unit)
    for one in history.stretches:
        panel.box(
            "band all", one.start, max(one.end, one.start + (end - begin) / 500), one.low, min(one.high, scale.high)
        )
    panel.path("dots", _dots(panel, np.asarray(history.times, dtype=float), values), "Runs")
    for one in history.stretches:
        panel.horizontal("level", one.level, one.start, one.end)
    _draw_marks(panel, history.marks)
    panel.tips = _tips(history, axis)
    return Chart(
        kind="history",
        title=history.title,
        words=history.words,
        panels=[panel],
        caption=Markup('<span class="said">{}</span>').format(history.words),
        table=_table(history),
    )


def _top(values: np.ndarray) -> float:
    """The highest run, unless a single one stands far above all others."""
    return float(min(values.max(), 1.6 * np.quantile(values, 0.99)))


def _dots(panel: Panel, times: np.ndarray, values: np.ndarray) -> str:
    x = np.round(_GRID * np.array([panel.px(time) for time in times])) / _GRID
    y = np.round(_GRID * np.array([panel.py(value) for value in values])) / _GRID
    places = dict.fromkeys(zip(x.tolist(), y.tolist(), strict=True))
    return "".join(f"M{fixed(left)} {fixed(top)}h0" for left, top in places)


def _draw_marks(panel: Panel, marks: Sequence[Mark]) -> None:
    taken: list[tuple[float, int]] = []
    for mark in sorted(marks, key=lambda one: one.own):
        css = ("change down" if mark.down else "change up") if mark.own else "elsewhere"
        panel.vertical(css, mark.time)
        if mark.own:
            at = panel.x.at(mark.time)
            row = next(row for row in range(len(taken) + 1) if all(abs(at - x) > 0.09 or row != r for x, r in taken))
            taken.append((at, row))
            if row < 3:
                # To the left where a narrow screen has no room to the right of it.
                panel.note("left" if at > 0.6 else "", at, mark.words, row)


def _tips(history: History, axis: Axis) -> list[Tip]:
    """One tip for each stretch of the time axis that holds runs."""
    times, values = np.asarray(history.times, dtype=float), np.asarray(history.values, dtype=float)
    edges = np.linspace(axis.low, axis.high, min(_MOST_TIPS, max(2, len(times))) + 1)
    tips = []
    for left, right in itertools.pairwise(edges.tolist()):
        inside = (times >= left) & (times <= right)
        if inside.any():
            words = f"{day(float(times[inside][0]))}\n{_rate(float(np.median(values[inside])), history.unit)}"
            words += f"\n{quantities.plural(int(inside.sum()), 'run')}" if inside.sum() > 1 else ""
            tips.append(Tip(axis.at(float(left)), axis.at(float(right)), words))
    return tips


def _rate(value: float, unit: str) -> str:
    return str(quantities.operation_rate(value) if unit == "op/s" else quantities.byte_rate(value))


def _table(history: History) -> Markup:
    rows = [
        (
            f"{day(one.start)} – {day(one.end)}",
            _rate(one.level, history.unit),
            f"{_rate(one.low, history.unit)} – {_rate(one.high, history.unit)}",
        )
        for one in history.stretches
    ]
    return table(["Time", "Level", "Eight of ten runs"], rows, "Levels of the history")
