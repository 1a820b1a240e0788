# SPDX-License-Identifier: Apache-2.0
"""Environment differences between runs, from records with known heads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sonde.store.summary import read_summary
from sonde.trends.environment import (
    EnvironmentDifference,
    compare_environments,
    list_plan_differences,
    read_environment,
)

AddRun = Callable[..., Path]
READ = {("read", "read"): 1e9}
UNCHANGED_RATES = {"read": [1.0]}


def test_volatile_facts_are_excluded_from_environments(add_run: AddRun) -> None:
    first_run = add_run(0, READ, node={"load_1m": 0.1, "file_system": {"options": "rw", "free_bytes": 1}})
    two = add_run(1, READ, node={"load_1m": 9.9, "file_system": {"options": "rw", "free_bytes": 2}})
    assert compare_environments([read_summary(first_run)], [read_summary(two)]) == []


def test_steady_difference_precedes_a_varying_difference(add_run: AddRun) -> None:
    before = [add_run(day, READ, engine={"library": f"1.{day}"}) for day in range(3)]
    after = [add_run(9 + day, READ, engine={"library": "2.0"}, node={"kernel": "Linux 6"}) for day in range(3)]
    differences = compare_environments(
        [read_summary(folder) for folder in before], [read_summary(folder) for folder in after]
    )
    assert [(folder.name, folder.before, folder.after, folder.steady) for folder in differences] == [
        ("kernel", "Linux 3.0.101", "Linux 6", True),
        ("engine library", "1.2", "2.0", False),
    ]


def test_unfamiliar_environment_member_is_compared_too(add_run: AddRun) -> None:
    first_run = add_run(0, READ)
    two = add_run(1, READ, node={"network": {"adapters": [{"driver": "mlx5", "firmware": "20.1"}]}})
    (differences,) = compare_environments([read_summary(first_run)], [read_summary(two)])
    assert differences.name == "network adapters"
    assert differences.before == ""
    assert "mlx5" in differences.after


def test_nodes_that_differ_give_all_their_values(add_run: AddRun) -> None:
    folder = add_run(0, READ, hosts={"nid1": 1e9, "nid2": 1e9, "nid3": 1e9}, slices=UNCHANGED_RATES)
    assert read_environment(folder)["host"] == "nid1, nid2, nid3"


def test_broken_or_missing_record_gives_a_partial_environment(add_run: AddRun) -> None:
    folder = add_run(0, READ)
    (folder / "record.ndjson").write_bytes(b'\xff\xfe{"type": 3}\nnull\n[1]\n{"type":"node","kernel":"Linux 9"}\n')
    assert read_environment(folder)["kernel"] == "Linux 9"
    (folder / "record.ndjson").unlink()
    assert read_environment(folder) == {}


def record(tmp_path: Path, *lines: object) -> Path:
    (tmp_path / "record.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return tmp_path


def test_environment_omits_values_that_change_with_each_run(tmp_path: Path) -> None:
    restless = ("clock_offset_ns", "clock_error_ns", "load_1m", "node", "t", "inodes_free", "inodes_total",
                "memory_available_bytes", "disk_free_bytes")  # fmt: skip
    facts = read_environment(
        record(
            tmp_path,
            {"type": "other", "host": "no"},
            {"type": "run", "id": "no", "engine": {"version": "1", "t": 5}, "launch": "mpi", "tasks": 4, "processes": 2,
             "threads": 3, "nodes": 1, "clock": "tsc"},
            {"type": "node", "host": "n1", "swap": None, "cpus": 8, "file_system": {"mount_options": "rw", "t": 1},
             **dict.fromkeys(restless, 7)},
            {"type": "phase_begin"},
            {"type": "node", "host": "too late"},
        )
    )  # fmt: skip
    assert facts == {
        "engine version": "1", "launch": "mpi", "tasks": "4", "processes": "2", "threads": "3", "nodes": "1",
        "clock": "tsc", "host": "n1", "cpus": "8", "file system mount options": "rw",
    }  # fmt: skip


def test_last_20_runs_decide_whether_a_fact_was_steady(add_run: AddRun) -> None:
    """The first run of 21 had another library: it is not looked at. One of 20 is."""
    folders = [add_run(day, READ, engine={"library": "1" if day else "0"}) for day in range(21)]
    before = [read_summary(folder) for folder in folders]
    after = [read_summary(add_run(40, READ, engine={"library": "2"}))]
    assert compare_environments(before, after) == [EnvironmentDifference("engine library", "1", "2", steady=True)]
    assert compare_environments(before[:20], after) == [EnvironmentDifference("engine library", "1", "2", steady=False)]
    assert compare_environments([], after) == compare_environments(after, []) == []


def plans(tmp_path: Path, old: Any, new: Any) -> list[tuple[str, str, str]]:
    folders = []
    for name, plan in (("old", old), ("new", new)):
        (tmp_path / name).mkdir(exist_ok=True)
        text = plan if isinstance(plan, str) else json.dumps(plan)
        (tmp_path / name / "plan.json").write_text(text, encoding="utf-8")
        folders.append(tmp_path / name)
    return list_plan_differences(*folders)


def test_plan_differences_have_the_path_of_the_member(tmp_path: Path) -> None:
    member_values = {"schema": "1", "id": "a", "title": "b"}
    old = {
        **member_values,
        "target": {"path": "/x", "kind": "dir"},
        "data": {"io": {"depth": 1}},
        "phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}],
        "sizes": [1, 2],
        "empty": [],
    }
    new = {
        **dict.fromkeys(member_values, "other"),
        "target": {"path": "/y", "kind": "file"},
        "data": {"io": {"depth": 2, "direct": True}},
        "phases": [{"id": "r", "op": "read", "cache": "cold"}, {"id": "w", "op": "stat"}],
        "sizes": [1, 3],
        "empty": [],
    }
    assert plans(tmp_path, old, new) == [
        ("target.kind", "dir", "file"),
        ("data.io.depth", "1", "2"),
        ("phases.w.op", "write", "stat"),
        ("sizes", "[1, 2]", "[1, 3]"),
        ("data.io.direct", "not set", "true"),
        ("phases.r.cache", "not set", "cold"),
    ]
    assert plans(tmp_path, old, old) == []
    assert plans(tmp_path, {"a": [{"id": "x", "v": 1}, 5]}, {"a": 5}) == [("a", '[{"id": "x", "v": 1}, 5]', "5")]


def test_unreadable_plan_has_no_differences(tmp_path: Path) -> None:
    for broken in ("{", "[1]", "{}"):
        assert plans(tmp_path, broken, {"a": 1}) == plans(tmp_path, {"a": 1}, broken) == []
    assert list_plan_differences(tmp_path / "old", tmp_path / "nowhere") == []


def test_loaded_modules_of_the_program_are_compared(add_run: AddRun) -> None:
    folders = [add_run(0, READ), add_run(1, READ)]
    for folder, toolkit in zip(folders, ("cdt/1.06", "cdt/1.15"), strict=True):
        summary = folder / "run.json"
        document = json.loads(summary.read_text(encoding="utf-8"))
        summary.write_text(json.dumps({**document, "modules": ["PrgEnv-cray/5.0", toolkit]}), encoding="utf-8")
    (difference,) = compare_environments([read_summary(folders[0])], [read_summary(folders[1])])
    assert difference == EnvironmentDifference("modules", "PrgEnv-cray/5.0, cdt/1.06", "PrgEnv-cray/5.0, cdt/1.15")
