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
from sonde.model.confined_files import ConfinedDirectory, is_owned_by_user_or_root, is_partial_file_name
from sonde.model.errors import MachineError, RecordError
from sonde.model.history_key import read_site_facts
from sonde.model.record import RECORD_FILE, RecordReader, merge_stage_records, read_record_from_open_file
from sonde.model.units import format_count_with_noun
from sonde.store import owner, tables
from sonde.store.shards import (
    format_month_folder,
    list_shard_contents,
    locate_run_folder,
    locate_shard_folder,
    read_shard_stamps,
)
from sonde.store.summary import PLAN_FILE, SUMMARY_FILE, Summary, build_summary_document, read_summary

ARCHIVE_VARIABLE = "SONDE_ARCHIVE"
DEFAULT_ARCHIVE = "sonde-archive"
RECORD, REPORT_FILE = RECORD_FILE, "report.html"
MESSAGES_FILE = "messages.txt"  # what the engine printed
JOB_VARIABLE = "SONDE_JOB"  # set in what `sonde submit` submits
JOB_END_VARIABLE = "SONDE_JOB_END"  # likewise: when the job ends, seconds since 1970-01-01 UTC
_FACTS_FILE = ".facts.json"
IMPORTING_PREFIX = ".importing-"
_INCOMING_PREFIX, _REMOVED_PREFIX = ".incoming-", ".removed-"
_STAGE_FILE_PATTERN = re.compile(r"stage-.*\.ndjson")


