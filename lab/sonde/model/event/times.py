# SPDX-License-Identifier: Apache-2.0
"""Times of events as intervals: the earliest and the latest moment that a text allows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sonde.model.errors import UserError

_TIME_FORMAT_PATTERN = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?)?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)


class EventTimeError(UserError):
    """A malformed time."""


@dataclass(frozen=True)
class TimeInterval:
    """The earliest and the latest moment; both have a time zone, `first` is not after `last`."""

    first: datetime
    last: datetime

    def overlaps_interval(self, other: TimeInterval) -> bool:
        """Returns whether the intervals have a common moment."""
        return self.first <= other.last and other.first <= self.last

    def compute_distance_to(self, moment: datetime) -> timedelta:
        """Returns the time to the nearer end; zero inside the interval."""
        return max(self.first - moment, moment - self.last, timedelta(0))


def parse_time_zone(zone_text: str) -> tzinfo:
    """Parses a time zone: empty or UTC, an offset like +01:00, or a name like America/Los_Angeles.

    Raises EventTimeError.
    """
    if zone_text in ("", "UTC", "Z"):
        return UTC
    offset = re.fullmatch(r"([+-])([0-9]{2}):([0-9]{2})", zone_text, re.ASCII)
    if offset and int(offset[2]) < 24 and int(offset[3]) < 60:
        size = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(size if offset[1] == "+" else -size)
    try:
        return ZoneInfo(zone_text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EventTimeError(
            f'"{zone_text}" is no time zone; write UTC, an offset like +01:00, or America/Los_Angeles.'
        ) from None


def parse_time_interval(time_text: str, default_zone: tzinfo = UTC, precision_s: float | None = None) -> TimeInterval:
    """Returns the interval that `time_text` allows; `default_zone` applies to times without one. Raises EventTimeError.

    ``2013-12-06`` is that whole day. ``A/B`` is from the earliest moment of A to the latest of B. With `precision_s`,
    in seconds, each time is its first moment plus or minus `precision_s`.
    """
    parts = time_text.split("/")
    bounds = [_parse_time_as_interval(part.strip(), time_text, default_zone, precision_s) for part in parts[:2]]
    if len(parts) > 2:
        raise EventTimeError(f'"{time_text}" has more than two times; an interval is written FIRST/LAST.')
    interval = TimeInterval(bounds[0].first, bounds[-1].last)
    if bounds[-1].first < bounds[0].first:
        raise EventTimeError(f'"{time_text}" ends before it begins; write the earlier time first.')
    return interval


def _parse_time_as_interval(
    time_text: str, full_text: str, default_zone: tzinfo, precision_s: float | None
) -> TimeInterval:
    match = _TIME_FORMAT_PATTERN.fullmatch(time_text)
    if match is None:
        raise EventTimeError(f'"{full_text}" is no time; write 2013-12-06, 2014-03-17T09:30Z, or FIRST/LAST.')
    year, month, day, hour, minute, second = (int(group) if group else None for group in match.groups()[:6])
    fraction = match[7] or ""
    time_zone = parse_time_zone(match[8]) if match[8] else default_zone
    try:
        first = datetime(
            year or 0, month or 1, day or 1, hour or 0, minute or 0, second or 0, int(f"{fraction:0<6}"[:6]), time_zone
        )
        last = _find_last_moment_with_same_digits(first, month, day, hour, second, len(fraction))
    except (ValueError, OverflowError) as reason:
        raise EventTimeError(f'"{full_text}" is no time: {reason}.') from None
    if precision_s is not None:
        return TimeInterval(first - timedelta(seconds=precision_s), first + timedelta(seconds=precision_s))
    return TimeInterval(first, last)


def _find_last_moment_with_same_digits(
    first_moment: datetime,
    month: int | None,
    day: int | None,
    hour: int | None,
    seconds_of_minute: int | None,
    fraction_digits: int,
) -> datetime:
    """Returns the last moment with the same digits as `first_moment`, in microseconds."""
    tick = timedelta(microseconds=1)
    if month is None:
        return first_moment.replace(year=first_moment.year + 1) - tick
    if day is None:
        return (first_moment.replace(day=28) + timedelta(days=4)).replace(day=1) - tick
    if hour is None:
        return (first_moment + timedelta(days=1)) - tick
    if seconds_of_minute is None:
        return first_moment + timedelta(minutes=1) - tick
    return (
        first_moment + timedelta(seconds=10 ** -min(fraction_digits, 6)) - tick if fraction_digits < 6 else first_moment
    )
