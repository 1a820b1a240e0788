# SPDX-License-Identifier: Apache-2.0
"""A phase that stays within an earlier one does no more than each task did there: what is warm, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, Engine

Plan = dict[str, Any]
# Every look takes a known millisecond, so a stonewall of 50 ms lets each task look at 50 names.
PACED = {"latency": "1ms"}


def plan_of(target: Path, *phases: Plan, backend: str = "paced") -> Plan:
    return {
        "schema": "sonde-plan/2",
        "id": "within",
        "target": {"path": str(target), "directory": "run", "min_free": 0},
        "tasks": {"processes": 2},
        "meta": {"backend": backend, "paced": PACED, "tree": {"items_per_task": 200, "scope": "per_task"}},
        "phases": [{"id": "create", "op": "create", "measure": False}, *phases],
    }


@pytest.mark.parametrize("order", ["creation", "permute"])
def test_warm_phase_stops_where_the_cold_phase_stopped(engine: Engine, target: Path, order: str) -> None:
    select = {"select": {"order": order}}
    cold = {"id": "cold", "op": "stat", "meta": select, "stop": {"stonewall": "50ms"}}
    warm = {"id": "warm", "op": "stat", "meta": select, "stop": {"within": "cold"}}
    result = engine.run(plan_of(target, cold, warm, {"id": "all", "op": "stat"}))
    assert result.code == DONE
    done = {line["phase"]: line["ops"]["done"] for line in result.of("phase_end")}
    assert done["cold"] == done["warm"] == 2 * 50
    assert done["all"] == 2 * 200


def test_walk_within_another_walk_visits_no_more_entries(engine: Engine, target: Path) -> None:
    cold = {"id": "cold", "op": "walk", "stop": {"stonewall": "1ms"}}
    warm = {"id": "warm", "op": "walk", "stop": {"within": "cold"}}
    plan = plan_of(target, {"id": "first", "op": "walk"}, cold, warm, backend="posix")
    plan["tasks"] = {"processes": 1}
    plan["meta"]["tree"]["items_per_task"] = 50_000
    result = engine.run(plan)
    assert result.code == DONE
    done = {line["phase"]: line["ops"]["done"] for line in result.of("phase_end")}
    assert 0 < done["cold"] < done["first"]
    assert done["warm"] == done["cold"]


@pytest.mark.parametrize(
    ("phases", "expected_reason"),
    [
        ([{"id": "w", "op": "stat", "stop": {"within": "nothing"}}], "no earlier phase of that name"),
        ([{"id": "c", "op": "walk"}, {"id": "w", "op": "stat", "stop": {"within": "c"}}], 'does op = "stat"'),
        (
            [{"id": "c", "op": "stat"}, {"id": "w", "op": "stat", "process": "separate", "stop": {"within": "c"}}],
            "in an earlier process",
        ),
        ([{"id": "w", "op": "remove", "stop": {"within": "create"}}], "changes the tree"),
        ([{"id": "r", "op": "readdir"}, {"id": "w", "op": "readdir", "stop": {"within": "r"}}], "counts directories"),
    ],
)
def test_invalid_stop_within_is_rejected(
    engine: Engine, target: Path, phases: list[Plan], expected_reason: str
) -> None:
    result = engine.run(plan_of(target, *phases))
    assert result.code == BAD_PLAN
    assert expected_reason in result.sentence
