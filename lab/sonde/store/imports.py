# SPDX-License-Identifier: Apache-2.0
"""Results of other tools as runs of the archive, thousands at a time.

Each becomes a folder with run.json and, where there is one, the original file. They appear in batches: all of a batch
are on storage before the first is visible, so neither a kill nor a crash leaves half a run.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

from sonde.model.confined_files import ConfinedDirectory, format_json_file
from sonde.model.errors import MachineError
from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.model.plan_hash import HASH_VERSION
from sonde.store import owner
from sonde.store.archive import IMPORTING_PREFIX, Archive
from sonde.store.shards import locate_run_folder
from sonde.store.summary import RUN_FORMAT, SUMMARY_FILE

_RUNS_PER_BATCH = 500
CountCallback = Callable[[int], None]


@dataclass
class AddedRuns:
    """Run folders that an import added, and the number of duplicates."""

    folders: list[Path] = field(default_factory=list)
    duplicates: int = 0  # results that were there already


def add_imported_runs(
    archive: Archive,
    imported_runs: Iterable[ImportedRun],
    source_facts: Mapping[str, str],
    original_file: Path | None,
    on_progress: CountCallback,
) -> AddedRuns:
    """Adds the runs that are not there yet. `source_facts` describes their origin; `original_file` is stored with each
    run."""
    added = AddedRuns()
    batch: list[ImportedRun] = []
    run_ids: set[str] = set()
    done = 0
    try:
        for run in imported_runs:
            done += 1
            run_id = run.make_run_id()
            if run_id in run_ids or locate_run_folder(archive.root, run_id).exists():
                added.duplicates += 1
            else:
                run_ids.add(run_id)
                batch.append(run)
            if len(batch) == _RUNS_PER_BATCH:
                added.folders += _publish_runs(archive, batch, source_facts, original_file)
                batch = []
                on_progress(done)
        added.folders += _publish_runs(archive, batch, source_facts, original_file)
        on_progress(done)
    except OSError as reason:
        raise MachineError(
            f"The archive {archive.root} cannot be written: {reason.strerror}; {len(added.folders):,} runs are in it."
        ) from None
    return added


def _publish_runs(
    archive: Archive, imported_runs: Sequence[ImportedRun], source_facts: Mapping[str, str], original_file: Path | None
) -> list[Path]:
    """Writes the runs aside, brings them to storage, and makes them visible one by one."""
    if not imported_runs:
        return []
    # One folder with an owner holds all of them: when we are killed it is found by its name and taken away.
    aside = f"{IMPORTING_PREFIX}{secrets.token_hex(6)}"
    with ConfinedDirectory.open(archive.root, create_if_absent=True) as root, root.create_directory(aside) as directory:
        try:
            owner.record_writers_of_directory(directory, [os.getpid()])
            for run in imported_runs:
                with directory.create_directory(run.make_run_id()) as folder:
                    with folder.create_file(SUMMARY_FILE) as file:
                        file.write(format_json_file(_make_summary_of_imported_run(run, source_facts)).encode())
                    if original_file is not None:
                        with (
                            original_file.open("rb") as content,
                            folder.create_file(f"original{original_file.suffix or '.txt'}") as file,
                        ):
                            shutil.copyfileobj(content, file, 1 << 20)
            _sync_file_system(directory)
            return [
                _move_run_to_month(
                    root, directory, run.make_run_id(), locate_run_folder(archive.root, run.make_run_id())
                )
                for run in imported_runs
            ]
        finally:
            with suppress(OSError):
                root.remove_tree(aside, files_removed_last=(owner.OWNER_FILE,))


def _move_run_to_month(
    archive_directory: ConfinedDirectory, staging_directory: ConfinedDirectory, run_id: str, final_folder: Path
) -> Path:
    with (
        archive_directory.open_subdirectory(final_folder.parent.name, create_if_absent=True) as month,
        staging_directory.open_subdirectory(run_id) as folder,
    ):
        folder.apply_umask_permissions()
        try:
            staging_directory.rename_entry(run_id, month, final_folder.name)
        except OSError:
            with month.open_subdirectory(final_folder.name) as run:
                if not run.has_file(SUMMARY_FILE):  # else somebody imported the same at the same time
                    raise
    return final_folder


def _sync_file_system(directory: ConfinedDirectory) -> None:
    """Flushes the file system of the directory to storage, with one call instead of one per file."""
    if ctypes.CDLL(None, use_errno=True).syncfs(directory.descriptor) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _make_summary_of_imported_run(imported_run: ImportedRun, source_facts: Mapping[str, str]) -> dict[str, Any]:
    """The run.json of an imported run: that of a measurement, with `source_facts` and without a record."""
    return {
        "schema": RUN_FORMAT,
        "id": imported_run.make_run_id(),
        "source": {"tool": imported_run.tool, **source_facts},
        "started": imported_run.started.astimezone(UTC).isoformat(),
        "plan": {"id": imported_run.name, "title": imported_run.title or imported_run.name},
        "target": imported_run.target,
        "file_system": imported_run.file_system,
        "host": imported_run.host,
        "role": "run",
        "group": imported_run.group,
        "status": imported_run.status,
        "text": imported_run.text,
        "seconds": imported_run.seconds,
        "tasks": imported_run.tasks,
        "nodes": imported_run.nodes,
        "command": imported_run.command,
        "history": {"version": HASH_VERSION, **imported_run.make_history_key_of_all_phases()},
        "experiment": dict(imported_run.experiment),
        "context": dict(imported_run.context),
        "phases": [_convert_imported_phase_to_json(phase) for phase in imported_run.phases],
        "findings": [dict(finding) for finding in imported_run.findings],
    }


def _convert_imported_phase_to_json(imported_phase: ImportedPhase) -> dict[str, Any]:
    return {
        "phase": imported_phase.phase,
        "op": imported_phase.op,
        "backend": imported_phase.backend,
        "cache": imported_phase.cache,
        "measured": True,
        "done": imported_phase.done,
        "bytes": imported_phase.bytes,
        "ops": imported_phase.ops,
        "seconds": imported_phase.seconds,
        "bytes_per_s": imported_phase.bytes_per_s,
        "ops_per_s": imported_phase.ops_per_s,
        "definition": imported_phase.definition,
        "findings": [],
        "also": dict(imported_phase.also),
    }