def make_run_id(run_name: str) -> str:
    """An id that sorts by time: 20261121T204501Z-quick-ab12cd34.

    32 random bits: among a thousand runs that begin in one second two have the same name once in ten thousand times.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", run_name).strip("-.")[:40] or "run"
    return f"{stamp}-{plain}-{secrets.token_hex(4)}"


def read_own_job() -> dict[str, str]:
    """The batch job that this run is part of, if it is."""
    name = os.environ.get(JOB_VARIABLE)
    return {"job": name} if name else {}


def read_end_time_of_own_job() -> float | None:
    """When the batch job ends that this process is part of, seconds since 1970-01-01 UTC; None outside of one."""
    try:
        return float(os.environ[JOB_END_VARIABLE])
    except (KeyError, ValueError):
        return None


@dataclass(frozen=True)
class RunDraft:
    """A run that is being written. `Archive.commit_run` makes it part of the archive."""

    id: str
    folder: Path
    facts: Mapping[str, Any]

    @property
    def plan_file(self) -> Path:
        return self.folder / PLAN_FILE

    def record_writer_processes(self, *process_ids: int) -> None:
        """Records the processes that write the run, so that no other program recovers the run while they live."""
        with ConfinedDirectory.open_beneath(self.folder.parent, self.folder) as directory:
            owner.record_writers_of_directory(directory, [os.getpid(), *process_ids])


class Archive:
    """A folder of runs. Nothing is created before the first run is."""

    def __init__(self, archive_root: Path, report_problem: Callable[[str], None] = lambda sentence: None) -> None:
        """`report_problem` receives a sentence about unfinished runs of other users, which are not changed."""
        self.root = archive_root
        self.report = report_problem

    @classmethod
    def from_option(
        cls, archive_option: str | None, report_problem: Callable[[str], None] = lambda sentence: None
    ) -> Archive:
        """`archive_option`, else $SONDE_ARCHIVE, else `archive` of the configuration files, else ./sonde-archive."""
        name = archive_option or os.environ.get(ARCHIVE_VARIABLE) or find_archive_setting() or DEFAULT_ARCHIVE
        return cls(Path(name).expanduser(), report_problem)

    def begin_run(self, run_name: str, plan_text: str, run_facts: Mapping[str, Any]) -> RunDraft:
        """Opens a new run. `run_facts` go into run.json; the plan is written as the engine will read it."""
        run_id = make_run_id(run_name)
        folder = self.root / f"{_INCOMING_PREFIX}{run_id}"
        started = datetime.now(UTC).isoformat(timespec="seconds")
        complete = {"id": run_id, "started": started, "site": read_site_facts(), **read_own_job(), **run_facts}
        try:
            with (
                ConfinedDirectory.open(self.root, create_if_absent=True) as root,
                root.create_directory(folder.name) as directory,
            ):
                directory.write_json_file(_FACTS_FILE, complete)
                directory.write_text(PLAN_FILE, plan_text)
                owner.record_writers_of_directory(directory, [os.getpid()])
        except OSError as reason:
            raise MachineError(
                f"The archive {self.root} cannot be written: {reason.strerror}; name another with --archive DIR."
            ) from None
        return RunDraft(run_id, folder, complete)

    def commit_run(self, draft: RunDraft, reader: RecordReader, exit_code: int | None, stderr_text: str) -> Path:
        """Completes a run and makes it visible. Returns its folder."""
        try:
            with self._open_root() as root, root.open_subdirectory(draft.folder.name) as directory:
                self._complete_run(root, directory, draft, reader, exit_code, stderr_text)
        except OSError as reason:
            raise MachineError(
                f"The run could not be added to the archive: {reason.strerror}; what there is of it is in"
                f" {draft.folder}."
            ) from None
        return locate_run_folder(self.root, draft.id)

    def _open_root(self) -> ConfinedDirectory:
        return ConfinedDirectory.open(self.root)

    def _complete_run(
        self,
        archive_directory: ConfinedDirectory,
        run_directory: ConfinedDirectory,
        draft: RunDraft,
        reader: RecordReader,
        exit_code: int | None,
        stderr_text: str,
    ) -> bool:
        """Does the work of `commit_run`; false when somebody else found the run complete and made it visible first.
        Raises OSError."""
        tables.write_tables(run_directory, draft.id, reader, draft.facts)
        if run_directory.has_file(MESSAGES_FILE) and run_directory.stat_entry(MESSAGES_FILE).st_size == 0:
            run_directory.remove_file(MESSAGES_FILE)
        for name in run_directory.list_names():
            if is_partial_file_name(name):
                run_directory.remove_file(name, missing_ok=True)
            elif run_directory.has_file(name):
                run_directory.fsync_file(name)
        run_directory.write_json_file(
            SUMMARY_FILE, build_summary_document(reader, draft.facts, exit_code, stderr_text, run_directory.path)
        )
        # From here on the run is complete: whoever finds it without an owner may make it visible.
        for name in (_FACTS_FILE, owner.OWNER_FILE):
            run_directory.remove_file(name, missing_ok=True)
        run_directory.fsync_directory()
        return self._make_run_visible(archive_directory, run_directory, draft.id)

    def publish_run(self, run_folder: Path, run_id: str) -> Path:
        """Makes a complete folder visible as a run, and durable. Raises OSError if a run of that id exists."""
        with self._open_root() as root, root.open_subdirectory(run_folder.name) as directory:
            self._make_run_visible(root, directory, run_id)
        return locate_run_folder(self.root, run_id)

    def _make_run_visible(
        self, archive_directory: ConfinedDirectory, run_directory: ConfinedDirectory, run_id: str
    ) -> bool:
        """Does the work of `publish_run`; false when somebody found the folder complete and was faster."""
        with archive_directory.open_subdirectory(format_month_folder(run_id), create_if_absent=True) as month:
            first = True
            run_directory.apply_umask_permissions()
            try:
                archive_directory.rename_entry(run_directory.path.name, month, run_id)
            except FileNotFoundError:
                with month.open_subdirectory(run_id) as run:
                    if not run.has_file(SUMMARY_FILE):
                        raise
                first = False
            month.fsync_directory()
            archive_directory.fsync_directory()
        return first

    def remove_run(self, run_folder: Path) -> None:
        """Takes a run out of the archive: it disappears at once, then its files go."""
        aside = f"{_REMOVED_PREFIX}{run_folder.name}-{secrets.token_hex(2)}"
        try:
            with self._open_root() as root, ConfinedDirectory.open_beneath(self.root, run_folder.parent) as parent:
                parent.open_subdirectory(run_folder.name).close()  # refuses a link
                parent.rename_entry(run_folder.name, root, aside)
                root.remove_tree(aside, files_removed_last=(SUMMARY_FILE,))
        except FileNotFoundError:
            return  # somebody else has removed it at the same time
        except (OSError, ValueError) as reason:
            why = reason.strerror if isinstance(reason, OSError) else "it is not in the archive"
            raise MachineError(f"The run {run_folder} cannot be removed: {why}.") from None

    def discard_run(self, draft: RunDraft) -> None:
        """Forgets a run that never began (its engine wrote no record)."""
        with self._open_root() as root:
            root.remove_tree(draft.folder.name)

    def recover_unfinished_runs(self) -> list[Path]:
        """Finishes what processes left that died: runs that were written, and removals and imports that were under way.
        Keeps the data of these runs; their status is "lost" unless their writer recorded another one. Returns the
        folders of the runs that this call brought in, and nobody else's.

        Only runs that belong to the caller or to root are completed. Runs of other users are not changed, but reported.
        """
        recovered: list[Path] = []
        foreign = 0
        with suppress(OSError), self._open_root() as root:
            for name in root.list_names():
                if not name.startswith((_INCOMING_PREFIX, _REMOVED_PREFIX, IMPORTING_PREFIX)):
                    continue
                # Somebody else recovers it, or nobody may: it stays where it is.
                with suppress(OSError, MachineError), root.open_subdirectory(name) as directory:
                    if not is_owned_by_user_or_root(directory.stat_directory()):
                        foreign += not owner.has_changed_recently(directory)
                    elif name.startswith(_INCOMING_PREFIX):
                        recovered += self._recover_run(root, directory, name)
                    else:
                        _finish_removal(root, directory, name)
        if foreign:
            self.report(
                f"The archive {self.root} has {format_count_with_noun(foreign, 'unfinished run')} of other users, "
                "which were left"
                " alone; a command of their owner finishes them."
            )
        return recovered

    def _recover_run(
        self, archive_directory: ConfinedDirectory, draft_directory: ConfinedDirectory, folder_name: str
    ) -> list[Path]:
        run_id = parse_run_id(folder_name)
        if draft_directory.has_file(SUMMARY_FILE, trusted_only=True) and not draft_directory.has_entry(
            owner.OWNER_FILE
        ):
            return (
                [locate_run_folder(self.root, run_id)]
                if self._make_run_visible(archive_directory, draft_directory, run_id)
                else []
            )
        if owner.may_have_live_writer(draft_directory) or not _is_run_directory_of_caller(
            archive_directory, draft_directory, (_FACTS_FILE, owner.OWNER_FILE)
        ):
            return []
        with self._claim_dead_run(archive_directory, draft_directory, folder_name) as ours:
            return self._recover_incoming_run(archive_directory, ours, run_id)

    def _claim_dead_run(
        self, archive_directory: ConfinedDirectory, draft_directory: ConfinedDirectory, folder_name: str
    ) -> ConfinedDirectory:
        """If several processes recover the same dead run, the one whose rename succeeds gets it. Its new name says who
        has it, so nobody takes it from a living process."""
        new_name = f"{_INCOMING_PREFIX}{parse_run_id(folder_name)}~{owner.format_claim()}"
        archive_directory.rename_entry(folder_name, archive_directory, new_name)
        ours = archive_directory.open_subdirectory(new_name)
        if not os.path.samestat(ours.stat_directory(), draft_directory.stat_directory()):
            ours.close()
            raise FileNotFoundError(folder_name)  # another user put another directory there
        return ours

    def _recover_incoming_run(
        self, archive_directory: ConfinedDirectory, incoming_directory: ConfinedDirectory, run_id: str
    ) -> list[Path]:
        stages = [name for name in incoming_directory.list_names() if _STAGE_FILE_PATTERN.fullmatch(name)]
        if stages and not incoming_directory.has_entry(RECORD):
            records = []
            for name in stages:
                with incoming_directory.open_file(name, trusted_only=True) as file:
                    records.append(file.read())
            incoming_directory.write_bytes(RECORD, merge_stage_records(records, [0.0] * len(records)))
        facts = incoming_directory.read_json_file(_FACTS_FILE, trusted_only=True)
        draft = RunDraft(run_id, incoming_directory.path, facts or {"id": run_id})
        if not incoming_directory.has_entry(RECORD):
            archive_directory.remove_tree(incoming_directory.path.name, files_removed_last=(owner.OWNER_FILE,))
            return []
        with incoming_directory.open_file(RECORD, trusted_only=True) as file:
            reader = read_record_from_open_file(file)
        code = reader.end.exit_code if reader.end else None
        text = reader.end.text if reader.end else "The run was lost: its processes were killed before it ended."
        # Its writer died between the summary and the end.
        if summary := incoming_directory.read_json_file(SUMMARY_FILE, trusted_only=True):
            draft = replace(draft, facts=summary)
            code, text = summary.get("exit_code", code), str(summary.get("text") or text)
        completed = self._complete_run(archive_directory, incoming_directory, draft, reader, code, text)
        return [locate_run_folder(self.root, run_id)] if completed else []

    def list_unfinished_runs_of_group(self, run_group: str) -> list[Path]:
        """Runs of a group that processes of this machine are still writing: engines whose runner was killed."""
        folders = []
        with suppress(OSError), self._open_root() as root:
            for name in root.list_names():
                if name.startswith(_INCOMING_PREFIX):
                    with suppress(OSError), root.open_subdirectory(name) as directory:
                        facts = directory.read_json_file(_FACTS_FILE, trusted_only=True) or {}
                        if facts.get("group") == run_group and owner.has_live_writer_here(directory):
                            folders.append(self.root / name)
        return folders

    def read_all_summaries(self) -> tuple[list[Summary], list[str]]:
        """All runs, oldest first, and one sentence for each folder that is not one. Reads every run.json; for many runs
        use a `Catalog`."""
        summaries, complaints = [], []
        for folder in sorted(self.iterate_run_folders(), key=lambda run: run.name):
            try:
                summaries.append(read_summary(folder))
            except RecordError as reason:
                complaints.append(f"{folder} {reason}; it was skipped.")
        return summaries, complaints

    def iterate_run_folders(self) -> Iterator[Path]:
        """Everything that may be a run."""
        try:
            for shard in read_shard_stamps(self.root):
                for name in list_shard_contents(self.root, shard).changed_ns:
                    yield locate_shard_folder(self.root, shard) / name
        except FileNotFoundError:
            return
        except OSError as reason:
            raise MachineError(f"The archive {self.root} cannot be read: {reason.strerror}.") from None

    def find_run_folders(self, run_reference: str, includes_calibrations: bool = False) -> list[Path]:
        """Folders of what `run_reference` means: a path, a run, a group of runs, a unique beginning of either, or
        "last". Calibrations of a group are omitted unless they are requested."""
        as_path = Path(run_reference).expanduser()
        if (as_path / RECORD).is_file() or (as_path / SUMMARY_FILE).is_file():
            return [as_path]
        folder = locate_run_folder(self.root, run_reference)
        if re.fullmatch(r"[\w.-]+", run_reference) and (folder / SUMMARY_FILE).is_file():
            return [folder]
        from sonde.store.names import find_run_folders_by_name

        return find_run_folders_by_name(self.root, run_reference, includes_calibrations)


def parse_run_id(folder_name: str) -> str:
    return folder_name.removeprefix(_INCOMING_PREFIX).partition("~")[0]


def _is_run_directory_of_caller(
    archive_directory: ConfinedDirectory, parent_directory: ConfinedDirectory, mark_files: Collection[str]
) -> bool:
    """Whether Sonde made a directory of the caller in the archive: it holds one of the files `mark_files`, or is empty.

    Where others may rename entries of the archive, another user may have moved any directory of the caller there.
    """
    return (
        archive_directory.is_protected_from_others()
        or any(parent_directory.has_file(name, trusted_only=True) for name in mark_files)
        or not parent_directory.list_names()
    )


def _finish_removal(
    archive_directory: ConfinedDirectory, parent_directory: ConfinedDirectory, folder_name: str
) -> None:
    """Finishes the removal of a run whose remover died, and removes partial runs of a dead import; the next import adds
    those again."""
    last = SUMMARY_FILE if folder_name.startswith(_REMOVED_PREFIX) else owner.OWNER_FILE
    if folder_name.startswith(IMPORTING_PREFIX) and owner.may_have_live_writer(parent_directory):
        return
    if _is_run_directory_of_caller(archive_directory, parent_directory, (last,)):
        archive_directory.remove_tree(folder_name, files_removed_last=(last,))
