# SPDX-License-Identifier: Apache-2.0
"""Replays: the operations of a list, all of them, in their order and with their pauses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, FAILED, Engine, Result, find_schema_errors
from operation_lists import (
    COUNTS,
    OPEN,
    READ,
    READ_BYTES,
    SIZES,
    THINK_NS,
    TWO_TASKS,
    WRITE,
    WRITTEN,
    make_replay_plan,
    pack_list,
)


@pytest.fixture
def operations(tmp_path: Path) -> Path:
    path = tmp_path / "list.operations"
    path.write_bytes(pack_list(TWO_TASKS, SIZES))
    return path


def count_operations(result: Result) -> dict[str, int]:
    return {line["kind"]: line["count"] for line in result.of("histogram")}


def test_replay_issues_each_operation_once(engine: Engine, target: Path, operations: Path) -> None:
    plan = make_replay_plan(target, operations, phase={"think_time": "none"}, target={"keep": True})
    result = engine.run(plan)
    assert result.code == DONE, result.err
    assert [text for line in result.lines for text in find_schema_errors(line)] == []
    end = result.finished("replay")
    assert count_operations(result) == COUNTS
    assert (end["bytes"]["written"], end["bytes"]["read"], end["bytes"]["planned"]) == (
        WRITTEN,
        READ_BYTES,
        WRITTEN + READ_BYTES,
    )
    assert end["ops"]["done"] == end["ops"]["planned"] == sum(COUNTS.values())
    files = {path.name: path.stat().st_size for path in target.rglob("data.*")}
    assert files == {"data.00000000": 5300, "data.00000002": 1}  # file 1 is removed by the list


def test_replay_leaves_nothing_behind(engine: Engine, target: Path, operations: Path) -> None:
    assert engine.run(make_replay_plan(target, operations)).code == DONE
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("think_time", "expected_operation_s"), [("as_traced", 0.001 + THINK_NS * 1e-9), ("none", 0.001)]
)
def test_replay_takes_think_time_and_latency(
    engine: Engine, target: Path, operations: Path, think_time: str, expected_operation_s: float
) -> None:
    delays = {"create": "1ms", "sync": "1ms", "close": "1ms"}  # these have no latency
    data = {"backend": "paced", "paced": {"latency": "1ms", "delays": delays}}
    result = engine.run(make_replay_plan(target, operations, data=data, phase={"think_time": think_time}))
    assert result.code == DONE, result.err
    calls = len(TWO_TASKS[0])
    assert result.finished("replay")["seconds"]["elapsed"] == pytest.approx(calls * expected_operation_s, rel=1e-3)
    writes = next(line for line in result.of("histogram") if line["kind"] == "write")
    assert writes["sum_ns"] == pytest.approx(COUNTS["write"] * 1e6, rel=1e-3)  # pauses are in no latency


def test_accesses_lists_reads_and_writes_in_order(engine_path: Path, target: Path, operations: Path) -> None:
    text = json.dumps(make_replay_plan(target, operations))
    done = subprocess.run([engine_path, "accesses", "-"], input=text, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["task"], row["file"], row["offset"], row["length"]) for row in rows] == [
        (task, file, offset, length)
        for task, operations_of_task in enumerate(TWO_TASKS)
        for kind, file, offset, length in operations_of_task
        if length > 0
    ]
    assert all(Path(row["path"]).name == f"data.{row['file']:08d}" for row in rows)


def test_read_beyond_the_end_fails_with_its_offset(engine: Engine, target: Path, tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(pack_list([[(OPEN, 0, 0, 0), (WRITE, 0, 0, 10), (READ, 0, 4, 50), (4, 0, 0, 0)], []], [54, 0, 0]))
    result = engine.run(make_replay_plan(target, path))
    assert result.code == FAILED
    assert "read" in result.sentence
    assert "offset 4" in result.sentence
    assert list(target.iterdir()) == []


def make_plan_changes(**members: Any) -> dict[str, Any]:
    return members


WRONG_PLANS: list[tuple[str, dict[str, Any]]] = [
    ("replay_file is missing", make_plan_changes(phase={"replay_file": ""})),
    ("cannot be read: No such file", make_plan_changes(phase={"replay_file": "/nowhere/list"})),
    ("is no regular file", make_plan_changes(phase={"replay_file": "/tmp"})),
    ("think_time", make_plan_changes(phase={"think_time": "double"})),
    ("is for 2 tasks, but the run has 3", make_plan_changes(tasks={"processes": 3})),
    ("is for 3 files: set data.files.count", make_plan_changes(data={"files": {"mapping": "shared", "count": 4}})),
    (
        "operations of up to 4096 B: set data.access.transfer",
        make_plan_changes(data={"access": {"transfer": 2048, "block": 2048}}),
    ),
    ('data.files.mapping must be "shared"', make_plan_changes(data={"files": {"mapping": "many", "count": 3}})),
    ("target.use_existing does not go with", make_plan_changes(target={"use_existing": True})),
    ('"mmap" cannot replay operations on names', make_plan_changes(data={"backend": "mmap"})),
    ("io.queue_depth does not go with", make_plan_changes(data={"backend": "io_uring", "io": {"queue_depth": 4}})),
    ("io.fsync does not go with", make_plan_changes(data={"io": {"fsync": "end"}})),
    ("io.pause does not go with", make_plan_changes(data={"io": {"pause": "1ms"}})),
    ("phases[0].stop does not go with", make_plan_changes(phase={"stop": {"time": "1s"}})),
    ("phases[0].verify does not go with", make_plan_changes(phase={"verify": "on_read"})),
    ("phases[0].shift does not go with", make_plan_changes(phase={"shift": {"by": "tasks", "n": 1}})),
    ("phases[0].data_of does not go with", make_plan_changes(phase={"data_of": "x"})),
    ("phases[0].barrier does not go with", make_plan_changes(phase={"barrier": "intra"})),
    ("phases[0].files does not go with", make_plan_changes(phase={"files": [0]})),
    ('replay_file is only used with op = "replay"', make_plan_changes(phase={"op": "write"}, data={"files": {}})),
]


@pytest.mark.parametrize(("expected_complaint", "members"), WRONG_PLANS, ids=[case[0][:40] for case in WRONG_PLANS])
def test_wrong_replay_is_refused_in_one_sentence(
    engine: Engine, target: Path, operations: Path, expected_complaint: str, members: dict[str, Any]
) -> None:
    result = engine.run(make_replay_plan(target, operations, **members))
    assert result.code == BAD_PLAN
    assert expected_complaint in result.only_sentence
    assert list(target.iterdir()) == []


def test_other_operation_next_to_replay_is_refused(engine: Engine, target: Path, operations: Path) -> None:
    plan = make_replay_plan(target, operations)
    plan["phases"].append({"id": "w", "op": "write"})
    result = engine.run(plan)
    assert result.code == BAD_PLAN
    assert "all phases of a replay have this operation" in result.sentence
