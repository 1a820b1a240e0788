# SPDX-License-Identifier: Apache-2.0
"""Formats of log lines: syslog (RFC 3164 and RFC 5424), journald JSON, kernel ring buffer, and plain lines with a time.

Times without a zone are in the zone that the user stated. RFC 3164 has no year: the line belongs to the latest year in
which it is not later than the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

_MONTH_NUMBERS = {
    name: number
    for number, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1
    )
}
_CLOCK_TOLERANCE = timedelta(days=1)
_MAX_YEARS_BACK = 4
_PRIORITY_PATTERN = r"(?:<\d{1,3}>)?"
_ISO_TIME_PATTERN = r"(?P<time>\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?)\s?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?"
_PROGRAM_TAG_PATTERN = r"(?:(?P<program>[^\s:\[\]]+)(?:\[[^\]]*\])?:\s*)?"
_RFC3164_LINE_PATTERN = re.compile(
    rf"{_PRIORITY_PATTERN}(?P<month>[A-Z][a-z]{{2}}) {{1,2}}(?P<day>\d{{1,2}}) (?:(?P<year>\d{{4}}) )?"
    rf"(?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)? (?P<host>\S+) {_PROGRAM_TAG_PATTERN}(?P<message>.*)",
    re.ASCII | re.DOTALL,
)
_RFC5424_LINE_PATTERN = re.compile(
    rf"<\d{{1,3}}>1 {_ISO_TIME_PATTERN} (?P<host>\S+) (?P<program>\S+) \S+ \S+"
    r" (?:-|(?:\[(?:[^\]\\]|\\.)*\])+) ?(?P<message>.*)",
    re.ASCII | re.DOTALL,
)
_ISO_SYSLOG_PATTERN = re.compile(
    rf"{_PRIORITY_PATTERN}{_ISO_TIME_PATTERN}\s+(?P<host>[\w.:-]+)\s+(?P<program>[^\s:\[\]]+)(?:\[[^\]]*\])?:\s+(?P<message>.*)",
    re.ASCII | re.DOTALL,
)
_PLAIN_LINE_PATTERN = re.compile(rf"\[?{_ISO_TIME_PATTERN}\]?:?\s*(?P<message>.*)", re.ASCII | re.DOTALL)
_DMESG_DATE_PATTERN = re.compile(
    r"\[?(?:[A-Z][a-z]{2} )(?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)? "
    r"(?:[A-Z]{3,4} )?(?P<year>\d{4})\]?:?\s*(?P<message>.*)",
    re.ASCII | re.DOTALL,
)
_KERNEL_CLOCK_PATTERN = re.compile(r"(?:<\d{1,3}>)?\[ *(?P<seconds>\d+\.\d+)\]\s*(?P<message>.*)", re.ASCII | re.DOTALL)


@dataclass(frozen=True)
class LogLine:
    """One line. `time` is None where the line states none; `text` is the message without time, host and program."""

    time: datetime | None
    host: str
    program: str
    text: str


@dataclass(frozen=True)
class LineContext:
    """Facts that lines omit: their time zone, the time of the last change of the file, the boot time, and the host."""

    zone: tzinfo = UTC
    written: datetime | None = None
    boot: datetime | None = None
    host: str = ""


LineFormat = Callable[[str, LineContext], LogLine | None]


def _convert_iso_time(line_match: re.Match[str], line_context: LineContext) -> datetime | None:
    zone = (line_match["zone"] or "").replace("UTC", "Z")
    try:
        time = datetime.fromisoformat(line_match["time"].replace(",", ".") + zone)
        return time.replace(tzinfo=line_context.zone) if time.tzinfo is None else time
    except (ValueError, OverflowError):
        return None


def _convert_month_time(line_match: re.Match[str], line_context: LineContext) -> datetime | None:
    month = _MONTH_NUMBERS.get(line_match["month"], 0)
    hour, minute, second = (int(part) for part in line_match["clock"].split(":"))
    if line_match["year"]:
        return _make_datetime_or_none(
            int(line_match["year"]), month, int(line_match["day"]), (hour, minute, second), line_context.zone
        )
    latest = (line_context.written or datetime.now(UTC)) + _CLOCK_TOLERANCE
    for year in range(latest.year, latest.year - _MAX_YEARS_BACK - 1, -1):  # 29 February needs a leap year
        time = _make_datetime_or_none(year, month, int(line_match["day"]), (hour, minute, second), line_context.zone)
        if time is not None and time <= latest:
            return time
    return None


def _make_datetime_or_none(
    year: int, month: int, day: int, time_of_day: tuple[int, int, int], zone: tzinfo
) -> datetime | None:
    try:
        return datetime(
            year, month, day, time_of_day[0], time_of_day[1], min(time_of_day[2], 59), tzinfo=zone
        )  # 60: a leap second
    except ValueError:
        return None


def _build_log_line(line_match: re.Match[str], time: datetime | None, line_context: LineContext) -> LogLine | None:
    if time is None:
        return None
    groups = line_match.groupdict()
    text = groups["message"]
    if kernel := _KERNEL_CLOCK_PATTERN.match(text):  # "kernel: [12345.678901] text"
        text = kernel["message"]
    host = groups.get("host") or line_context.host
    return LogLine(time, host, groups.get("program") or "", text)


def _make_line_parser(
    pattern: re.Pattern[str], convert_match_to_time: Callable[[re.Match[str], LineContext], datetime | None]
) -> LineFormat:
    def parse_line(line_text: str, line_context: LineContext) -> LogLine | None:
        match = pattern.match(line_text)
        return _build_log_line(match, convert_match_to_time(match, line_context), line_context) if match else None

    return parse_line


def _parse_kernel_line(line_text: str, line_context: LineContext) -> LogLine | None:
    """A line of the kernel ring buffer: seconds since boot."""
    match = _KERNEL_CLOCK_PATTERN.match(line_text)
    if match is None:
        return None
    try:
        time = line_context.boot + timedelta(seconds=float(match["seconds"])) if line_context.boot else None
    except OverflowError:
        time = None
    return LogLine(time, line_context.host, "kernel", match["message"])


def _parse_journal_line(line_text: str, line_context: LineContext) -> LogLine | None:
    """A line of `journalctl -o json`; a message that is not UTF-8 is a list of bytes there."""
    if not line_text.startswith("{"):
        return None
    try:
        entry = json.loads(line_text)
        message = entry["MESSAGE"]
        if isinstance(message, list):
            message = bytes(message).decode("utf-8", "replace")
        time = datetime.fromtimestamp(int(entry["__REALTIME_TIMESTAMP"]) / 1e6, UTC)
    except (ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError):
        return None
    program = entry.get("SYSLOG_IDENTIFIER")
    host = entry.get("_HOSTNAME")
    return LogLine(
        time,
        host if isinstance(host, str) else line_context.host,
        program if isinstance(program, str) else "",
        message if isinstance(message, str) else str(message),
    )


LINE_FORMATS: dict[str, LineFormat] = {
    "journald": _parse_journal_line,
    "rfc5424": _make_line_parser(_RFC5424_LINE_PATTERN, _convert_iso_time),
    "rfc3164": _make_line_parser(_RFC3164_LINE_PATTERN, _convert_month_time),
    "console": _make_line_parser(_DMESG_DATE_PATTERN, _convert_month_time),
    "kernel": _parse_kernel_line,
    "syslog with ISO time": _make_line_parser(_ISO_SYSLOG_PATTERN, _convert_iso_time),
    "plain": _make_line_parser(_PLAIN_LINE_PATTERN, _convert_iso_time),
}


class LineParser:
    """Parses lines of one file; the format of the previous line is tried first, because files have one format."""

    def __init__(self, context: LineContext) -> None:
        self.context = context
        self._order = list(LINE_FORMATS.values())

    def parse_line(self, line_text: str) -> LogLine:
        """The line; without a time where no format fits."""
        for index, parse in enumerate(self._order):
            line = parse(line_text, self.context)
            if line is not None:
                if index and parse is not _parse_kernel_line:
                    self._order.insert(0, self._order.pop(index))
                return line
        return LogLine(None, self.context.host, "", line_text)
