# SPDX-License-Identifier: Apache-2.0
"""Sparse traces: absent counters, lines of other kinds, times of processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import UserError
from sonde.model.trace import SIZE_CLASSES, Trace, TracedFile, TransferCounters, is_trace, read_trace

FIRST_PROCESS_LINE = {"type": "process", "schema": "sonde-trace/1", "started_unix_s": 10.0, "seconds": 2.0}


def written(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    return path


def test_counters_start_at_zero_and_ignore_an_empty_line() -> None:
    moves = TransferCounters()
    empty = {
        "calls": 0, "bytes": 0, "s": 0.0, "slowest_s": 0.0, "consecutive": 0, "sequential": 0, "errors": 0, "short": 0,
        "highest": -1, "sizes": [0] * 10,
    }  # fmt: skip
    assert vars(moves) == empty
    moves.add_counters_line({})
    assert vars(moves) == empty
    moves.add_counters_line({"sizes": [1] * 10, "highest": 0})
    assert (moves.sizes, moves.highest) == ([1] * 10, 0)
    with pytest.raises(ValueError, match="zip"):
        moves.add_counters_line({"sizes": [1] * 9})
    assert len(SIZE_CLASSES) == len(TransferCounters().sizes)
    assert SIZE_CLASSES == (
        "100 B",
        "1 KiB",
        "10 KiB",
        "100 KiB",
        "1 MiB",
        "4 MiB",
        "10 MiB",
        "100 MiB",
        "1 GiB",
        "more",
    )


def test_traced_file_starts_with_zero_counters() -> None:
    file = TracedFile("/a")
    assert (file.path, file.processes, file.size_bytes, file.block_bytes, file.meta_s) == ("/a", 0, 0, 4096, 0.0)
    assert (file.switches, file.file_unaligned, file.calls, file.sizes, file.strides) == (0, 0, {}, {}, {})
    assert (file.read, file.write, file.call_seconds) == (TransferCounters(), TransferCounters(), 0.0)
    file.add_file_line({"block_bytes": 512, "size_bytes": 7})
    file.add_file_line({"size_bytes": 3})
    assert (file.processes, file.size_bytes, file.block_bytes) == (2, 7, 4096)
    assert (file.meta_s, file.switches, file.file_unaligned, file.call_seconds) == (0.0, 0, 0, 0.0)


def test_time_is_from_the_first_start_to_the_last_end() -> None:
    assert Trace().duration_seconds == 0.0
    starts = [(10.0, 2.0), (5.0, 1.0), (8.0, 9.0)]
    trace = Trace([{"started_unix_s": start, "seconds": seconds} for start, seconds in starts])
    assert trace.duration_seconds == 12.0
    assert isinstance(trace.duration_seconds, float)


def test_untraced_calls_are_kernel_counts_minus_traced_calls() -> None:
    trace = Trace([{"kernel_reads": 10}, {"kernel_writes": 5}, {}])
    trace.files = {
        name: TracedFile(name, read=TransferCounters(calls=2), write=TransferCounters(calls=4)) for name in "ab"
    }
    assert trace.untraced_calls == 3
    trace.processes.pop(0)
    assert trace.untraced_calls == 0


def test_unknown_trace_lines_are_skipped_and_end_comes_last(tmp_path: Path) -> None:
    trace_file = written(
        tmp_path / "a.ndjson", FIRST_PROCESS_LINE, {"type": "weather"}, {"type": "file", "path": "/x"}, {"type": "end"}
    )
    trace = read_trace(trace_file)
    assert (len(trace.processes), [*trace.files], trace.damaged_files) == (1, ["/x"], [])
    more = written(tmp_path / "b.ndjson", FIRST_PROCESS_LINE, {"type": "end"}, {"type": "file", "path": "/y"})
    assert read_trace(more).damaged_files == ["b.ndjson"]


def test_unsupported_trace_files_are_rejected_with_a_hint(tmp_path: Path) -> None:
    schema = written(tmp_path / "a.ndjson", {**FIRST_PROCESS_LINE, "schema": "sonde-trace/2"})
    other = written(tmp_path / "b.ndjson", {**FIRST_PROCESS_LINE, "type": "run"})
    assert not is_trace(schema)
    assert not is_trace(other)
    assert not is_trace(tmp_path)
    assert not is_trace(tmp_path / "none")
    sentence = f"{tmp_path} holds no trace of Sonde; `sonde trace -- PROGRAM` makes one."
    with pytest.raises(UserError) as caught:
        read_trace(tmp_path)
    assert str(caught.value) == sentence
    written(tmp_path / "c.txt", FIRST_PROCESS_LINE, {"type": "end"})
    assert not is_trace(tmp_path), "in a folder only files of that ending count"
    assert is_trace(tmp_path / "c.txt")
