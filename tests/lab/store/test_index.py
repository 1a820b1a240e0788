# SPDX-License-Identifier: Apache-2.0
"""The index says what the files say, whatever happened to them and to it."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import run_builders

from sonde.model.plan_hash import HASH_VERSION
from sonde.store import index, tags
from sonde.store.archive import Archive
from sonde.store.catalog import Catalog
from sonde.store.history import list_histories
from sonde.store.rows import read_folder_rows
from sonde.store.selection import Selection
from sonde.store.shards import ROOT_SHARD

NAMES = [f"2026{month:02d}{day:02d}T1200{day:02d}Z-daily-{day:04x}" for month in (1, 2, 11) for day in range(1, 13)]


def read_archive_without_index(root: Path) -> tuple[dict[str, Any], set[str]]:
    """Content of the archive, read from its files alone: run -> (tags, value), and the folders that are no runs."""
    runs, complaints = Archive(root).read_all_summaries()
    rows_by_run = {run.id: (tuple(tags.read_tags(run.folder)), run.phases[0]["bytes_per_s"]) for run in runs}
    return rows_by_run, {complaint.split(" ")[0] for complaint in complaints}


def read_index(catalog: Catalog) -> tuple[dict[str, Any], set[str]]:
    rows = catalog.read_run_table(["run", "tags", "write_bytes_per_s"]).to_pylist()
    rows_by_run = {row["run"]: (tuple(row["tags"]), row["write_bytes_per_s"]) for row in rows}
    return rows_by_run, {complaint.split(" ")[0] for complaint in catalog.describe_foreign_folders()}


def files(root: Path) -> list[Path]:
    return sorted((root / index.INDEX_FOLDER / index.INDEX_VERSION).glob("[!.]*"))


@pytest.fixture
def root(archive: Path) -> Path:
    for name in NAMES[::2]:
        run_builders.add_run(archive, name)
    return archive


@pytest.mark.parametrize("seed", range(6))
def test_index_follows_random_changes_of_the_archive(root: Path, seed: int) -> None:
    pick = random.Random(seed)
    for step in range(25):
        present = [path for path in root.glob("*-*/*") if path.is_dir()]
        there = {path.name for path in [*present, *root.iterdir()]}
        absent = [name for name in NAMES if name not in there]
        act = pick.choice(["add", "add", "remove", "tag", "untag", "foreign", "damage", "age", "lose", "copy"])
        if act == "add" and absent:
            run_builders.add_run(root, pick.choice(absent), [run_builders.build_phase(rate=1e9 + step)])
        elif act == "remove" and present:
            Archive(root).remove_run(pick.choice(present))
        elif act in ("tag", "untag") and present:
            folder = pick.choice(present)
            tags.change_tags(folder, ["x"] if act == "tag" else [], ["x"] if act == "untag" else [])
        elif act == "foreign":
            (root / "2026-02" / f"junk{step}").mkdir(parents=True)
        elif act == "damage" and absent:
            run_builders.add_run(root, pick.choice(absent)).joinpath("run.json").write_text('{"schema": "sonde-run/2"')
        elif act == "age":
            run_builders.age_archive(root, hours=step)
        elif act == "lose" and files(root):
            pick.choice(files(root)).unlink()
        elif act == "copy" and present:
            source = pick.choice(present)
            if not (root / source.name).exists():
                shutil.copytree(source, root / source.name)
                shutil.rmtree(source)
        if pick.random() < 0.7:
            assert read_index(Catalog(root)) == read_archive_without_index(root), f"after {act} in step {step}"
    assert read_index(Catalog(root)) == read_archive_without_index(root)


def record_read_folders(read: list[Path]) -> Callable[..., Any]:
    """Returns a function that builds the rows of a run and records the run's folder in `read`."""

    def read_and_record(folder: Path, *arguments: Any) -> Any:
        read.append(folder)
        return read_folder_rows(folder, *arguments)

    return read_and_record


