# SPDX-License-Identifier: Apache-2.0
"""The archive: runs appear whole or not at all, what died is kept, what is not ours is left alone."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from other_user import without_capabilities

from sonde.conduct.run import RunSetup, conduct_run
from sonde.launch.engine import find_engine
from sonde.model.confined_files import ConfinedDirectory
from sonde.model.errors import MachineError, UserError
from sonde.model.lines import PhaseBeginLine, SeriesLine, TableLine
from sonde.model.plan import Plan
from sonde.model.record import PhaseRecord, RecordReader, read_record
from sonde.store import owner
from sonde.store.archive import Archive, make_run_id
from sonde.store.tables import write_tables

Fake = Callable[..., Path]

PLAN: dict[str, Any] = {
    "id": "p",
    "title": "A plan",
    "target": {"path": "/x"},
    "data": {"access": {"transfer": "1MiB", "volume": "64MiB"}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}


@pytest.fixture
def store(archive: Path) -> Archive:
    return Archive(archive)


def store_run(store: Archive, **facts: Any) -> Path:
    """A run of the fake engine in the archive."""
    plan = Plan.from_document(PLAN, "test")
    return conduct_run(plan, RunSetup(find_engine(), store), lambda kind, line: None, extra_run_facts=facts).folder


def test_names_of_runs_that_begin_in_one_second_differ() -> None:
    assert len({make_run_id("check") for _ in range(500)}) == 500


def test_run_ids_sort_by_time_and_contain_the_plan_id() -> None:
    first = make_run_id("a plan/with: odd *signs")
    assert first[8] == "T"
    assert first[15:17] == "Z-"
    assert "a-plan-with-odd-signs" in first
    assert len({make_run_id("x") for _ in range(20)}) > 15
    assert len(make_run_id("y" * 500)) < 80
    assert make_run_id("///").split("-")[1] == "run"


def test_a_run_is_a_folder_of_plain_files(fake_engine: Fake, store: Archive) -> None:
    folder = store_run(store)
    names = {path.name for path in folder.iterdir()}
    tables = {"phases.parquet", "series.parquet", "tasks.parquet"}
    assert names == {"record.ndjson", "plan.json", "run.json", "telemetry.ndjson", *tables}
    assert folder.parent.parent == store.root
    assert folder.parent.name == f"{folder.name[:4]}-{folder.name[4:6]}"
    summary = json.loads((folder / "run.json").read_text())
    assert summary["id"] == folder.name
    assert summary["status"] == "done"
    assert summary["plan"] == {"id": "p", "title": "A plan"}
    assert [phase["phase"] for phase in summary["phases"]] == ["write", "read"]
    assert summary["phases"][0]["bytes_per_s"] == pytest.approx(1e9)


def test_tables_have_the_numbers_of_the_record(fake_engine: Fake, store: Archive) -> None:
    folder = store_run(store)
    record = read_record(folder / "record.ndjson")
    phases = parquet.read_table(folder / "phases.parquet").to_pylist()
    assert [row["phase"] for row in phases] == ["write", "read"]
    assert phases[1]["read_p99_ns"] == 9000
    assert phases[1]["total_bytes_per_s"] == pytest.approx(1e9)
    assert phases[0]["stonewall_bytes_per_s"] is None, "absent is not zero"
    assert {row["run"] for row in phases} == {folder.name}
    series = parquet.read_table(folder / "series.parquet").to_pylist()
    total_series = record.phases["write"].total_series
    assert total_series is not None
    assert sum(row["bytes"] for row in series if row["phase"] == "write") == sum(total_series.bytes)
    assert series[1]["start_s"] == pytest.approx(total_series.slice_s)
    tasks = parquet.read_table(folder / "tasks.parquet").to_pylist()
    assert tasks[0]["task"] == 0
    assert tasks[0]["bytes"] == 64 << 20


def test_tables_of_different_runs_have_the_same_schema(fake_engine: Fake, store: Archive) -> None:
    store_run(store)
    fake_engine("enospc")
    store_run(store)
    files = sorted(store.root.glob("*/*/phases.parquet"))
    schemas = {str(parquet.read_schema(file).remove_metadata()) for file in files}
    assert len(files) == 2
    assert len(schemas) == 1, "columns must not depend on what a run did"


@pytest.mark.parametrize(
    ("mode", "status", "phases"),
    [
        ("enospc", "failed", 1),
        ("crash", "failed", 1),
        ("torn", "failed", 1),
        ("no-end", "failed", 2),
        ("mismatch", "mismatch", 2),
    ],
)
def test_failed_run_is_stored_with_its_finished_phases(
    fake_engine: Fake, store: Archive, mode: str, status: str, phases: int
) -> None:
    fake_engine(mode)
    folder = store_run(store)
    summary = json.loads((folder / "run.json").read_text())
    assert summary["status"] == status
    assert summary["text"]
    assert sum(phase["done"] for phase in summary["phases"]) == phases
    assert parquet.read_table(folder / "phases.parquet").num_rows >= phases


@pytest.mark.parametrize("mode", ["refuse", "environment", "silent"])
def test_rejected_run_does_not_create_files(fake_engine: Fake, store: Archive, mode: str) -> None:
    fake_engine(mode)
    with pytest.raises(UserError):
        store_run(store)
    assert list(store.root.iterdir()) == []


def test_run_of_dead_writer_is_finished_by_next_command(fake_engine: Fake, store: Archive) -> None:
    source = store_run(store)
    draft = store.begin_run("died", json.dumps(PLAN), {"plan": {"id": "died", "title": ""}, "target": "/x"})
    cut = (source / "record.ndjson").read_bytes()
    (draft.folder / "record.ndjson").write_bytes(cut[: len(cut) // 2])
    assert store.recover_unfinished_runs() == [], "its writer, this process, is alive"
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (draft.folder / "owner.json").write_text(
        json.dumps({"host": socket.gethostname(), "processes": [{"pid": dead.pid, "start": "1"}]})
    )
    (folder,) = store.recover_unfinished_runs()
    assert folder.name == draft.id
    runs, complaints = store.read_all_summaries()
    assert complaints == []
    assert {run.id: run.status for run in runs}[draft.id] == "lost"
    assert store.recover_unfinished_runs() == []


def test_same_pid_with_another_start_time_is_not_the_owner(tmp_path: Path) -> None:
    directory = ConfinedDirectory.open(tmp_path)
    owner.record_writers_of_directory(directory, [os.getpid()])
    assert owner.may_have_live_writer(directory)
    claimed = json.loads((tmp_path / "owner.json").read_text())
    claimed["processes"][0]["start"] = "1"
    (tmp_path / "owner.json").write_text(json.dumps(claimed))
    assert not owner.may_have_live_writer(directory)
    directory.close()


def test_run_of_another_host_is_preserved_while_it_may_be_alive(tmp_path: Path) -> None:
    (tmp_path / "owner.json").write_text(json.dumps({"host": "elsewhere", "processes": [{"pid": 1, "start": "1"}]}))
    directory = ConfinedDirectory.open(tmp_path)
    assert owner.may_have_live_writer(directory)
    old = time.time() - 7 * 3600
    for path in (tmp_path / "owner.json", tmp_path):
        os.utime(path, (old, old))
    assert not owner.may_have_live_writer(directory)
    directory.close()


@pytest.mark.parametrize(("start", "host", "is_live"), [("", "", True), ("1", "", False), ("1", "elsewhere", True)])
def test_claim_in_a_directory_name_counts_before_its_file(tmp_path: Path, start: str, host: str, is_live: bool) -> None:
    pid, own_start, own_host = owner.format_claim().split("-", 2)
    folder = tmp_path / f".incoming-run~{pid}-{start or own_start}-{host or own_host}"
    folder.mkdir()
    with ConfinedDirectory.open(folder) as directory:
        owner.record_writers_of_directory(directory, [] if is_live else [os.getpid()])
        assert owner.may_have_live_writer(directory) == is_live


def test_stages_of_a_lost_run_are_joined(fake_engine: Fake, store: Archive) -> None:
    record = (store_run(store) / "record.ndjson").read_bytes()
    draft = store.begin_run("stages", json.dumps(PLAN), {})
    (draft.folder / "stage-0.ndjson").write_bytes(record)
    (draft.folder / "owner.json").write_text(json.dumps({"host": socket.gethostname(), "processes": []}))
    (folder,) = store.recover_unfinished_runs()
    assert read_record(folder / "record.ndjson").status == "done"


def test_foreign_and_broken_folders_are_skipped_with_a_sentence_each(fake_engine: Fake, store: Archive) -> None:
    good = store_run(store)
    (store.root / "holiday-photos").mkdir()
    (store.root / "half").mkdir()
    (store.root / "half" / "run.json").write_text('{"schema": "sonde-ru')
    (store.root / "other").mkdir()
    (store.root / "other" / "run.json").write_text('{"schema": "something/1"}')
    (store.root / "list").mkdir()
    (store.root / "list" / "run.json").write_text("[]")
    (store.root / "notes.txt").write_text("mine")
    for ours in ("reports", "jobs", "experiments"):
        (store.root / ours).mkdir()
    runs, complaints = store.read_all_summaries()
    assert [run.folder for run in runs] == [good]
    assert len(complaints) == 4
    assert all("skipped" in complaint for complaint in complaints)


def test_listing_reads_no_records(fake_engine: Fake, store: Archive) -> None:
    folder = store_run(store)
    (folder / "record.ndjson").unlink()
    runs, _ = store.read_all_summaries()
    assert [run.id for run in runs] == [folder.name]


def test_exact_group_name_takes_precedence_over_a_prefix(fake_engine: Fake, store: Archive) -> None:
    first, second = (store_run(store, group=group) for group in ("acc", "acc2"))
    assert store.find_run_folders("acc") == [first]
    assert store.find_run_folders("acc2") == [second]
    with pytest.raises(UserError, match="could mean 2 runs"):
        store.find_run_folders("ac")


def test_killed_group_lists_its_calibrations(fake_engine: Fake, store: Archive) -> None:
    run = store_run(store, group="20991231T000000Z-check-aaaa", role="calibration")  # then the check was killed
    assert store.find_run_folders("last") == store.find_run_folders("20991231") == [run]


def test_runs_are_selected_by_id_prefix_path_and_last(fake_engine: Fake, store: Archive) -> None:
    folder = store_run(store, group=None)
    time.sleep(1.1)  # ids sort by seconds
    two = store_run(store, group="20991231T000000Z-check-aaaa", role="check")
    three = store_run(store, group="20991231T000000Z-check-aaaa", role="calibration")
    assert store.find_run_folders(folder.name) == [folder]
    assert store.find_run_folders(str(folder)) == [folder]
    assert store.find_run_folders("20991231T000000Z-check-aaaa") == [two], (
        "calibrations are no part of what a check found"
    )
    assert store.find_run_folders("20991231") == [two]
    assert store.find_run_folders("last") == [two]
    with pytest.raises(UserError, match="could mean"):
        store.find_run_folders(folder.name[:6])
    with pytest.raises(UserError, match="no run"):
        store.find_run_folders("1999")
    assert three.exists()


def test_an_archive_that_cannot_be_written_is_one_sentence(fake_engine: Fake, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="--archive"):
        store_run(Archive(tmp_path / "file" / "archive"))


def test_archive_without_permission_is_one_sentence(fake_engine: Fake, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)

    def expect_sentence() -> None:
        with pytest.raises(MachineError, match="--archive"):
            store_run(Archive(locked))

    without_capabilities(expect_sentence)


def test_run_is_invisible_until_it_is_complete(fake_engine: Fake, store: Archive) -> None:
    run_counts: list[int] = []

    def watch(kind: str, line: object) -> None:
        run_counts.append(len(store.read_all_summaries()[0]))

    plan = Plan.from_document(PLAN, "test")
    conduct_run(plan, RunSetup(find_engine(), store), watch)
    assert run_counts
    assert set(run_counts) == {0}
    assert len(store.read_all_summaries()[0]) == 1


def test_finished_run_appears_by_a_single_rename(
    fake_engine: Fake, store: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of a run's folder finds the complete run: nothing is written after the rename."""
    renamed: list[set[str]] = []
    original = ConfinedDirectory.rename_entry

    def rename(self: ConfinedDirectory, name: str, destination: ConfinedDirectory, new_name: str) -> None:
        if self.path == store.root:
            renamed.append({path.name for path in (self.path / name).iterdir()})
        original(self, name, destination, new_name)

    monkeypatch.setattr(ConfinedDirectory, "rename_entry", rename)
    folder = store_run(store)
    assert renamed == [{path.name for path in folder.iterdir()}]


