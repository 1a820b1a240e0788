# SPDX-License-Identifier: Apache-2.0
"""A series by date: for each day, week, month or year every run as a dot, the shape they make, median and middle half.

A level is the usual value; this chart shows the distribution: two separate shapes are two kinds of day.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from sonde.charts.axes import Axis, Tick, build_amount_axis, format_rate_with_unit
from sonde.charts.markup import Markup
from sonde.charts.plot import Chart, ChartTooltip, Panel, format_coordinate, render_html_table
from sonde.model import quantities
from sonde.stats.density import estimate_log_density
from sonde.stats.spread import estimate_coefficient_of_variation

_CHART_HEIGHT_PX = 170
_MAX_PERIODS = 26
# Fewer values than this have no shape; they stay dots.
_MIN_VALUES_FOR_OUTLINE = 8
_OUTLINE_STEP_COUNT = 48
# Half of the width that a period takes, as a share of its place.
_MAX_OUTLINE_HALF_WIDTH = 0.42
_ROUNDING_STEPS_PER_UNIT = 2.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PeriodRuns:
    """The runs of one stretch of the calendar."""

    name: str
    values: Floats


def split_runs_into_calendar_periods(run_times: Floats, run_values: Floats) -> tuple[str, list[PeriodRuns]]:
    """The word for the length of a period, and the periods that hold runs, the oldest first. The shortest length with
    at most 26 of them is taken. `run_times` are seconds since 1970."""
    for word, name in _PERIOD_NAME_FORMATTERS:
        names = np.array([name(datetime.fromtimestamp(float(time), UTC)) for time in run_times])
        distinct = sorted(set(names.tolist()))
        if len(distinct) <= _MAX_PERIODS or word == _PERIOD_NAME_FORMATTERS[-1][0]:
            return word, [PeriodRuns(item, run_values[names == item]) for item in distinct]
    raise AssertionError("the last length always fits")


def _format_week(moment: datetime) -> str:
    return f"{moment - timedelta(days=moment.weekday()):%Y-%m-%d}"


def _format_quarter(moment: datetime) -> str:
    return f"{moment.year}-Q{(moment.month + 2) // 3}"


_PERIOD_NAME_FORMATTERS: tuple[tuple[str, Callable[[datetime], str]], ...] = (
    ("day", lambda moment: f"{moment:%Y-%m-%d}"),
    ("week", _format_week),
    ("month", lambda moment: f"{moment:%Y-%m}"),
    ("quarter", _format_quarter),
    ("year", lambda moment: f"{moment:%Y}"),
)


def build_strip_chart(title: str, value_unit: str, run_times: Floats, run_values: Floats) -> Chart | None:
    """The chart of one series; `value_unit` is B/s or op/s. None when all runs fall into one period."""
    word, result = split_runs_into_calendar_periods(run_times, run_values)
    if len(result) < 2:
        return None
    highest = float(min(run_values.max(), 1.6 * np.quantile(run_values, 0.99)))
    scale = build_amount_axis(highest, value_unit)
    panel = Panel(Axis(0.0, float(len(result)), _choose_ticks(result)), scale, _CHART_HEIGHT_PX, scale.unit)
    for index, item in enumerate(result):
        _draw_period(panel, index, item)
    panel.tips = [
        ChartTooltip(index / len(result), (index + 1) / len(result), "\n".join(_describe_period(period, value_unit)))
        for index, period in enumerate(result)
    ]
    medians = [float(np.median(period.values)) for period in result]
    text = (
        f"{title} by {word}: {quantities.display_count_with_noun(len(run_values), 'run')} in "
        f"{quantities.display_count_with_noun(len(result), word)};"
        f" medians from {format_rate_with_unit(min(medians), value_unit)}"
        f" to {format_rate_with_unit(max(medians), value_unit)}"
    )
    cut = int((run_values > scale.high).sum())
    above = f" {quantities.display_count_with_noun(cut, 'run')} above the scale." if cut else ""
    caption = f"One {word} a column. Every run is a dot; line: median, bar: the middle half.{above}"
    return Chart(
        kind="strips",
        title=title,
        summary=text,
        panels=[panel],
        caption=Markup("<span>{}</span>").format(caption),
        table=_make_period_table(word, result, value_unit),
    )


def _choose_ticks(periods: Sequence[PeriodRuns]) -> tuple[Tick, ...]:
    """Every name while there is room for it, else every second, third, …"""
    every = math.ceil(len(periods) / 7)
    return tuple(
        Tick((index + 0.5) / len(periods), period.name, minor=(index // every) % 2 == 1)
        for index, period in enumerate(periods)
        if index % every == 0
    )


def _draw_period(panel: Panel, period_index: int, period: PeriodRuns) -> None:
    """One period: the shape, the dots in it, the middle half and the median."""
    center = period_index + 0.5
    inside = np.sort(period.values[period.values <= panel.y.high])
    if inside.size == 0:
        return
    shaped = inside.size >= _MIN_VALUES_FOR_OUTLINE and inside[-1] > inside[0] * 1.001 and inside[0] > 0
    widths = np.full(inside.size, 0.25)
    if shaped:
        places = np.geomspace(inside[0], inside[-1], _OUTLINE_STEP_COUNT)
        density = estimate_log_density(inside, places)
        reach = density / density.max() * _MAX_OUTLINE_HALF_WIDTH
        panel.add_path("band all", _make_outline_path(panel, center, places, reach))
        widths = np.interp(inside, places, reach)
    panel.add_path("dots small", _make_dot_path_of_values(panel, center, inside, widths))
    if inside.size >= _MIN_VALUES_FOR_OUTLINE:
        lower, upper = np.quantile(inside, [0.25, 0.75])
        panel.add_rectangle("middle", center - 0.045, center + 0.045, float(lower), float(upper))
    panel.add_horizontal_line("level", float(np.median(period.values)), center - 0.3, center + 0.3)


def _make_outline_path(panel: Panel, center_x: float, y_values: Floats, half_widths: Floats) -> str:
    right_side = [
        (panel.scale_x(center_x + wide), panel.scale_y(value))
        for value, wide in zip(y_values, half_widths, strict=True)
    ]
    left_side = [
        (panel.scale_x(center_x - wide), panel.scale_y(value))
        for value, wide in zip(y_values, half_widths, strict=True)
    ]
    points = [*right_side, *reversed(left_side)]
    return "M" + "L".join(f"{format_coordinate(x)} {format_coordinate(y)}" for x, y in points) + "Z"


def _make_dot_path_of_values(panel: Panel, center_x: float, run_values: Floats, half_widths: Floats) -> str:
    """Path of one dot per value, each moved sideways within the outline. The places do not depend on chance: van der
    Corput's sequence in base 2 spreads neighbors evenly."""
    aside = np.array([_compute_van_der_corput_value(number + 1) for number in range(run_values.size)]) * 2 - 1
    spots = dict.fromkeys(
        (
            round(_ROUNDING_STEPS_PER_UNIT * panel.scale_x(center_x + move * wide * 0.9)) / _ROUNDING_STEPS_PER_UNIT,
            round(_ROUNDING_STEPS_PER_UNIT * panel.scale_y(float(value))) / _ROUNDING_STEPS_PER_UNIT,
        )
        for value, move, wide in zip(run_values, aside.tolist(), half_widths.tolist(), strict=True)
    )
    return "".join(f"M{format_coordinate(x)} {format_coordinate(y)}h0" for x, y in spots)


