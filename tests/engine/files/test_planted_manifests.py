# SPDX-License-Identifier: Apache-2.0
"""`clean` on a directory that another user may write in: what that user planted or exchanges removes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, FAILED, Engine, Line, list_tree
from neighbor import do_as, exchanging, start_child_as_user

MANIFEST = ".sonde-manifest.json"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a second user needs root")


def manifest_of(*across: Path, file_name: str = "shadow", **members: Any) -> str:
    """The manifest of a run that ended before the last boot, with one file."""
    files = {"mapping": 0, "group_size": 0, "count": 1, "directories": 0, "name": file_name,
             "across": [str(path) for path in across]}  # fmt: skip
    manifest = {"sonde_manifest": 1, "run": "planted", "host": os.uname().nodename, "boot": "an earlier one",
                "pid_space": "", "pid": 1, "process_start": 1, "period": 4096, "files": files, "threads": 1,
                "node_of_process": [0], "data": [], **members}  # fmt: skip
    return json.dumps(manifest)


def make_run(folder: Path, manifest: str) -> None:
    folder.mkdir()
    (folder / MANIFEST).write_text(manifest, encoding="utf-8")


def make_run_with_files(folder: Path, *outside: Path, directory_mode: int = 0o755) -> None:
    """A directory `folder` of root's own run, with a file there and in the directory of that name in each `outside`."""
    make_run(folder, manifest_of(*outside))
    folder.chmod(directory_mode)
    for where in (folder, *(path / folder.name for path in outside)):
        where.mkdir(parents=True, exist_ok=True)
        (where / "shadow").write_text("data", encoding="utf-8")


def clean_as_text(engine: Engine, target: Path, *arguments: str) -> tuple[int, str, str]:
    result = engine.ask("clean", str(target), *arguments)
    return result.code, result.out, result.err


def get_single_line(report: list[Line]) -> Line:
    assert len(report) == 1, report
    return report[0]


@pytest.mark.parametrize("arguments", [(), ("--dry-run",), ("--yes",), ("--yes", "--elsewhere")])
def test_planted_manifest_is_ignored(
    engine: Engine, scratch_folder: Path, victim_file: Path, second_user: int, arguments: tuple[str, ...]
) -> None:
    run = scratch_folder / "etc"  # a file `shadow` in a directory `etc` of victim's
    do_as(second_user, lambda: make_run(run, manifest_of(victim_file.parents[1])))
    code, report = engine.clean(scratch_folder, *arguments)
    assert code == DONE
    entry = get_single_line(report)
    assert entry["not_removed"].startswith(f"the manifest {run}/{MANIFEST} of user {second_user}")
    assert "is ignored" in entry["not_removed"]
    assert "let its owner run `sonde clean`" in entry["not_removed"]
    assert victim_file.exists()
    assert list_tree(scratch_folder) == ["etc", f"etc/{MANIFEST}"]


def test_planted_manifest_in_the_cleaned_directory_is_ignored(
    engine: Engine, scratch_folder: Path, victim_file: Path, second_user: int
) -> None:
    manifest = manifest_of(victim_file.parents[1], victim_file.parent)
    do_as(second_user, lambda: (scratch_folder / MANIFEST).write_text(manifest, encoding="utf-8"))
    code, report = engine.clean(scratch_folder, "--yes")
    assert (code, "is ignored" in get_single_line(report)["not_removed"]) == (DONE, True)
    assert victim_file.exists()


def test_manifest_of_root_linked_by_another_user_is_ignored(
    engine: Engine, scratch_folder: Path, victim_file: Path, second_user: int
) -> None:
    make_run_with_files(scratch_folder / "mine")
    (scratch_folder / "mine" / MANIFEST).write_text(manifest_of(victim_file.parents[1]), encoding="utf-8")
    do_as(second_user, (scratch_folder / "etc").mkdir)
    (scratch_folder / "etc" / MANIFEST).hardlink_to(scratch_folder / "mine" / MANIFEST)
    _, report = engine.clean(scratch_folder, "--yes")
    assert ["has another name elsewhere" in entry["not_removed"] for entry in report] == [True, True]
    assert victim_file.exists()
    (scratch_folder / "mine" / MANIFEST).unlink()
    _, report = engine.clean(scratch_folder, "--yes")
    assert f"because its directory belongs to user {second_user}" in get_single_line(report)["not_removed"]
    assert victim_file.exists()


