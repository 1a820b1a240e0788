# SPDX-License-Identifier: Apache-2.0
"""Times, hosts, programs and messages of each line format."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from sonde.logs.line_formats import LineContext, LineParser, LogLine

FILE_TIME = datetime(2026, 3, 20, tzinfo=UTC)
MOMENT = datetime(2026, 3, 17, 9, 30, 11, tzinfo=UTC)


def parse(text: str, context: LineContext = LineContext(written=FILE_TIME)) -> LogLine:  # noqa: B008 - frozen
    return LineParser(context).parse_line(text)


@pytest.mark.parametrize(
    ("text", "host", "program", "message"),
    [
        ("Mar 17 09:30:11 oss3 kernel: md: md3: done", "oss3", "kernel", "md: md3: done"),
        ("<6>Mar 17 09:30:11 oss3 kernel: [123.456789] md: done", "oss3", "kernel", "md: done"),
        ("Mar 17 09:30:11 oss3 smartd[12]: text", "oss3", "smartd", "text"),
        ("<34>1 2026-03-17T09:30:11.000Z oss3 smartd 12 ID47 - text", "oss3", "smartd", "text"),
        ('<34>1 2026-03-17T09:30:11Z oss3 su - ID47 [a@1 k="v \\]"][b] text', "oss3", "su", "text"),
        ("2026-03-17T10:30:11+01:00 oss3 kernel: text", "oss3", "kernel", "text"),
        ("2026-03-17_09:30:11+0000: [N] mmfsd ready", "", "", "[N] mmfsd ready"),
        ("[Tue Mar 17 09:30:11 2026] md: done", "", "", "md: done"),
        ("Tue Mar 17 09:30:11.123 2026: [N] mmfsd ready", "", "", "[N] mmfsd ready"),
        ("2026-03-17 09:30:11 INFO: ready", "", "", "INFO: ready"),
    ],
)
def test_text_line_is_parsed(text: str, host: str, program: str, message: str) -> None:
    assert parse(text) == LogLine(MOMENT, host, program, message)


def test_journal_line_is_parsed() -> None:
    entry = {"__REALTIME_TIMESTAMP": "1773739811000000", "_HOSTNAME": "oss3", "SYSLOG_IDENTIFIER": "kernel"}
    assert parse(json.dumps({**entry, "MESSAGE": "a"})) == LogLine(MOMENT, "oss3", "kernel", "a")
    assert parse(json.dumps({**entry, "MESSAGE": [97, 255]})).text == "a\ufffd"


def test_kernel_clock_needs_the_boot_time() -> None:
    line = "[  123.500000] md: done"
    assert parse(line) == LogLine(None, "", "kernel", "md: done")
    boot = LineContext(boot=MOMENT, host="oss3")
    assert parse(line, boot) == LogLine(MOMENT + timedelta(seconds=123.5), "oss3", "kernel", "md: done")


def test_line_without_year_gets_the_latest_possible() -> None:
    context = LineContext(written=datetime(2026, 1, 2, tzinfo=UTC))
    assert parse("Dec 31 23:59:59 a b: c", context).time == datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert parse("Feb 29 00:00:00 a b: c", context).time == datetime(2024, 2, 29, tzinfo=UTC)


def test_time_without_zone_is_in_the_stated_zone() -> None:
    context = LineContext(ZoneInfo("America/Los_Angeles"), FILE_TIME)
    assert parse("Mar 17 02:30:11 a b: c", context).time == MOMENT


@pytest.mark.parametrize(
    "text",
    ["", "\0\0\0", "Mar 99 09:30:11 a b: c", "{", '{"MESSAGE": 1}', "2026-13-01T00:00:00 a", "Foo 17 09:30:11 a b"],
)
def test_line_without_valid_time_has_none(text: str) -> None:
    assert parse(text).time is None