def _compute_van_der_corput_value(sequence_index: int) -> float:
    result, part = 0.0, 0.5
    while sequence_index:
        result += part * (sequence_index & 1)
        sequence_index, part = sequence_index >> 1, part / 2
    return result


def _describe_period(period: PeriodRuns, value_unit: str) -> list[str]:
    sentences = [
        period.name,
        quantities.display_count_with_noun(period.values.size, "run"),
        f"median {format_rate_with_unit(float(np.median(period.values)), value_unit)}",
    ]
    if period.values.size >= _MIN_VALUES_FOR_OUTLINE:
        low, high = (
            format_rate_with_unit(float(value), value_unit) for value in np.quantile(period.values, [0.1, 0.9])
        )
        sentences.append(f"eight of ten {low} to {high}")
    return sentences


def _make_period_table(period_name: str, periods: Sequence[PeriodRuns], value_unit: str) -> Markup:
    rows = [
        (
            period.name,
            f"{period.values.size:,}",
            *(
                format_rate_with_unit(float(value), value_unit)
                for value in np.quantile(period.values, [0.0, 0.25, 0.5, 0.75, 1.0])
            ),
            _compute_variation_interval(period.values),
        )
        for period in periods
    ]
    columns = [period_name.capitalize(), "Runs", "Lowest", "Lower quarter", "Median", "Upper quarter", "Highest", "COV"]
    return render_html_table(columns, rows, f"Runs of each {period_name}")


def _compute_variation_interval(run_values: Floats) -> str:
    """Standard deviation over mean, with its interval where there are values enough for one."""
    if run_values.size < 2 or run_values.mean() <= 0:
        return "-"
    return estimate_coefficient_of_variation(run_values).text
