# SPDX-License-Identifier: Apache-2.0
"""Operations on trees do what the plan says, to exactly the names it says, and leave nothing else."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, ENVIRONMENT, FAILED, MISMATCH, Engine, Plan, list_tree
from reference import Tree

MANIFEST = ".sonde-manifest.json"
TREES = [
    Tree(),
    Tree(depth=2, branching=3),
    Tree(depth=2, branching=3, leaf_only=True),
    Tree(depth=4, branching=1, per_dir=2),
    Tree(depth=4, branching=1, leaf_only=True),
    Tree(depth=1, branching=4, scope="per_task", per_dir=70),
    Tree(depth=1, branching=2, scope="per_task", home_shift=1, copies=2),
    Tree(depth=1, branching=2, scope="per_node", copies=3),
    Tree(per_dir=150, copies=2),
]
FULL: list[Plan] = [
    {"id": "mktree", "op": "mktree"},
    {"id": "create", "op": "create"},
    {"id": "stat", "op": "stat", "shift": {"by": "tasks", "n": 1}},
    {"id": "open", "op": "open_close", "meta": {"select": {"order": "permute"}}},
    {"id": "readdir", "op": "readdir"},
    {"id": "walk", "op": "walk"},
    {"id": "rename", "op": "rename"},
    {"id": "remove", "op": "remove", "shift": {"by": "tasks", "n": 2}, "meta": {"select": {"order": "permute"}}},
    {"id": "rmtree", "op": "rmtree"},
]


def plan_of(target_path: Path, shape: Tree, *phases: Plan, tasks: int = 3, **members: Any) -> Plan:
    """A plan about a tree, run by forked processes."""
    meta = {"tree": shape.plan, **members.pop("meta", {})}
    return {
        "schema": "sonde-plan/2",
        "id": "names",
        "target": {"path": str(target_path), "directory": "run", "min_free": 0, **members.pop("target", {})},
        "tasks": {"processes": tasks},
        "meta": meta,
        "phases": list(phases),
        **members,
    }


def list_remaining_names(run: Path) -> tuple[set[str], set[str]]:
    """(directories, files) below a run directory, without the manifest."""
    every = [path for path in run.rglob("*") if path.name != MANIFEST]
    folders = {str(path.relative_to(run)) for path in every if path.is_dir()}
    return folders, {str(path.relative_to(run)) for path in every} - folders


@pytest.mark.parametrize("path_form", ["relative", "full"])
@pytest.mark.parametrize("shape", TREES, ids=str)
def test_created_tree_has_the_computed_shape(engine: Engine, target: Path, shape: Tree, path_form: str) -> None:
    plan = plan_of(target, shape, *FULL[:2], target={"keep": True}, meta={"lookup": {"paths": path_form}})
    result = engine.run(plan)
    assert result.code == DONE, result.err
    folders, items = shape.holds(3)
    assert list_remaining_names(target / "run") == (folders, items)
    assert result.finished("mktree")["ops"]["done"] == len(folders) - shape.copies
    assert result.finished("create")["ops"]["done"] == len(items)


@pytest.mark.parametrize("objects", ["files", "directories"])
@pytest.mark.parametrize("shape", TREES, ids=str)
def test_every_operation_covers_every_item_and_cleans_up(
    engine: Engine, target: Path, shape: Tree, objects: str
) -> None:
    phases = [phase for phase in FULL if objects == "files" or phase["op"] != "open_close"]
    result = engine.run(plan_of(target, shape, *phases, meta={"objects": objects}))
    assert result.code == DONE, result.err
    folders, items = shape.holds(3)
    for name in ("create", "stat", "rename", "remove"):
        assert result.finished(name)["ops"]["done"] == len(items), name
    # What is found: all items and all directories but the tops, which belong to the run directory.
    assert result.finished("walk")["entries"] == len(items) + len(folders) - shape.copies
    trees = shape.copies * len(shape.branches(3))
    assert result.finished("readdir")["entries"] == len(items) + len(folders) - shape.copies - trees
    assert list_tree(target) == []


@pytest.mark.parametrize("file_bytes", [1, 100, 4096, 9000])
def test_content_is_verified_also_after_a_renaming(engine: Engine, target: Path, file_bytes: int) -> None:
    phases = [
        *FULL[:2],
        {"id": "read", "op": "read", "shift": {"by": "tasks", "n": 1}},
        {"id": "rename", "op": "rename"},
        {"id": "again", "op": "rename"},
        {"id": "reread", "op": "read"},
    ]
    meta = {"file": {"write": file_bytes, "read": file_bytes}, "verify": "on_read"}
    result = engine.run(plan_of(target, Tree(depth=1, branching=2, per_dir=5), *phases, meta=meta))
    assert result.code == DONE, result.err
    for name in ("read", "reread"):
        assert result.finished(name)["verify"] == {"checked_bytes": 45 * file_bytes, "mismatches": 0}


def test_changed_file_is_detected_and_located(engine: Engine, target: Path) -> None:
    change = "printf x | dd of=items-0/branch.0/file.1.3 bs=1 seek=2000 conv=notrunc status=none"
    phases = [
        *FULL[:2],
        {
            "id": "read",
            "op": "read",
            "before": [{"kind": "command", "command": f"cd {target}/run && {change}", "need": "required"}],
        },
    ]
    meta = {"file": {"write": 4000, "read": 4000}, "verify": "on_read"}
    result = engine.run(plan_of(target, Tree(), *phases, meta=meta))
    assert result.code == MISMATCH
    assert [(Path(line["path"]).name, line["task"]) for line in result.of("error")] == [("file.1.3", 1)]
    assert list_tree(target) == []


@pytest.mark.parametrize("order", ["replace", "zipf"])
def test_random_selection_hits_only_existing_items(engine: Engine, target: Path, order: str) -> None:
    phases = [*FULL[:2], {"id": "stat", "op": "stat", "meta": {"select": {"order": order}}, "stop": {"time": "50ms"}}]
    result = engine.run(plan_of(target, Tree(depth=2, branching=3), *phases))
    assert result.code == DONE, result.err
    assert result.finished("stat")["ops"]["done"] > 52


def test_shared_file_is_created_by_all_and_removed_once(engine: Engine, target: Path) -> None:
    phases = [*FULL[:3], {"id": "remove", "op": "remove"}, FULL[-1]]
    result = engine.run(plan_of(target, Tree(per_dir=7), *phases, meta={"file": {"shared_single": True}}))
    assert result.code == DONE, result.err
    assert result.finished("create")["ops"]["done"] == 21
    assert result.finished("remove")["ops"]["done"] == 7


def test_single_task_creates_and_removes_items_of_all_tasks(engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, Tree(depth=1, branching=2), *FULL[:3], *FULL[-2:], meta={"single_task": True}))
    assert result.code == DONE, result.err
    rows = [row for line in result.of("tasks") if line["phase"] == "create" for row in line["rows"]]
    assert sorted(row[4] for row in rows) == [0, 0, 36]


def test_inactive_tasks_only_wait(engine: Engine, target: Path) -> None:
    plan = plan_of(target, Tree(scope="per_task"), *FULL[:6], target={"keep": True})
    plan["tasks"] = {"processes": 4, "active": 2}
    result = engine.run(plan)
    assert result.code == DONE, result.err
    assert list_remaining_names(target / "run") == Tree(scope="per_task").holds(2)


def test_stopped_removal_does_not_count_as_complete(engine: Engine, target: Path) -> None:
    phases = [*FULL[:2], {"id": "some", "op": "remove", "stop": {"items": 2}}, {"id": "stat", "op": "stat"}]
    result = engine.run(plan_of(target, Tree(), *phases))
    assert result.code == BAD_PLAN
    assert 'phase "stat" needs the items of phase "create"' in result.sentence
    assert list_tree(target) == []


def test_missing_item_is_reported_with_its_error(engine: Engine, target: Path) -> None:
    removal = {"kind": "command", "command": f"rm {target}/run/items-0/branch.0/file.2.1", "need": "required"}
    result = engine.run(plan_of(target, Tree(), *FULL[:2], {"id": "stat", "op": "stat", "before": [removal]}))
    assert result.code == FAILED
    assert f"task 2 on {os.uname().nodename}: stat of {target}/run/items-0/branch.0/file.2.1 failed" in result.sentence
    assert "(ENOENT)" in result.sentence
    assert list_tree(target) == []


def test_a_second_creation_of_the_same_items_is_an_error(engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, Tree(), *FULL[:2], {"id": "again", "op": "create"}))
    assert result.code == FAILED
    assert "(EEXIST)" in result.sentence
    assert list_tree(target) == []


def test_a_tree_that_is_not_empty_is_not_removed(engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, Tree(), *FULL[:2], FULL[-1]))
    assert result.code == FAILED
    assert "(ENOTEMPTY)" in result.sentence
    assert list_tree(target) == []  # the end of the run takes what it made


def kill_run_during_stat(engine: Engine, target_path: Path, **members: Any) -> None:
    """A run with many items that is killed while it looks at them."""
    phases = [*FULL[:2], {"id": "long", "op": "stat", "stop": {"time": "60s"}}]
    plan = plan_of(
        target_path, Tree(depth=1, branching=3, per_dir=200), *phases, observe={"progress": "20ms"}, **members
    )
    plan["tasks"] = {"threads": 3}
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        running.process.kill()
        assert running.result().code == -signal.SIGKILL


def test_clean_removes_only_files_that_match_the_tree_rule(engine: Engine, target: Path) -> None:
    kill_run_during_stat(engine, target)
    root = target / "run" / "items-0" / "branch.0"
    (root / "branch.1" / "file.0.0").write_text("wrong directory")  # items of directory 1 begin with number 200
    (root / "file.0.07").write_text("not how numbers are written")
    (root / "file.9.1").write_text("nobody's")
    (root / "file.1.5-XX").write_text("put aside by a renaming")
    code, report = engine.clean(target)
    assert code == FAILED
    assert report[0]["files"] == 2401
    assert any("files that this run did not make" in sentence for sentence in report[0]["remaining"])
    assert sorted(path.name for path in root.rglob("*") if path.is_file()) == ["file.0.0", "file.0.07", "file.9.1"]
    for path in root.rglob("file.*"):
        path.unlink()
    assert engine.clean(target)[0] == DONE
    assert list_tree(target) == []


def test_foreign_files_in_the_target_directory_are_preserved(engine: Engine, target: Path) -> None:
    foreign_directory = target / "run"
    (foreign_directory / "items-1" / "branch.0").mkdir(parents=True)
    for name in ("file.0.0", "-rf", "a\nb", " ", "\udcff\udcfe", "x" * 255, "items-0x"):
        (foreign_directory / name).write_text(name if name.isprintable() else "odd")
        (foreign_directory / "items-1" / "branch.0" / name).write_text("theirs")
    before = {path: path.read_bytes() for path in foreign_directory.rglob("*") if path.is_file()}
    result = engine.run(plan_of(target, Tree(per_dir=50), *FULL, target={"use_existing": True}))
    assert result.code == DONE, result.err
    assert {path: path.read_bytes() for path in foreign_directory.rglob("*") if path.is_file()} == before
    kill_run_during_stat(engine, target, target={"use_existing": True})
    assert (foreign_directory / "items-0").exists()
    assert engine.clean(target)[0] == DONE
    assert {path: path.read_bytes() for path in foreign_directory.rglob("*") if path.is_file()} == before
    assert not (foreign_directory / "items-0").exists()


@pytest.mark.parametrize("link_path", ["items-0", "items-0/branch.0"])
def test_planted_link_is_not_followed(engine: Engine, target: Path, tmp_path: Path, link_path: str) -> None:
    away = tmp_path / "away"
    (away / "branch.0").mkdir(parents=True)
    link = target / "run" / link_path
    link.parent.mkdir(parents=True)
    link.symlink_to(away if link_path == "items-0" else away / "branch.0")
    result = engine.run(plan_of(target, Tree(), *FULL, target={"use_existing": True}))
    assert result.code == FAILED
    assert f"{link} is no directory" in result.sentence
    assert [path.name for path in away.rglob("*")] == ["branch.0"]


@pytest.mark.parametrize("tasks", [1, 4])
def test_walk_visits_deep_and_wide_trees_and_odd_names(engine: Engine, target: Path, tasks: int) -> None:
    folder = target / "run"
    deepest = folder.joinpath(*[f"level{n}" for n in range(60)])
    deepest.mkdir(parents=True)
    for n in range(300):  # more than a stack of the walk holds
        (folder / f"wide{n}" / "inner").mkdir(parents=True)
        (folder / f"wide{n}" / "inner" / "odd \n\udcff name").touch()
    (folder / "loop").symlink_to(folder)
    (folder / "broken").symlink_to("nowhere")
    plan = plan_of(
        target,
        Tree(),
        {"id": "walk", "op": "walk", "meta": {"lookup": {"walk_from": "directory"}}},
        tasks=tasks,
        target={"use_existing": True},
    )
    result = engine.run(plan)
    assert result.code == DONE, result.err
    there = sum(len(folders) + len(files) for _, folders, files in os.walk(folder))
    assert result.finished("walk")["entries"] == there  # without the manifest, which is ours
    assert result.finished("walk")["latency"]["stat"]["count"] == there


def test_backend_without_metadata_operations_is_rejected(engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, Tree(), FULL[0], meta={"backend": "mmap"}))
    assert result.code == BAD_PLAN
    assert 'backend "mmap" has no operations on names' in result.sentence


def test_more_items_than_inodes_are_rejected_before_creation(engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, Tree(per_dir=10**11), *FULL[:2]))
    assert result.code == ENVIRONMENT
    assert "free inodes" in result.sentence
    assert list_tree(target) == []


def measure_peak_bytes(engine: Engine, target: Path, items: int) -> int:
    """The largest resident memory of the engine that works on so many items, as the kernel keeps it until the end. What
    wait4() returns would be the memory of this process, from which the engine was started."""
    file = engine.plan_file(plan_of(target, Tree(per_dir=items), *FULL, tasks=1, observe={"progress": 0}))
    peak = 0
    with subprocess.Popen([engine.path, "run", file], stdout=subprocess.DEVNULL) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            match = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
            peak = int(match[1]) * 1024 if match else peak
            time.sleep(0.002)
    assert process.returncode == DONE
    return peak


def test_memory_does_not_grow_with_the_number_of_items(engine: Engine, target: Path) -> None:
    few, large = (measure_peak_bytes(engine, target, items) for items in (1000, 40_000))
    assert large - few < 800 << 10  # 20 bytes an item


def test_separate_process_uses_items_of_an_earlier_process(engine: Engine, target: Path) -> None:
    phases: list[Plan] = [
        *FULL[:2],
        {"id": "read", "op": "read", "process": "separate", "verify": "on_read"},
        {"id": "remove", "op": "remove"},
        FULL[-1],
    ]
    phases[1] = {**phases[1], "stop": {"items": 3}}
    result = engine.run(plan_of(target, Tree(), *phases, meta={"file": {"write": 50, "read": 50}}))
    assert result.code == DONE, result.err
    assert result.finished("read")["verify"] == {"checked_bytes": 9 * 50, "mismatches": 0}
    assert result.finished("remove")["ops"]["done"] == 9
    assert list_tree(target) == []
