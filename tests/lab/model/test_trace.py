# SPDX-License-Identifier: Apache-2.0
"""Traces added up over processes, whole and damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import UserError
from sonde.model.trace import TracedFile, TransferCounters, is_trace, read_trace

MOVES = {"calls": 3, "bytes": 300, "s": 0.5, "slowest_s": 0.25, "consecutive": 1, "sequential": 2, "errors": 4,
         "short": 5, "highest": 299, "sizes": [0, 3, 0, 0, 0, 0, 0, 0, 0, 0]}  # fmt: skip
FILE = {"type": "file", "path": "/a", "size_bytes": 300, "block_bytes": 512, "meta_s": 0.125, "switches": 6,
        "file_unaligned": 7, "calls": {"open": 1}, "read": MOVES, "write": {"calls": 1, "s": 0.25},
        "common_sizes": [[100, 3]], "common_strides": [[100, 2]]}  # fmt: skip


def process(started: float, seconds: float, **members: Any) -> dict[str, Any]:
    return {"type": "process", "schema": "sonde-trace/1", "started_unix_s": started, "seconds": seconds, **members}


def written(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    return path


def test_counters_of_processes_add_up_and_extremes_are_preserved() -> None:
    moves = TransferCounters()
    moves.add_counters_line(MOVES)
    moves.add_counters_line({**MOVES, "slowest_s": 0.75, "highest": 10})
    assert (moves.calls, moves.bytes, moves.s, moves.consecutive, moves.sequential) == (6, 600, 1.0, 2, 4)
    assert (moves.errors, moves.short, moves.slowest_s, moves.highest) == (8, 10, 0.75, 299)
    assert moves.sizes == [0, 6, 0, 0, 0, 0, 0, 0, 0, 0]
    moves.add_counters_line({})
    assert (moves.calls, moves.highest) == (6, 299)
    assert TransferCounters().highest == -1


def test_traced_file_sums_its_processes() -> None:
    file = TracedFile("/a")
    file.add_file_line(FILE)
    file.add_file_line({**FILE, "size_bytes": 100})
    assert (file.processes, file.size_bytes, file.block_bytes, file.switches, file.file_unaligned) == (
        2,
        300,
        512,
        12,
        14,
    )
    assert file.call_seconds == 2 * (0.5 + 0.25 + 0.125)
    assert (dict(file.calls), dict(file.sizes), dict(file.strides)) == ({"open": 2}, {100: 6}, {100: 4})
    file.add_file_line({})
    assert (file.processes, file.block_bytes, file.call_seconds) == (3, 4096, 1.75)


def test_folder_of_trace_files_is_read_as_a_single_trace(tmp_path: Path) -> None:
    written(tmp_path / "1.ndjson", process(100.0, 5.0, kernel_reads=10, kernel_writes=2), FILE, {"type": "end"})
    written(tmp_path / "2.ndjson", process(103.0, 7.0, kernel_writes=5), FILE, {"type": "end"})
    written(tmp_path / "other.ndjson", {"type": "run"})
    (tmp_path / "3.ndjson").mkdir()
    trace = read_trace(tmp_path)
    assert (len(trace.processes), [*trace.files], trace.damaged_files) == (2, ["/a"], [])
    assert trace.duration_seconds == 10.0
    assert trace.untraced_calls == 17 - 2 * 4
    assert is_trace(tmp_path)
    assert is_trace(tmp_path / "1.ndjson")
    assert not is_trace(tmp_path / "other.ndjson")


def test_untraced_calls_are_never_negative(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path / "1.ndjson", process(1.0, 1.0), FILE, {"type": "end"}))
    assert trace.untraced_calls == 0


def test_damaged_trace_files_are_reported_and_intact_files_read(tmp_path: Path) -> None:
    written(tmp_path / "cut.ndjson", process(1.0, 1.0), FILE)
    trace_file = written(tmp_path / "torn.ndjson", process(1.0, 1.0), FILE, {"type": "end"})
    trace_file.write_text(
        trace_file.read_text(encoding="utf-8").replace('{"type":"end"}', '{"type":'), encoding="utf-8"
    )
    written(tmp_path / "whole.ndjson", process(1.0, 1.0), FILE, {"type": "end"})
    trace = read_trace(tmp_path)
    assert trace.damaged_files == ["cut.ndjson", "torn.ndjson"]
    assert trace.files["/a"].processes == 3


def test_file_without_a_trace_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no trace of Sonde"):
        read_trace(tmp_path)
