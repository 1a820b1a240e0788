# SPDX-License-Identifier: Apache-2.0
"""Files that another user plants in a shared archive never cause the caller to write, remove or finish anything."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from make_record import write_run
from other_user import NEIGHBOR, as_neighbor, needs_two_users
from record_scene import Scene

from sonde.model.record import RecordReader
from sonde.store import owner
from sonde.store.archive import Archive
from sonde.store.catalog import Catalog

RUN = "20260101T000000Z-planted-00000000"
OWNER_WITHOUT_PROCESS = json.dumps({"host": socket.gethostname(), "processes": []})
LINKS = (".run.json.part", ".owner.json.part", ".record.ndjson.part", "run.json", "phases.parquet", "series.parquet")
Sonde = Callable[..., Any]
pytestmark = needs_two_users


@pytest.fixture
def shared_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive that everybody may write, in a directory that everybody may enter."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    root = tmp_path / "shared"
    root.mkdir()
    root.chmod(0o777)
    monkeypatch.setenv("SONDE_ARCHIVE", str(root))
    return root


@pytest.fixture
def victim_file(tmp_path: Path) -> Path:
    """A file that only the caller may write."""
    path = tmp_path / "victim"
    path.write_text("precious")
    path.chmod(0o600)
    return path


def plant_run(root: Path, victim_file: Path) -> None:
    """Makes an unfinished run of a dead writer, with a link to the victim under each name that a recovery writes."""
    folder = root / f".incoming-{RUN}"
    write_run(folder, Scene())
    (folder / "owner.json").write_text(OWNER_WITHOUT_PROCESS)
    for name in LINKS:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(victim_file)
    old = time.time() - 7 * 3600
    for path in (*folder.iterdir(), folder):
        os.utime(path, (old, old), follow_symlinks=False)


@pytest.mark.parametrize("verb", [("list",), ("query", "SELECT 1"), ("rm", "--yes", "--plan", "x"), ("tag",)])
def test_links_in_a_planted_run_are_not_followed(
    sonde: Sonde, shared_archive: Path, victim_file: Path, verb: tuple[str]
) -> None:
    as_neighbor(lambda: plant_run(shared_archive, victim_file))
    planted = sorted(os.listdir(shared_archive / f".incoming-{RUN}"))
    result = sonde(*verb)
    assert victim_file.read_text() == "precious"
    assert sorted(os.listdir(shared_archive / f".incoming-{RUN}")) == planted
    assert "1 unfinished run of other users" in result.err


def test_links_in_an_unfinished_run_of_the_caller_are_not_followed(shared_archive: Path, victim_file: Path) -> None:
    """The caller's own folder, made under a umask that let others write into it."""
    plant_run(shared_archive, victim_file)
    (folder,) = Archive(shared_archive).recover_unfinished_runs()
    assert victim_file.read_text() == "precious"
    assert not (folder / "run.json").is_symlink()


def test_claim_of_another_user_does_not_count(shared_archive: Path) -> None:
    folder = write_run(shared_archive / f".incoming-{RUN}", Scene())
    (folder / "run.json").unlink()
    (folder / ".facts.json").write_text(json.dumps({"id": RUN}))
    folder.chmod(0o777)
    alive = {
        "host": socket.gethostname(),
        "processes": [{"pid": os.getpid(), "start": owner._read_process_start_ticks(os.getpid())}],
    }

    as_neighbor(lambda: (folder / "owner.json").write_text(json.dumps(alive)))
    old = time.time() - 7 * 3600
    for path in (*folder.iterdir(), folder):
        os.utime(path, (old, old))
    assert [run.name for run in Archive(shared_archive).recover_unfinished_runs()] == [RUN]


@pytest.mark.parametrize("prefix", [".removed-", ".importing-", ".incoming-"])
def test_directory_moved_into_the_archive_is_not_removed(shared_archive: Path, tmp_path: Path, prefix: str) -> None:
    """A neighbor may move a directory that everybody may write, and could not remove what is in it."""
    project = tmp_path / "project"
    thesis = project / "thesis"
    (thesis / "private").mkdir(parents=True)
    (thesis / "private" / "chapter").write_text("precious")
    for folder in (project, thesis):
        folder.chmod(0o777)
    old = time.time() - 7 * 3600
    os.utime(thesis, (old, old))
    as_neighbor(lambda: thesis.rename(shared_archive / f"{prefix}{RUN}"))
    Archive(shared_archive).recover_unfinished_runs()
    assert (shared_archive / f"{prefix}{RUN}" / "private" / "chapter").read_text() == "precious"


