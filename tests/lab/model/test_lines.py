# SPDX-License-Identifier: Apache-2.0
"""Lines of a record, member by member: what one says of which only the type is known, and what none may say."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from sonde.model.errors import RecordError
from sonde.model.line_decoding import LINE_TYPES, parse_record_line
from sonde.model.line_members import FileSystemFacts, Rate, SlowTask, TreeShape
from sonde.model.lines import RecordLine, SeriesLine, UnknownLine

FILE_SYSTEM: dict[str, Any] = {
    "type": "", "mount_point": "", "source": "", "options": "", "block_bytes": None, "total_bytes": None,
    "free_bytes": None, "available_bytes": None, "inodes_total": None, "inodes_free": None,
    "direct_memory_align_bytes": None, "direct_offset_align_bytes": None, "read_only": None, "network": None,
    "memory_backed": None, "block_device": {},
}  # fmt: skip
INTERVALS = dict.fromkeys(("elapsed", "open", "transfer", "fsync", "close", "verify"))
RATES = dict.fromkeys(("total", "transfer", "stonewall", "steady", "task_sum", "first_done"))
SPREAD: dict[str, tuple[()]] = {"min": (), "p25": (), "p50": (), "p75": (), "max": ()}
TABLE: dict[str, Any] = {"phase": "", "columns": (), "rows": (), "first_task": 0}
EMPTY: dict[str, dict[str, Any]] = {
    "run": {"schema": "", "id": "", "engine": None, "started": "", "command": None, "launch": "", "tasks": None,
            "processes": None, "threads": None, "nodes": None, "clock": None, "plan": {},
            "directory": "", "store": {}, "simulated": {}},
    "node": {"node": 0, "host": "", "kernel": "", "cpus": None, "cpu_model": "", "memory_bytes": None,
             "memory_available_bytes": None, "page_bytes": None, "file_system": FILE_SYSTEM, "clock_offset_ns": None,
             "clock_error_ns": None, "load_1m": None, "lustre": {}},
    "treatment": {"phase": "", "kind": "", "need": "", "outcome": "", "seconds": None, "text": "",
                  "metadata_cache_dropped": None, "residency_before": None, "residency_after": None,
                  "locks_before": None, "locks_after": None, "user_s": None, "system_s": None},
    "phase_begin": {"phase": "", "index": 0, "op": "", "backend": "", "direct": None, "measured": True,
                    "cache": "unknown", "planned_bytes": None, "planned_ops": None, "files": None, "tasks": None,
                    "transfer_bytes": None, "order": "", "queue_depth": None, "labels": (), "tree": None},
    "progress": {"phase": "", "phase_s": 0.0, "bytes": 0, "ops": 0, "bytes_per_s": 0.0, "ops_per_s": 0.0,
                 "percent": None, "nodes_seen": None, "active": None},
    "phase_end": {"phase": "", "stopped_by": "", "bytes": {"planned": None, "transferred": 0, "read": 0, "written": 0},
                  "ops": {"planned": None, "done": 0, "read": 0, "written": 0, "short": 0, "failed": 0, "retries": 0},
                  "seconds": INTERVALS, "task_seconds": INTERVALS, "rates": RATES, "wearout_ratio": None,
                  "latency": {},
                  "cpu": dict.fromkeys(("user_s", "system_s", "bytes_per_system_s", "bytes_per_user_s")),
                  "imbalance": {"max_over_mean": None, "slowest": (), "tail_share": None}, "verify": None,
                  "residency": None, "directions": None, "streams": None, "training": None,
                  "entries": None, "walk": None, "droop": None},
    "series": {"phase": "", "scope": "all", "node": None, "extreme": None, "nodes": None, "slice_s": 0.0, "bytes": (),
               "ops": (), "active": (), "task_rate": SPREAD, "node_rate": SPREAD, "node_ops_rate": SPREAD,
               "target": None, "kind": "", "single_ops": (), "single_ns": ()},
    "histogram": {"phase": "", "kind": "", "count": 0, "min_ns": None, "max_ns": None, "sum_ns": None, "overflow": 0,
                  "buckets": ()},
    "nodes": TABLE,
    "tasks": TABLE,
    "targets": {"phase": "", "files": 0, "known_files": 0, "bytes": 0, "known_bytes": 0, "columns": (), "rows": ()},
    "layout": {"phase": "", "kind": "", "files": 0, "reported": 0, "requested": {}, "shapes": (),
               "columns": (), "rows": (), "target_columns": (), "targets": ()},
    "finding": {"id": "", "phase": None, "severity": "info", "text": "", "advice": "", "evidence": {}},
    "error": {"phase": None, "task": None, "node": None, "host": "", "path": "", "offset": None, "operation": "",
              "errno": None, "name": "", "text": ""},
    "end": {"status": "", "exit_code": 0, "seconds": None, "text": "", "files_removed": None, "files_left": None},
}  # fmt: skip


def test_every_type_of_line_is_looked_at_here() -> None:
    assert set(EMPTY) == set(LINE_TYPES)


@pytest.mark.parametrize("kind", sorted(EMPTY))
def test_missing_members_of_a_record_line_have_defaults(kind: str) -> None:
    line_type, line = parse_record_line(json.dumps({"type": kind}))
    assert (line_type, type(line)) == (kind, LINE_TYPES[kind])
    assert asdict(line) == {"t": 0.0, **EMPTY[kind]}


INSIDE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("rates.total", {"rates": {"total": {}}}, {"bytes": 0, "ops": 0, "seconds": 0.0, "bytes_per_s": 0.0,
                                               "ops_per_s": 0.0}),
    ("latency.read", {"latency": {"read": {}}}, {"count": 0, "min_ns": None, "mean_ns": None, "p50_ns": None,
                                                 "p90_ns": None, "p95_ns": None, "p99_ns": None, "p999_ns": None,
                                                 "max_ns": None}),
    ("verify", {"verify": {}}, {"checked_bytes": 0, "mismatches": 0}),
    ("walk", {"walk": {}}, {"directories": 0, "examined": 0, "matched": None}),
    ("droop", {"droop": {}}, {"first_ops_per_s": 0.0, "last_ops_per_s": 0.0, "ratio": 0.0}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "written", "holds"), INSIDE, ids=[case[0] for case in INSIDE])
def test_missing_members_of_a_phase_result_have_defaults(
    path: str, written: dict[str, Any], holds: dict[str, Any]
) -> None:
    value: Any = asdict(parse_record_line(json.dumps({"type": "phase_end", **written}))[1])
    for step in path.split("."):
        value = value[step]
    assert value == holds


def test_default_values_of_nested_record_members() -> None:
    assert asdict(SlowTask()) == {"task": 0, "node": None, "host": "", "bytes_per_s": None, "seconds": None}
    assert asdict(TreeShape()) == {"objects": "files", "scope": "", "directories": 0, "items_per_dir": 0}
    assert asdict(FileSystemFacts()) == FILE_SYSTEM
    assert (RecordLine(), UnknownLine()) == (RecordLine(0.0), UnknownLine(0.0, ""))
    assert Rate(1, 2, 3.0, 4.0, 5.0).ops_per_s == 5.0


@pytest.mark.parametrize(
    ("text", "expected_sentence"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "has no type"),
        ('{"t": 1}', "has no type"),
        ('{"type": 3}', "has no type"),
        ('{"type": "run", "t": "x"}', "of type run: run.t is 'x', not float"),
        ('{"type": "run", "t": true}', "of type run: run.t is True, not float"),
        ('{"type": "run", "tasks": true}', "of type run: run.tasks is True, not int"),
        ('{"type": "run", "tasks": 1.5}', "of type run: run.tasks is 1.5, not int"),
        ('{"type": "run", "id": 3}', "of type run: run.id is 3, not str"),
        ('{"type": "run", "plan": []}', "of type run: run.plan is not a table"),
        ('{"type": "node", "file_system": 3}', "of type node: node.file_system is not a table"),
        ('{"type": "node", "file_system": {"type": 3}}', "of type node: node.file_system.type is 3, not str"),
        ('{"type": "series", "bytes": {}}', "of type series: series.bytes is not a list"),
        ('{"type": "series", "bytes": [1, "x"]}', "of type series: series.bytes is 'x', not int"),
        ('{"type": "phase_begin", "measured": 1}', "of type phase_begin: phase_begin.measured is 1, not bool"),
        ('{"type": "phase_end", "latency": {"read": 3}}',
         "of type phase_end: phase_end.latency.read is not a table"),
        ('{"type": "phase_end", "latency": {"read": {"count": "x"}}}',
         "of type phase_end: phase_end.latency.read.count is 'x', not int"),
    ],
)  # fmt: skip
def test_invalid_record_lines_have_exact_error_messages(text: str, expected_sentence: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_record_line(text)
    assert str(caught.value) == expected_sentence


def test_line_of_unknown_type_preserves_its_time() -> None:
    assert parse_record_line('{"type": "x", "t": 3, "bytes": "?"}') == ("x", UnknownLine(3.0, "x"))
    assert parse_record_line('{"type": "x", "t": "late"}') == ("x", UnknownLine(0.0, "x"))
    assert parse_record_line('{"type": "x"}') == ("x", UnknownLine(0.0, "x"))


def test_numbers_keys_and_nulls_are_converted_by_member_type() -> None:
    _, line = parse_record_line('{"type": "histogram", "count": 4.0, "min_ns": 3, "buckets": [[1, 2.5]], "kind": null}')
    assert asdict(line) == {"t": 0.0, **EMPTY["histogram"], "count": 4, "min_ns": 3.0, "buckets": ((1.0, 2.5),)}
    _, table = parse_record_line('{"type": "tasks", "rows": [[1, "a", null]], "columns": ["x"]}')
    assert (getattr(table, "rows", None), getattr(table, "columns", None)) == (((1, "a", None),), ("x",))
    _, spread = parse_record_line('{"type": "series", "task_rate": {"p50": [null, 2]}, "node": null}')
    assert isinstance(spread, SeriesLine)
    assert spread.task_rate.p50 == (None, 2.0)
