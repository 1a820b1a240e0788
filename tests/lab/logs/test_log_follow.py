# SPDX-License-Identifier: Apache-2.0
"""Rules on a growing log, step by step: rotations, half lines and kills lose no event and report none twice."""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sonde.logs.log_follow import LogState, follow_log
from sonde.logs.log_position import LogPosition
from sonde.logs.rule_engine import EngineState
from sonde.logs.rule_files import compile_rules, list_shipped_rule_files
from sonde.logs.scan import LogDefaults

RULES = compile_rules(list_shipped_rule_files().values())
DEFAULTS = LogDefaults(now=datetime(2026, 6, 1, tzinfo=UTC))
FAILED = "2026-03-17T{hour:02}:{minute:02}:00Z oss3 kernel: md/raid:md{disk}: Disk failure on sdq1, disabling device.\n"
BEGIN = "2026-03-17T08:41:00Z oss3 kernel: md: recovery of RAID array md3\n"
END = "2026-03-18T02:11:00Z oss3 kernel: md: md3: recovery done.\n"


def make_line(disk_number: int) -> str:
    """The line of a failed disk; each number is another event."""
    return FAILED.format(hour=9 + disk_number // 60, minute=disk_number % 60, disk=disk_number)


class Follower:
    """A log in a folder, its state, and the ids of all events so far."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "messages"
        self.state = LogState()
        self.documents: list[dict[str, Any]] = []
        self.problems: list[str] = []

    def append(self, text: str | bytes) -> None:
        with self.path.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    def follow(self) -> list[str]:
        """Titles of the new events."""
        new = follow_log(self.path, self.state, RULES, DEFAULTS)
        assert follow_log(self.path, self.state, RULES, DEFAULTS) == new, "a repetition gives the same events"
        self.state = new.state
        self.documents += new.documents
        self.problems += new.problems
        return [document["title"] for document in new.documents]

    def rename(self) -> None:
        """`rename` and `compress`, as logrotate does it: messages.1, messages.2.gz, ..."""
        folder = self.path.parent
        for number in range(8, 1, -1):
            if (old := folder / f"messages.{number}.gz").exists():
                old.rename(folder / f"messages.{number + 1}.gz")
        if (first := folder / "messages.1").exists():
            compressed = folder / "messages.2.gz"
            compressed.write_bytes(gzip.compress(first.read_bytes()))
            shutil.copystat(first, compressed)
            first.unlink()
        if self.path.exists():
            self.path.rename(first)

    def copy_and_truncate(self) -> None:
        shutil.copy(self.path, self.path.with_name("messages.1"))
        self.path.write_bytes(b"")


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    return Follower(tmp_path)


def test_only_new_lines_give_events(follower: Follower) -> None:
    follower.append(make_line(1))
    assert follower.follow() == ["sdq1 failed in md1 of oss3"]
    assert follower.follow() == []
    follower.append(make_line(2))
    assert follower.follow() == ["sdq1 failed in md2 of oss3"]
    assert follower.problems == []


def test_partial_line_is_used_once_complete(follower: Follower) -> None:
    text = make_line(1)
    for part in (text[:70], text[70:-1]):
        follower.append(part)
        assert follower.follow() == []
    follower.append("\n")
    assert follower.follow() == ["sdq1 failed in md1 of oss3"]


def test_pair_is_reported_at_its_begin_and_at_its_end(follower: Follower) -> None:
    follower.append(BEGIN)
    assert follower.follow() == ["md3 of oss3 was rebuilt"]
    assert "its end is not in the log" in follower.documents[0]["details"]
    follower.append(make_line(1))
    assert len(follower.follow()) == 1
    follower.append(END)
    assert follower.follow() == ["md3 of oss3 was rebuilt"]
    assert follower.documents[-1]["when"] == "2026-03-17T08:41:00Z/2026-03-18T02:11:00Z"
    assert len({document["id"] for document in follower.documents}) == 3


def test_threshold_counts_lines_of_several_rounds(follower: Follower) -> None:
    """`kernel-io-errors` and others need several lines within a window."""
    rule = next(compiled.rule for compiled in RULES if compiled.rule.type == "threshold" and compiled.rule.samples)
    assert rule.count is not None
    for number in range(rule.count):
        assert follower.follow() == []
        follower.append(f"2026-03-17T08:40:{number:02}Z oss3 kernel: {rule.samples[0].partition('kernel: ')[2]}\n")
    assert len(follower.follow()) == 1


@pytest.mark.parametrize("rotate", [Follower.rename, Follower.copy_and_truncate])
def test_rotation_between_rounds_loses_no_line(follower: Follower, rotate: Callable[[Follower], None]) -> None:
    follower.append(make_line(1))
    follower.follow()
    follower.append(make_line(2))
    rotate(follower)
    follower.append(make_line(3))
    assert follower.follow() == ["sdq1 failed in md2 of oss3", "sdq1 failed in md3 of oss3"]
    assert follower.problems == []


def test_several_rotations_between_rounds_lose_no_line(follower: Follower) -> None:
    """The log was rotated twice, so the last position is now in a compressed file."""
    follower.append(make_line(1))
    follower.follow()
    for number in range(2, 6):
        follower.append(make_line(number))
        follower.rename()
    assert [title.split()[3] for title in follower.follow()] == ["md2", "md3", "md4", "md5"]
    follower.append(make_line(6))
    assert [title.split()[3] for title in follower.follow()] == ["md6"]


def test_log_that_appears_later_is_read_from_its_beginning(follower: Follower) -> None:
    assert follower.follow() == []
    follower.append(make_line(1))
    assert len(follower.follow()) == 1


def test_lost_file_is_one_sentence_and_newer_lines_are_read(follower: Follower) -> None:
    follower.append(make_line(1))
    follower.follow()
    follower.path.unlink()
    follower.append(make_line(2) * 2)
    assert follower.follow() == ["sdq1 failed in md2 of oss3"]
    (problem,) = follower.problems
    assert "lines may be missing" in problem
    assert str(follower.path) in problem


def test_random_appends_and_rotations_give_each_event_once(tmp_path: Path) -> None:
    """Pieces of lines, garbage, rotations of both kinds and rounds in random order."""
    generator = random.Random(11)
    for trial in range(20):
        folder = tmp_path / str(trial)
        folder.mkdir()
        follower, number, pending = Follower(folder), 0, b""
        use_rename = bool(trial % 2)
        for _ in range(60):
            step = generator.random()
            if step < 0.5:
                number += 1
                pending += make_line(number).encode()
                if generator.random() < 0.2:
                    pending += generator.randbytes(300).replace(b"\n", b"") + b"\n"
                size = generator.randrange(1, len(pending) + 1)
                follower.append(pending[:size])
                pending = pending[size:]
            elif step < 0.75:
                follower.follow()
            elif follower.path.exists() and follower.path.stat().st_size and not pending:
                (follower.rename if use_rename else follower.copy_and_truncate)()
                follower.append(b"")
                if not use_rename:
                    follower.follow()  # a second copy would replace the first
        follower.append(pending)
        follower.follow()
        titles = [document["title"] for document in follower.documents]
        assert sorted(titles) == sorted(f"sdq1 failed in md{n} of oss3" for n in range(1, number + 1)), trial
        assert follower.problems == []


def test_rules_that_changed_meanwhile_leave_out_their_operations(follower: Follower) -> None:
    follower.append(BEGIN)
    follower.follow()
    others = [compiled for compiled in RULES if not compiled.rule.id.startswith("md-")]
    follower.append(END)
    new = follow_log(follower.path, follower.state, others, DEFAULTS)
    assert (new.documents, new.problems) == ((), ())


def test_unusable_state_of_rules_is_one_sentence(follower: Follower) -> None:
    follower.append(make_line(1))
    broken = replace(follower.state, rules=EngineState(contexts={"c": "no time"}))
    new = follow_log(follower.path, broken, RULES, DEFAULTS)
    assert len(new.documents) == 1
    assert len(new.problems) == 1
    assert new.state.position != LogPosition()