@pytest.mark.parametrize("prefix", [".removed-", ".importing-", ".incoming-"])
def test_planted_link_to_a_directory_is_not_followed(shared_archive: Path, tmp_path: Path, prefix: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "run.json").write_text("{}")
    (home / "owner.json").write_text(OWNER_WITHOUT_PROCESS)
    as_neighbor(lambda: (shared_archive / f"{prefix}{RUN}").symlink_to(home))
    Archive(shared_archive).recover_unfinished_runs()
    assert sorted(path.name for path in home.iterdir()) == ["owner.json", "run.json"]
    assert (home / "owner.json").read_text() == OWNER_WITHOUT_PROCESS


def test_pipe_in_place_of_a_summary_does_not_block(sonde: Sonde, shared_archive: Path) -> None:
    def plant() -> None:
        (shared_archive / "2026-01").mkdir()
        (shared_archive / "2026-01" / RUN).mkdir()
        os.mkfifo(shared_archive / "2026-01" / RUN / "run.json")

    as_neighbor(plant)
    result = sonde("list")
    assert result.code == 0
    assert "not a regular file" in result.err


def test_completed_runs_of_colleagues_are_read(sonde: Sonde, shared_archive: Path) -> None:
    as_neighbor(lambda: write_run(shared_archive / "2026-01" / RUN, Scene()))
    assert [run["id"] for run in sonde("list", "--json").json] == [RUN]
    assert (shared_archive / "2026-01" / RUN).stat().st_uid == NEIGHBOR


def test_unfinished_run_is_not_writable_by_other_users(shared_archive: Path) -> None:
    before = os.umask(0o000)
    try:
        draft = Archive(shared_archive).begin_run("open", "{}", {})
        assert draft.folder.stat().st_mode & 0o777 == 0o755
        folder = Archive(shared_archive).commit_run(draft, RecordReader(), 1, "")
        assert folder.stat().st_mode & 0o777 == 0o777
    finally:
        os.umask(before)


def test_index_of_another_user_does_not_count(sonde: Sonde, shared_archive: Path, tmp_path: Path) -> None:
    """The neighbor's index names a run that lies elsewhere."""
    elsewhere = write_run(tmp_path / "elsewhere" / RUN, Scene())

    def plant() -> None:
        write_run(shared_archive / "2026-01" / RUN, Scene())
        Catalog(shared_archive)
        forge_folder(shared_archive, str(elsewhere))

    as_neighbor(plant)
    assert sonde("list", "--json").json[0]["folder"] == str(shared_archive / "2026-01" / RUN)
    assert sonde("tag", RUN[:-2], "--add", "x").code == 0
    assert not (elsewhere / "tags.json").exists()


@pytest.mark.parametrize("folder", ["../elsewhere/{run}", "{path}/{run}", "2026-01/../../elsewhere/{run}", "..", ""])
def test_folder_outside_the_archive_makes_an_index_damaged(
    sonde: Sonde, shared_archive: Path, tmp_path: Path, folder: str
) -> None:
    elsewhere = write_run(tmp_path / "elsewhere" / RUN, Scene())
    run_folder = write_run(shared_archive / "2026-01" / RUN, Scene())
    old = time.time() - 3600
    for path in (run_folder, run_folder.parent, shared_archive):
        os.utime(path, (old, old))
    Catalog(shared_archive)
    os.utime(shared_archive, (old, old))
    assert forge_folder(shared_archive, folder.format(run=RUN, path=elsewhere.parent)) == 1
    assert sonde("tag", RUN[:-2], "--add", "x").code == 0
    assert not (elsewhere / "tags.json").exists()
    assert (run_folder / "tags.json").exists()
    assert sonde("list", "--json").json[0]["folder"] == str(run_folder)


def forge_folder(root: Path, folder: str) -> int:
    """Writes another folder into all rows of the index. Returns how many files it changed."""
    changed = 0
    for file in (root / ".index").glob("*/2*.runs.parquet"):
        table = parquet.read_table(file)
        position = table.column_names.index("folder")
        parquet.write_table(table.set_column(position, "folder", pa.array([folder] * len(table))), file)
        changed += 1
    return changed


def test_month_linked_by_another_user_is_not_read(sonde: Sonde, shared_archive: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    write_run(secret / "2026-01" / RUN, Scene())
    secret.chmod(0o700)
    as_neighbor(lambda: (shared_archive / "2026-01").symlink_to(secret / "2026-01"))
    assert sonde("list", "--json").json == []


def test_link_in_place_of_an_index_is_not_followed(sonde: Sonde, shared_archive: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    as_neighbor(lambda: (shared_archive / ".index").symlink_to(home))
    write_run(shared_archive / "2026-01" / RUN, Scene())
    assert len(sonde("list", "--json").json) == 1
    assert list(home.iterdir()) == []
