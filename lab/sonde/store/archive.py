# SPDX-License-Identifier: Apache-2.0
"""The folder of runs.

::

    sonde-archive/
    ├── 2026-11/                         the runs of a month
    │   └── 20261121T204501Z-quick-ab12cd34/ one run: record.ndjson plan.json run.json *.parquet report.html
    ├── reports/                         reports over several runs
    ├── jobs/                            what was submitted to a scheduler
    ├── experiments/GROUP/               an experiment that was run: what was asked, and what was not run and why
    ├── .index/                          a cache of all run.json; may be deleted at any time
    ├── .incoming-20261121T210000Z-…/    a run that is being written, or was when its writer died
    ├── .importing-…/                    results of other tools that are being brought in
    └── .removed-20261121T204501Z-…/     a run that is being removed, or was when its remover died
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sonde.model.configuration import find_archive_setting
from sonde.model.confined_files import ConfinedDirectory, is_part, is_trusted
from sonde.model.errors import MachineError, RecordError
from sonde.model.history_key import read_site_facts
from sonde.model.record import RECORD_FILE, RecordReader, merge_stage_records, read_record_from
from sonde.model.units import counted
from sonde.store import owner, tables
from sonde.store.shards import list_shard, locate_shard, name_month_folder, place_of, read_shard_stamps
from sonde.store.summary import NAME as SUMMARY
from sonde.store.summary import PLAN, Summary, read_summary, summarize

VARIABLE = "SONDE_ARCHIVE"
DEFAULT = "sonde-archive"
RECORD, REPORT = RECORD_FILE, "report.html"
MESSAGES = "messages.txt"  # what the engine printed
JOB = "SONDE_JOB"  # set in what `sonde submit` submits
JOB_END = "SONDE_JOB_END"  # likewise: when the job ends, seconds since 1970-01-01 UTC
_FACTS = ".facts.json"
IMPORTING = ".importing-"
_INCOMING, _REMOVED = ".incoming-", ".removed-"
_STAGE = re.compile(r"stage-.*\.ndjson")


def make_run_id(name: str) -> str:
    """An id that sorts by time: 20261121T204501Z-quick-ab12cd34.

    32 random bits: among a thousand runs that begin in one second two have the same name once in ten thousand times.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:40] or "run"
    return f"{stamp}-{plain}-{secrets.token_hex(4)}"


def read_own_job() -> dict[str, str]:
    """The batch job that this run is part of, if it is."""
    name = os.environ.get(JOB)
    return {"job": name} if name else {}


def find_end_of_own_job() -> float | None:
    """When the batch job ends that this process is part of, seconds since 1970-01-01 UTC; None outside of one."""
    try:
        return float(os.environ[JOB_END])
    except (KeyError, ValueError):
        return None


@dataclass(frozen=True)
class Draft:
    """A run that is being written. `commit` makes it part of the archive."""

    id: str
    folder: Path
    facts: Mapping[str, Any]

    @property
    def plan_file(self) -> Path:
        return self.folder / PLAN

    def claim(self, *pids: int) -> None:
        """Says which processes are at work, so that nobody finishes the run while they are."""
        with ConfinedDirectory.beneath(self.folder.parent, self.folder) as directory:
            owner.claim(directory, [os.getpid(), *pids])