def test_unchanged_runs_are_not_reread(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_builders.age_archive(root)
    expected = read_index(Catalog(root))
    read: list[Path] = []
    monkeypatch.setattr(index, "read_folder_rows", record_read_folders(read))
    assert read_index(Catalog(root)) == expected
    assert read == []
    added = run_builders.add_run(root, NAMES[1])
    Catalog(root)
    assert read == [added], "of a month that changed, only what is new"


def test_a_change_in_the_same_instant_is_not_missed(root: Path) -> None:
    """The time stamp of a folder may stay the same when it changes twice in one tick of the file system's clock."""
    Catalog(root)
    stamp = (root / "2026-01").stat()
    added = run_builders.add_run(root, NAMES[1])
    tags.change_tags(root / "2026-01" / NAMES[0], ["later"])
    for folder in (root / "2026-01", root / "2026-01" / NAMES[0]):
        os.utime(folder, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    rows_by_run, _ = read_index(Catalog(root))
    assert added.name in rows_by_run
    assert rows_by_run[NAMES[0]][0] == ("later",)


def test_an_interruption_keeps_the_months_that_were_read(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(900):
        run_builders.add_run(
            archive, f"2026{1 + number // 300:02d}01T00{number // 60 % 60:02d}{number % 60:02d}Z-daily-{number:04x}"
        )
    run_builders.age_archive(archive)

    def interrupt(done: int, total: int) -> None:
        assert total == 900
        if done == 512:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Catalog(archive, interrupt)
    read: list[Path] = []
    monkeypatch.setattr(index, "read_folder_rows", record_read_folders(read))
    assert len(Catalog(archive).read_run_table(["run"])) == 900
    assert len(read) == 600, "the first month was done"


def test_damaged_index_is_rebuilt(root: Path) -> None:
    run_builders.age_archive(root)
    expected = read_index(Catalog(root))
    for number, file in enumerate(files(root)):
        file.write_bytes([b"", b"PAR1 this is no table", file.read_bytes()[:-40]][number % 3])
    assert read_index(Catalog(root)) == expected
    catalog = Catalog(root)
    for file in files(root):
        file.unlink()
    assert read_index(catalog) == expected, "it was deleted while somebody used it"
    shutil.rmtree(root / index.INDEX_FOLDER)
    assert read_index(Catalog(root)) == expected


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bit_in_the_index_is_detected(root: Path, seed: int) -> None:
    """A read gives the truth or fails; what fails is made again."""
    run_builders.age_archive(root)
    expected = read_index(Catalog(root))
    pick = random.Random(seed)
    file = pick.choice(files(root))
    content = bytearray(file.read_bytes())
    content[pick.randrange(len(content))] ^= 1 << pick.randrange(8)
    file.write_bytes(content)
    assert read_index(Catalog(root)) == expected
    assert [len(history) for history in list_histories(Archive(root))] == [len(NAMES[::2])]


def test_read_only_index_of_another_user_is_used(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run_builders.age_archive(root)
    Catalog(root)
    honest = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: ".index" not in str(path) and honest(path, mode))
    read: list[Path] = []
    monkeypatch.setattr(index, "read_folder_rows", record_read_folders(read))
    assert read_index(Catalog(root)) == read_archive_without_index(root)
    assert read == []
    added = run_builders.add_run(root, NAMES[1])
    run_builders.age_archive(root)
    assert read_index(Catalog(root)) == read_archive_without_index(root)
    assert added in read
    assert list((tmp_path / "cache").rglob("2026-01~*.parquet")), "what is new is kept with the user"
    read.clear()
    assert read_index(Catalog(root)) == read_archive_without_index(root)
    assert read == []
    for file in files(root):
        file.write_bytes(b"damaged, and not ours to remove")
    monkeypatch.setattr(Path, "unlink", deny_unlink)
    assert read_index(Catalog(root)) == read_archive_without_index(root)


def deny_unlink(self: Path, missing_ok: bool = False) -> None:
    """Raises the error of the system for a file of another user."""
    raise PermissionError(13, "Permission denied", str(self))


def test_index_of_unwritable_archive_is_in_the_user_cache(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (root / index.INDEX_FOLDER).write_text("a file where a folder should be")
    assert read_index(Catalog(root)) == read_archive_without_index(root)
    assert list((tmp_path / "cache").rglob("*.parquet"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / index.INDEX_FOLDER))
    nowhere = Catalog(root)
    assert nowhere.list_index_files("runs") == []
    assert read_index(nowhere) == read_archive_without_index(root)
    assert {len(history) for history in list_histories(Archive(root))} == {len(NAMES[::2])}


@pytest.mark.parametrize(("version", "is_in_history"), [(HASH_VERSION, True), (HASH_VERSION - 1, False)])
def test_hash_of_another_version_is_in_no_history(archive: Path, version: int, is_in_history: bool) -> None:
    run_builders.add_run(archive, "20260101T000000Z-daily-0001", history={**run_builders.KEY, "version": version})
    (plan_hash,) = Catalog(archive).read_run_table(["plan_hash"])["plan_hash"].to_pylist()
    assert plan_hash == (run_builders.KEY["plan_hash"] if is_in_history else None)


def test_deleted_month_is_removed_from_the_index(root: Path) -> None:
    Catalog(root)
    shutil.rmtree(root / "2026-02")
    assert read_index(Catalog(root)) == read_archive_without_index(root)
    assert {file.name.partition("~")[0] for file in files(root)} == {ROOT_SHARD, "2026-01", "2026-11"}


def test_files_of_another_index_version_are_preserved(root: Path) -> None:
    other = root / index.INDEX_FOLDER / "0"
    other.mkdir(parents=True)
    (other / "2026-01~1.runs.parquet").write_bytes(b"x")
    assert read_index(Catalog(root)) == read_archive_without_index(root)
    assert (other / "2026-01~1.runs.parquet").exists()


@pytest.mark.parametrize(
    ("text", "expected_sentence"),
    [
        ("", "cannot be read"),
        ("[]", "of another kind"),
        ('{"schema": "sonde-run/9"}', "of another kind (sonde-run/9)"),
        ('{"schema": "sonde-run/2", "phases": 7, "plan": [], "findings": 3}', "makes no sense"),
        ('{"schema": "sonde-run/2", "started": 1e999, "tasks": 1e400, "history": []}', None),
        ('{"schema": "sonde-run/2", "phases": [{"bytes": 99999999999999999999999, "findings": 1}]}', "makes no sense"),
        ("\x00\xff", "cannot be read"),
    ],
)
def test_foreign_and_damaged_folders_are_a_sentence(root: Path, text: str, expected_sentence: str | None) -> None:
    odd = root / "2026-01" / "odd"
    odd.mkdir()
    (odd / "run.json").write_text(text, encoding="latin-1")
    (root / "2026-01" / "a file").write_text("not a folder")
    catalog = Catalog(root)
    complaints = catalog.describe_foreign_folders()
    assert len(catalog.read_run_table(["run"])) == len(NAMES[::2]) + (expected_sentence is None)
    assert [
        (expected_sentence or "") in complaint and str(odd) in complaint and complaint.endswith("skipped.")
        for complaint in complaints
    ] == [True] * bool(expected_sentence)


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
import run_builders
from sonde.store.catalog import Catalog
for number in range(int(sys.argv[4])):
    run_builders.add_run(Path(sys.argv[1]), f"2026{1 + number % 3:02d}02T0000{number:02d}Z-{sys.argv[2]}-{number:04x}")
    Catalog(Path(sys.argv[1])).read_run_table(["run", "tags"])
"""


@pytest.mark.parametrize("runs", [8, pytest.param(15, marks=pytest.mark.nightly)])
def test_many_writers_and_readers_at_once(root: Path, runs: int) -> None:
    here = str(Path(run_builders.__file__).parent)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root), f"w{number}", here, str(runs)], stderr=subprocess.PIPE
        )
        for number in range(3)
    ]
    counts = []
    while any(writer.poll() is None for writer in writers):
        counts.append(len(Catalog(root).read_run_table(["run"])))
    assert [writer.communicate()[1].decode() for writer in writers] == [""] * 3
    assert counts == sorted(counts), "a run that was seen once stays"
    assert read_index(Catalog(root)) == read_archive_without_index(root)
    assert len(read_archive_without_index(root)[0]) == len(NAMES[::2]) + 3 * runs


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), {"a", "b", "c", "d"}),
        (Selection(calibrations=True), {"a", "b", "c", "d", "e"}),
        (Selection(plan="DAILY"), {"a", "b"}),
        (Selection(plan="weekly probe"), {"c"}),
        (Selection(target="/x"), {"b"}),
        (Selection(target="lustre"), {"a", "b", "c"}),
        (Selection(system="nid9"), {"c"}),
        (Selection(system="edison"), {"d"}),
        (Selection(source="sonde"), {"a", "b", "c"}),
        (Selection(source="ior"), {"d"}),
        (Selection(status="failed"), {"b"}),
        (Selection(validity="good"), {"a", "d"}),
        (Selection(validity="doubtful"), {"b"}),
        (Selection(validity="invalid"), {"c"}),
        (Selection(finding="too_short"), {"b", "c"}),
        (Selection(plan_hash="eeee"), {"a", "b", "c"}),
        (Selection(tags=["keep"]), {"a", "b"}),
        (Selection(tags=["keep", "v2"]), {"b"}),
        (Selection(tasks=4), {"a", "c", "d"}),
        (Selection(nodes=7), {"c"}),
        (Selection(since_s=1767398400.0), {"b", "c", "d"}),
        (Selection(until_s=1767398400.0), {"a"}),
        (Selection(plan="daily", tags=["v2"], status="failed"), {"b"}),
        (Selection(plan="nothing like it"), set()),
    ],
)
def test_each_filter_selects_its_runs(archive: Path, selection: Selection, expected: set[str]) -> None:
    short = [{"id": "too_short", "severity": "warning"}]
    spoiled = [*short, {"id": "cache_suspect", "severity": "invalid"}]
    edison = {**run_builders.KEY, "system": "edison", "plan_hash": "f" * 12}
    run_builders.add_run(archive, "20260102T000000Z-a-0000")
    run_builders.add_run(archive, "20260103T000000Z-b-0000", target="/x", status="failed", tasks=8, findings=short)
    weekly = {"id": "w", "title": "Weekly probe"}
    run_builders.add_run(archive, "20260104T000000Z-c-0000", plan=weekly, host="nid9", nodes=7, findings=spoiled)
    imported: dict[str, Any] = {
        "plan": {"id": "z"},
        "file_system": "",
        "history": {**edison, "file_system": "gpfs"},
        "target": "",
    }
    run_builders.add_run(archive, "20260105T000000Z-d-0000", source={"tool": "IOR 4.1.0"}, **imported)
    run_builders.add_run(
        archive, "20260106T000000Z-e-0000", role="calibration", plan={"id": "z"}, nodes=1, history=edison
    )
    for name, tag_names in (("a", ["keep"]), ("b", ["keep", "v2"])):
        (folder,) = archive.glob(f"*/*-{name}-0000")
        tags.change_tags(folder, tag_names)
    run_ids = Catalog(archive).read_run_table(["run"], selection)["run"].to_pylist()
    assert {run_id.split("-")[1] for run_id in run_ids} == expected
    assert run_ids == sorted(run_ids), "in the order of their start"


@pytest.mark.parametrize(
    ("status", "members", "validity"),
    [
        ("lost", {"done": False}, None),
        ("failed", {"stopped_by": "error"}, None),
        ("failed", {"done": True}, "good"),
        ("done", {"done": True}, "good"),
    ],
)
def test_failed_run_without_a_finished_phase_has_no_validity(
    archive: Path, status: str, members: dict[str, Any], validity: str | None
) -> None:
    run_builders.add_run(archive, NAMES[0], [run_builders.build_phase(**members)], status=status)
    (row,) = Catalog(archive).read_run_table(["validity"]).to_pylist()
    assert row["validity"] == validity
    assert len(Catalog(archive).read_run_table(["run"], Selection(validity="good"))) == (validity == "good")


def test_last_count_selects_the_newest_runs(root: Path) -> None:
    catalog = Catalog(root)
    everything = catalog.read_run_table(["run"])["run"].to_pylist()
    for last in (0, 1, 5, len(everything), 99):
        selection = catalog.find_runs(["run"], last_count=last)
        assert selection.table["run"].to_pylist() == (everything[-last:] if last else [])
        assert selection.count == len(everything)


def test_history_is_ordered_by_time_regardless_of_folders(archive: Path) -> None:
    names = ["20260301T000000Z-daily-0002", "20260301T000000Z-daily-0001", "20260101T000000Z-daily-0009"]
    for position, name in enumerate(names):
        run_builders.add_run(archive, name, [run_builders.build_phase(rate=1e9 + position)])
    (archive / "2026-01" / names[2]).rename(archive / names[2])
    (series,) = list_histories(Archive(archive))
    assert list(series.runs) == sorted(names)
    assert series.values.tolist() == [1e9 + 2, 1e9 + 1, 1e9]
    assert series.runs[-1] == names[0]
    assert series.groups[0:2] == ["", ""]


def test_tags_survive_a_damaged_tags_file(root: Path) -> None:
    folder = root / "2026-01" / NAMES[0]
    assert tags.change_tags(folder, ["b", "a"]) == ["a", "b"]
    assert tags.change_tags(folder, ["c"], ["a"]) == ["b", "c"]
    assert json.loads((folder / "tags.json").read_text()) == {"tags": ["b", "c"]}
    for nonsense in ("", "[]", '{"tags": 3}', '{"tags": [1, null]}', "\x00"):
        (folder / "tags.json").write_text(nonsense)
        assert tags.read_tags(folder) == []