@pytest.mark.parametrize("directory_mode", [0o777, 0o775, 0o757])
def test_manifest_in_a_writable_directory_is_ignored(engine: Engine, scratch_folder: Path, directory_mode: int) -> None:
    run = scratch_folder / "run"
    make_run_with_files(run, directory_mode=directory_mode)
    code, report = engine.clean(scratch_folder)
    assert code == DONE
    assert (
        f"its directory can be written by other users (mode {directory_mode:04o}, owner user 0 (root))"
        in get_single_line(report)["not_removed"]
    )
    assert f"chmod go-w {run}" in get_single_line(report)["not_removed"]
    assert list_tree(scratch_folder) == ["run", f"run/{MANIFEST}", "run/shadow"]
    run.chmod(0o1777 if directory_mode == 0o777 else 0o755)
    assert engine.clean(scratch_folder)[0] == DONE
    assert list_tree(scratch_folder) == []


def test_directories_outside_need_consent(engine: Engine, shared_folder: Path, scratch_folder: Path) -> None:
    others = [shared_folder / "disk1", shared_folder / "disk2"]
    run = scratch_folder / "run"
    make_run_with_files(run, *others)
    before = list_tree(shared_folder)
    roots = [str(run), *(str(path / "run") for path in others)]

    code, report = engine.clean(scratch_folder, "--dry-run")
    assert (code, get_single_line(report)["directories"], get_single_line(report)["outside"]) == (
        DONE,
        roots,
        roots[1:],
    )
    assert get_single_line(report)["files"] == 3
    code, out, _ = clean_as_text(engine, scratch_folder, "--dry-run")
    assert code == DONE
    assert all(path in out for path in roots)
    assert f"needs --yes: files lie outside {scratch_folder}" in out

    code, report = engine.clean(scratch_folder)
    assert code == BAD_PLAN
    assert get_single_line(report)["not_removed"] == (
        f"its run has files outside {scratch_folder}, in {roots[1]}, {roots[2]}: add --yes to remove them there too"
    )
    code, _, err = clean_as_text(engine, scratch_folder)
    assert code == BAD_PLAN
    assert err == f"sonde-engine: {run} is not removed: {get_single_line(report)['not_removed']}\n"
    assert list_tree(shared_folder) == before

    code, out, _ = clean_as_text(engine, scratch_folder, "--yes")
    assert code == DONE
    assert all(path in out for path in roots)
    assert list_tree(scratch_folder) == []
    assert [list_tree(path) for path in others] == [[], []]


def test_directories_below_the_cleaned_one_need_no_consent(engine: Engine, scratch_folder: Path) -> None:
    make_run_with_files(scratch_folder / "run", scratch_folder / "disk")
    code, report = engine.clean(scratch_folder)
    assert (code, get_single_line(report)["outside"], len(get_single_line(report)["directories"])) == (DONE, [], 2)
    assert list_tree(scratch_folder) == ["disk"]


@pytest.mark.parametrize("arguments", [("--yes",), ("--yes", "--dry-run"), ()])
def test_directories_of_another_user_are_rejected(
    engine: Engine, shared_folder: Path, scratch_folder: Path, second_user: int, arguments: tuple[str, ...]
) -> None:
    make_run_with_files(scratch_folder / "run", shared_folder / "disk")
    os.chown(shared_folder / "disk" / "run", second_user, second_user)
    before = list_tree(shared_folder)
    code, report = engine.clean(scratch_folder, *arguments)
    assert code == BAD_PLAN
    assert get_single_line(report)["not_removed"].startswith("its list names directories that are not yours")
    assert str(shared_folder / "disk" / "run") in get_single_line(report)["not_removed"]
    assert list_tree(shared_folder) == before


