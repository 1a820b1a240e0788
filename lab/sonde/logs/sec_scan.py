# SPDX-License-Identifier: Apache-2.0
"""Scans log files with rule files of SEC; what their actions would write or execute becomes events."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from sonde.logs.line_formats import LineContext, LineParser
from sonde.logs.log_file import READ_ERRORS, open_log_files
from sonde.logs.prefilter import MAX_LINE_BYTES
from sonde.logs.scan import (
    MAX_CLOCK_ADVANCE,
    LogDefaults,
    LogReport,
    group_rotated_files,
    replace_unprintable_characters,
    require_existing_file,
    require_opened,
)
from sonde.logs.sec_engine import SecEngine, SecOutput
from sonde.logs.sec_rules import read_sec_rule_file
from sonde.model.event.description import EVENT_FORMAT

_MAX_TITLE_CHARACTERS = 300


def scan_with_sec_rules(
    logs: Sequence[Path], rule_files: Sequence[Path], defaults: LogDefaults
) -> tuple[list[dict[str, Any]], list[str]]:
    """Events as documents of ``schema/event``, and one sentence for each skipped rule and each problem of a file."""
    for path in logs:
        require_existing_file(path)
    files = [read_sec_rule_file(path) for path in rule_files]
    problems = [problem for file in files for problem in file.problems]
    documents: list[dict[str, Any]] = []
    names = ", ".join(path.name for path in rule_files)
    for family in group_rotated_files(logs):
        engine = SecEngine([file.rules for file in files], defaults.zone)
        for path, file in zip(family, open_log_files(family), strict=True):
            report = LogReport(path)
            outputs = list(_apply_rules_to_log(report, file, engine, defaults))
            documents += [_make_event_document(output, f"{path}, rules {names}") for output in outputs]
            problems += report.describe_problems()
        if engine.dropped_events:
            problems.append(f"Rules of {names} create events for each other without end; the rest of them was dropped.")
    return documents, problems


def _apply_rules_to_log(
    report: LogReport, file_or_error: BinaryIO | OSError, engine: SecEngine, defaults: LogDefaults
) -> Iterator[SecOutput]:
    clock = 0
    try:
        limit = (defaults.now or datetime.now(UTC)) + MAX_CLOCK_ADVANCE
        with require_opened(file_or_error) as file:
            written = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
            parser = LineParser(LineContext(defaults.zone, written, defaults.boot, defaults.host))
            while raw := file.readline(MAX_LINE_BYTES):
                report.lines += 1
                report.cut += len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n")
                text = raw.decode("utf-8", "replace").rstrip("\r\n")
                time = parser.parse_line(text).time
                if time is not None and time > limit:
                    report.future.add_line(report.lines)
                    continue
                if time is None and not clock:
                    report.timeless.add_line(report.lines)
                    continue
                clock = max(clock, int(time.timestamp()) if time else 0)
                yield from engine.process_line(text, clock)
    except READ_ERRORS as error:
        report.set_read_problem(error)


def _make_event_document(sec_output: SecOutput, source_name: str) -> dict[str, Any]:
    time = datetime.fromtimestamp(sec_output.time, UTC)
    title = replace_unprintable_characters(sec_output.text).strip()[:_MAX_TITLE_CHARACTERS] or sec_output.action
    digest = hashlib.sha256(f"{sec_output.action}\0{sec_output.destination}\0{sec_output.text}".encode()).hexdigest()[
        :8
    ]
    details = (
        {"details": replace_unprintable_characters(f"{sec_output.action} {sec_output.destination}")}
        if sec_output.destination
        else {}
    )
    return {
        "schema": EVENT_FORMAT,
        "id": f"{time:%Y-%m-%dT%H-%M-%S}-sec-{digest}",
        "when": f"{time:%Y-%m-%dT%H:%M:%S}Z",
        "kind": "other",
        "title": title,
        **details,
        "source": replace_unprintable_characters(source_name),
        "tags": ["log", "sec"],
    }
