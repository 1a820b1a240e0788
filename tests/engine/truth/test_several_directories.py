# SPDX-License-Identifier: Apache-2.0
"""Files distributed over several directories: their location, their readers, and their removal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, ENVIRONMENT, FAILED, Engine, Plan


@pytest.fixture
def disks(target: Path) -> list[Path]:
    paths = [target / name for name in ("a", "b", "c")]
    for path in paths:
        path.mkdir()
    return paths


def plan_of(disks: list[Path], *phases: Plan, **files: Any) -> Plan:
    return {
        "schema": "sonde-plan/2",
        "id": "across",
        "target": {"path": str(disks[0]), "min_free": 0},
        "tasks": {"threads": 4},
        "data": {
            "files": {"mapping": "per_task", "across": [str(disk) for disk in disks[1:]], **files},
            "access": {"transfer": "4KiB", "block": "64KiB"},
        },
        "phases": list(phases),
    }


def write(**more: Any) -> Plan:
    return {"id": "write", "op": "write", **more}


def make_phase_that_lists_files(into: Path, disks: list[Path]) -> Plan:
    """A phase before which somebody writes down what is where."""
    command = f"cd {disks[0].parent} && find . -type f -not -name '.*' | sort > {into}"
    return {"id": "read", "op": "read", "data_of": "write", "verify": "on_read",
            "before": [{"kind": "command", "need": "required", "command": command}]}  # fmt: skip


def list_leftovers(disks: list[Path]) -> list[str]:
    return [path.as_posix() for disk in disks for path in disk.rglob("*")]


@pytest.mark.parametrize(
    ("files", "files_by_directory"),
    [
        ({}, {"a": ["data.t00000000", "data.t00000003"], "b": ["data.t00000001"], "c": ["data.t00000002"]}),
        (
            {"mapping": "per_group", "group_size": 2},
            {"a": ["data.g00000000"], "b": ["data.g00000001"], "c": []},
        ),
        (
            {"directories": "per_task"},
            {"a": ["t00000000/data.t00000000", "t00000003/data.t00000003"], "b": ["t00000001/data.t00000001"],
             "c": ["t00000002/data.t00000002"]},
        ),
        (
            {"mapping": "many", "count": 2},
            {"a": [f"data.t0000000{task}.0000000{k}" for task in (0, 3) for k in (0, 1)],
             "b": ["data.t00000001.00000000", "data.t00000001.00000001"],
             "c": ["data.t00000002.00000000", "data.t00000002.00000001"]},
        ),
    ],
    ids=["per_task", "per_group", "folders", "many"],
)  # fmt: skip
@pytest.mark.parametrize("process", ["same", "separate"])
def test_files_across_directories_alternate_and_are_read_back(
    engine: Engine, target: Path, disks: list[Path], files: Plan, files_by_directory: dict[str, list[str]], process: str
) -> None:
    listing = target / "seen"
    result = engine.run(
        plan_of(disks, write(), {**make_phase_that_lists_files(listing, disks), "process": process}, **files)
    )
    assert result.code == DONE, result.err
    files_of: dict[str, list[str]] = {disk.name: [] for disk in disks}
    for line in listing.read_text().splitlines():
        disk, _, name = line.removeprefix("./").partition("/")
        if disk in files_of:
            files_of[disk].append(name.partition("/")[2])
    assert files_of == files_by_directory
    read = result.finished("read")
    assert read["verify"]["mismatches"] == 0
    assert read["verify"]["checked_bytes"] == read["bytes"]["transferred"] > 0
    assert list_leftovers(disks) == []


def test_clean_removes_a_stored_run_from_all_directories(engine: Engine, target: Path, disks: list[Path]) -> None:
    plan = plan_of(disks, write())
    plan["target"] |= {"keep": True, "keep_manifest": True}
    assert engine.run(plan).code == DONE
    assert sum(Path(path).is_file() for path in list_leftovers(disks)) == 5, (
        "a file for each of four tasks, and the manifest"
    )
    foreign = next(path for path in disks[2].rglob("data.*")).parent / "mine"
    foreign.write_text("not of the run")
    code, report = engine.clean(disks[0], "--yes")
    assert code == FAILED
    assert "holds files that this run did not make" in str(report)
    assert [path for path in list_leftovers(disks) if Path(path).is_file() and ".sonde" not in path] == [str(foreign)]
    foreign.unlink()
    assert engine.clean(disks[0], "--yes")[0] == DONE
    assert list_leftovers(disks) == []


def test_existing_directory_of_the_same_name_is_not_adopted(engine: Engine, disks: list[Path]) -> None:
    (disks[1] / "mine").mkdir()
    (disks[1] / "mine" / "data.t00000001").write_text("mine")
    plan = plan_of(disks, write())
    plan["target"]["directory"] = "mine"
    result = engine.run(plan)
    assert result.code == ENVIRONMENT
    assert "already exists" in result.err
    assert list_leftovers(disks) == [str(disks[1] / "mine"), str(disks[1] / "mine" / "data.t00000001")]


def test_missing_directory_is_reported(engine: Engine, disks: list[Path]) -> None:
    result = engine.run(plan_of([disks[0], disks[1] / "gone"], write()))
    assert result.code == BAD_PLAN
    assert "gone" in result.err
    assert list_leftovers(disks) == []
