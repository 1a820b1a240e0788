# SPDX-License-Identifier: Apache-2.0
"""Traces count what was done: no more, no less, process by process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from preload_under_test import ROOT, Preload

SCHEMA = json.loads((ROOT / "schema/trace/trace.schema.json").read_text(encoding="utf-8"))
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def traces(
    preload: Preload, compile_program: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> list[Lines]:
    """The traces of the program and of its child, the parent's first."""
    folder = tmp_path_factory.mktemp("trace")
    (folder / "out").mkdir()
    (folder / "work").mkdir()
    done = preload.run(
        [compile_program("counted")], folder / "work", SONDE_TRACE=str(folder / "out"), SONDE_TRACE_EVENTS="120"
    )
    assert done.returncode == 0, done.stderr
    read = [
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (folder / "out").iterdir()
    ]
    assert len(read) == 2
    return sorted(read, key=lambda lines: -lines[0]["files"] if lines[0]["events"] > 10 else 0)


def file_of(lines: Lines, file_name: str) -> dict[str, Any]:
    return next(line for line in lines if line["type"] == "file" and line["path"].endswith(f"/{file_name}"))


def test_trace_lines_follow_the_schema(traces: list[Lines]) -> None:
    validator = Draft202012Validator(SCHEMA)
    for lines in traces:
        for line in lines:
            validator.validate(line)
        assert [line["type"] for line in lines if line["type"] in ("process", "end")] == ["process", "end"]


def test_trace_counts_calls_on_a_sequential_file(traces: list[Lines]) -> None:
    counted = file_of(traces[0], "sequential")
    # 100,000 bytes: 12 full reads, one of 1696 bytes, one of nothing, and the single one through the duplicate.
    assert counted["calls"] == {"open": 1, "write": 100, "read": 15, "seek": 1, "sync": 1, "close": 2}
    assert counted["write"]["bytes"] == 100_000
    assert counted["write"]["consecutive"] == 99
    assert counted["write"]["sizes"] == [0, 100, 0, 0, 0, 0, 0, 0, 0, 0]
    assert counted["write"]["highest"] == 99_999
    assert counted["read"]["bytes"] == 100_010
    assert counted["read"]["short"] == 2
    assert counted["read"]["consecutive"] == 13
    assert counted["switches"] == 1
    assert counted["common_sizes"][:2] == [[1000, 100], [8192, 12]]


def test_trace_counts_calls_on_a_strided_file(traces: list[Lines]) -> None:
    counted = file_of(traces[0], "strided")
    assert counted["calls"] == {"open": 1, "write": 50, "read": 1, "stat": 1, "truncate": 1}
    assert counted["write"]["consecutive"] == 0
    assert counted["write"]["sequential"] == 49
    assert counted["common_strides"][0] == [65536, 49]
    assert counted["read"]["bytes"] == 100_000
    assert counted["read"]["short"] == 1
    assert counted["file_unaligned"] == 1


def test_child_process_has_a_separate_trace(traces: list[Lines]) -> None:
    files = [line for line in traces[1] if line["type"] == "file"]
    assert [Path(line["path"]).name for line in files] == ["child"]
    assert files[0]["write"]["bytes"] == 77
    assert traces[1][0]["parent"] == traces[0][0]["pid"]
    assert traces[0][0]["paths"]["name"]["calls"] == 1


def test_events_cover_the_first_calls_and_count_the_remaining(traces: list[Lines]) -> None:
    head = traces[0][0]
    rows = [row for line in traces[0] if line["type"] == "events" for row in line["rows"]]
    assert len(rows) == head["events"] == 120
    assert head["events_left_out"] > 0
    assert rows[0][3] == "open"
    assert [row[3:] for row in rows[1:4]] == [["write", 0, 1000], ["write", 1000, 1000], ["write", 2000, 1000]]
    begins = [row[0] for row in rows]
    assert begins == sorted(begins)


def test_traced_io_time_is_within_the_run_time(traces: list[Lines]) -> None:
    for lines in traces:
        spent = sum(line["read"]["s"] + line["write"]["s"] + line["meta_s"] for line in lines if line["type"] == "file")
        assert 0 < spent <= lines[0]["seconds"]