def test_user_cannot_be_led_to_directories_of_root(
    engine: Engine, shared_folder: Path, scratch_folder: Path, victim_file: Path, second_user: int
) -> None:
    """The victim's directory opens to all: only the check of its owner protects it."""
    victim_file.parent.chmod(0o777)
    make_run(scratch_folder / "etc", manifest_of(victim_file.parents[1]))
    program = shutil.copy(engine.path, shared_folder / "engine")  # where the user can start it

    def clean() -> None:
        os._exit(
            subprocess.run(
                [program, "clean", str(scratch_folder), "--yes"], capture_output=True, check=False
            ).returncode
        )

    status = os.waitpid(start_child_as_user(second_user, clean), 0)[1]
    assert os.waitstatus_to_exitcode(status) == BAD_PLAN
    assert victim_file.exists()


def test_link_in_place_of_the_run_directory_is_not_followed(
    engine: Engine, scratch_folder: Path, victim_file: Path, second_user: int
) -> None:
    (victim_file.parent / MANIFEST).write_text(manifest_of(), encoding="utf-8")
    do_as(second_user, lambda: (scratch_folder / "sonde-20261123T031203Z-x-68133f98").symlink_to(victim_file.parent))
    code, report = engine.clean(scratch_folder, "--yes")
    assert (code, report) == (DONE, [])
    assert victim_file.exists()


def test_target_that_is_a_link_is_cleaned(engine: Engine, shared_folder: Path, scratch_folder: Path) -> None:
    make_run_with_files(scratch_folder / "run", shared_folder / "disk")
    (shared_folder / "link").symlink_to(scratch_folder / "run")
    code, report = engine.clean(shared_folder / "link", "--yes")
    assert (code, get_single_line(report)["remaining"]) == (DONE, [])
    assert list_tree(scratch_folder) == []
    assert list_tree(shared_folder / "disk") == []


def test_target_dot_refers_to_the_run_directory(engine: Engine, shared_folder: Path, scratch_folder: Path) -> None:
    make_run_with_files(scratch_folder / "run", shared_folder / "disk")
    (shared_folder / "disk" / "shadow").write_text("not of the run", encoding="utf-8")
    result = engine.ask("clean", ".", "--yes", cwd=scratch_folder / "run")
    assert result.code == DONE, result.err
    assert list_tree(scratch_folder) == []
    assert list_tree(shared_folder / "disk") == ["shadow"]


@pytest.mark.parametrize("replacement_kind", ["link", "directory"])
def test_exchanged_run_directory_never_leads_to_the_victim(
    engine: Engine, shared_folder: Path, victim_file: Path, second_user: int, replacement_kind: str
) -> None:
    """A directory in which others may rename everything, and a long manifest, which takes time to read."""
    target = shared_folder / "open"
    target.mkdir()
    target.chmod(0o777)
    manifest = manifest_of(node_of_process=[0] * 20_000)
    for i in range(20):
        run = target / f"run{i}"
        make_run(run, manifest)
        (run / "shadow").write_text("data", encoding="utf-8")
        other = target / f"other{i}"
        if replacement_kind == "link":
            do_as(second_user, partial(other.symlink_to, victim_file.parent))
        else:
            do_as(second_user, other.mkdir)
            do_as(second_user, partial((other / "shadow").write_text, "thesis"))
        with exchanging(second_user, run, other):
            code, report = engine.clean(target)
        assert code in (DONE, FAILED), report
        assert victim_file.read_text(encoding="utf-8") == "secret"
        if replacement_kind == "directory":
            assert [path.read_text(encoding="utf-8") for path in target.glob("*/shadow")].count("thesis") == i + 1
