# SPDX-License-Identifier: Apache-2.0
"""Rates over a quantity that is swept (clients, tasks, transfer size): a curve for each of what is compared."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sonde.charts.axes import Axis, Tick, amount_axis
from sonde.charts.plot import Chart, Panel, Tip, fixed, table
from sonde.model.units import format_ops, format_rate
from sonde.model.visible import one_line

_HEIGHT = 220
# As many colours, each with a dash pattern of its own, as the style sheet has.
COLOURS = 6
_FEW_TICKS = 6


@dataclass(frozen=True)
class Curve:
    """Values over places, ascending; `low` and `high` are bounds of an interval at each place, or empty."""

    name: str
    places: Sequence[float]
    values: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Curves:
    """A figure. `unit` is "B/s" or "op/s"; `name_of` writes a place on the axis, which is logarithmic where the places
    reach far and are above zero."""

    title: str
    words: str
    curves: Sequence[Curve]
    unit: str
    x_unit: str
    name_of: Callable[[float], str] = "{:,.0f}".format
    log_values: bool = False


def curve_chart(figure: Curves) -> Chart:
    """The chart, with the values as a table. Raises ValueError when there is nothing to draw."""
    places = sorted({place for one in figure.curves for place in one.places})
    if not places:
        raise ValueError("a chart needs values")
    axis = _places_axis(places, figure.name_of)
    scale = _values_axis(figure)
    panel = Panel(axis, scale, _HEIGHT, scale.unit)
    for at, one in enumerate(figure.curves):
        tone = f"c{at % COLOURS}"
        for place, low, high in zip(one.places, one.low, one.high, strict=False):
            panel.path(f"curve whisker {tone}", _upright(panel, place, low, high))
        panel.path(f"curve {tone}", _line(panel, one), one.name)
        dots = "".join(
            f"M{fixed(panel.px(x))} {fixed(panel.py(y))}h0" for x, y in zip(one.places, one.values, strict=True)
        )
        panel.path(f"curve points {tone}", dots)
    panel.tips = _tips(figure, places, axis)
    return Chart("curves", figure.title, figure.words, [panel], figure.x_unit, _caption(figure), _table(figure, places))


def _places_axis(places: Sequence[float], name_of: Callable[[float], str]) -> Axis:
    low, high = places[0], places[-1]
    if low == high:
        low, high = low * 0.5 if low > 0 else low - 1, high * 2 if high > 0 else high + 1
    log = low > 0 and high / low > _FEW_TICKS
    plain = Axis(low, high, log=log)
    every = max(1, math.ceil(len(places) / _FEW_TICKS))
    kept = [place for at, place in enumerate(reversed(places)) if at % every == 0]
    minor = {place for at, place in enumerate(kept) if at % 2 and len(kept) > 3}
    ticks = tuple(Tick(plain.at(place), name_of(place), place in minor) for place in reversed(kept))
    return Axis(low, high, ticks, "", log)


def _values_axis(figure: Curves) -> Axis:
    values = [value for one in figure.curves for value in (*one.values, *one.high)]
    top = max(values)
    if not figure.log_values or min(values) <= 0:
        return amount_axis(top, figure.unit)
    low, high = 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(top * 1.02))
    decades = round(math.log10(high / low))
    step = max(1, math.ceil(decades / 4))
    marks = [low * 10.0**power for power in range(0, decades + 1, step)]
    plain = Axis(low, high, log=True)
    return Axis(low, high, tuple(Tick(plain.at(mark), _short(mark)) for mark in marks), figure.unit, True)


def _short(mark: float) -> str:
    """A power of ten in little room: 100, 10k, 1M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if mark >= size:
            return f"{mark / size:.0f}{letter}"
    return f"{mark:g}"


def shown(value: float, unit: str) -> str:
    """A value with its unit."""
    if unit in ("B/s", "op/s"):
        return format_rate(value) if unit == "B/s" else format_ops(value)
    number = f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"  # no exponent
    return f"{number} {unit}".strip()


def _line(panel: Panel, one: Curve) -> str:
    pairs = [f"{fixed(panel.px(x))} {fixed(panel.py(y))}" for x, y in zip(one.places, one.values, strict=True)]
    return "M" + "L".join(pairs)


def _upright(panel: Panel, place: float, low: float, high: float) -> str:
    x = fixed(panel.px(place))
    return f"M{x} {fixed(panel.py(low))}V{fixed(panel.py(high))}"


def _at(one: Curve, place: float, unit: str) -> str | None:
    """The value of a curve at a place, with its unit; None where it has none."""
    return next((shown(value, unit) for x, value in zip(one.places, one.values, strict=True) if x == place), None)


def _tips(figure: Curves, places: Sequence[float], axis: Axis) -> list[Tip]:
    at = [axis.at(place) for place in places]
    edges = [0.0, *((left + right) / 2 for left, right in itertools.pairwise(at)), 1.0]
    tips = []
    for number, place in enumerate(places):
        values = [(one.name, _at(one, place, figure.unit)) for one in figure.curves]
        rows = [figure.name_of(place), *(f"{name}: {value}" for name, value in values if value is not None)]
        tips.append(Tip(edges[number], edges[number + 1], "\n".join(rows)))
    return tips


def _caption(figure: Curves) -> Markup:
    keys = Markup("").join(
        Markup('<span class="ki"><span class="key curve c{}"></span>{}</span>').format(at % COLOURS, one_line(one.name))
        for at, one in enumerate(figure.curves)
    )
    return Markup('<span class="said">{}</span> <span class="keys">{}</span>').format(one_line(figure.words), keys)


def _table(figure: Curves, places: Sequence[float]) -> Markup:
    rows = [[figure.name_of(at), *(_at(one, at, figure.unit) for one in figure.curves)] for at in places]
    return table([figure.x_unit, *(one.name for one in figure.curves)], rows)
