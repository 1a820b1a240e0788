# SPDX-License-Identifier: Apache-2.0
"""Applies rules to the lines that a log got since the last time. All that is between two times is in a `LogState`.

An event is reported once, when a line opens it: its id follows from rule, title and first line. A pair that ends later
is reported a second time with its interval, under another id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sonde.logs.log_position import LogPosition, UnreadFile, open_unread_files
from sonde.logs.prefilter import BlockReader, LinePrefilter, build_prefilter
from sonde.logs.rule_engine import EngineState, RuleEngine, parse_stored_time
from sonde.logs.rule_files import CompiledRule
from sonde.logs.scan import LogDefaults, LogReport, make_event_document, scan_lines
from sonde.model.errors import UserError

_ENDED_ID_SUFFIX = "-ended"


@dataclass(frozen=True)
class LogState:
    """How far a log was read, what the rules expect of its next lines, and the ids of open events that were
    reported."""

    position: LogPosition = field(default_factory=LogPosition)
    rules: EngineState = field(default_factory=EngineState)
    clock: str = ""  # time of the last matching line
    reported: tuple[str, ...] = ()

    def check_types(self) -> None:
        """Raises ValueError when a position or time is none."""
        if self.position.offset < len(bytes.fromhex(self.position.before)):
            raise ValueError("the position in a log is before its begin")
        if self.clock:
            parse_stored_time(self.clock)


@dataclass(frozen=True)
class NewEvents:
    """New events of a log as documents of ``schema/event``, the state after them, and one sentence for each problem."""

    documents: tuple[dict[str, Any], ...]
    state: LogState
    problems: tuple[str, ...]


def follow_log(
    log_file: Path, log_state: LogState, rules: Sequence[CompiledRule], log_defaults: LogDefaults
) -> NewEvents:
    """Reads what is new in a log and in files that it was rotated to. Without `log_state` the whole log is new.

    Following again from the same state gives the same events. Raises UserError when the log cannot be opened.
    """
    try:
        files, problem = open_unread_files(log_file, log_state.position)
    except OSError as error:
        raise UserError(f"{log_file} cannot be read: {error.strerror}.") from None
    problems = [problem] if problem else []
    engine = RuleEngine(rules)
    try:
        engine.restore_state(log_state.rules)
    except ValueError as error:
        problems.append(f"The state of the rules for {log_file} cannot be used, so open events begin again: {error}.")
    clock = parse_stored_time(log_state.clock) if log_state.clock else None
    prefilter, position = build_prefilter(rules), log_state.position
    for index, unread in enumerate(files):
        report = LogReport(unread.path)
        with unread.file:
            position, clock = _read_unread_file(
                report, unread, position, prefilter, engine, log_defaults, clock, index == len(files) - 1
            )
        problems += report.describe_problems()
    if not files:
        position = replace(
            position, written_ns=position.written_ns or int((log_defaults.now or _get_local_time()).timestamp() * 1e9)
        )
    documents, reported = _collect_documents(engine, log_state.reported)
    new_state = LogState(position, engine.get_state(), clock.isoformat() if clock else "", reported)
    return NewEvents(documents, new_state, tuple(problems))


def _get_local_time() -> datetime:
    return datetime.now(UTC)


def _read_unread_file(
    report: LogReport,
    unread_file: UnreadFile,
    log_position: LogPosition,
    prefilter: LinePrefilter,
    engine: RuleEngine,
    log_defaults: LogDefaults,
    last_matching_time: datetime | None,
    is_last: bool,
) -> tuple[LogPosition, datetime | None]:
    """Reads a file to its last complete line, or to its end if a newer file follows."""
    reader = BlockReader(unread_file.file, prefilter, keeps_rest=is_last)
    if unread_file.offset:
        reader.lines, reader.tail = log_position.lines, bytes.fromhex(log_position.before)
    written = datetime.fromtimestamp(unread_file.stat_file().st_mtime, UTC)
    last_matching_time = scan_lines(report, reader, written, engine, log_defaults, last_matching_time)
    offset = unread_file.get_offset(reader.bytes, len(reader.rest))
    if offset < 0:  # the rest is of a file that was rotated away meanwhile, so it is complete
        offset += len(reader.rest)
    status = unread_file.stat_file()
    before = reader.tail[-offset:] if offset else b""
    return LogPosition(
        status.st_dev, status.st_ino, offset, reader.lines, before.hex(), status.st_mtime_ns
    ), last_matching_time


def _collect_documents(
    engine: RuleEngine, reported_event_ids: tuple[str, ...]
) -> tuple[tuple[dict[str, Any], ...], tuple[str, ...]]:
    """New documents in order of time, and the ids of open events."""
    finished = [make_event_document(event) for event in engine.drain_finished_events()]
    for document in finished:
        if document["id"] in reported_event_ids and "/" in document["when"]:
            document["id"] += _ENDED_ID_SUFFIX
    opened = [make_event_document(event) for event in engine.list_open_events()]
    new = {document["id"]: document for document in (*finished, *opened) if document["id"] not in reported_event_ids}
    return tuple(sorted(new.values(), key=lambda document: document["when"])), tuple(
        document["id"] for document in opened
    )
