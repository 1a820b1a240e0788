# SPDX-License-Identifier: Apache-2.0
"""Writers that are killed at any moment lose nothing that was measured and leave nothing half done to be seen."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from sonde.conduct.run import RunSetup, conduct_run
from sonde.launch.engine import find_engine
from sonde.model.confined_files import ConfinedDirectory
from sonde.model.plan import Plan
from sonde.model.record import read_record
from sonde.store.archive import Archive
from sonde.store.catalog import Catalog

Fake = Callable[..., Path]
FILES = {"record.ndjson", "plan.json", "run.json", "phases.parquet", "series.parquet", "tasks.parquet"}
PLAN: dict[str, Any] = {
    "id": "p",
    "target": {"path": "/x"},
    "data": {"access": {"transfer": "1MiB", "volume": "64MiB"}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}
# Says "began ID" when the record of a run is complete, and "kept ID" when the archive says that it has it.
WRITER = """
import json, sys
from pathlib import Path
from sonde.model.record import read_record
from sonde.store.archive import Archive
from sonde.store.pandas_discovery import declare_command_process
declare_command_process()
store, template = Archive(Path(sys.argv[1])), Path(sys.argv[2]).read_bytes().splitlines(keepends=True)
while True:
    store.recover_unfinished_runs()
    draft = store.begin_run("killed", sys.argv[3], {"plan": {"id": "killed", "title": ""}, "target": "/x"})
    with (draft.folder / "record.ndjson").open("wb") as record:
        for line in template:
            record.write(line)
            record.flush()
    print("began", draft.id, flush=True)
    store.commit_run(draft, read_record(draft.folder / "record.ndjson"), 0, "")
    print("kept", draft.id, flush=True)
