# SPDX-License-Identifier: Apache-2.0
"""When something happened: the earliest and the latest moment that a text leaves open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sonde.model.errors import UserError

_TIME = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?)?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)


class WhenError(UserError):
    """A text that is no time."""


@dataclass(frozen=True)
class Interval:
    """From the earliest to the latest moment; both with a time zone, `first` not after `last`."""

    first: datetime
    last: datetime

    def overlaps(self, other: Interval) -> bool:
        """True when some moment may be in both."""
        return self.first <= other.last and other.first <= self.last

    def distance(self, moment: datetime) -> timedelta:
        """Zero inside; else how far away the nearer end is."""
        return max(self.first - moment, moment - self.last, timedelta(0))


def zone_named(text: str) -> tzinfo:
    """A time zone: empty or UTC, an offset like +01:00, or a name like America/Los_Angeles. Raises WhenError."""
    if text in ("", "UTC", "Z"):
        return UTC
    offset = re.fullmatch(r"([+-])([0-9]{2}):([0-9]{2})", text, re.ASCII)
    if offset and int(offset[2]) < 24 and int(offset[3]) < 60:
        size = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(size if offset[1] == "+" else -size)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise WhenError(
            f'"{text}" is no time zone; write UTC, an offset like +01:00, or America/Los_Angeles.'
        ) from None


def when(text: str, zone: tzinfo = UTC, precision: float | None = None) -> Interval:
    """The moments that `text` leaves open; `zone` is that of times without one. Raises WhenError.

    ``2013-12-06`` is all of that day. ``A/B`` is from the earliest moment of A to the latest of B. `precision`, in
    seconds, replaces what the digits leave open: each written time is then its beginning, give or take so much.
    """
    parts = text.split("/")
    ends = [_span(part.strip(), text, zone, precision) for part in parts[:2]]
    if len(parts) > 2:
        raise WhenError(f'"{text}" has more than two times; an interval is written FIRST/LAST.')
    found = Interval(ends[0].first, ends[-1].last)
    if ends[-1].first < ends[0].first:
        raise WhenError(f'"{text}" ends before it begins; write the earlier time first.')
    return found


def _span(text: str, whole: str, zone: tzinfo, precision: float | None) -> Interval:
    match = _TIME.fullmatch(text)
    if match is None:
        raise WhenError(f'"{whole}" is no time; write 2013-12-06, 2014-03-17T09:30Z, or FIRST/LAST.')
    year, month, day, hour, minute, second = (int(one) if one else None for one in match.groups()[:6])
    fraction = match[7] or ""
    here = zone_named(match[8]) if match[8] else zone
    try:
        first = datetime(
            year or 0, month or 1, day or 1, hour or 0, minute or 0, second or 0, int(f"{fraction:0<6}"[:6]), here
        )
        last = _end(first, month, day, hour, second, len(fraction))
    except (ValueError, OverflowError) as reason:
        raise WhenError(f'"{whole}" is no time: {reason}.') from None
    if precision is not None:
        return Interval(first - timedelta(seconds=precision), first + timedelta(seconds=precision))
    return Interval(first, last)


def _end(
    first: datetime, month: int | None, day: int | None, hour: int | None, second: int | None, digits: int
) -> datetime:
    """The last moment that is still written like `first`, to the microsecond."""
    tick = timedelta(microseconds=1)
    if month is None:
        return first.replace(year=first.year + 1) - tick
    if day is None:
        return (first.replace(day=28) + timedelta(days=4)).replace(day=1) - tick
    if hour is None:
        return (first + timedelta(days=1)) - tick
    if second is None:
        return first + timedelta(minutes=1) - tick
    return first + timedelta(seconds=10 ** -min(digits, 6)) - tick if digits < 6 else first
