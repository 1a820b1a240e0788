# SPDX-License-Identifier: Apache-2.0
"""Scans of files: rotated, compressed, cut, with garbage and wrong clocks. Nothing stops them."""

from __future__ import annotations

import gzip
import os
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sonde.logs import prefilter
from sonde.logs.rule_engine import LogEvent
from sonde.logs.rule_files import compile_rules, list_shipped_rule_files
from sonde.logs.scan import LogDefaults, LogReport, make_event_document, scan_logs
from sonde.model.errors import UserError

RULES = compile_rules(list_shipped_rule_files().values())
NOW = datetime(2026, 6, 1, tzinfo=UTC)
FAILING = "2026-03-17T08:40:00Z oss3 kernel: md/raid:md3: Disk failure on sdq1, disabling device.\n"
BEGIN = "2026-03-17T08:41:00Z oss3 kernel: md: recovery of RAID array md3\n"
END = "2026-03-18T02:11:00Z oss3 kernel: md: md3: recovery done.\n"
QUIET = "2026-03-17T08:40:30Z oss3 systemd[1]: Started Session 12 of user root.\n"


def scan(*paths: Path) -> tuple[list[LogEvent], list[LogReport]]:
    return scan_logs(paths, RULES, LogDefaults(now=NOW))


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_events_have_title_parts_and_interval(tmp_path: Path) -> None:
    events, (report,) = scan(write(tmp_path / "messages", FAILING, QUIET, BEGIN, END))
    assert [event.title for event in events] == ["sdq1 failed in md3 of oss3", "md3 of oss3 was rebuilt"]
    document = make_event_document(events[1])
    assert document["when"] == "2026-03-17T08:41:00Z/2026-03-18T02:11:00Z"
    assert document["parts"] == ["md3", "oss3"]
    assert (report.lines, report.matched, report.describe_problems()) == (4, 3, [])


def test_same_log_gives_the_same_ids(tmp_path: Path) -> None:
    log = write(tmp_path / "messages", FAILING, BEGIN, END)
    ids = [make_event_document(event)["id"] for event in scan(log)[0]]
    write(log, FAILING, BEGIN, END, QUIET * 5)
    assert [make_event_document(event)["id"] for event in scan(log)[0]] == ids
    assert len(set(ids)) == 2


def test_rotated_files_are_one_log(tmp_path: Path) -> None:
    """The pair begins in the compressed older file and ends in the newer one."""
    older = tmp_path / "messages.2.gz"
    older.write_bytes(gzip.compress((FAILING + BEGIN).encode()))
    newer = write(tmp_path / "messages", END)
    events, reports = scan(newer, older)
    assert [event.is_open for event in events] == [False, False]
    assert [report.path for report in reports] == [older, newer]


def test_truncated_archive_is_read_to_the_cut(tmp_path: Path) -> None:
    content = gzip.compress((FAILING + "".join(f"{random.Random(1).random()}{n}\n" for n in range(99999))).encode())
    path = tmp_path / "messages.gz"
    path.write_bytes(content[: len(content) // 2])
    events, (report,) = scan(path)
    (sentence,) = report.describe_problems()
    assert "could be read only to line" in sentence
    assert str(path) in sentence
    assert len(events) <= 1


def test_garbage_between_lines_loses_none(tmp_path: Path) -> None:
    generator = random.Random(4)
    path = tmp_path / "messages"
    with path.open("wb") as file:
        for _ in range(50):
            file.write(generator.randbytes(generator.randrange(100_000)).replace(b"\n", b"") + b"\n")
            file.write(FAILING.encode())
        file.write(b"\0" * (3 * prefilter.BLOCK_BYTES) + b"\n" + FAILING.encode().rstrip())
    events, (report,) = scan(path)
    assert (len(events), report.matched, report.lines) == (51, 51, 102)
    assert "longer than 64 KiB" in report.describe_problems()[-1]


def test_block_boundaries_lose_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every length of the lines before the boundary of two blocks."""
    monkeypatch.setattr(prefilter, "BLOCK_BYTES", 4096)
    path = tmp_path / "messages"
    for shift in range(len(FAILING) + 1):
        path.write_bytes(b"x" * shift + b"\n" + FAILING.encode() * 100)
        _, (report,) = scan(path)
        assert (report.matched, report.lines) == (100, 101)


def test_wrong_clocks_are_reported_with_file_and_line(tmp_path: Path) -> None:
    future = FAILING.replace("2026-03", "2038-03")
    path = write(tmp_path / "messages", QUIET, future, END, FAILING, FAILING.replace("2026-03-17T08:40:00Z ", ""))
    events, (report,) = scan(path)
    assert len(events) == 1
    assert [sentence.split(",")[:2] for sentence in report.describe_problems()] == [
        [f"{path}: 1 matching line", " the first at line 5"],
        [f"{path}: 1 matching line", " the first at line 2"],
        [f"{path}: 1 matching line", " the first at line 4"],
    ]


def test_log_rotated_while_read_loses_nothing(tmp_path: Path) -> None:
    """The open file is read to its end although another one has its name."""
    path = write(tmp_path / "messages", FAILING * 2000)

    class Rotating(LogDefaults):
        """The clock is read after the file was opened."""

        def __getattribute__(self, name: str) -> object:
            if name == "now" and not (tmp_path / "messages.1").exists():
                os.rename(path, tmp_path / "messages.1")
                write(path, END)
            return super().__getattribute__(name)

    _, (report,) = scan_logs([path], RULES, Rotating(now=NOW))
    assert (report.matched, (tmp_path / "messages.1").exists()) == (2000, True)


def test_path_that_is_no_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no log file"):
        scan(tmp_path / "absent")
    with pytest.raises(UserError, match="is a directory"):
        scan(tmp_path)