"""


def read_all_files(folder: Path) -> bool:
    """Everything a run consists of is there and says the same."""
    assert {path.name for path in folder.iterdir()} == FILES
    summary = json.loads((folder / "run.json").read_text())
    assert summary["id"] == folder.name
    assert summary["plan"]["id"] == "killed", "what the lab knew beside the record is kept"
    assert len(summary["phases"]) == parquet.read_table(folder / "phases.parquet").num_rows
    assert len(read_record(folder / "record.ndjson").phases) == len(summary["phases"])
    return bool(summary["status"] == "done")


@pytest.fixture
def template(fake_engine: Fake, tmp_path: Path) -> Path:
    """A record of a run that went well."""
    elsewhere = Archive(tmp_path / "elsewhere")
    result = conduct_run(Plan.from_document(PLAN, "test"), RunSetup(find_engine(), elsewhere), lambda kind, line: None)
    return result.folder / "record.ndjson"


@pytest.mark.parametrize("kills", [6, pytest.param(20, marks=pytest.mark.nightly)])
def test_two_writers_and_many_kills(template: Path, archive: Path, kills: int) -> None:
    pick = random.Random(20)
    store = Archive(archive)
    began: set[str] = set()
    stored_ids: set[str] = set()

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WRITER, str(archive), str(template), json.dumps(PLAN)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def collect_run_id(line: str) -> None:
        word, _, run_id = line.strip().partition(" ")
        (began if word == "began" else stored_ids).add(run_id)

    def end(writer: subprocess.Popen[str]) -> None:
        writer.kill()
        for line in writer.communicate()[0].splitlines():
            collect_run_id(line)
        assert writer.returncode == -signal.SIGKILL, "it was killed; it did not fail"

    writers = [start(), start()]
    for kill in range(kills):
        assert writers[kill % 2].stdout is not None
        writers[kill % 2].stdout.readline()  # type: ignore[union-attr]  # it is past its start
        time.sleep(pick.uniform(0.0, 0.03))
        end(writers[kill % 2])
        for run in store.read_all_summaries()[0]:
            read_all_files(run.folder)
        assert Catalog(archive).describe_foreign_folders() == []
        writers[kill % 2] = start()
    while not stored_ids:  # on a busy machine each kill may come before the first commit
        assert writers[0].stdout is not None
        collect_run_id(writers[0].stdout.readline())
    for writer in writers:
        end(writer)

    store.recover_unfinished_runs()
    there = {run.folder.name: read_all_files(run.folder) for run in store.read_all_summaries()[0]}
    assert stored_ids <= set(there), "what the archive said it has, it has"
    assert began <= set(there), "what was measured to its end was brought in"
    assert all(there[name] for name in began | stored_ids)
    assert store.recover_unfinished_runs() == []
    leftovers = list(archive.glob(".incoming-*"))
    assert [path for path in leftovers if (path / "record.ndjson").exists()] == [], "only what had not begun to measure"
    for (
        path
    ) in leftovers:  # killed before it could say who it is: it may be somebody's, until it has been silent for hours
        for old in (*path.iterdir(), path):
            os.utime(old, (time.time() - 7 * 3600,) * 2)
    assert store.recover_unfinished_runs() == []
    assert not list(archive.glob(".incoming-*"))
    assert set(Catalog(archive).read_run_table(["run"])["run"].to_pylist()) == set(there)


@pytest.mark.parametrize("step", range(20))
def test_a_commit_that_stops_anywhere_is_finished_by_the_next_command(
    template: Path, archive: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends the writer before its n-th change on disk, for every n: each state is tested, not only likely ones."""
    from sonde.store import owner

    store = Archive(archive)
    draft = store.begin_run("killed", json.dumps(PLAN), {"plan": {"id": "killed", "title": ""}, "target": "/x"})
    (draft.folder / "record.ndjson").write_bytes(template.read_bytes())
    changes = 0

    def kill_after_step(original: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any, **options: Any) -> Any:
            nonlocal changes
            changes += 1
            if changes > step:
                raise KilledError
            return original(*arguments, **options)

        return change

    class KilledError(BaseException):
        pass

    with monkeypatch.context() as patched:
        for name in (
            "fsync_file",
            "write_json_file",
            "fsync_directory",
            "remove_file",
            "rename_entry",
            "apply_umask_permissions",
        ):
            patched.setattr(ConfinedDirectory, name, kill_after_step(getattr(ConfinedDirectory, name)))
        try:
            store.commit_run(draft, read_record(draft.folder / "record.ndjson"), 0, "")
        except KilledError:
            assert (list(archive.glob("2*/*")) == []) == (step < 18), step
    monkeypatch.setattr(owner, "may_have_live_writer", lambda folder: False)
    store.recover_unfinished_runs()
    (folder,) = archive.glob("2*/*")
    assert read_all_files(folder)
    assert not list(archive.glob(".incoming-*"))


def leave_dead_run(archive: Path, template: Path) -> Archive:
    """Writes a run whose processes have ended."""
    store = Archive(archive)
    draft = store.begin_run("killed", json.dumps(PLAN), {"plan": {"id": "killed", "title": ""}, "target": "/x"})
    (draft.folder / "record.ndjson").write_bytes(template.read_bytes())
    (draft.folder / "owner.json").write_text(json.dumps({"host": socket.gethostname(), "processes": []}))
    return store


