# SPDX-License-Identifier: Apache-2.0
"""Reads the single calls of a job: traces of Sonde and DFTracer, and Darshan logs with or without DXT."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sonde.advise.call_log import CALL_DTYPE, CallKind, CallLog, CallLogBuilder
from sonde.advise.darshan_calls import read_darshan_calls
from sonde.advise.dftracer_trace import is_dftracer_trace, list_dftracer_calls
from sonde.advise.job_logs import is_darshan_log
from sonde.advise.reader_process import IsolatedLogReader
from sonde.model.confined_files import open_file
from sonde.model.documents import read_bounded_lines
from sonde.model.errors import UserError
from sonde.model.shell import quote_command
from sonde.model.trace import is_trace, read_trace

_LARGEST_FILE, _LONGEST_CALL = (1 << 63) - 1, 1 << 40
_EVENT_COLUMNS = ("t_ns", "ns", "file", "op", "offset", "bytes")
_CALL_KINDS_BY_NAME = {
    "read": CallKind.READ,
    "write": CallKind.WRITE,
    "open": CallKind.OPEN,
    "sync": CallKind.FSYNC,
    "close": CallKind.CLOSE,
    "stat": CallKind.STAT,
}


def read_call_log(log_path: Path, top_folder: str = "") -> CallLog:
    """Reads the calls on files below a folder. Raises UserError when the log holds none, or is no log."""
    if not log_path.exists():
        raise UserError(f"There is no log {log_path}.")
    if is_darshan_log(log_path):
        with IsolatedLogReader() as process:
            log = process.read_in_process(_DarshanReader(top_folder), log_path)
    elif is_dftracer_trace(log_path):
        log = _read_dftracer_calls(log_path, top_folder)
    elif is_trace(log_path):
        log = _read_trace_calls(log_path, top_folder)
    else:
        raise UserError(
            f"{log_path} is neither a Darshan log (*.darshan, version 3.0 or later) nor a trace of `sonde trace` or"
            " DFTracer (*.pfw, *.pfw.gz)."
        )
    if not any(np.any(task["kind"] <= CallKind.WRITE) for task in log.tasks):
        where = f" on files below {top_folder}" if top_folder else ""
        raise UserError(f"{log_path} holds no reads and writes{where}, so there is nothing to replay.")
    _require_possible_calls(log)
    return log


def _require_possible_calls(log: CallLog) -> None:
    """Raises UserError for a call that no file system can have executed: the log is damaged."""
    for task in log.tasks:
        offset, length = task["offset"], task["length"]
        is_wrong = (offset < 0) | (length < 0) | (length > _LONGEST_CALL) | (offset > _LARGEST_FILE - length)
        if is_wrong.any():
            call = task[np.argmax(is_wrong)]
            raise UserError(
                f"{log.source} is damaged: a call on {log.files[call['file']]} has the offset {call['offset']:,} and"
                f" {call['length']:,} bytes."
            )


class _DarshanReader:
    """A reader that can be sent to another process."""

    def __init__(self, top_folder: str) -> None:
        self._below = top_folder

    def __call__(self, log_path: Path) -> CallLog:
        return read_darshan_calls(log_path, self._below)


def _read_trace_calls(trace_path: Path, top_folder: str) -> CallLog:
    trace = read_trace(trace_path)
    first_s = min(float(process["started_unix_s"]) for process in trace.processes)
    builder = CallLogBuilder(top_folder)
    left_out: Counter[str] = Counter()
    for task, file in enumerate(sorted(trace_path.glob("*.ndjson")) if trace_path.is_dir() else [trace_path]):
        _add_trace_process(file, task, first_s, builder, left_out)
    files, tasks = builder.build_file_and_call_lists()
    lost = sum(int(process.get("events_left_out", 0)) for process in trace.processes)
    if lost:
        raise UserError(
            f"{trace_path} has no single calls for {lost:,} of its calls; trace the program again with"
            " `sonde trace --events N` and a larger number."
        )
    notes = [f"{name} ends in the middle: its process was killed while it wrote." for name in trace.damaged_files]
    for name, count in sorted(left_out.items()):
        notes.append(f"{count} calls of kind {name} are not replayed.")
    if trace.untraced_calls:
        notes.append(f"{trace.untraced_calls} calls of C library streams, pipes and sockets are not in the trace.")
    if len(trace.processes) > 1:
        notes.append("Each traced process that used these files is one task.")
    command = min(trace.processes, key=lambda process: float(process["started_unix_s"])).get("command", [])
    return CallLog(str(trace_path), "Sonde trace", quote_command(command), files, tasks, notes=tuple(notes))


def _add_trace_process(
    trace_file: Path, task_number: int, job_start_s: float, builder: CallLogBuilder, skipped_events: Counter[str]
) -> None:
    """Adds the events of one process. Failed calls and kinds without a counterpart are counted in `skipped_events`."""
    numbers: dict[int, int | None] = {}
    start_s = 0.0
    with open_file(trace_file) as stream:
        for text in read_bounded_lines(stream):
            try:
                line = json.loads(text)
                if line["type"] == "process":
                    start_s = float(line["started_unix_s"]) - job_start_s
                elif line["type"] == "file":
                    numbers[int(line["number"])] = builder.find_file_number(str(line["path"]))
                elif line["type"] == "events":
                    _add_trace_events(line, task_number, start_s, numbers, builder, skipped_events)
            except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
                return  # read_trace has named the file as damaged


def _add_trace_events(
    events_line: Mapping[str, Any],
    task_number: int,
    start_s: float,
    file_numbers: Mapping[int, int | None],
    builder: CallLogBuilder,
    skipped_events: Counter[str],
) -> None:
    columns = [list(events_line["columns"]).index(name) for name in _EVENT_COLUMNS]
    rows = []
    for row in events_line["rows"]:
        begin, duration, number, kind, offset, result = (row[column] for column in columns)
        file = file_numbers.get(number)
        if file is None or kind == "seek":  # each call has its offset
            continue
        if kind not in _CALL_KINDS_BY_NAME:
            skipped_events[kind] += 1
            continue
        if result < 0:
            skipped_events[f"failed {kind}"] += 1
            continue
        is_transfer = kind in ("read", "write")
        length = result if is_transfer else 0
        rows.append(
            (
                start_s + begin * 1e-9,
                duration * 1e-9,
                offset if is_transfer else 0,
                length,
                file,
                _CALL_KINDS_BY_NAME[kind],
            )
        )
    builder.add_task_calls(task_number, np.array(rows, CALL_DTYPE))


def _read_dftracer_calls(trace_path: Path, top_folder: str) -> CallLog:
    builder = CallLogBuilder(top_folder)
    processes: dict[str, int] = {}
    rows: dict[int, list[tuple[Any, ...]]] = {}
    for call in list_dftracer_calls(trace_path):
        file = builder.find_file_number(call.path)
        if file is not None:
            task = processes.setdefault(call.process, len(processes))
            rows.setdefault(task, []).append(
                (call.begin_s, call.seconds, call.offset, call.length, file, CallKind[call.kind])
            )
    first_s = min((row[0] for task in rows.values() for row in task), default=0.0)
    for task, task_rows in rows.items():
        calls = np.array(task_rows, CALL_DTYPE)
        calls["begin"] -= first_s
        builder.add_task_calls(task, calls)
    files, tasks = builder.build_file_and_call_lists()
    notes = (
        "Offsets follow from opens and seeks; two descriptors of one process on a file are not told apart.",
        "DFTracer writes whole microseconds, so the times of short calls are rounded.",
    )
    return CallLog(str(trace_path), "DFTracer", "", files, tasks, notes=notes)
