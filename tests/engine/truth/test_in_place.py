# SPDX-License-Identifier: Apache-2.0
"""Plans that name their files, and the members that go with them: what they make, and what they leave alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, FAILED, MISMATCH, Engine, Plan

BLOCK = 64 << 10


def plan_of(target: Path, *phases: Plan, tasks: Plan | None = None, **data: Any) -> Plan:
    files = {"mapping": "per_task", "paths": [str(target / "f")], **data.pop("files", {})}
    return {
        "schema": "sonde-plan/2",
        "id": "place",
        "target": {"path": str(target), "use_existing": True, "min_free": 0},
        "tasks": tasks or {"threads": 2},
        "data": {"files": files, "access": {"transfer": "4KiB", "block": "64KiB"}, **data},
        "phases": list(phases),
    }


def list_names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def make_write_phase(**more: Any) -> Plan:
    return {"id": "write", "op": "write", **more}


def make_read_phase(**more: Any) -> Plan:
    return {"id": "read", "op": "read", **more}


def test_files_in_place_use_the_names_of_the_plan_only(engine: Engine, target: Path) -> None:
    (target / "other").write_text("mine")
    assert engine.run(plan_of(target, make_write_phase(), make_read_phase())).code == DONE
    assert list_names(target) == ["f.00000000", "f.00000001", "other"]
    assert (target / "f.00000001").stat().st_size == BLOCK


def test_remove_deletes_exactly_the_files_of_the_run(engine: Engine, target: Path) -> None:
    (target / "f.00000002").write_text("another's")
    assert engine.run(plan_of(target, make_write_phase(), {"id": "remove", "op": "remove"})).code == DONE
    assert list_names(target) == ["f.00000002"]


def test_one_task_removes_a_shared_file(engine: Engine, target: Path) -> None:
    result = engine.run(
        plan_of(target, make_write_phase(), {"id": "remove", "op": "remove"}, files={"mapping": "shared"})
    )
    assert result.code == DONE, result.err
    assert result.finished("remove")["ops"]["done"] == 1
    assert list_names(target) == []


@pytest.mark.parametrize(
    ("files", "expected_names"),
    [
        ({"mapping": "shared"}, ["f.1"]),
        ({}, ["f.00000000.1", "f.00000001.1"]),
        ({"directories": "per_task"}, ["0", "0/f.00000000.1", "1", "1/f.00000001.1"]),
    ],
)
def test_suffix_of_a_phase_is_appended_to_file_names(
    files: Plan, expected_names: list[str], engine: Engine, target: Path
) -> None:
    assert (
        engine.run(plan_of(target, make_write_phase(suffix=".1"), make_read_phase(suffix=".1"), files=files)).code
        == DONE
    )
    assert list_names(target) == expected_names


def test_files_with_different_suffixes_are_distinct(engine: Engine, target: Path) -> None:
    old = {"id": "old", "op": "write", "suffix": ".0"}
    new = {"id": "new", "op": "write", "suffix": ".1"}
    read_old = {"id": "read-old", "op": "read", "suffix": ".0", "verify": "on_read"}
    read_new = {"id": "read-new", "op": "read", "suffix": ".1", "verify": "on_read", "data_of": "new"}
    removal = {"id": "gone", "op": "remove", "suffix": ".1"}
    again = {**read_old, "id": "again", "data_of": "old"}
    result = engine.run(plan_of(target, old, new, read_old, read_new, removal, again))
    assert result.code == DONE, result.err
    for phase in ("read-old", "read-new", "again"):
        assert result.finished(phase)["verify"] == {"checked_bytes": 2 * BLOCK, "mismatches": 0}
    assert list_names(target) == ["f.00000000.0", "f.00000001.0"]


def test_reading_an_unwritten_suffix_is_rejected(engine: Engine, target: Path) -> None:
    read_other = {"id": "read", "op": "read", "suffix": ".1", "data_of": "write"}
    result = engine.run(plan_of(target, make_write_phase(suffix=".0"), read_other))
    assert result.code == BAD_PLAN
    assert 'phases[1].data_of names "write", but no earlier phase of that name writes' in result.err


def test_task_without_its_file_does_not_block_its_peers(engine: Engine, target: Path) -> None:
    (target / "f.00000000").write_bytes(bytes(BLOCK))
    stop = {"stonewall": "1s", "wearout": True}
    result = engine.run(plan_of(target, make_read_phase(barrier="intra", stop=stop), tasks={"processes": 2}))
    assert result.code == FAILED
    assert "f.00000001" in result.err
    assert "(ENOENT)" in result.err


def test_several_paths_are_assigned_in_turn(engine: Engine, target: Path) -> None:
    paths = [str(target / "a"), str(target / "b")]
    assert engine.run(plan_of(target, make_write_phase(), tasks={"threads": 3}, files={"paths": paths})).code == DONE
    assert list_names(target) == ["a.00000000", "a.00000002", "b.00000001"]


def test_only_active_tasks_transfer_data(engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, make_write_phase(), make_read_phase(), tasks={"processes": 4, "active": 3}))
    assert result.code == DONE, result.err
    assert list_names(target) == ["f.00000000", "f.00000001", "f.00000002"]
    assert result.finished("write")["bytes"]["written"] == 3 * BLOCK
    rows = [row for line in result.of("tasks") if line["phase"] == "read" for row in line["rows"]]
    assert sorted(row[0] for row in rows) == [0, 1, 2]


def test_more_active_tasks_than_tasks_are_rejected(engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, make_write_phase(), tasks={"threads": 2, "active": 3}))
    assert result.code == BAD_PLAN
    assert "tasks.active is 3, but there are only 2 tasks" in result.sentence


def test_a_cap_on_operations_holds_for_each_file(engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, make_write_phase(stop={"operations": 5}), make_read_phase()))
    assert result.code == DONE, result.err
    assert result.finished("write")["ops"]["done"] == 10
    assert result.finished("read")["ops"]["done"] == 10
    assert (target / "f.00000000").stat().st_size == 5 * 4096


def test_owner_list_determines_the_files_each_task_reads(engine: Engine, target: Path) -> None:
    payload = {"kind": "ior_offset", "seed": 3}
    phases = (make_write_phase(), make_read_phase(verify="on_read", shift={"by": "list", "owners": [2, 2, 0]}))
    result = engine.run(plan_of(target, *phases, tasks={"threads": 3}, payload=payload))
    assert result.code == DONE, result.err
    assert result.finished("read")["verify"] == {"checked_bytes": 3 * BLOCK, "mismatches": 0}
    # And it is those files that are read: with another one in the way, only its readers see it.
    (target / "f.00000002").write_bytes((target / "f.00000001").read_bytes())
    plan = plan_of(target, phases[1], tasks={"threads": 3}, payload=payload)
    plan["data"]["verify"] = "on_read"
    result = engine.run(plan)
    assert result.code == MISMATCH
    assert result.finished("read")["verify"]["mismatches"] == 2 * 16
    assert {line["task"] for line in result.of("error")} <= {0, 1}


@pytest.mark.parametrize("owners", [[0], [0, 2], []])
def test_invalid_owner_list_is_rejected(owners: list[int], engine: Engine, target: Path) -> None:
    result = engine.run(
        plan_of(
            target, make_write_phase(), make_read_phase(shift={"by": "list", "owners": owners}), tasks={"threads": 2}
        )
    )
    assert result.code == BAD_PLAN
    assert "owners" in result.sentence


def test_no_phase_begins_after_the_limit_but_files_are_removed(engine: Engine, target: Path) -> None:
    phases = (make_write_phase(), make_read_phase(before=[]), {"id": "remove", "op": "remove"})
    plan = plan_of(target, *phases)
    plan["phases"][0]["before"] = [{"kind": "sleep", "time": "300ms"}]
    plan["limits"] = {"begin": "200ms"}
    result = engine.run(plan)
    assert result.code == DONE, result.err
    assert [line["phase"] for line in result.of("phase_end")] == ["write", "remove"]
    assert [line["phase"] for line in result.of("finding") if line["id"] == "not_begun"] == ["read"]
    assert list_names(target) == []


def test_pauses_are_in_rates_and_in_no_latency(engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, make_write_phase(io={"pause": "2ms"}), tasks={"threads": 1}))
    end = result.finished("write")
    assert end["seconds"]["transfer"] >= 16 * 0.002
    assert end["latency"]["write"]["count"] == 16
    assert end["latency"]["write"]["p50_ns"] < 2_000_000


def test_files_with_mismatches_are_not_removed(engine: Engine, target: Path) -> None:
    check = make_read_phase(verify="on_read")
    last = {"id": "remove", "op": "remove", "unless_mismatch": True}
    payload = {"kind": "ior_timestamp", "seed": 3}
    assert engine.run(plan_of(target, make_write_phase(), check, last, payload=payload)).code == DONE
    assert list_names(target) == []
    assert engine.run(plan_of(target, make_write_phase(), payload=payload)).code == DONE
    with (target / "f.00000001").open("r+b") as file:
        file.write(b"?")
    assert engine.run(plan_of(target, check, last, payload=payload)).code == MISMATCH
    assert list_names(target) == ["f.00000000", "f.00000001"]


def test_failed_run_removes_no_foreign_files(engine: Engine, target: Path) -> None:
    (target / "f.00000000").write_text("before")
    plan = plan_of(target, make_read_phase())
    assert engine.run(plan).code != DONE
    assert list_names(target) == ["f.00000000"]  # it wrote nothing, so nothing of it is there
    nothing_there = {"transfer": "4KiB", "block": "64KiB", "offset": "1MiB"}
    assert engine.run(plan_of(target, make_write_phase(), make_read_phase(access=nothing_there))).code == BAD_PLAN
    assert list_names(target) == []


@pytest.mark.parametrize(
    ("change", "expected_text"),
    [
        ({"target": {"use_existing": False}}, "use_existing"),
        ({"target": {"directory": "d"}}, "no directory"),
        ({"data": {"files": {"mapping": "many"}}}, "mapping"),
        ({"data": {"files": {"mapping": "shared", "paths": ["a", "b"]}}}, "paths"),
        ({"data": {"files": {"paths": ["a/"]}}}, "does not name a file"),
        ({"data": {"files": {"directories": "per_node"}}}, "per_node"),
    ],
)
def test_contradictory_members_are_rejected(change: Plan, expected_text: str, engine: Engine, target: Path) -> None:
    plan = plan_of(target, make_write_phase())
    for part, members in change.items():
        for key, value in members.items():
            if isinstance(value, dict):
                plan[part][key].update(value)
            else:
                plan[part][key] = value
    result = engine.run(json.loads(json.dumps(plan)))
    assert result.code == BAD_PLAN
    assert expected_text in result.sentence


def test_stonewalled_volume_beyond_free_space_is_reported(engine: Engine, target: Path) -> None:
    stonewalled = make_write_phase(access={"volume": "1PiB"}, stop={"stonewall": "20ms"})
    result = engine.run(plan_of(target, stonewalled, tasks={"threads": 1}))
    assert result.code == DONE, result.err
    (finding,) = [line for line in result.of("finding") if line["id"] == "may_fill_file_system"]
    assert finding["evidence"]["most_bytes"] == 1 << 50
    types = [line["type"] for line in result.lines]
    assert types.index("finding") < types.index("phase_begin")
    small = engine.run(
        plan_of(target, make_write_phase(access={"volume": "1MiB"}, stop={"stonewall": "5s"}), tasks={"threads": 1})
    )
    assert [line for line in small.of("finding") if line["id"] == "may_fill_file_system"] == []
