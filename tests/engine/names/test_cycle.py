# SPDX-License-Identifier: Apache-2.0
"""A working set that moves on: which files it takes and makes is known beforehand, and so is how long it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, FAILED, MISMATCH, Engine, Plan, list_tree

SIZE = 600


def plan_of(target: Path, phases: list[Plan], sets: int = 2, tasks: int = 3, **meta: Any) -> Plan:
    return {
        "schema": "sonde-plan/2",
        "id": "cycle",
        "target": {"path": str(target), "directory": "w", "use_existing": True, "keep": True, "keep_manifest": False},
        "tasks": {"threads": tasks},
        "meta": {
            "tree": {"top": "set", "copies": sets, "scope": "per_task", "items_per_dir": 1000},
            "file": {"write": SIZE, "read": SIZE},
            "lookup": {"paths": "full"},
            "payload": {"kind": "ior_timestamp", "seed": 7},
            **meta,
        },
        "phases": phases,
        "observe": {"progress": 0},
    }


def make_window(first_item: int, item_count: int) -> Plan:
    return {"window": {"first": first_item, "count": item_count, "across": True}}


def make_initial_phases(item_count: int) -> list[Plan]:
    return [{"id": "sets", "op": "mktree"}, {"id": "objects", "op": "create", "meta": make_window(0, item_count)}]


def make_cycle(first_item: int, item_count: int, working: int, **more: Any) -> Plan:
    cycle_members = {"working": working, **more.pop("cycle", {})}
    return {
        "id": f"cycle-{first_item}",
        "op": "cycle",
        "meta": {**make_window(first_item, item_count), "cycle": cycle_members},
        **more,
    }


def list_file_numbers(target: Path) -> dict[str, list[int]]:
    """Numbers of the files by directory."""
    items_of: dict[str, list[int]] = {}
    for name in list_tree(target / "w"):
        if "/file." in name:
            directory, _, file = name.rpartition("/")
            items_of.setdefault(directory, []).append(int(file.rpartition(".")[2]))
    return {directory: sorted(items_of[directory]) for directory in sorted(items_of)}


def test_working_set_advances_by_the_number_of_removed_items(engine: Engine, target: Path) -> None:
    phases = [*make_initial_phases(5), make_cycle(0, 3, 5, verify="on_read"), make_cycle(3, 4, 5, verify="on_read")]
    result = engine.run(plan_of(target, phases))
    assert result.code == DONE, result.err
    places = [f"set-{copy}/branch.{task}.0" for copy in (0, 1) for task in (0, 1, 2)]
    assert list_file_numbers(target) == {directory: [7, 8, 9, 10, 11] for directory in places}
    end = result.finished("cycle-0")
    assert {kind: end["latency"][kind]["count"] for kind in ("stat", "read", "remove", "create")} == dict.fromkeys(
        ("stat", "read", "remove", "create"), 3 * 2 * 3
    )
    assert end["ops"]["done"] == 4 * 3 * 2 * 3
    assert end["bytes"]["read"] == end["bytes"]["written"] == 3 * 2 * 3 * SIZE
    assert end["verify"]["checked_bytes"] == 3 * 2 * 3 * SIZE


def test_removal_of_window_and_tree_deletes_all_items(engine: Engine, target: Path) -> None:
    last: list[dict[str, Any]] = [
        {"id": "remove", "op": "remove", "on": "meta", "meta": make_window(3, 5)},
        {"id": "gone", "op": "rmtree"},
    ]
    result = engine.run(plan_of(target, [*make_initial_phases(5), make_cycle(0, 3, 5), *last]))
    assert result.code == DONE, result.err
    assert list_tree(target) == ["w"]


def test_missing_item_is_reported_by_the_task_that_removes_it(engine: Engine, target: Path) -> None:
    """Task 1's objects are gone in one set: the task that misses one is the one that is to take it."""
    plan = plan_of(target, make_initial_phases(2), sets=2, tasks=4)
    assert engine.run(plan).code == DONE
    (target / "w/set-1/branch.1.0/file.1.0").unlink()
    result = engine.run(plan_of(target, [make_cycle(0, 1, 2)], sets=2, tasks=4))
    assert result.code == FAILED
    assert "task 3 on " in result.sentence  # in the second set it takes from the task two before it
    assert "stat of " in result.sentence
    assert "set-1/branch.1.0/file.1.0 failed" in result.sentence


