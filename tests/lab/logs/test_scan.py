# SPDX-License-Identifier: Apache-2.0
"""Scans of files: rotated, compressed, cut, with garbage and wrong clocks. Nothing stops them."""

from __future__ import annotations

import gzip
import os
import random
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sonde.logs import prefilter
from sonde.logs.log_file import open_log_files
from sonde.logs.rule_engine import LogEvent
from sonde.logs.rule_files import compile_rules, list_shipped_rule_files
from sonde.logs.scan import LogDefaults, LogReport, make_event_document, scan_logs
from sonde.model.errors import UserError

RULES = compile_rules(list_shipped_rule_files().values())
NOW = datetime(2026, 6, 1, tzinfo=UTC)
FAILING = "2026-03-17T08:40:00Z oss3 kernel: md/raid:md3: Disk failure on sdq1, disabling device.\n"
BEGIN = "2026-03-17T08:41:00Z oss3 kernel: md: recovery of RAID array md3\n"
END = "2026-03-18T02:11:00Z oss3 kernel: md: md3: recovery done.\n"
HARMLESS_LINE = "2026-03-17T08:40:30Z oss3 systemd[1]: Started Session 12 of user root.\n"


def scan(*paths: Path) -> tuple[list[LogEvent], list[LogReport]]:
    return scan_logs(paths, RULES, LogDefaults(now=NOW))


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_events_have_title_parts_and_interval(tmp_path: Path) -> None:
    events, (report,) = scan(write(tmp_path / "messages", FAILING, HARMLESS_LINE, BEGIN, END))
    assert [event.title for event in events] == ["sdq1 failed in md3 of oss3", "md3 of oss3 was rebuilt"]
    document = make_event_document(events[1])
    assert document["when"] == "2026-03-17T08:41:00Z/2026-03-18T02:11:00Z"
    assert document["parts"] == ["md3", "oss3"]
    assert (report.lines, report.matched, report.describe_problems()) == (4, 3, [])


def test_same_log_gives_the_same_ids(tmp_path: Path) -> None:
    log = write(tmp_path / "messages", FAILING, BEGIN, END)
    ids = [make_event_document(event)["id"] for event in scan(log)[0]]
    write(log, FAILING, BEGIN, END, HARMLESS_LINE * 5)
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


def test_garbage_between_lines_does_not_hide_lines(tmp_path: Path) -> None:
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
    path = write(
        tmp_path / "messages", HARMLESS_LINE, future, END, FAILING, FAILING.replace("2026-03-17T08:40:00Z ", "")
    )
    events, (report,) = scan(path)
    assert len(events) == 1
    assert [sentence.split(",")[:2] for sentence in report.describe_problems()] == [
        [f"{path}: 1 matching line", " the first at line 5"],
        [f"{path}: 1 matching line", " the first at line 2"],
        [f"{path}: 1 matching line", " the first at line 4"],
    ]


class RotatingOnce(LogDefaults):
    """Defaults that rotate the log when the scan reads the clock, after it opened the file."""

    def __getattribute__(self, name: str) -> object:
        if name == "now" and (rotations := super().__getattribute__("rotations")):
            rotations.pop()()
        return super().__getattribute__(name)


def scan_while(rotate: Callable[[], None], *paths: Path) -> tuple[list[LogEvent], list[LogReport]]:
    """Scans the paths and rotates the log after the first of them was opened."""
    defaults = RotatingOnce(now=NOW)
    object.__setattr__(defaults, "rotations", [rotate])
    return scan_logs(paths, RULES, defaults)


def rename_and_continue(path: Path) -> None:
    os.rename(path, path.with_name("messages.1"))
    write(path, BEGIN, END)


def copy_truncate_and_continue(path: Path) -> None:
    shutil.copyfile(path, path.with_name("messages-20260317"))
    os.truncate(path, 0)
    with path.open("a", encoding="utf-8") as file:
        file.writelines((BEGIN, END))


@pytest.mark.parametrize("rotate", [rename_and_continue, copy_truncate_and_continue])
@pytest.mark.parametrize("lines", [1, 3000])
def test_log_rotated_while_read_loses_nothing(
    tmp_path: Path, rotate: Callable[[Path], None], lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are small, so that the first is read before the rotation and the others after it."""
    monkeypatch.setattr(prefilter, "BLOCK_BYTES", 4096)
    path = write(tmp_path / "messages", FAILING * lines)
    with open_log_files([path])[0] as file:  # type: ignore[union-attr]
        reader = prefilter.BlockReader(file, prefilter.build_prefilter(RULES))
        found_lines = []
        for number, _ in reader.read_matching_lines():
            found_lines.append(number)
            if number == 1:
                rotate(path)
    assert found_lines == list(range(1, lines + 3))
    assert reader.lines == lines + 2


@pytest.mark.parametrize("rotate", [rename_and_continue, copy_truncate_and_continue])
def test_rotation_between_two_files_loses_nothing(tmp_path: Path, rotate: Callable[[Path], None]) -> None:
    """All files of a log are open before the first is read."""
    older, newer = write(tmp_path / "messages.2", HARMLESS_LINE), write(tmp_path / "messages", FAILING * 7)
    events, reports = scan_while(lambda: rotate(newer), older, newer)
    assert [report.matched for report in reports] == [0, 9]
    assert events[-1].title == "md3 of oss3 was rebuilt"


def test_truncation_without_copy_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "messages", FAILING * 20_000)
    with open_log_files([path])[0] as file:  # type: ignore[union-attr]
        assert file.read(70_000)
        os.truncate(path, 10)
        with pytest.raises(OSError, match="its copy is not next to it"):
            file.read()


def test_path_that_is_no_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no log file"):
        scan(tmp_path / "absent")
    with pytest.raises(UserError, match="is a directory"):
        scan(tmp_path)


def test_lines_after_an_overlong_line_are_counted_once(tmp_path: Path) -> None:
    """Whole lines are left in the last block, behind the end of a line that was skipped."""
    path = tmp_path / "messages"
    path.write_bytes(b"x" * 3_000_000 + b"\n" + (FAILING + HARMLESS_LINE).encode())
    events, (report,) = scan(path)
    assert (report.lines, report.cut, len(events)) == (3, 1, 1)


def test_many_lines_of_one_problem_take_no_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "messages", FAILING, *[FAILING.replace("2026", "2037")] * 1000)
    _, (report,) = scan(path)
    assert (report.future.count, report.future.first) == (1000, 2)
