# SPDX-License-Identifier: Apache-2.0
"""`clean` removes all that a killed run left and nothing else, whatever stands beside it, whatever a manifest says."""

from __future__ import annotations

import copy
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import DONE, ENVIRONMENT, FAILED, LIMIT_S, Engine, Plan, tree, write_plan

MANIFEST = ".sonde-manifest.json"
Manifest = dict[str, Any]


def kill_a_run(engine: Engine, target: Path, name: str = "left", **data: object) -> Path:
    """What a run leaves that is killed in its second phase."""
    phases: list[Plan] = [{"id": "first", "op": "write"}, {"id": "long", "op": "rewrite", "stop": {"time": "60s"}}]
    plan = write_plan(
        target, *phases, target={"directory": name}, tasks={"threads": 2}, observe={"progress": "20ms"}, data=data
    )
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        running.process.kill()
        assert running.result().code == -signal.SIGKILL
    return target / name


def read_manifest(folder: Path) -> Manifest:
    manifest: Manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return manifest


def write_manifest(folder: Path, manifest: Manifest | str) -> None:
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


LAYOUTS: list[Plan] = [
    {"files": {"mapping": "shared"}},
    {"files": {"mapping": "per_task", "directories": "per_task"}},
    {"files": {"mapping": "per_node", "directories": "per_node", "name": "odd name.t00000000"}},
    {"files": {"mapping": "per_group", "group_size": 2, "directories": "per_task"}},
    {"files": {"mapping": "many", "count": 5, "directories": "per_task"}},
    {"files": {"mapping": "many", "count": 5, "directories": "per_node"}},
]


@pytest.mark.parametrize("data", LAYOUTS, ids=lambda data: "-".join(map(str, data["files"].values())))
def test_all_that_a_killed_run_left_is_removed(engine: Engine, target: Path, data: Plan) -> None:
    run_directory = kill_a_run(engine, target, **data)
    files = [path for path in run_directory.rglob("*") if path.is_file() and path.name != MANIFEST]
    assert files
    before = tree(target)
    code, report = engine.clean(target, "--dry-run")
    assert (code, report[0]["files"]) == (DONE, len(files))
    assert tree(target) == before
    code, report = engine.clean(target)
    assert (code, report[0]["files"], report[0]["remaining"]) == (DONE, len(files), [])
    assert tree(target) == []