def test_dead_run_is_recovered_by_a_single_process(
    template: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = leave_dead_run(archive, template)
    recoverer = "import sys; from pathlib import Path; from sonde.store.archive import Archive;"
    recoverer += "print(len(Archive(Path(sys.argv[1])).recover_unfinished_runs()))"
    others = [
        subprocess.Popen([sys.executable, "-c", recoverer, str(archive)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert sorted(int(process.communicate()[0]) for process in others) == [0, 0, 0, 1]
    assert [read_all_files(run.folder) for run in store.read_all_summaries()[0]] == [True]


@pytest.mark.parametrize(
    "moment", ["before its summary", "when it is complete", "when it becomes visible", "under its new name"]
)
def test_concurrent_recoveries_store_a_dead_run_once(
    template: Path, archive: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second one comes at the moment at which it could do harm, every time, not once in a thousand."""
    store = leave_dead_run(archive, template)
    second: list[Path] = []

    def at_that_moment(owner: object, name: str, when: Callable[[ConfinedDirectory, Any], bool]) -> None:
        original = getattr(owner, name)

        def recover_in_between(directory: ConfinedDirectory, *more: Any, **options: Any) -> Any:
            if when(directory, more):
                monkeypatch.setattr(owner, name, original)
                second.extend(Archive(archive).recover_unfinished_runs())
            return original(directory, *more, **options)

        monkeypatch.setattr(owner, name, recover_in_between)

    def is_complete(directory: ConfinedDirectory) -> bool:
        return set(directory.list_names()) & {"owner.json", "run.json"} == {"run.json"}

    if moment == "before its summary":
        at_that_moment(ConfinedDirectory, "write_json_file", lambda directory, more: more[0] == "run.json")
    elif moment == "when it is complete":
        at_that_moment(ConfinedDirectory, "fsync_directory", lambda directory, more: is_complete(directory))
    elif moment == "when it becomes visible":
        at_that_moment(
            ConfinedDirectory,
            "rename_entry",
            lambda directory, more: directory.path == archive and not (archive / more[0] / "owner.json").exists(),
        )
    else:
        at_that_moment(ConfinedDirectory, "open_subdirectory", lambda directory, more: "~" in more[0])
    first = store.recover_unfinished_runs()
    assert len(first) + len(second) == 1
    assert [read_all_files(run.folder) for run in store.read_all_summaries()[0]] == [True]
    assert not list(archive.glob(".incoming-*"))


def test_late_recoverer_leaves_a_run_to_its_living_owner(
    template: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process sees the dead owner, another takes the run over, the first goes on and ends, a third comes."""
    store = leave_dead_run(archive, template)
    imports = "import sys; from pathlib import Path; from sonde.store import archive, owner\n"
    recover = "print(len(archive.Archive(Path(sys.argv[1])).recover_unfinished_runs()), flush=True)\n"
    wait = "check = owner.may_have_live_writer\n"
    wait += "owner.may_have_live_writer = lambda folder: (check(folder), print(flush=True), sys.stdin.readline())[0]\n"
    late = subprocess.Popen(
        [sys.executable, "-c", imports + wait + recover, str(archive)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert late.stdout is not None
    late.stdout.readline()
    others: list[str] = []
    original = ConfinedDirectory.write_json_file

    def let_others_come(directory: ConfinedDirectory, file_name: str, document: Any) -> None:
        if file_name == "run.json" and not others:
            others.append(late.communicate("\n")[0].strip())
            third = [sys.executable, "-c", imports + recover, str(archive)]
            others.append(subprocess.run(third, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
        original(directory, file_name, document)

    monkeypatch.setattr(ConfinedDirectory, "write_json_file", let_others_come)
    recovered = store.recover_unfinished_runs()
    assert others == ["0", "0"]
    assert [read_all_files(folder) for folder in recovered] == [True]
    assert not list(archive.glob(".incoming-*"))


def test_run_that_another_process_published_is_no_error(
    template: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Archive(archive)
    draft = store.begin_run("killed", json.dumps(PLAN), {"plan": {"id": "killed", "title": ""}, "target": "/x"})
    (draft.folder / "record.ndjson").write_bytes(template.read_bytes())
    original = ConfinedDirectory.fsync_directory

    def after_another(directory: ConfinedDirectory) -> None:
        if directory.path == draft.folder and not directory.has_entry("owner.json"):
            monkeypatch.setattr(ConfinedDirectory, "fsync_directory", original)
            assert len(Archive(archive).recover_unfinished_runs()) == 1
        original(directory)

    monkeypatch.setattr(ConfinedDirectory, "fsync_directory", after_another)
    folder = store.commit_run(draft, read_record(draft.folder / "record.ndjson"), 0, "")
    assert read_all_files(folder)


def test_a_removal_that_was_killed_is_finished(template: Path, archive: Path) -> None:
    store = Archive(archive)
    draft = store.begin_run("killed", json.dumps(PLAN), {"plan": {"id": "killed", "title": ""}})
    (draft.folder / "record.ndjson").write_bytes(template.read_bytes())
    folder = store.commit_run(draft, read_record(draft.folder / "record.ndjson"), 0, "")
    folder.rename(archive / f".removed-{folder.name}-ab")
    assert store.read_all_summaries() == ([], [])
    store.recover_unfinished_runs()
    assert not list(archive.glob(".removed-*"))