class Archive:
    """A folder of runs. Nothing is created before the first run is."""

    def __init__(self, root: Path, report: Callable[[str], None] = lambda sentence: None) -> None:
        """`report` gets a sentence about unfinished runs of other users, which are left alone."""
        self.root = root
        self.report = report

    @classmethod
    def from_option(cls, option: str | None, report: Callable[[str], None] = lambda sentence: None) -> Archive:
        """`option`, else $SONDE_ARCHIVE, else `archive` of the configuration files, else ./sonde-archive."""
        name = option or os.environ.get(VARIABLE) or find_archive_setting() or DEFAULT
        return cls(Path(name).expanduser(), report)

    def begin(self, name: str, plan_text: str, facts: Mapping[str, Any]) -> Draft:
        """Opens a new run. `facts` go into run.json; the plan is written as the engine will read it."""
        run_id = make_run_id(name)
        folder = self.root / f"{_INCOMING}{run_id}"
        started = datetime.now(UTC).isoformat(timespec="seconds")
        complete = {"id": run_id, "started": started, "site": read_site_facts(), **read_own_job(), **facts}
        try:
            with (
                ConfinedDirectory.open(self.root, create=True) as root,
                root.create_directory(folder.name) as directory,
            ):
                directory.write_json(_FACTS, complete)
                directory.write_text(PLAN, plan_text)
                owner.claim(directory, [os.getpid()])
        except OSError as reason:
            raise MachineError(
                f"The archive {self.root} cannot be written: {reason.strerror}; name another with --archive DIR."
            ) from None
        return Draft(run_id, folder, complete)

    def commit(self, draft: Draft, reader: RecordReader, exit_code: int | None, text: str) -> Path:
        """Completes a run and makes it visible. Returns its folder."""
        try:
            with self._open_root() as root, root.enter(draft.folder.name) as directory:
                self._complete_run(root, directory, draft, reader, exit_code, text)
        except OSError as reason:
            raise MachineError(
                f"The run could not be added to the archive: {reason.strerror}; what there is of it is in"
                f" {draft.folder}."
            ) from None
        return place_of(self.root, draft.id)

    def _open_root(self) -> ConfinedDirectory:
        return ConfinedDirectory.open(self.root)

    def _complete_run(
        self,
        root: ConfinedDirectory,
        directory: ConfinedDirectory,
        draft: Draft,
        reader: RecordReader,
        exit_code: int | None,
        text: str,
    ) -> bool:
        """`commit`; false when somebody else found the run complete and made it visible first. Raises OSError."""
        tables.write_tables(directory, draft.id, reader, draft.facts)
        if directory.has_file(MESSAGES) and directory.read_status_of(MESSAGES).st_size == 0:
            directory.remove_file(MESSAGES)
        for name in directory.names():
            if is_part(name):
                directory.remove_file(name, missing_ok=True)
            elif directory.has_file(name):
                directory.sync_file(name)
        directory.write_json(SUMMARY, summarize(reader, draft.facts, exit_code, text, directory.path))
        # From here on the run is complete: whoever finds it without an owner may make it visible.
        for name in (_FACTS, owner.NAME):
            directory.remove_file(name, missing_ok=True)
        directory.sync()
        return self._make_visible(root, directory, draft.id)

    def publish(self, folder: Path, run_id: str) -> Path:
        """Makes a complete folder visible as a run, and durable. Raises OSError when a run of that id is there."""
        with self._open_root() as root, root.enter(folder.name) as directory:
            self._make_visible(root, directory, run_id)
        return place_of(self.root, run_id)

    def _make_visible(self, root: ConfinedDirectory, directory: ConfinedDirectory, run_id: str) -> bool:
        """`publish`; false when somebody found the folder complete and was faster."""
        with root.enter(name_month_folder(run_id), create=True) as month:
            first = True
            directory.share()
            try:
                root.rename(directory.path.name, month, run_id)
            except FileNotFoundError:
                with month.enter(run_id) as run:
                    if not run.has_file(SUMMARY):
                        raise
                first = False
            month.sync()
            root.sync()
        return first

    def remove(self, folder: Path) -> None:
        """Takes a run out of the archive: it disappears at once, then its files go."""
        aside = f"{_REMOVED}{folder.name}-{secrets.token_hex(2)}"
        try:
            with self._open_root() as root, ConfinedDirectory.beneath(self.root, folder.parent) as parent:
                parent.enter(folder.name).close()  # refuses a link
                parent.rename(folder.name, root, aside)
                root.remove_tree(aside, last=(SUMMARY,))
        except FileNotFoundError:
            return  # somebody else has removed it at the same time
        except (OSError, ValueError) as reason:
            why = reason.strerror if isinstance(reason, OSError) else "it is not in the archive"
            raise MachineError(f"The run {folder} cannot be removed: {why}.") from None

    def discard(self, draft: Draft) -> None:
        """Forgets a run that never began (its engine wrote no record)."""
        with self._open_root() as root:
            root.remove_tree(draft.folder.name)

    def recover(self) -> list[Path]:
        """Finishes what processes left that died: runs that were written, and removals and imports that were under way.
        What a run measured is kept; its status is "lost" or as its writer left it. Returns the folders of the runs that
        this call brought in, and nobody else's.

        Only what belongs to the caller or to root is finished. Runs of other users are left alone and reported.
        """
        recovered: list[Path] = []
        foreign = 0
        with suppress(OSError), self._open_root() as root:
            for name in root.names():
                if not name.startswith((_INCOMING, _REMOVED, IMPORTING)):
                    continue
                # Somebody else recovers it, or nobody may: it stays where it is.
                with suppress(OSError, MachineError), root.enter(name) as directory:
                    if not is_trusted(directory.status()):
                        foreign += not owner.is_recent(directory)
                    elif name.startswith(_INCOMING):
                        recovered += self._recover_run(root, directory, name)
                    else:
                        _finish_removal(root, directory, name)
        if foreign:
            self.report(
                f"The archive {self.root} has {counted(foreign, 'unfinished run')} of other users, which were left"
                " alone; a command of their owner finishes them."
            )
        return recovered

    def _recover_run(self, root: ConfinedDirectory, directory: ConfinedDirectory, name: str) -> list[Path]:
        run_id = parse_run_id(name)
        if directory.has_file(SUMMARY, trusted_only=True) and not directory.has(owner.NAME):
            return [place_of(self.root, run_id)] if self._make_visible(root, directory, run_id) else []
        if owner.may_have_live_writer(directory) or not _is_ours(root, directory, (_FACTS, owner.NAME)):
            return []
        with self._take_over(root, directory, name) as ours:
            return self._recover_incoming_run(root, ours, run_id)

    def _take_over(self, root: ConfinedDirectory, directory: ConfinedDirectory, name: str) -> ConfinedDirectory:
        """Of several that find the same dead run one gets it: the one whose rename succeeds. It is claimed before, too:
        under its new name it must never be seen with the dead owner, or somebody takes it over from us."""
        new_name = f"{_INCOMING}{parse_run_id(name)}~{secrets.token_hex(3)}"
        owner.claim(directory, [os.getpid()])
        root.rename(name, root, new_name)
        ours = root.enter(new_name)
        if not os.path.samestat(ours.status(), directory.status()):
            ours.close()
            raise FileNotFoundError(name)  # another user put another directory there
        owner.claim(ours, [os.getpid()])
        return ours

    def _recover_incoming_run(self, root: ConfinedDirectory, directory: ConfinedDirectory, run_id: str) -> list[Path]:
        stages = [name for name in directory.names() if _STAGE.fullmatch(name)]
        if stages and not directory.has(RECORD):
            records = []
            for name in stages:
                with directory.open_file(name, trusted_only=True) as file:
                    records.append(file.read())
            directory.write_bytes(RECORD, merge_stage_records(records, [0.0] * len(records)))
        facts = directory.read_json(_FACTS, trusted_only=True)
        draft = Draft(run_id, directory.path, facts or {"id": run_id})
        if not directory.has(RECORD):
            root.remove_tree(directory.path.name, last=(owner.NAME,))
            return []
        with directory.open_file(RECORD, trusted_only=True) as file:
            reader = read_record_from(file)
        code = reader.end.exit_code if reader.end else None
        text = reader.end.text if reader.end else "The run was lost: its processes were killed before it ended."
        # Its writer died between the summary and the end.
        if summary := directory.read_json(SUMMARY, trusted_only=True):
            draft = replace(draft, facts=summary)
            code, text = summary.get("exit_code", code), str(summary.get("text") or text)
        completed = self._complete_run(root, directory, draft, reader, code, text)
        return [place_of(self.root, run_id)] if completed else []

    def list_runs_under_way(self, group: str) -> list[Path]:
        """Runs of a group that processes of this machine are still writing: engines whose runner was killed."""
        folders = []
        with suppress(OSError), self._open_root() as root:
            for name in root.names():
                if name.startswith(_INCOMING):
                    with suppress(OSError), root.enter(name) as directory:
                        facts = directory.read_json(_FACTS, trusted_only=True) or {}
                        if facts.get("group") == group and owner.has_live_writer_here(directory):
                            folders.append(self.root / name)
        return folders

    def runs(self) -> tuple[list[Summary], list[str]]:
        """All runs, oldest first, and one sentence for each folder that is not one. Reads every run.json: where there
        may be many, ask a `Catalog`."""
        summaries, complaints = [], []
        for folder in sorted(self.folders(), key=lambda run: run.name):
            try:
                summaries.append(read_summary(folder))
            except RecordError as reason:
                complaints.append(f"{folder} {reason}; it was skipped.")
        return summaries, complaints

    def folders(self) -> Iterator[Path]:
        """Everything that may be a run."""
        try:
            for shard in read_shard_stamps(self.root):
                for name in list_shard(self.root, shard).changed_ns:
                    yield locate_shard(self.root, shard) / name
        except FileNotFoundError:
            return
        except OSError as reason:
            raise MachineError(f"The archive {self.root} cannot be read: {reason.strerror}.") from None

    def find(self, name: str, calibrations: bool = False) -> list[Path]:
        """Folders of what `name` means: a path, a run, a group of runs, a unique beginning of either, or "last". The
        calibrations of a group are left out unless they are asked for."""
        as_path = Path(name).expanduser()
        if (as_path / RECORD).is_file() or (as_path / SUMMARY).is_file():
            return [as_path]
        folder = place_of(self.root, name)
        if re.fullmatch(r"[\w.-]+", name) and (folder / SUMMARY).is_file():
            return [folder]
        from sonde.store.names import find_folders

        return find_folders(self.root, name, calibrations)


def parse_run_id(name: str) -> str:
    return name.removeprefix(_INCOMING).partition("~")[0]


def _is_ours(root: ConfinedDirectory, directory: ConfinedDirectory, marks: Collection[str]) -> bool:
    """Whether Sonde made a directory of the caller in the archive: it holds one of the files `marks`, or is empty.

    Where others may rename entries of the archive, another user may have moved any directory of the caller there.
    """
    return (
        root.is_protected_from_others()
        or any(directory.has_file(name, trusted_only=True) for name in marks)
        or not directory.names()
    )


def _finish_removal(root: ConfinedDirectory, directory: ConfinedDirectory, name: str) -> None:
    """Removes the rest of a run whose remover died, or what a dead import held: it comes again with the next import."""
    last = SUMMARY if name.startswith(_REMOVED) else owner.NAME
    if name.startswith(IMPORTING) and owner.may_have_live_writer(directory):
        return
    if _is_ours(root, directory, (last,)):
        root.remove_tree(name, last=(last,))