def test_clean_finds_the_run_directory_itself_as_well(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    code, report = engine.clean(run_directory)
    assert (code, len(report)) == (DONE, 1)
    assert tree(target) == []


def test_several_runs_are_removed_and_everything_else_stays(engine: Engine, target: Path) -> None:
    kill_a_run(engine, target, "one")
    kill_a_run(engine, target, "two", files={"mapping": "shared"})
    foreign = target / "precious"
    foreign.mkdir()
    (foreign / "data.t00000000").write_text("thesis", encoding="utf-8")
    (target / "data.t00000000").write_text("thesis", encoding="utf-8")
    code, report = engine.clean(target)
    assert (code, len(report)) == (DONE, 2)
    assert tree(target) == ["data.t00000000", "precious", "precious/data.t00000000"]


NEIGHBORS = ["data.t00000002", "data.t0", "data.t00000000.bak", "data", "notes.txt", "xdata.t00000000", "data.n000000"]


def test_foreign_files_inside_stay_and_are_named(engine: Engine, target: Path) -> None:
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
    assert sorted(tree(run_directory)) == sorted([*NEIGHBORS, "folder", "t00000000", MANIFEST])
    assert all((run_directory / name).read_text(encoding="utf-8") == "mine" for name in NEIGHBORS)
    for name in NEIGHBORS:
        (run_directory / name).unlink()
    (run_directory / "folder").rmdir()
    (run_directory / "t00000000").rmdir()
    assert engine.clean(target)[0] == DONE
    assert tree(target) == []


def test_a_run_that_is_alive_is_kept(engine: Engine, target: Path) -> None:
    plan = write_plan(target, {"id": "long", "op": "write", "stop": {"time": "60s"}}, observe={"progress": "20ms"})
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        before = tree(target)
        code, report = engine.clean(target)
        assert code == DONE
        assert "is still going on" in report[0]["not_removed"]
        assert engine.clean(target, "--elsewhere")[1][0]["not_removed"] == report[0]["not_removed"]
        assert tree(target) == before
        running.process.send_signal(signal.SIGTERM)
        running.result()
    assert tree(target) == []


def test_a_killed_run_that_nobody_has_buried_is_not_alive(engine: Engine, target: Path) -> None:
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
        assert tree(target) == []


def test_a_reused_process_number_is_no_sign_of_life(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    manifest = read_manifest(run_directory)
    manifest["pid"] = os.getpid()
    write_manifest(run_directory, manifest)
    assert engine.clean(target)[0] == DONE
    assert tree(target) == []


@pytest.mark.parametrize(
    ("member", "value"), [("host", "login7"), ("pid_space", "pid:[1]")], ids=["other host", "other container"]
)
def test_a_run_that_cannot_be_asked_is_kept_until_told(engine: Engine, target: Path, member: str, value: str) -> None:
    # On a parallel file system, `clean` on a login node must not remove the files of a running job.
    run_directory = kill_a_run(engine, target)
    manifest = read_manifest(run_directory)
    manifest[member] = value
    write_manifest(run_directory, manifest)
    before = tree(target)
    code, report = engine.clean(target)
    assert code == DONE
    assert "cannot be asked from here" in report[0]["not_removed"]
    assert "--elsewhere" in report[0]["not_removed"]
    assert tree(target) == before
    assert engine.clean(target, "--elsewhere")[0] == DONE
    assert tree(target) == []


def test_a_run_before_the_last_boot_has_ended(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    manifest = read_manifest(run_directory)
    assert manifest["host"] == socket.gethostname()
    manifest.update(boot="another", pid=os.getpid())
    write_manifest(run_directory, manifest)
    assert engine.clean(target)[0] == DONE
    assert tree(target) == []


def test_a_run_killed_while_it_wrote_its_first_manifest_is_removed(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    (run_directory / MANIFEST).rename(run_directory / (MANIFEST + ".new"))
    assert engine.clean(target)[0] == DONE
    assert tree(target) == []


def damaged(manifest: Manifest) -> Iterator[tuple[str, Manifest | str]]:
    """Manifests that no run writes: by name."""
    text = json.dumps(manifest)
    yield "empty", ""
    yield "cut", text[: len(text) // 2]
    yield "not json", "rm -rf /"
    yield "a list", "[]"
    yield "another version", json.dumps({**manifest, "sonde_manifest": 2})

    def changed(name: str, **members: Any) -> tuple[str, Manifest]:
        other = copy.deepcopy(manifest)
        for path, value in members.items():
            table = other
            *parents, last = path.split("__")
            for parent in parents:
                table = table[parent]
            table[last] = value
        return name, other

    for name in ("../../precious/data", "/etc/passwd", "..", ".", "", ".hidden", "a/b", "x" * 300, "nul\0byte"):
        yield changed(f"name {name[:20]!r}", files__name=name)
    yield changed("no such mapping", files__mapping=99)
    yield changed("negative mapping", files__mapping=-1)
    yield changed("no such directories", files__directories=7)
    yield changed("count 0", files__count=0)
    yield changed("count huge", files__count=2**31 - 1)
    yield changed("group of none", files__mapping=3, files__group_size=0)
    yield changed("negative group", files__mapping=3, files__group_size=-2)
    yield changed("no threads", threads=0)
    yield changed("threads huge", threads=2**31 - 1)
    yield changed("threads beyond", threads=2**80)
    yield changed("no processes", node_of_process=[])
    yield changed("negative node", node_of_process=[-1])
    yield changed("node huge", node_of_process=[2**31 - 1])
    yield changed("text for a number", threads="2")
    yield changed("data that is none", data=[{"phase": "x"}])
    without = copy.deepcopy(manifest)
    del without["files"]
    yield "no files", without


def test_a_damaged_or_hostile_manifest_removes_nothing(engine: Engine, target: Path) -> None:
    run_directory = kill_a_run(engine, target)
    good = read_manifest(run_directory)
    precious = target.parent / "precious"
    precious.mkdir()
    (precious / "data.t00000000").write_text("thesis", encoding="utf-8")
    before = tree(target.parent)
    for name, manifest in damaged(good):
        write_manifest(run_directory, manifest)
        code, report = engine.clean(target)
        assert code == FAILED, name
        assert "damaged or was not written by Sonde" in report[0]["not_removed"], name
        assert str(run_directory) in report[0]["not_removed"], name
        assert tree(target.parent) == before, name
    write_manifest(run_directory, good)
    assert engine.clean(target)[0] == DONE
    assert tree(target) == []


@pytest.mark.parametrize("kind", ["pipe", "directory", "symlink", "device"])
def test_a_manifest_that_is_no_file_is_not_opened(engine: Engine, target: Path, kind: str) -> None:
    trap = target / "trap"
    trap.mkdir()
    pipe = trap / MANIFEST
    if kind == "pipe":
        os.mkfifo(pipe)  # opening it would wait for ever
    elif kind == "directory":
        pipe.mkdir()
    elif kind == "device":
        pipe.symlink_to("/dev/zero")
    else:
        other = target.parent / "manifest"
        other.write_text("{}", encoding="utf-8")
        pipe.symlink_to(other)
    code, report = engine.clean(target)
    assert code == FAILED
    assert "damaged" in report[0]["not_removed"]
    assert tree(target) == ["trap", f"trap/{MANIFEST}"]


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
def test_a_data_file_that_became_something_else_stays(engine: Engine, target: Path, replacement: str) -> None:
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


def test_what_cannot_be_removed_is_named(engine: Engine, target: Path) -> None:
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
    assert tree(target) == []


def existing_plan(target: Path, *phases: Plan, **members: Any) -> Plan:
    return write_plan(target, *phases, target={"directory": "mine", "use_existing": True, **members})


def test_a_directory_that_was_there_before_is_never_removed(engine: Engine, target: Path) -> None:
    user_directory = target / "mine"
    user_directory.mkdir()
    (user_directory / "data.t00000000").write_bytes(b"thesis" * 200_000)
    result = engine.run(existing_plan(target, {"id": "r", "op": "read"}))
    assert result.code == DONE, result.err
    assert tree(target) == ["mine", "mine/data.t00000000"]
    # Killed: the manifest stays, but nothing in that directory is known to be ours.
    plan = existing_plan(target, {"id": "long", "op": "read", "stop": {"time": "60s"}})
    plan["observe"] = {"progress": "20ms"}
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        running.process.kill()
        running.result()
    code, report = engine.clean(target, "--elsewhere")
    assert code == DONE
    assert "use_existing" in report[0]["not_removed"]
    assert (user_directory / "data.t00000000").read_bytes() == b"thesis" * 200_000


def test_files_of_a_kept_run_can_be_used_again_and_removed_later(engine: Engine, target: Path) -> None:
    keep = write_plan(target, target={"directory": "mine", "keep": True})
    assert engine.run(keep).code == DONE
    assert tree(target) == ["mine", f"mine/{MANIFEST}", "mine/data.t00000000"]
    assert engine.run(existing_plan(target, {"id": "r", "op": "read"})).code == DONE
    assert "mine/data.t00000000" in tree(target)
    assert engine.clean(target)[0] == DONE
    assert tree(target) == []


def test_a_directory_in_use_by_another_run_is_refused(engine: Engine, target: Path) -> None:
    plan = write_plan(
        target,
        {"id": "long", "op": "write", "stop": {"time": "60s"}},
        target={"directory": "mine"},
        observe={"progress": "20ms"},
    )
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        other = engine.run(existing_plan(target, {"id": "r", "op": "read"}), record=engine.folder / "other.ndjson")
        assert other.code == ENVIRONMENT
        assert "is in use by the run" in other.only_sentence
        assert running.process.poll() is None
        running.process.send_signal(signal.SIGTERM)
        running.result()


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_run_directory_that_is_a_link_or_a_file_is_refused(engine: Engine, target: Path, kind: str) -> None:
    outside = target.parent / "outside"
    outside.mkdir()
    if kind == "link":
        (target / "mine").symlink_to(outside)
    else:
        (target / "mine").write_text("", encoding="utf-8")
    result = engine.run(existing_plan(target, {"id": "w", "op": "write"}))
    assert result.code == ENVIRONMENT
    assert "mine is not a directory" in result.only_sentence
    assert tree(outside) == []


def test_an_existing_directory_is_refused_unless_told(engine: Engine, target: Path) -> None:
    (target / "mine").mkdir()
    result = engine.run(write_plan(target, target={"directory": "mine"}))
    assert result.code == ENVIRONMENT
    assert "already exists: choose another target.directory" in result.only_sentence
    assert tree(target) == ["mine"]


@pytest.mark.parametrize("op", ["write", "rewrite"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_nothing_is_written_through_what_was_found(engine: Engine, target: Path, op: str, kind: str) -> None:
    precious = target.parent / "precious"
    precious.write_bytes(b"thesis" * 200_000)
    (target / "mine").mkdir()
    link = target / "mine" / "data.t00000000"
    if kind == "link":
        link.symlink_to(precious)
    else:
        os.mkfifo(link)
    result = engine.run(existing_plan(target, {"id": "w", "op": op, "open": "overwrite"}))
    assert result.code == FAILED
    assert f"{link} is not a regular file" in result.only_sentence
    assert precious.read_bytes() == b"thesis" * 200_000


def test_run_like_directory_without_manifest_is_named_and_kept(engine: Engine, target: Path) -> None:
    """As when the server that holds the manifest is away."""
    like, others = target / "sonde-20261123T031203Z-dying-68133f98", target / "sonde-2.0"
    for folder in (like, others):
        folder.mkdir()
        (folder / "file").write_text("x")
    code, report = engine.clean(target)
    assert code == DONE
    assert [entry["directory"] for entry in report] == [str(like)]
    assert "clean again when it is back" in report[0]["not_removed"]
    assert (like / "file").exists()
