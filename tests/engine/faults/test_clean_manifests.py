# SPDX-License-Identifier: Apache-2.0
"""`clean` reads manifests: whether their run is alive, and what damaged or hostile manifests may not do."""

from __future__ import annotations

import copy
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import DONE, FAILED, LIMIT_S, Engine, list_tree, write_plan
from killed_runs import MANIFEST, Manifest, kill_a_run, read_manifest, write_manifest


def test_clean_preserves_a_running_run(engine: Engine, target: Path) -> None:
    plan = write_plan(target, {"id": "long", "op": "write", "stop": {"time": "60s"}}, observe={"progress": "20ms"})
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        before = list_tree(target)
        code, report = engine.clean(target)
        assert code == DONE
        assert "is still going on" in report[0]["not_removed"]
        assert engine.clean(target, "--elsewhere")[1][0]["not_removed"] == report[0]["not_removed"]
        assert list_tree(target) == before
        running.process.send_signal(signal.SIGTERM)
        running.result()
    assert list_tree(target) == []


def test_zombie_process_counts_as_dead(engine: Engine, target: Path) -> None:
    """Killed, but its parent, a launcher that hangs say, has not asked for its exit code: a zombie."""
    plan = write_plan(target, {"id": "long", "op": "write", "stop": {"time": "60s"}}, observe={"progress": "20ms"})
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        running.process.send_signal(signal.SIGKILL)
        stat = Path(f"/proc/{running.process.pid}/stat")
        until = time.monotonic() + LIMIT_S
        while stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < until
            time.sleep(0.01)
        assert engine.clean(target)[0] == DONE
        assert list_tree(target) == []


def test_reused_process_number_counts_as_dead(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    manifest = read_manifest(run_directory)
    manifest["pid"] = os.getpid()
    write_manifest(run_directory, manifest)
    assert engine.clean(target)[0] == DONE
    assert list_tree(target) == []


@pytest.mark.parametrize(
    ("member", "foreign_value"), [("host", "login7"), ("pid_space", "pid:[1]")], ids=["other host", "other container"]
)
def test_clean_preserves_runs_of_other_hosts_or_containers(
    engine: Engine, target: Path, member: str, foreign_value: str
) -> None:
    # On a parallel file system, `clean` on a login node must not remove the files of a running job.
    run_directory = kill_a_run(engine, target)
    manifest = read_manifest(run_directory)
    manifest[member] = foreign_value
    write_manifest(run_directory, manifest)
    before = list_tree(target)
    code, report = engine.clean(target)
    assert code == DONE
    assert "cannot be asked from here" in report[0]["not_removed"]
    assert "--elsewhere" in report[0]["not_removed"]
    assert list_tree(target) == before
    assert engine.clean(target, "--elsewhere")[0] == DONE
    assert list_tree(target) == []


def test_run_before_the_last_boot_counts_as_dead(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    manifest = read_manifest(run_directory)
    assert manifest["host"] == socket.gethostname()
    manifest.update(boot="another", pid=os.getpid())
    write_manifest(run_directory, manifest)
    assert engine.clean(target)[0] == DONE
    assert list_tree(target) == []


def test_clean_removes_a_run_killed_during_its_first_manifest(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    (run_directory / MANIFEST).rename(run_directory / (MANIFEST + ".new"))
    assert engine.clean(target)[0] == DONE
    assert list_tree(target) == []


def make_damaged_manifests(manifest: Manifest) -> Iterator[tuple[str, Manifest | str]]:
    """Manifests that no run writes: by name."""
    text = json.dumps(manifest)
    yield "empty", ""
    yield "cut", text[: len(text) // 2]
    yield "not json", "rm -rf /"
    yield "a list", "[]"
    yield "another version", json.dumps({**manifest, "sonde_manifest": 2})

    def change_manifest_members(name: str, **members: Any) -> tuple[str, Manifest]:
        other = copy.deepcopy(manifest)
        for path, value in members.items():
            table = other
            *parents, last = path.split("__")
            for parent in parents:
                table = table[parent]
            table[last] = value
        return name, other

    for name in ("../../precious/data", "/etc/passwd", "..", ".", "", ".hidden", "a/b", "x" * 300, "nul\0byte"):
        yield change_manifest_members(f"name {name[:20]!r}", files__name=name)
    yield change_manifest_members("no such mapping", files__mapping=99)
    yield change_manifest_members("negative mapping", files__mapping=-1)
    yield change_manifest_members("no such directories", files__directories=7)
    yield change_manifest_members("count 0", files__count=0)
    yield change_manifest_members("count huge", files__count=2**31 - 1)
    yield change_manifest_members("group of none", files__mapping=3, files__group_size=0)
    yield change_manifest_members("negative group", files__mapping=3, files__group_size=-2)
    yield change_manifest_members("no threads", threads=0)
    yield change_manifest_members("threads huge", threads=2**31 - 1)
    yield change_manifest_members("threads beyond", threads=2**80)
    yield change_manifest_members("no processes", node_of_process=[])
    yield change_manifest_members("negative node", node_of_process=[-1])
    yield change_manifest_members("node huge", node_of_process=[2**31 - 1])
    yield change_manifest_members("text for a number", threads="2")
    yield change_manifest_members("data that is none", data=[{"phase": "x"}])
    without = copy.deepcopy(manifest)
    del without["files"]
    yield "no files", without


def test_a_damaged_or_hostile_manifest_removes_nothing(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    good = read_manifest(run_directory)
    precious = target.parent / "precious"
    precious.mkdir()
    (precious / "data.t00000000").write_text("thesis", encoding="utf-8")
    before = list_tree(target.parent)
    for name, manifest in make_damaged_manifests(good):
        write_manifest(run_directory, manifest)
        code, report = engine.clean(target)
        assert code == FAILED, name
        assert "damaged or was not written by Sonde" in report[0]["not_removed"], name
        assert str(run_directory) in report[0]["not_removed"], name
        assert list_tree(target.parent) == before, name
    write_manifest(run_directory, good)
    assert engine.clean(target)[0] == DONE
    assert list_tree(target) == []


@pytest.mark.parametrize("planted_kind", ["pipe", "directory", "symlink", "device"])
def test_a_manifest_that_is_no_file_is_not_opened(engine: Engine, target: Path, planted_kind: str) -> None:
    trap = target / "trap"
    trap.mkdir()
    pipe = trap / MANIFEST
    if planted_kind == "pipe":
        os.mkfifo(pipe)  # opening it would wait for ever
    elif planted_kind == "directory":
        pipe.mkdir()
    elif planted_kind == "device":
        pipe.symlink_to("/dev/zero")
    else:
        other = target.parent / "manifest"
        other.write_text("{}", encoding="utf-8")
        pipe.symlink_to(other)
    code, report = engine.clean(target)
    assert code == FAILED
    assert "damaged" in report[0]["not_removed"]
    assert list_tree(target) == ["trap", f"trap/{MANIFEST}"]


def test_run_directory_without_manifest_is_reported_and_preserved(engine: Engine, target: Path) -> None:
    """A directory has no manifest, for example, while the server that stores it is down."""
    like, others = target / "sonde-20261123T031203Z-dying-68133f98", target / "sonde-2.0"
    for folder in (like, others):
        folder.mkdir()
        (folder / "file").write_text("x")
    code, report = engine.clean(target)
    assert code == DONE
    assert [entry["directory"] for entry in report] == [str(like)]
    assert "clean again when it is back" in report[0]["not_removed"]
    assert (like / "file").exists()
