# SPDX-License-Identifier: Apache-2.0
"""Calls of logs as lists of operations, and advised changes as changes of the calls."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from sonde.advise.call_log import CALL_DTYPE, CallKind, CallLog, Calls
from sonde.advise.call_sources import read_call_log
from sonde.advise.darshan_calls import _synthesize_calls_from_counters
from sonde.advise.darshan_library import CounterRecord
from sonde.advise.operation_list import build_operation_list, build_preparation_operations, find_required_sizes
from sonde.advise.proof import GainShare, convert_ratio_to_gain_share
from sonde.advise.replay_changes import (
    merge_consecutive_calls,
    merge_files_of_all_tasks,
    remove_reopens,
    split_shared_files_by_task,
)
from sonde.advise.replay_plan import ReplayRequest, build_replay
from sonde.model.errors import UserError

READ, WRITE, OPEN, FSYNC, CLOSE, STAT = (
    *(CallKind.READ, CallKind.WRITE, CallKind.OPEN),
    *(CallKind.FSYNC, CallKind.CLOSE, CallKind.STAT),
)
Row = tuple[CallKind, int, int, int]


def make_log(*tasks: Sequence[Row], files: int = 2) -> CallLog:
    """Calls one second apart, each of which takes 0.25 s."""
    arrays = tuple(
        np.array(
            [(float(k), 0.25, offset, length, file, kind) for k, (kind, file, offset, length) in enumerate(task)],
            CALL_DTYPE,
        )
        for task in tasks
    )
    return CallLog("made", "test", "", [f"/f{number}" for number in range(files)], arrays)


def list_rows(calls: Calls) -> list[Row]:
    return [(CallKind(kind), file, offset, length) for _, _, offset, length, file, kind in calls.tolist()]


def test_operations_have_handles_flags_and_pauses() -> None:
    log = make_log(
        [(OPEN, 0, 0, 0), (OPEN, 0, 0, 0), (WRITE, 0, 10, 5), (CLOSE, 0, 0, 0), (READ, 0, 0, 15), (READ, 1, 0, 7)]
    )
    operations = build_operation_list(log)
    rows = [
        (kind, file, handle, flags, think) for think, _, _, file, handle, kind, flags, _ in operations.tasks[0].tolist()
    ]
    pause = 750_000_000
    assert rows == [
        (OPEN, 0, 0, 1, 0),  # its calls read
        (OPEN, 0, 1, 6, pause),  # its calls write: writes, creates
        (WRITE, 0, 1, 0, pause),
        (CLOSE, 0, 1, 0, pause),
        (READ, 0, 0, 0, pause),
        (OPEN, 1, 1, 1, pause),  # implied
        (READ, 1, 1, 0, 0),
        (CLOSE, 0, 0, 0, 0),  # implied
        (CLOSE, 1, 1, 0, 0),
    ]
    assert operations.sizes.tolist() == [15, 7]
    assert operations.handles == 2
    assert operations.notes == ("1 opens were added before calls on files that the log does not show as open.",)


def test_list_has_the_documented_bytes() -> None:
    content = build_operation_list(make_log([(OPEN, 0, 0, 0), (WRITE, 0, 9, 3), (CLOSE, 0, 0, 0)], files=1)).to_bytes()
    header = struct.pack("<8s6I4Q", b"SONDEOPS", 1, 1, 1, 1, 3, 0, 3, 12, 0, 0)
    pause = 750_000_000
    rows = [(0, 0, 0, 0, 0, 2, 6, 0), (pause, 9, 3, 0, 0, 1, 0, 0), (pause, 0, 0, 0, 0, 4, 0, 0)]
    assert content == header + struct.pack("<2Q", 3, 12) + b"".join(struct.pack("<QQIIHBBI", *row) for row in rows)


@pytest.mark.parametrize(
    ("tasks", "required"),
    [
        ([[(OPEN, 0, 0, 0), (WRITE, 0, 0, 9), (READ, 0, 0, 9)]], [-1, -1]),
        ([[(OPEN, 0, 0, 0), (READ, 0, 4, 9)]], [13, -1]),
        ([[(WRITE, 0, 0, 9), (READ, 0, 5, 9)]], [14, -1]),
        ([[(OPEN, 1, 0, 0), (CLOSE, 1, 0, 0)]], [-1, 0]),
        ([[(STAT, 1, 0, 0)]], [-1, 0]),
        ([[(WRITE, 0, 0, 9)], [(READ, 0, 0, 9)]], [9, -1]),  # the other task may be first
    ],
)
def test_files_read_before_written_are_prepared(tasks: list[list[Row]], required: list[int]) -> None:
    operations = build_operation_list(make_log(*tasks))
    assert find_required_sizes(operations).tolist() == required
    preparation = build_preparation_operations(operations)
    written = sum(int(task["length"].sum()) for task in preparation.tasks) if preparation else 0
    assert written == sum(size for size in required if size > 0)


STAT_FIRST = (STAT, 0, 0, 0)  # a call that takes the time of one


@pytest.mark.parametrize(
    ("tasks", "prepared"),
    [
        ([[(WRITE, 0, 0, 9)], [STAT_FIRST, (READ, 0, 0, 9)]], [(8, 1)]),  # written before it is read: only a size
        ([[STAT_FIRST, (WRITE, 0, 0, 9)], [(READ, 0, 0, 9)]], [(0, 9)]),
        ([[(WRITE, 0, 0, 4)], [STAT_FIRST, (READ, 0, 0, 9)]], [(0, 9)]),
        ([[STAT_FIRST, (WRITE, 0, 0, 9)], [(READ, 0, 0, 3), STAT_FIRST, (READ, 0, 0, 5)]], [(0, 3), (4, 1)]),
    ],
)
def test_shared_file_written_first_stays_a_hole(tasks: list[list[Row]], prepared: list[tuple[int, int]]) -> None:
    log = make_log(*tasks, files=1)
    preparation = build_preparation_operations(build_operation_list(log), log)
    assert preparation is not None
    (rows,) = (task[task["kind"] == WRITE] for task in preparation.tasks if task.size)
    assert rows[["offset", "length"]].tolist() == prepared


def test_long_call_is_divided() -> None:
    operations = build_operation_list(make_log([(WRITE, 0, 0, (1 << 30) + 5)], files=1))
    assert operations.tasks[0]["length"].tolist() == [0, 1 << 30, 5, 0]


def test_replay_file_is_reused_with_another_think_time(tmp_path: Path) -> None:
    log = make_log([(READ, 0, 0, 7)], [(READ, 1, 0, 9)])
    first, again = (build_replay(log, tmp_path, ReplayRequest("/x", has_think_time=pauses)) for pauses in (True, False))
    assert [phase["id"] for phase in first.plan.document["phases"]] == ["prepare", "replay"]
    assert first.plan.document["tasks"] == {"processes": 2}
    files = [plan.plan.document["phases"][1]["replay_file"] for plan in (first, again)]
    assert files[0] == files[1]
    assert again.plan.document["phases"][1]["think_time"] == "none"


def test_buffering_joins_calls_that_continue() -> None:
    writes = [(WRITE, 0, offset, 10) for offset in (0, 10, 20, 100, 110)]
    reads = [(READ, 1, offset, 10) for offset in (0, 10, 20)]
    log = merge_consecutive_calls(make_log([*writes, (FSYNC, 0, 0, 0), (WRITE, 0, 120, 10), *reads]), 20)
    assert list_rows(log.tasks[0]) == [
        (WRITE, 0, 0, 20),
        (WRITE, 0, 20, 10),
        (WRITE, 0, 100, 20),
        (FSYNC, 0, 0, 0),
        (WRITE, 0, 120, 10),
        (READ, 1, 0, 20),
        (READ, 1, 20, 10),
    ]


def test_reopened_files_stay_open() -> None:
    log = remove_reopens(make_log([(OPEN, 0, 0, 0), (CLOSE, 0, 0, 0), (OPEN, 0, 0, 0), (WRITE, 0, 0, 1)]))
    assert list_rows(log.tasks[0]) == [(OPEN, 0, 0, 0), (WRITE, 0, 0, 1)]


def test_shared_file_is_split_and_joined_again() -> None:
    log = make_log([(WRITE, 0, 0, 10)], [(WRITE, 0, 10, 10)], files=1)
    split = split_shared_files_by_task(log)
    assert [list_rows(task) for task in split.tasks] == [[(WRITE, 0, 0, 10)], [(WRITE, 1, 0, 10)]]
    joined = merge_files_of_all_tasks(split)
    assert [list_rows(task) for task in joined.tasks] == [[(WRITE, 0, 0, 10)], [(WRITE, 0, 10, 10)]]


def test_counters_become_calls_with_exact_bytes() -> None:
    values = {
        "POSIX_WRITES": 7.0, "POSIX_BYTES_WRITTEN": 1000.0, "POSIX_CONSEC_WRITES": 6.0, "POSIX_MAX_BYTE_WRITTEN": 999.0,
        "POSIX_F_WRITE_START_TIMESTAMP": 2.0, "POSIX_F_WRITE_END_TIMESTAMP": 4.0, "POSIX_F_WRITE_TIME": 0.7,
    }  # fmt: skip
    parts = [_synthesize_calls_from_counters(CounterRecord(1, -1, values), WRITE, 0, part, 3) for part in range(3)]
    assert [part.size for part in parts] == [2, 2, 3]
    assert sum(int(part["length"].sum()) for part in parts) == 1000
    ends = np.cumsum(np.concatenate([part["length"] for part in parts]))
    assert np.concatenate([part["offset"] for part in parts]).tolist() == [0, *ends[:-1].tolist()]
    assert sum(float(part["seconds"].sum()) for part in parts) == pytest.approx(0.7)


def test_gain_is_the_saved_fraction() -> None:
    gain = convert_ratio_to_gain_share(2.0, 1.0, 4.0)
    assert (gain.value, gain.low, gain.high) == (0.5, 0.0, 0.75)


def write_trace(path: Path, rows: list[list[object]], left_out: int = 0) -> Path:
    lines = [
        {"type": "process", "schema": "sonde-trace/1", "command": ["./a"], "started_unix_s": 5.0, "seconds": 1.0,
         "events_left_out": left_out},
        {"type": "file", "number": 0, "path": "/data/run/x"},
        {"type": "file", "number": 1, "path": "/usr/lib/y"},
        {"type": "events", "columns": ["t_ns", "ns", "file", "op", "offset", "bytes"], "rows": rows},
        {"type": "end"},
    ]  # fmt: skip
    path.write_text("\n".join(json.dumps(line, separators=(",", ":")) for line in lines) + "\n")
    return path


ROWS: list[list[object]] = [
    [100, 5, 0, "open", 0, 0],
    [200, 5, 0, "seek", 9, 0],
    [300, 50, 0, "write", 9, 4],
    [400, 5, 1, "read", 0, 77],
    [500, 5, 0, "write", 13, -28],
    [600, 5, 0, "truncate", 2, 0],
]


def test_trace_keeps_order_sizes_and_times(tmp_path: Path) -> None:
    log = read_call_log(write_trace(tmp_path / "a.ndjson", ROWS), "/data/run")
    assert log.files == ["/data/run/x"]
    assert list_rows(log.tasks[0]) == [(OPEN, 0, 0, 0), (WRITE, 0, 9, 4)]
    assert log.tasks[0]["begin"].tolist() == pytest.approx([100e-9, 300e-9])
    assert log.sum_calls_by_kind()[WRITE].seconds == pytest.approx(50e-9)
    assert list(log.notes) == [
        "1 calls of kind failed write are not replayed.",
        "1 calls of kind truncate are not replayed.",
    ]


def test_incomplete_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no single calls for 3 of its calls; trace the program again"):
        read_call_log(write_trace(tmp_path / "a.ndjson", ROWS, left_out=3))


def test_trace_without_transfers_below_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no reads and writes on files below /elsewhere"):
        read_call_log(write_trace(tmp_path / "a.ndjson", ROWS), "/elsewhere")


def test_dftracer_calls_have_their_offsets(tmp_path: Path) -> None:
    events = [
        {"ph": "M", "name": "FH", "args": {"name": "/data/x", "value": "h"}},
        *(
            {"ph": "X", "cat": "POSIX", "name": name, "pid": 1, "ts": 10 * k, "dur": 3, "args": {"fhash": "h", **more}}
            for k, (name, more) in enumerate(
                [("open", {"ret": 3}), ("write", {"ret": 8}), ("write", {"ret": 8}), ("lseek", {"ret": 4}),
                 ("read", {"ret": 2}), ("pread", {"ret": 1, "offset": 7}), ("fsync", {"ret": 0}), ("close", {"ret": 0})]
            )
        ),
    ]  # fmt: skip
    path = tmp_path / "job.pfw"
    path.write_text("[\n" + "\n".join(json.dumps(event) for event in events) + "\n]\n")
    log = read_call_log(path)
    assert list_rows(log.tasks[0]) == [
        *((OPEN, 0, 0, 0), (WRITE, 0, 0, 8), (WRITE, 0, 8, 8), (READ, 0, 4, 2), (READ, 0, 7, 1)),
        *((FSYNC, 0, 0, 0), (CLOSE, 0, 0, 0)),
    ]
    assert log.tasks[0]["seconds"].tolist() == pytest.approx([3e-6] * 7)


@pytest.mark.parametrize(
    ("share", "is_precise"),
    [
        (GainShare(0.5, 0.4, 0.6), True),
        (GainShare(0.5, 0.3, 0.7), False),
        (GainShare(-0.4, -0.45, -0.35), True),
        (GainShare(0.01, -0.04, 0.04), True),  # no gain, whatever its ratio
        (GainShare(0.04, -0.02, 0.08), False),
        (GainShare(0.5, None, None), False),
    ],
)
def test_calibrations_that_disagree_predict_nothing(share: GainShare, is_precise: bool) -> None:
    assert share.is_precise == is_precise
