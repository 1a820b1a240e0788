# SPDX-License-Identifier: Apache-2.0
"""A walk that searches counts exactly what meets its conditions, looks no more than it must, and any number of tasks
comes to the same."""

from __future__ import annotations

import fnmatch
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, FAILED, Engine
from reference import Tree
from test_trees import plan_of

NAMES = ["file.01.7", "101", "ten", "0 1", "x01\n01y", "é01", "[01]", "*01*", ".01", "file.10", "a" * 250 + "01"]
OLD, NEW = 1_000_000_000, 1_700_000_000


@pytest.fixture
def folder(target: Path) -> Path:
    """A few hundred entries of every kind, half of them old, sizes 0 to 4000 B, one of them in a wide directory."""
    top = target / "run"
    for n in range(12):
        below = top / f"d{n % 4}" / f"01-{n}"
        below.mkdir(parents=True)
        for k, name in enumerate(NAMES):
            path = below / name
            path.write_bytes(b"x" * (3901 if (n + k) % 3 == 0 else 100 * k))
            os.utime(path, ns=(0, (OLD if k % 2 else NEW) * 10**9 + k))
    (top / "wide").mkdir()
    for n in range(700):
        path = top / "wide" / f"w.{n}.01"
        path.write_bytes(b"y" * (n % 5))
        os.utime(path, ns=(0, NEW * 10**9))
    (top / "link01").symlink_to("d0")
    (top / "broken01").symlink_to("nowhere")
    os.mkfifo(top / "pipe01")
    for path in sorted(top.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            os.utime(path, ns=(0, OLD * 10**9))
    return top


def list_entries_below(folder: Path) -> list[tuple[str, os.stat_result]]:
    """Name and lstat() result of every entry below a folder, listed by Python."""
    entries = []
    for here, folders, files in os.walk(folder):
        entries += [(name, os.lstat(os.path.join(here, name))) for name in folders + files]
    return entries


def describe_file_kind(status: os.stat_result) -> str:
    for name, holds in (("file", stat.S_ISREG), ("directory", stat.S_ISDIR), ("link", stat.S_ISLNK)):
        if holds(status.st_mode):
            return name
    return "other"


def matches_conditions(name: str, status: os.stat_result, conditions: dict[str, Any]) -> bool:
    """The conditions as Python understands them."""
    return (
        fnmatch.fnmatchcase(name.replace("\n", "_"), conditions.get("name", "*"))
        and conditions.get("type", "any") in ("any", describe_file_kind(status))
        and conditions.get("size", status.st_size) == status.st_size
        and conditions.get("size_min", 0) <= status.st_size <= conditions.get("size_max", 1 << 62)
        and status.st_mtime_ns > conditions.get("newer_than", -1) * 10**9
    )


def run_search(
    engine: Engine, target: Path, conditions: dict[str, Any], tasks: int = 1, library: str = "", **lookup: Any
) -> dict[str, Any]:
    phase = {"id": "find", "op": "walk", "meta": {"find": conditions, "lookup": {"walk_from": "directory", **lookup}}}
    plan = plan_of(target, Tree(), phase, tasks=tasks, target={"use_existing": True})
    result = engine.run(plan, env={"LD_PRELOAD": library}) if library else engine.run(plan)
    assert result.code == DONE, result.err
    end: dict[str, Any] = result.finished("find")
    return end


SEARCHES: list[dict[str, Any]] = [
    {"name": "*01*"},
    {"name": "*01"},
    {"name": "01*"},
    {"name": "file.[01]?*"},
    {"name": "\\[01]"},
    {"type": "file"},
    {"type": "directory"},
    {"type": "link", "name": "*01*"},
    {"type": "other"},
    {"size": 3901},
    {"size": 0},
    {"size_min": 500},
    {"size_max": 500, "type": "file"},
    {"size_min": 200, "size_max": 3900},
    {"newer_than": NEW - 1},
    {"newer_than": NEW, "name": "*01*"},
    {"newer_than": OLD, "size": 3901, "name": "*01*", "type": "file"},
    {"name": "nothing is called so"},
]


@pytest.mark.parametrize("conditions", SEARCHES, ids=str)
def test_search_counts_the_matching_entries(
    engine: Engine, target: Path, folder: Path, conditions: dict[str, Any]
) -> None:
    expected = list_entries_below(folder)
    plain = {**conditions, "name": conditions["name"].replace("\\[", "[[]")} if "name" in conditions else conditions
    counts = []
    for tasks in (1, 2, 16):
        end = run_search(engine, target, conditions, tasks)
        assert end["entries"] == len(expected)
        assert end["walk"]["directories"] == sum(describe_file_kind(status) == "directory" for _, status in expected)
        counts.append(end["walk"]["matched"])
    assert counts == [sum(matches_conditions(name, status, plain) for name, status in expected)] * 3


@pytest.fixture(scope="module")
def untyped_listing(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library that makes listings without types."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the library of untyped listings")
    library = tmp_path_factory.mktemp("untyped") / "untyped_listing.so"
    source = Path(__file__).with_name("untyped_listing.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return str(library)


@pytest.mark.parametrize("tasks", [1, 4])
def test_every_entry_is_examined_when_listings_have_no_types(
    engine: Engine, target: Path, folder: Path, untyped_listing: str, tasks: int
) -> None:
    expected = list_entries_below(folder)
    for find in ({"type": "file", "name": "*01*"}, {"type": "directory"}, {"size": 3901}):
        end = run_search(engine, target, find, tasks, untyped_listing)
        assert end["entries"] == end["walk"]["examined"] == len(expected)
        assert end["walk"]["directories"] == sum(describe_file_kind(status) == "directory" for _, status in expected)
        assert end["walk"]["matched"] == sum(matches_conditions(name, status, find) for name, status in expected)


def test_entries_are_examined_only_where_a_condition_needs_it(engine: Engine, target: Path, folder: Path) -> None:
    expected = list_entries_below(folder)
    matching_names = sum("01" in name for name, _ in expected)
    assert run_search(engine, target, {"name": "*01*", "type": "file"})["walk"]["examined"] == 0
    assert run_search(engine, target, {"name": "*01*", "size": 1})["walk"]["examined"] == matching_names
    everything = run_search(engine, target, {"name": "*01*"}, examine_all=True)
    assert everything["walk"]["examined"] == len(expected) == everything["latency"]["stat"]["count"]


def test_newer_than_file_uses_the_time_of_a_file(engine: Engine, target: Path, folder: Path) -> None:
    (target / "stamp").touch()
    os.utime(target / "stamp", ns=(0, NEW * 10**9 + 4))
    expected = sum(status.st_mtime_ns > NEW * 10**9 + 4 for _, status in list_entries_below(folder))
    assert expected > 0
    for name in ("stamp", str(target / "stamp")):
        assert run_search(engine, target, {"newer_than_file": name}, 2)["walk"]["matched"] == expected


def test_missing_newer_than_file_is_reported_before_the_walk(engine: Engine, target: Path, folder: Path) -> None:
    phase = {"id": "find", "op": "walk", "meta": {"find": {"newer_than_file": "gone"}}}
    result = engine.run(plan_of(target, Tree(), phase, target={"use_existing": True}))
    assert result.code == FAILED
    assert "meta.find.newer_than_file is gone, which cannot be looked at: No such file" in result.sentence


def test_walk_without_conditions_counts_directories_too(engine: Engine, target: Path, folder: Path) -> None:
    phase = {"id": "walk", "op": "walk", "meta": {"lookup": {"walk_from": "directory"}}}
    result = engine.run(plan_of(target, Tree(), phase, target={"use_existing": True}))
    expected = list_entries_below(folder)
    folders = sum(describe_file_kind(status) == "directory" for _, status in expected)
    assert result.finished("walk")["walk"] == {"directories": folders, "examined": len(expected)}


@pytest.mark.parametrize(
    ("conditions", "expected_text"),
    [
        ({}, "everything would be found"),
        ({"name": "a/b"}, "without '/'"),
        ({"size": 1, "size_min": 1}, "is the exact size"),
        ({"size_min": 2, "size_max": 1}, "nothing could be found"),
        ({"newer_than": 1, "newer_than_file": "x"}, "exclude each other"),
        ({"type": "socket"}, "one of any, file, directory, link, other"),
        ({"nam": "x"}, "meta.find.nam is not known"),
    ],
)
def test_conditions_that_make_no_sense_are_one_sentence(
    engine: Engine, target: Path, conditions: dict[str, Any], expected_text: str
) -> None:
    result = engine.run(plan_of(target, Tree(), {"id": "find", "op": "walk", "meta": {"find": conditions}}))
    assert result.code == BAD_PLAN
    assert expected_text in result.sentence