def test_changed_byte_is_detected_and_the_phase_completes(engine: Engine, target: Path) -> None:
    assert engine.run(plan_of(target, make_initial_phases(2))).code == DONE
    wrong = target / "w/set-0/branch.2.0/file.2.1"
    content = bytearray(wrong.read_bytes())
    content[100] ^= 1
    wrong.write_bytes(content)
    result = engine.run(plan_of(target, [make_cycle(0, 2, 2, verify="on_read")]))
    assert result.code == MISMATCH
    assert "file.2.1 at offset 100 holds other bytes" in result.of("error")[0]["text"]
    assert result.finished("cycle-0")["verify"]["mismatches"] == 1


def test_renamed_objects_are_detected_by_their_content(engine: Engine, target: Path) -> None:
    """Content identifies its object, so after an exchange of two names both objects mismatch."""
    payload_members: dict[str, Any] = {
        "payload": {"kind": "ior_offset", "seed": 7},
        "file": {"write": 8192, "read": 8192},
    }
    assert engine.run(plan_of(target, make_initial_phases(2), **payload_members)).code == DONE
    a, b = (target / f"w/set-{copy}/branch.0.0/file.0.1" for copy in (0, 1))
    a.rename(target / "aside")
    b.rename(a)
    (target / "aside").rename(b)
    result = engine.run(plan_of(target, [make_cycle(0, 2, 2, verify="on_read")], **payload_members))
    assert result.code == MISMATCH
    assert result.finished("cycle-0")["verify"]["mismatches"] == 2


def test_cycle_with_keep_does_not_change_the_items(engine: Engine, target: Path) -> None:
    assert engine.run(plan_of(target, make_initial_phases(4))).code == DONE
    before = list_file_numbers(target)
    result = engine.run(plan_of(target, [make_cycle(0, 4, 4, cycle={"keep": True})]))
    assert result.code == DONE, result.err
    assert list_file_numbers(target) == before
    assert set(result.finished("cycle-0")["latency"]) == {"stat", "read"}


def test_latency_of_a_cycle_has_four_calls_and_no_waits(engine: Engine, target: Path) -> None:
    plan = plan_of(target, [make_cycle(0, 50, 5)], backend="paced", paced={"latency": "1ms"})
    del plan["target"]["use_existing"], plan["target"]["directory"]
    result = engine.run(plan)
    assert result.code == DONE, result.err
    end = result.finished("cycle-0")
    assert end["rates"]["total"]["ops_per_s"] == pytest.approx(3 / 1e-3, rel=1e-3)
    assert end["latency"]["remove"]["max_ns"] == 1_000_000


def test_stonewall_ends_after_the_same_complete_rounds_on_all_tasks(engine: Engine, target: Path) -> None:
    """Tasks are slow by different factors: after the deadline all reach the rounds of the fastest."""
    slow = {"rate": "1MB/s", "latency": "100us", "slow_tasks": {"1": 3, "2": 5}}
    phase = make_cycle(0, 900, 5, stop={"stonewall": "100ms", "wearout": True})
    plan = plan_of(target, [phase], backend="paced", paced=slow)
    del plan["target"]["use_existing"], plan["target"]["directory"]
    result = engine.run(plan)
    assert result.code == DONE, result.err
    (table,) = result.of("tasks")
    done = {row[table["columns"].index("ops")] for row in table["rows"]}
    assert len(done) == 1
    assert 0 < done.copy().pop() < 900 * 8
    assert done.pop() % 8 == 0  # four calls in each of two sets


@pytest.mark.parametrize(
    ("change", "expected_sentence"),
    [
        ({"tree": {"copies": 2, "items_per_dir": 1000}}, "per_task"),
        ({"payload": {"kind": "random"}}, "tells itself"),
        ({"file": {"write": 10, "read": 5}}, "same number of bytes"),
        ({"tree": {"copies": 2, "scope": "per_task", "items_per_dir": 6}}, "beyond tree.items_per_dir"),
        ({"lookup": {"paths": "relative"}}, "full"),
    ],
)
def test_invalid_cycle_is_rejected(change: Plan, expected_sentence: str, engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, [make_cycle(0, 3, 4)], **change))
    assert result.code == BAD_PLAN
    assert expected_sentence in result.sentence
