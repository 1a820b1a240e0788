# SPDX-License-Identifier: Apache-2.0
"""Scans log files with rules. Garbage, cut and wrongly dated lines never stop a scan: each file has a report."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, BinaryIO

from sonde.logs.line_formats import LineContext, LineParser, LogLine
from sonde.logs.log_file import READ_ERRORS, open_log_files, strip_rotation_suffix
from sonde.logs.prefilter import BlockReader, LinePrefilter, build_prefilter
from sonde.logs.rule_engine import LogEvent, RuleEngine
from sonde.logs.rule_files import CompiledRule
from sonde.model.errors import UserError
from sonde.model.event.description import EVENT_FORMAT
from sonde.model.units import format_count_with_noun

MAX_CLOCK_ADVANCE = timedelta(days=1)
_MAX_TIME_STEP_BACK = timedelta(hours=1)
_MAX_ID_CHARACTERS = 80


@dataclass
class ProblemLineCount:
    """How many lines have one kind of problem, and the number of the first."""

    count: int = 0
    first: int = 0

    def add_line(self, line_number: int) -> None:
        """Counts the line with this number."""
        self.first = self.first or line_number
        self.count += 1


@dataclass
class LogReport:
    """The result of scanning one file. `matched` lines are those that a rule used."""

    path: Path
    lines: int = 0
    matched: int = 0
    bytes: int = 0
    cut: int = 0
    timeless: ProblemLineCount = field(default_factory=ProblemLineCount)  # matching lines without a time
    future: ProblemLineCount = field(default_factory=ProblemLineCount)
    backward: ProblemLineCount = field(default_factory=ProblemLineCount)  # lines before which the clock went back
    problem: str = ""  # why the file was not read to its end

    def set_read_problem(self, read_error: BaseException, last_line: int | None = None) -> None:
        """The file could be read only to this line."""
        reason = getattr(read_error, "strerror", None) or str(read_error) or type(read_error).__name__
        self.problem = (
            f"{self.path} could be read only to line {self.lines if last_line is None else last_line}: {reason}."
        )

    def describe_problems(self) -> list[str]:
        """One sentence for each kind of problem, with file, line and count."""
        sentences = [self.problem] if self.problem else []
        for problem, text in (
            (self.timeless, "have no time that can be read, so they are no events; --boot gives the time of the boot"),
            (self.future, "are dated in the future, so they are no events; the clock of that host was wrong"),
            (self.backward, "are dated more than an hour before the line above them; the clock went back there"),
        ):
            if problem.count:
                lines = "matching line" if problem.count == 1 else "matching lines"
                sentences.append(f"{self.path}: {problem.count} {lines}, the first at line {problem.first}, {text}.")
        if self.cut:
            sentences.append(
                f"{self.path}: {format_count_with_noun(self.cut, 'line')} longer than 64 KiB was read only to there."
            )
        return sentences


@dataclass(frozen=True)
class LogDefaults:
    """Facts that the user states about files: the zone of their times, the boot time of kernel clocks, and the host."""

    zone: tzinfo = UTC
    boot: datetime | None = None
    host: str = ""
    now: datetime | None = None  # default: the clock


def scan_logs(
    paths: Sequence[Path], rules: Sequence[CompiledRule], defaults: LogDefaults
) -> tuple[list[LogEvent], list[LogReport]]:
    """Applies the rules to the files. Rotated files of one log are read as one, the oldest first.

    Returns the events in order of time, and a report for each file. Raises UserError when a path is no readable file.
    """
    for path in paths:
        require_existing_file(path)
    prefilter = build_prefilter(rules)
    events: list[LogEvent] = []
    reports: list[LogReport] = []
    for family in group_rotated_files(paths):
        engine = RuleEngine(rules)
        clock: datetime | None = None
        for path, file in zip(family, open_log_files(family), strict=True):
            report = LogReport(path)
            reports.append(report)
            clock = _scan_file(report, file, prefilter, engine, defaults, clock)
            events += engine.drain_finished_events()
        events += engine.finish_all_operations()
    return sorted(events, key=lambda event: (event.first, event.rule, event.title)), reports


def make_event_document(event: LogEvent) -> dict[str, Any]:
    """The event as ``schema/event`` has it. The id depends on rule, title and first line only, so that scanning the
    same log again gives the same id."""
    first, last = event.first.astimezone(UTC), event.last.astimezone(UTC)
    digest = hashlib.sha256(f"{event.rule}\0{event.title}\0{first.isoformat()}".encode()).hexdigest()[:8]
    plain = re.sub(r"[^a-z0-9]+", "-", f"{event.rule} {' '.join(event.parts)}".lower()).strip("-")[:_MAX_ID_CHARACTERS]
    times = [f"{time:%Y-%m-%dT%H:%M:%S}Z" for time in (first, last)]
    details = f"{format_count_with_noun(event.count, 'line')}" if event.count > 1 else ""
    if event.is_open:
        details = "its end is not in the log" + (f", {details}" if details else "")
    details = f"{details}: {event.line}" if details else event.line
    parts = [part for part in (re.sub(r"[^\w.:@/+-]", "-", part).strip("-") for part in event.parts) if part]
    return {
        "schema": EVENT_FORMAT,
        "id": f"{first:%Y-%m-%d}-{plain.strip('-')}-{digest}",
        "when": times[0] if times[0] == times[1] else "/".join(times),
        "kind": event.kind,
        "title": replace_unprintable_characters(event.title),
        "details": replace_unprintable_characters(details),
        **({"parts": parts} if parts else {}),
        "source": replace_unprintable_characters(f"{event.source}, rule {event.rule}"),
        "tags": ["log", event.severity],
    }


def replace_unprintable_characters(line_text: str) -> str:
    """The text with a space in place of each character that is not printable."""
    return "".join(character if character.isprintable() else " " for character in line_text)


def require_existing_file(file_path: Path) -> None:
    """Raises UserError when the path is no file."""
    if file_path.is_dir():
        raise UserError(f"{file_path} is a directory; name the log files in it.")
    if not file_path.is_file():
        raise UserError(f"There is no log file {file_path}.")


def group_rotated_files(paths: Iterable[Path]) -> list[list[Path]]:
    """Files of one log, the oldest first: ``messages.2.gz``, ``messages.1``, ``messages``."""
    families: dict[tuple[Path, str], list[Path]] = {}
    for path in dict.fromkeys(paths):
        families.setdefault((path.parent, strip_rotation_suffix(path)), []).append(path)
    for members in families.values():
        members.sort(key=make_rotation_sort_key)
    return list(families.values())


def make_rotation_sort_key(log_file: Path) -> tuple[int, int]:
    """Dated files ascend, numbered files descend, and the file without a suffix is the newest."""
    number = re.search(r"[.-](\d{1,10})(?:\.\w+)?$", log_file.name)
    if number is None:
        return (2, 0)
    return (0, int(number[1])) if len(number[1]) > 4 else (1, -int(number[1]))


def require_opened(file_or_error: BinaryIO | OSError) -> BinaryIO:
    """The open file. Raises the error of opening it."""
    if isinstance(file_or_error, OSError):
        raise file_or_error
    return file_or_error


def _scan_file(
    report: LogReport,
    file_or_error: BinaryIO | OSError,
    prefilter: LinePrefilter,
    engine: RuleEngine,
    log_defaults: LogDefaults,
    last_matching_time: datetime | None,
) -> datetime | None:
    """Scans one file and returns the time of its last matching line, or `last_matching_time`."""
    try:
        with require_opened(file_or_error) as file:
            written = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
            last_matching_time = scan_lines(
                report, BlockReader(file, prefilter), written, engine, log_defaults, last_matching_time
            )
    except READ_ERRORS as error:
        report.set_read_problem(error)
    return last_matching_time


def scan_lines(
    report: LogReport,
    reader: BlockReader,
    last_write_time: datetime,
    engine: RuleEngine,
    log_defaults: LogDefaults,
    last_matching_time: datetime | None,
) -> datetime | None:
    """Feeds the lines of a file that was written last at `last_write_time` to the engine. Returns the time of its last
    matching line, or `last_matching_time`, also when the file can be read only in part."""
    parser = LineParser(LineContext(log_defaults.zone, last_write_time, log_defaults.boot, log_defaults.host))
    limit = (log_defaults.now or datetime.now(UTC)) + MAX_CLOCK_ADVANCE
    try:
        for number, raw in reader.read_matching_lines():
            line = parser.parse_line(raw.decode("utf-8", "replace").rstrip("\r\n"))
            last_matching_time = _process_line(report, engine, number, line, last_matching_time, limit)
    except READ_ERRORS as error:
        report.set_read_problem(error, reader.lines)
    finally:
        report.lines, report.cut, report.bytes = reader.lines, reader.cut_lines, reader.bytes
    return last_matching_time


def _process_line(
    report: LogReport,
    engine: RuleEngine,
    line_number: int,
    log_line: LogLine,
    last_matching_time: datetime | None,
    latest_time: datetime,
) -> datetime | None:
    if log_line.time is not None and log_line.time > latest_time:
        report.future.add_line(line_number)
        return last_matching_time
    time = log_line.time
    if time is None:
        report.timeless.add_line(line_number)
        return last_matching_time
    if last_matching_time is not None and time < last_matching_time - _MAX_TIME_STEP_BACK:
        report.backward.add_line(line_number)
        engine.end_operations()
    report.matched += engine.process_line(log_line, time, str(report.path))
    return (
        time
        if last_matching_time is None or time > last_matching_time or time < last_matching_time - _MAX_TIME_STEP_BACK
        else last_matching_time
    )
