# SPDX-License-Identifier: Apache-2.0
"""Calendar axes: days, months or years, whichever give a handful of ticks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sonde.charts.axes import Axis, Tick

_DAY = 86400.0
# Steps of an axis shorter than a few days.
_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)


def format_date_span(begin: str, end: str) -> str:
    """Two dates in words; one where they are the same."""
    return begin if begin == end else f"{begin} to {end}"


def format_day(time: float) -> str:
    """2017-08-04, of seconds since 1970 (UTC)."""
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}"


def build_date_axis(begin: float, end: float, wanted: int = 8) -> Axis:
    """From `begin` to `end` (seconds since 1970) with a little room on both sides; ticks in UTC."""
    room = max((end - begin) * 0.01, 60.0)
    begin, end = begin - room, end + room
    marks = _choose_marks(datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end, UTC), wanted)
    axis = Axis(begin, end)
    ticks = tuple(
        Tick(axis.scale(mark.timestamp()), label, minor=number % 2 == 1) for number, (mark, label) in enumerate(marks)
    )
    return Axis(begin, end, ticks)


def _choose_marks(first: datetime, last: datetime, wanted: int) -> list[tuple[datetime, str]]:
    days = (last - first).total_seconds() / _DAY
    if days <= wanted / 2:
        minutes = next(step for step in _MINUTES if days * 1440 / step <= wanted or step == _MINUTES[-1])
        start = first.replace(minute=0, second=0, microsecond=0, hour=0)
        return _list_marks_every(start, first, last, timedelta(minutes=minutes), "%b %d %H:%M")
    if days <= 7 * wanted:
        step = next(item for item in (1, 2, 7, 14) if days / item <= wanted or item == 14)
        start = first.replace(minute=0, second=0, microsecond=0, hour=0)
        return _list_marks_every(start, first, last, timedelta(days=step), "%b %d")
    months = next(item for item in (1, 2, 3, 6, 12, 24, 60, 120) if days / 30.4 / item <= wanted or item == 120)
    result: list[tuple[datetime, str]] = []
    number = first.year * 12 + (first.month - 1) // months * months
    while True:
        mark = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
        if mark > last:
            return result
        if mark >= first:
            result.append((mark, f"{mark:%Y}" if months >= 12 else f"{mark:%b %Y}"))
        number += months


def _list_marks_every(
    start: datetime, first: datetime, last: datetime, step: timedelta, form: str
) -> list[tuple[datetime, str]]:
    result = []
    while start <= last:
        if start >= first:
            result.append((start, start.strftime(form)))
        start += step
    return result