def test_tables_of_a_large_run_are_written_in_groups(tmp_path: Path) -> None:
    """5,000 tasks and 300 nodes, as the record brings them: line after line."""
    reader = RecordReader()
    reader.phases["w"] = PhaseRecord(PhaseBeginLine(phase="w", op="write"))
    slices = tuple(range(512))
    reader.phases["w"].series += [
        SeriesLine(phase="w", scope="node", node=node, slice_s=0.1, bytes=slices, ops=slices) for node in range(300)
    ]
    columns = ("task", "host", "bytes_per_s")
    for first in range(0, 5000, 1024):
        tasks = range(first, min(first + 1024, 5000))
        rows = tuple((task, None if task == 0 else f"n{task}", 1 if task % 2 else 0.5) for task in tasks)
        reader.phases["w"].tasks.append(TableLine(phase="w", columns=columns, rows=rows, first_task=first))
    with ConfinedDirectory.open(tmp_path) as directory:
        write_tables(directory, "r", reader)
    series = parquet.ParquetFile(tmp_path / "series.parquet")
    assert series.metadata.num_rows == 300 * 512
    assert 2 <= series.metadata.num_row_groups <= 3
    tasks_read = parquet.read_table(tmp_path / "tasks.parquet").to_pylist()
    assert [row["task"] for row in tasks_read] == list(range(5000))
    assert tasks_read[0]["host"] is None
    assert tasks_read[1]["bytes_per_s"] == 1.0


def test_columns_of_mixed_kinds_become_text(tmp_path: Path) -> None:
    reader = RecordReader()
    reader.phases["w"] = PhaseRecord(PhaseBeginLine(phase="w"))
    rows = ((0, 1, True), (1, "many", 2.5), (2, None, None))
    reader.phases["w"].tasks.append(TableLine(phase="w", columns=("task", "a", "b"), rows=rows))
    with ConfinedDirectory.open(tmp_path) as directory:
        write_tables(directory, "r", reader)
    rows_read = parquet.read_table(tmp_path / "tasks.parquet").to_pylist()
    assert [row["a"] for row in rows_read] == ["1", "many", None]
    assert [row["b"] for row in rows_read] == ["True", "2.5", None]
