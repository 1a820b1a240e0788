# SPDX-License-Identifier: Apache-2.0
"""Reads traces of the preload library (one file per process) and sums them by file. Format: ``schema/trace``."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.model.confined_files import open_file
from sonde.model.documents import parse_json, read_bounded_lines
from sonde.model.errors import UserError

TRACE_FORMAT = "sonde-trace/1"
TRACE_SUFFIX = ".ndjson"
_TRANSFER_COUNTS = ("calls", "bytes", "consecutive", "sequential", "errors", "short", "highest")
# Upper ends of the ten size classes, bytes; the last has none.
SIZE_CLASSES = ("100 B", "1 KiB", "10 KiB", "100 KiB", "1 MiB", "4 MiB", "10 MiB", "100 MiB", "1 GiB", "more")


@dataclass
class TransferCounters:
    """Counters of the reads or writes of one file."""

    calls: int = 0
    bytes: int = 0
    s: float = 0.0
    slowest_s: float = 0.0
    consecutive: int = 0
    sequential: int = 0
    errors: int = 0
    short: int = 0
    highest: int = -1
    sizes: list[int] = field(default_factory=lambda: [0] * 10)

    def add_counters_line(self, counters_line: Mapping[str, Any]) -> None:
        """Adds the counters of one process."""
        for name in ("calls", "bytes", "s", "consecutive", "sequential", "errors", "short"):
            setattr(self, name, getattr(self, name) + counters_line.get(name, 0))
        self.slowest_s = max(self.slowest_s, counters_line.get("slowest_s", 0.0))
        self.highest = max(self.highest, counters_line.get("highest", -1))
        self.sizes = [
            count + added for count, added in zip(self.sizes, counters_line.get("sizes", [0] * 10), strict=True)
        ]


@dataclass
class TracedFile:
    """Counters of one file, summed over all processes that used it."""

    path: str
    processes: int = 0
    size_bytes: int = 0
    block_bytes: int = 4096
    meta_s: float = 0.0
    switches: int = 0
    file_unaligned: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    read: TransferCounters = field(default_factory=TransferCounters)
    write: TransferCounters = field(default_factory=TransferCounters)
    sizes: Counter[int] = field(default_factory=Counter)
    strides: Counter[int] = field(default_factory=Counter)

    @property
    def call_seconds(self) -> float:
        """Time of all processes in calls on this file."""
        return self.read.s + self.write.s + self.meta_s

    def add_file_line(self, file_line: Mapping[str, Any]) -> None:
        """Adds a ``file`` line."""
        self.processes += 1
        self.size_bytes = max(self.size_bytes, file_line.get("size_bytes", 0))
        self.block_bytes = file_line.get("block_bytes", 4096)
        self.meta_s += file_line.get("meta_s", 0.0)
        self.switches += file_line.get("switches", 0)
        self.file_unaligned += file_line.get("file_unaligned", 0)
        self.calls.update(file_line.get("calls", {}))
        self.read.add_counters_line(file_line.get("read", {}))
        self.write.add_counters_line(file_line.get("write", {}))
        self.sizes.update(dict(file_line.get("common_sizes", [])))
        self.strides.update(dict(file_line.get("common_strides", [])))


@dataclass
class Trace:
    """The traced processes of a job and its files by path."""

    processes: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, TracedFile] = field(default_factory=dict)
    damaged_files: list[str] = field(default_factory=list)  # names of incomplete trace files

    @property
    def duration_seconds(self) -> float:
        """Time from the start of the first process to the end of the last."""
        starts = [process["started_unix_s"] for process in self.processes]
        ends = [process["started_unix_s"] + process["seconds"] for process in self.processes]
        return float(max(ends) - min(starts)) if starts else 0.0

    @property
    def untraced_calls(self) -> int:
        """Read and write calls that only the kernel counted: C library streams, pipes, sockets."""
        kernel: int = sum(item.get("kernel_reads", 0) + item.get("kernel_writes", 0) for item in self.processes)
        counted = sum(item.read.calls + item.write.calls for item in self.files.values())
        return max(0, kernel - counted)


def is_trace(file_or_folder: Path) -> bool:
    """Returns whether `file_or_folder` is a trace file or a folder with one."""
    return any(True for _ in _find_trace_files(file_or_folder))


def read_trace(file_or_folder: Path) -> Trace:
    """Reads the trace of one process, or all traces in a folder."""
    trace = Trace()
    for file in _find_trace_files(file_or_folder):
        if not _add_process_trace(trace, file):
            trace.damaged_files.append(file.name)
    if not trace.processes:
        raise UserError(f"{file_or_folder} holds no trace of Sonde; `sonde trace -- PROGRAM` makes one.")
    return trace


def _find_trace_files(file_or_folder: Path) -> Iterator[Path]:
    candidates: Iterable[Path] = (
        sorted(file_or_folder.glob(f"*{TRACE_SUFFIX}")) if file_or_folder.is_dir() else [file_or_folder.resolve()]
    )
    for file in candidates:
        try:
            with open_file(file) as stream:
                first_line = stream.readline(1 << 20)
        except OSError:
            continue  # a directory, a link or a named pipe that is no trace
        if b'"type":"process"' in first_line and TRACE_FORMAT.encode() in first_line:
            yield file


def _add_process_trace(trace: Trace, trace_file: Path) -> bool:
    """Adds one process; returns False when the file is damaged. Lines before the damage are added."""
    is_complete = False
    with open_file(trace_file) as stream:
        for text in read_bounded_lines(stream):
            try:
                if text.startswith(b'{"type":"events"'):  # long, and not used here
                    json.loads(text)
                    continue
                line = parse_json(text.decode("utf-8", "replace"))
                _check_line_types(line)
            except (ValueError, RecursionError):
                return False
            if line.get("type") == "process":
                trace.processes.append(line)
            elif line.get("type") == "file":
                trace.files.setdefault(line["path"], TracedFile(line["path"])).add_file_line(line)
            is_complete = line.get("type") == "end"
    return is_complete


def _check_line_types(trace_line: Any) -> None:
    """Raises ValueError when a member that is used here has another type than the format says."""
    _require_valid(isinstance(trace_line, dict))
    if trace_line.get("type") == "process":
        _require_valid(all(_is_number(trace_line.get(name)) for name in ("started_unix_s", "seconds")))
        _require_valid(all(_is_count(trace_line.get(name, 0)) for name in ("kernel_reads", "kernel_writes")))
        command = trace_line.setdefault("command", [])
        _require_valid(isinstance(command, list) and all(isinstance(argument, str) for argument in command))
    elif trace_line.get("type") == "file":
        _require_valid(isinstance(trace_line.get("path"), str) and _is_number(trace_line.get("meta_s", 0)))
        counts = ("size_bytes", "block_bytes", "switches", "file_unaligned")
        _require_valid(all(_is_count(trace_line.get(name, 0)) for name in counts))
        calls = trace_line.get("calls", {})
        _require_valid(isinstance(calls, dict) and all(_is_count(count) for count in calls.values()))
        for name in ("common_sizes", "common_strides"):
            pairs = trace_line.get(name, [])
            _require_valid(isinstance(pairs, list))
            _require_valid(
                all(isinstance(pair, list) and len(pair) == 2 and all(map(_is_count, pair)) for pair in pairs)
            )
        for name in ("read", "write"):
            _check_transfers(trace_line.get(name, {}))


def _check_transfers(transfer_counters: Any) -> None:
    _require_valid(isinstance(transfer_counters, dict))
    _require_valid(all(_is_count(transfer_counters.get(name, 0)) for name in _TRANSFER_COUNTS))
    _require_valid(all(_is_number(transfer_counters.get(name, 0)) for name in ("s", "slowest_s")))
    sizes = transfer_counters.get("sizes", [0] * 10)
    _require_valid(isinstance(sizes, list) and len(sizes) == len(SIZE_CLASSES) and all(map(_is_count, sizes)))


def _require_valid(is_valid: bool) -> None:
    if not is_valid:
        raise ValueError("a member of another type")


def _is_count(json_value: Any) -> bool:
    """Whether it is a whole number of 64 bits."""
    return isinstance(json_value, int) and not isinstance(json_value, bool) and abs(json_value) < 1 << 64


def _is_number(json_value: Any) -> bool:
    return _is_count(json_value) or (isinstance(json_value, float) and math.isfinite(json_value))
