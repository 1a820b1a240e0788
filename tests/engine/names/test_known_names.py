# SPDX-License-Identifier: Apache-2.0
"""Figures of operations on names equal the truth of a storage that takes a known time for each, on a virtual clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_under_test import DONE, FAILED, Engine, Plan

ITEMS = 1000
MS = 1e-3


def plan_of(target: Path, phase: Plan, paced: Plan, tasks: int = 3, **meta: Any) -> Plan:
    """One phase on the backend `paced`, with 1000 items a task."""
    return {
        "schema": "sonde-plan/2",
        "id": "known",
        "target": {"path": str(target)},
        "tasks": {"threads": tasks},
        "meta": {"backend": "paced", "paced": paced, "tree": {"items_per_task": ITEMS}, **meta},
        "phases": [phase],
        "observe": {"progress": 0},
    }


def list_table_rows(result: Any) -> list[dict[str, float]]:
    return [dict(zip(line["columns"], row, strict=True)) for line in result.of("tasks") for row in line["rows"]]


@pytest.mark.parametrize(
    ("op", "latency_kind"),
    [
        ("create", "create"),
        ("stat", "stat"),
        ("open_close", "open_close"),
        ("rename", "rename"),
        ("remove", "remove"),
    ],
)
def test_each_operation_takes_its_latency(engine: Engine, target: Path, op: str, latency_kind: str) -> None:
    result = engine.run(plan_of(target, {"id": "p", "op": op}, {"latency": "1ms"}))
    assert result.code == DONE, result.err
    end = result.finished("p")
    assert end["ops"]["done"] == 3 * ITEMS
    assert end["rates"]["total"]["ops_per_s"] == pytest.approx(3 / MS, rel=1e-3)
    assert end["latency"][latency_kind]["count"] == 3 * ITEMS
    assert end["latency"][latency_kind]["min_ns"] == end["latency"][latency_kind]["max_ns"] == 1_000_000
    series = result.of("series")[0]
    assert sum(series["ops"]) == 3 * ITEMS
    assert max(series["ops"]) == pytest.approx(3 * series["slice_s"] / MS, abs=3)


def test_bytes_take_the_time_of_the_schedule(engine: Engine, target: Path) -> None:
    paced = {"rate": "1MB/s", "latency": "1ms"}
    result = engine.run(plan_of(target, {"id": "p", "op": "create"}, paced, file={"write": 2000}))
    end = result.finished("p")
    assert end["rates"]["total"]["ops_per_s"] == pytest.approx(3 / (3 * MS), rel=1e-3)
    assert end["bytes"]["written"] == 3 * ITEMS * 2000


def test_directory_operations_take_their_paced_latency(engine: Engine, target: Path) -> None:
    tree = {"depth": 3, "branching": 4, "scope": "per_task"}
    for op, kind in (("mktree", "mkdir"), ("readdir", "readdir"), ("rmtree", "rmdir")):
        result = engine.run(plan_of(target, {"id": "p", "op": op}, {"latency": "1ms"}, tree=tree))
        end = result.finished("p")
        assert end["ops"]["done"] == 3 * 85
        assert end["latency"][kind]["count"] == 3 * 85
        assert end["rates"]["total"]["ops_per_s"] == pytest.approx(3 / MS, rel=1e-3)


def test_after_the_stonewall_all_go_on_to_the_count_of_the_fastest(engine: Engine, target: Path) -> None:
    paced = {"rate": "1MB/s", "slow_tasks": {"1": 2.0, "2": 4.0}}
    phase = {"id": "p", "op": "create", "stop": {"stonewall": "400ms", "wearout": True}}
    result = engine.run(plan_of(target, phase, paced, file={"write": 1000}))
    end = result.finished("p")
    assert end["stopped_by"] == "stonewall"
    # 1, 2 and 4 ms an item: 400, 200 and 100 at the wall; the slowest needs 1.6 s for the 400 of the fastest.
    assert end["rates"]["stonewall"]["ops"] == pytest.approx(700, abs=3)
    assert {row["ops"] for row in list_table_rows(result)} == {max(row["ops"] for row in list_table_rows(result))}
    assert max(row["ops"] for row in list_table_rows(result)) == pytest.approx(400, abs=1)
    assert end["seconds"]["elapsed"] == pytest.approx(1.6, rel=0.01)


def test_droop_compares_the_first_and_the_last_tenth(engine: Engine, target: Path) -> None:
    # 1 ms an item for half a second, 5 ms afterwards.
    paced = {"schedule": [{"at": 0, "rate": "1MB/s"}, {"at": "500ms", "rate": "200kB/s"}]}
    result = engine.run(plan_of(target, {"id": "p", "op": "create"}, paced, tasks=1, file={"write": 1000}))
    droop = result.finished("p")["droop"]
    assert droop["first_ops_per_s"] == pytest.approx(1000, rel=0.02)
    assert droop["last_ops_per_s"] == pytest.approx(200, rel=0.02)
    assert droop["ratio"] == pytest.approx(0.2, rel=0.04)


def test_a_failing_operation_names_its_item(engine: Engine, target: Path) -> None:
    paced = {"latency": "1ms", "fail_after": 7, "fail_errno": 28}
    result = engine.run(plan_of(target, {"id": "p", "op": "create"}, paced, tasks=1))
    assert result.code == FAILED
    assert "items-0/branch.0/file.0.7 failed" in result.sentence
    assert "(ENOSPC)" in result.sentence
    assert result.finished("p")["ops"]["done"] == 7
