# SPDX-License-Identifier: Apache-2.0
"""Wrong input of logs, rules and counters is one sentence with the file, and the line where there are lines."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sonde.logs.event_scan import scan_log_files
from sonde.logs.rule_files import list_shipped_rule_files
from sonde.logs.scan import LogDefaults
from sonde.model.errors import UserError
from sonde.model.event import read_events_file
from sonde.store.events import read_archive_events
from sonde.telemetry.foreign_files import read_foreign_telemetry
from sonde.telemetry.imports import TelemetryDefaults

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SHIPPED = list(list_shipped_rule_files().values())
FAILED = "2026-03-17T08:40:{second:02}Z oss3 kernel: md/raid:md3: Disk failure on sdq1, disabling device.\n"
FIRST_LINE = FAILED.format(second=0)
SADF = '{"sysstat": {"hosts": [{"nodename": "n1", "statistics": ['
COLLECTL = "#Date Time [DSK:sda]Name [DSK:sda]Reads [DSK:sda]RKBytes\n20260317 10:00:01 sda"


def scan(path: Path, rules: list[Path] | None = None, defaults: LogDefaults | None = None) -> list[str]:
    return scan_log_files([path], rules or SHIPPED, defaults or LogDefaults(now=NOW))[1]


def scan_text(text: str | bytes) -> Callable[[Path], list[str]]:
    def check(path: Path) -> list[str]:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return scan(path)

    return check


def scan_compressed(content: bytes) -> Callable[[Path], list[str]]:
    def check(path: Path) -> list[str]:
        compressed = path.with_name("messages.gz")
        compressed.write_bytes(content)
        return scan(compressed)

    return check


def use_rules(text: str | bytes, suffix: str = ".toml") -> Callable[[Path], list[str]]:
    def check(path: Path) -> list[str]:
        path.write_text(FIRST_LINE)
        rules = path.with_name("own" + suffix)
        rules.write_bytes(text if isinstance(text, bytes) else text.encode())
        return scan(path, [rules])

    return check


def import_counters(text: str | bytes) -> Callable[[Path], list[str]]:
    def check(path: Path) -> list[str]:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        read_foreign_telemetry(path, TelemetryDefaults("n1"))
        return []

    return check


def read_event_file(text: str | bytes) -> Callable[[Path], list[str]]:
    def check(path: Path) -> list[str]:
        events = path.with_name("events.ndjson")
        events.write_bytes(text if isinstance(text, bytes) else text.encode())
        read_archive_events(path.parent)
        read_events_file(events)
        return []

    return check


RULES_HEAD = 'schema = "sonde-log-rules/1"\ntitle = "own"\n[[rules]]\nid = "a"\n'
WRONG: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "truncated gzip": (
        scan_compressed(gzip.compress(os.urandom(99999) + FIRST_LINE.encode())[:50_000]),
        "only to line",
    ),
    "gzip that is none": (scan_compressed(FIRST_LINE.encode()), "only to line 0"),
    "gzip with a wrong checksum": (
        scan_compressed(gzip.compress(FIRST_LINE.encode() * 9)[:-6] + b"\0\1\2\3\4\5"),
        "line",
    ),
    "dated in the future": (scan_text(FIRST_LINE + FIRST_LINE.replace("2026", "2037")), "the first at line 2"),
    "clock that went back": (scan_text(FIRST_LINE + FIRST_LINE.replace("-17T", "-16T")), "the first at line 2"),
    "no time": (scan_text("\n\nmd/raid:md3: Disk failure on sdq1, disabling device.\n"), "the first at line 3"),
    "date that does not exist": (scan_text(FIRST_LINE.replace("03-17", "02-31")), "the first at line 1"),
    "month that does not exist": (
        scan_text("Xyz 17 08:40:00 oss3 kernel: md/raid:md3: Disk failure on sdq1, disabling device.\n"),
        "the first at line 1",
    ),
    "line without end": (scan_text(b"x" * 3_000_000 + FIRST_LINE.encode()), "longer than 64 KiB"),
    "zeros after a crash": (scan_text(FIRST_LINE.encode() + b"\0" * 2_000_000), "longer than 64 KiB"),
    "directory": (lambda path: scan(path.parent), "is a directory"),
    "no file": (lambda path: scan(path.with_name("absent")), "There is no log file"),
    "rules that are no TOML": (use_rules("schema = \n"), "line 1"),
    "rules with a wrong pattern": (use_rules(RULES_HEAD + "pattern = '('\ntitle = \"x\"\n"), "no regular expression"),
    "rules with an unknown member": (use_rules(RULES_HEAD + "pattern = 'x'\ntitel = \"x\"\n"), "titel"),
    "rules that are binary": (use_rules(b"\xff\xfe\0\1"), "not UTF-8"),
    "rules of SEC without a rule": (use_rules("this is nothing\n", ".sec"), "has no rule"),
    "counters that are none": (import_counters("hello\n"), "no counters in a known format"),
    "empty counters": (import_counters(""), "no counters in a known format"),
    "truncated JSON of sadf": (import_counters(SADF), "line 1"),
    "truncated table of collectl": (import_counters(COLLECTL), "messages"),
    "binary counters": (import_counters(os.urandom(5000)), "no counters in a known format"),
    "truncated events": (read_event_file('{"schema": "sonde-event/1", "id": "a", "wh'), "line 1"),
    "events that are binary": (read_event_file(b"\xff\xff\xff"), "byte 0 is not UTF-8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_one_sentence_with_file(name: str, tmp_path: Path) -> None:
    """Problems of a log are reported after the scan; other files are rejected."""
    check, part = WRONG[name]
    try:
        sentences = check(tmp_path / "messages")
    except UserError as error:
        sentences = [str(error)]
    assert len(sentences) == 1, sentences
    (sentence,) = sentences
    assert str(tmp_path) in sentence
    assert part in sentence
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    assert not re.search(r"Traceback|Error\(|object at", sentence)


def test_log_with_all_problems_loses_no_event(tmp_path: Path) -> None:
    """Garbage, zeros, wrong clocks and overlong lines between good lines, one host's clock in another year."""
    path = tmp_path / "messages"
    garbage = [b"\0" * 70_000 + b"\n", os.urandom(3000).replace(b"\n", b"") + b"\n", b"x" * 200_000 + b"\n"]
    wrong = [FIRST_LINE.replace("2026", "2037").encode(), b"md/raid:md3: Disk failure on sdq1, disabling device.\n"]
    with path.open("wb") as file:
        for second in range(60):
            file.write(garbage[second % 3] + FAILED.format(second=second).encode() + wrong[second % 2])
    events, problems = scan_log_files([path], SHIPPED, LogDefaults(now=NOW))
    assert sorted(event["when"] for event in events) == [f"2026-03-17T08:40:{second:02}Z" for second in range(60)]
    assert len(problems) == 2
