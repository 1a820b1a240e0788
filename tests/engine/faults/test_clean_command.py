# SPDX-License-Identifier: Apache-2.0
"""`clean` removes all files of a killed run, and no other file in and beside its directory."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import DONE, ENVIRONMENT, FAILED, Engine, Plan, list_tree, write_plan
from killed_runs import MANIFEST, kill_a_run, read_manifest, write_manifest

LAYOUTS: list[Plan] = [
    {"files": {"mapping": "shared"}},
    {"files": {"mapping": "per_task", "directories": "per_task"}},
    {"files": {"mapping": "per_node", "directories": "per_node", "name": "odd name.t00000000"}},
    {"files": {"mapping": "per_group", "group_size": 2, "directories": "per_task"}},
    {"files": {"mapping": "many", "count": 5, "directories": "per_task"}},
    {"files": {"mapping": "many", "count": 5, "directories": "per_node"}},
]


@pytest.mark.parametrize("data_table", LAYOUTS, ids=lambda data: "-".join(map(str, data["files"].values())))
def test_clean_removes_all_files_of_a_killed_run(engine: Engine, target: Path, data_table: Plan) -> None:
    run_directory = kill_a_run(engine, target, **data_table)
    files = [path for path in run_directory.rglob("*") if path.is_file() and path.name != MANIFEST]
    assert files
    before = list_tree(target)
    code, report = engine.clean(target, "--dry-run")
    assert (code, report[0]["files"]) == (DONE, len(files))
    assert list_tree(target) == before
    code, report = engine.clean(target)
    assert (code, report[0]["files"], report[0]["remaining"]) == (DONE, len(files), [])
    assert list_tree(target) == []


def test_clean_accepts_the_run_directory_itself(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    code, report = engine.clean(run_directory)
    assert (code, len(report)) == (DONE, 1)
    assert list_tree(target) == []


def test_clean_removes_several_runs_and_no_foreign_files(engine: Engine, target: Path) -> None:
    kill_a_run(engine, target, "one")
    kill_a_run(engine, target, "two", files={"mapping": "shared"})
    foreign = target / "precious"
    foreign.mkdir()
    (foreign / "data.t00000000").write_text("thesis", encoding="utf-8")
    (target / "data.t00000000").write_text("thesis", encoding="utf-8")
    code, report = engine.clean(target)
    assert (code, len(report)) == (DONE, 2)
    assert list_tree(target) == ["data.t00000000", "precious", "precious/data.t00000000"]


NEIGHBORS = ["data.t00000002", "data.t0", "data.t00000000.bak", "data", "notes.txt", "xdata.t00000000", "data.n000000"]


def test_clean_preserves_and_reports_foreign_files_in_a_run(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    for name in NEIGHBORS:
        (run_directory / name).write_text("mine", encoding="utf-8")
    (run_directory / "folder").mkdir()
    (run_directory / "t00000000").mkdir()
    code, report = engine.clean(target)
    assert code == FAILED
    assert report[0]["files"] == 2
    assert report[0]["remaining"] == [f"{run_directory} holds files that this run did not make: left alone"]
    # The manifest stays too, so that a second attempt knows what is ours.
    assert sorted(list_tree(run_directory)) == sorted([*NEIGHBORS, "folder", "t00000000", MANIFEST])
    assert all((run_directory / name).read_text(encoding="utf-8") == "mine" for name in NEIGHBORS)
    for name in NEIGHBORS:
        (run_directory / name).unlink()
    (run_directory / "folder").rmdir()
    (run_directory / "t00000000").rmdir()
    assert engine.clean(target)[0] == DONE
    assert list_tree(target) == []


def test_no_symbolic_link_leads_out_of_the_directory(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target, files={"mapping": "per_task", "directories": "per_task"})
    outside = target.parent / "outside"
    outside.mkdir()
    (outside / "data.t00000000").write_text("thesis", encoding="utf-8")
    # A directory of the run is replaced by a link to somebody's directory that holds a file of the right name …
    inner = run_directory / "t00000000"
    (inner / "data.t00000000").unlink()
    inner.rmdir()
    inner.symlink_to(outside)
    # … and a data file by a link to it.
    (run_directory / "t00000001" / "data.t00000001").unlink()
    (run_directory / "t00000001" / "data.t00000001").symlink_to(outside / "data.t00000000")
    code, report = engine.clean(target)
    assert code == FAILED
    assert report[0]["files"] == 0
    assert sorted(line.partition(" is not ")[2] for line in report[0]["remaining"]) == [
        "a directory: left alone",
        "a regular file: left alone",
    ]
    assert (outside / "data.t00000000").read_text(encoding="utf-8") == "thesis"
    # A link among the run directories is not followed either.
    (target / "link").symlink_to(outside)
    write_manifest(outside, read_manifest(run_directory))
    engine.clean(target)
    assert (outside / "data.t00000000").read_text(encoding="utf-8") == "thesis"


@pytest.mark.parametrize("replacement", ["folder", "pipe"])
def test_data_file_replaced_by_another_file_type_is_preserved(engine: Engine, target: Path, replacement: str) -> None:
    run_directory = kill_a_run(engine, target)
    file = run_directory / "data.t00000001"
    file.unlink()
    if replacement == "folder":
        file.mkdir()
    else:
        os.mkfifo(file)
    code, report = engine.clean(target)
    assert code == FAILED
    assert report[0]["remaining"] == [f"{file} is not a regular file: left alone"]
    assert report[0]["files"] == 1
    assert file.exists()


def test_files_that_cannot_be_removed_are_reported(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    protect, release = ["chmod", "555", str(run_directory)], ["chmod", "755", str(run_directory)]
    if os.geteuid() == 0:
        protect, release = ["chattr", "+i", str(run_directory)], ["chattr", "-i", str(run_directory)]
    done = subprocess.run(protect, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot protect a directory from root here: {done.stderr!r}")
    try:
        code, report = engine.clean(target)
    finally:
        subprocess.run(release, check=True)
    assert code == FAILED
    assert report[0]["files"] == 0
    assert len(report[0]["remaining"]) == 2
    assert all("could not be removed" in line for line in report[0]["remaining"])
    assert engine.clean(target)[0] == DONE
    assert list_tree(target) == []


def make_plan_for_existing_directory(target: Path, *phases: Plan, **members: Any) -> Plan:
    return write_plan(target, *phases, target={"directory": "mine", "use_existing": True, **members})


def test_a_directory_that_was_there_before_is_never_removed(engine: Engine, target: Path) -> None:
    user_directory = target / "mine"
    user_directory.mkdir()
    (user_directory / "data.t00000000").write_bytes(b"thesis" * 200_000)
    result = engine.run(make_plan_for_existing_directory(target, {"id": "r", "op": "read"}))
    assert result.code == DONE, result.err
    assert list_tree(target) == ["mine", "mine/data.t00000000"]
    # Killed: the manifest stays, but nothing in that directory is known to be ours.
    plan = make_plan_for_existing_directory(target, {"id": "long", "op": "read", "stop": {"time": "60s"}})
    plan["observe"] = {"progress": "20ms"}
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        running.process.kill()
        running.result()
    code, report = engine.clean(target, "--elsewhere")
    assert code == DONE
    assert "use_existing" in report[0]["not_removed"]
    assert (user_directory / "data.t00000000").read_bytes() == b"thesis" * 200_000


def test_files_of_a_run_with_keep_can_be_reused_and_removed_later(engine: Engine, target: Path) -> None:
    keep = write_plan(target, target={"directory": "mine", "keep": True})
    assert engine.run(keep).code == DONE
    assert list_tree(target) == ["mine", f"mine/{MANIFEST}", "mine/data.t00000000"]
    assert engine.run(make_plan_for_existing_directory(target, {"id": "r", "op": "read"})).code == DONE
    assert "mine/data.t00000000" in list_tree(target)
    assert engine.clean(target)[0] == DONE
    assert list_tree(target) == []


def test_a_directory_in_use_by_another_run_is_refused(engine: Engine, target: Path) -> None:
    plan = write_plan(
        target,
        {"id": "long", "op": "write", "stop": {"time": "60s"}},
        target={"directory": "mine"},
        observe={"progress": "20ms"},
    )
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        other = engine.run(
            make_plan_for_existing_directory(target, {"id": "r", "op": "read"}), record=engine.folder / "other.ndjson"
        )
        assert other.code == ENVIRONMENT
        assert "is in use by the run" in other.only_sentence
        assert running.process.poll() is None
        running.process.send_signal(signal.SIGTERM)
        running.result()


@pytest.mark.parametrize("replacement_kind", ["link", "file"])
def test_a_run_directory_that_is_a_link_or_a_file_is_refused(
    engine: Engine, target: Path, replacement_kind: str
) -> None:
    outside = target.parent / "outside"
    outside.mkdir()
    if replacement_kind == "link":
        (target / "mine").symlink_to(outside)
    else:
        (target / "mine").write_text("", encoding="utf-8")
    result = engine.run(make_plan_for_existing_directory(target, {"id": "w", "op": "write"}))
    assert result.code == ENVIRONMENT
    assert "mine is not a directory" in result.only_sentence
    assert list_tree(outside) == []


def test_existing_directory_is_rejected_without_use_existing(engine: Engine, target: Path) -> None:
    (target / "mine").mkdir()
    result = engine.run(write_plan(target, target={"directory": "mine"}))
    assert result.code == ENVIRONMENT
    assert "already exists: choose another target.directory" in result.only_sentence
    assert list_tree(target) == ["mine"]


@pytest.mark.parametrize("op", ["write", "rewrite"])
@pytest.mark.parametrize("planted_kind", ["link", "pipe"])
def test_planted_link_or_fifo_is_not_written_through(engine: Engine, target: Path, op: str, planted_kind: str) -> None:
    precious = target.parent / "precious"
    precious.write_bytes(b"thesis" * 200_000)
    (target / "mine").mkdir()
    link = target / "mine" / "data.t00000000"
    if planted_kind == "link":
        link.symlink_to(precious)
    else:
        os.mkfifo(link)
    result = engine.run(make_plan_for_existing_directory(target, {"id": "w", "op": op, "open": "overwrite"}))
    assert result.code == FAILED
    assert f"{link} is not a regular file" in result.only_sentence
    assert precious.read_bytes() == b"thesis" * 200_000
