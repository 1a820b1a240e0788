# SPDX-License-Identifier: Apache-2.0
"""Calendar axes: days, months or years, whichever give a handful of ticks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sonde.charts.axes import Axis, Tick

_DAY_S = 86400.0
# Steps of an axis shorter than a few days.
_TICK_INTERVALS_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)


def format_date_span(begin_date: str, end_date: str) -> str:
    """Two dates in words; one where they are the same."""
    return begin_date if begin_date == end_date else f"{begin_date} to {end_date}"


def format_utc_date(unix_time: float) -> str:
    """2017-08-04, of seconds since 1970 (UTC)."""
    return f"{datetime.fromtimestamp(unix_time, UTC):%Y-%m-%d}"


def build_date_axis(begin_time: float, end_time: float, max_ticks: int = 8) -> Axis:
    """From `begin_time` to `end_time` (seconds since 1970) with a little room on both sides; ticks in UTC."""
    room = max((end_time - begin_time) * 0.01, 60.0)
    begin_time, end_time = begin_time - room, end_time + room
    marks = _choose_date_ticks(
        datetime.fromtimestamp(begin_time, UTC), datetime.fromtimestamp(end_time, UTC), max_ticks
    )
    axis = Axis(begin_time, end_time)
    ticks = tuple(
        Tick(axis.scale_to_share(mark.timestamp()), label, minor=number % 2 == 1)
        for number, (mark, label) in enumerate(marks)
    )
    return Axis(begin_time, end_time, ticks)


def _choose_date_ticks(first_moment: datetime, last_moment: datetime, max_ticks: int) -> list[tuple[datetime, str]]:
    days = (last_moment - first_moment).total_seconds() / _DAY_S
    if days <= max_ticks / 2:
        minutes = next(
            step
            for step in _TICK_INTERVALS_MINUTES
            if days * 1440 / step <= max_ticks or step == _TICK_INTERVALS_MINUTES[-1]
        )
        start = first_moment.replace(minute=0, second=0, microsecond=0, hour=0)
        return _list_ticks_every(start, first_moment, last_moment, timedelta(minutes=minutes), "%b %d %H:%M")
    if days <= 7 * max_ticks:
        step = next(item for item in (1, 2, 7, 14) if days / item <= max_ticks or item == 14)
        start = first_moment.replace(minute=0, second=0, microsecond=0, hour=0)
        return _list_ticks_every(start, first_moment, last_moment, timedelta(days=step), "%b %d")
    months = next(item for item in (1, 2, 3, 6, 12, 24, 60, 120) if days / 30.4 / item <= max_ticks or item == 120)
    result: list[tuple[datetime, str]] = []
    number = first_moment.year * 12 + (first_moment.month - 1) // months * months
    while True:
        mark = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
        if mark > last_moment:
            return result
        if mark >= first_moment:
            result.append((mark, f"{mark:%Y}" if months >= 12 else f"{mark:%b %Y}"))
        number += months


def _list_ticks_every(
    start_moment: datetime, first_moment: datetime, last_moment: datetime, tick_interval: timedelta, date_format: str
) -> list[tuple[datetime, str]]:
    result = []
    while start_moment <= last_moment:
        if start_moment >= first_moment:
            result.append((start_moment, start_moment.strftime(date_format)))
        start_moment += tick_interval
    return result
