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
from sonde.store.archive import IMPORTING, Archive
from sonde.store.shards import place_of
from sonde.store.summary import NAME as SUMMARY
from sonde.store.summary import SCHEMA

_BATCH = 500
Step = Callable[[int], None]


@dataclass
class Added:
    """What came of an import."""

    folders: list[Path] = field(default_factory=list)
    duplicates: int = 0  # results that were there already


def add_imported(
    archive: Archive, runs: Iterable[ImportedRun], source: Mapping[str, str], original: Path | None, step: Step
) -> Added:
    """Adds the runs that are not there yet. `source` says where they come from; `original` is kept with each."""
    added = Added()
    batch: list[ImportedRun] = []
    run_ids: set[str] = set()
    done = 0
    try:
        for run in runs:
            done += 1
            run_id = run.id()
            if run_id in run_ids or place_of(archive.root, run_id).exists():
                added.duplicates += 1
            else:
                run_ids.add(run_id)
                batch.append(run)
            if len(batch) == _BATCH:
                added.folders += _publish_runs(archive, batch, source, original)
                batch = []
                step(done)
        added.folders += _publish_runs(archive, batch, source, original)
        step(done)
    except OSError as reason:
        raise MachineError(
            f"The archive {archive.root} cannot be written: {reason.strerror}; {len(added.folders):,} runs are in it."
        ) from None
    return added


def _publish_runs(
    archive: Archive, batch: Sequence[ImportedRun], source: Mapping[str, str], original: Path | None
) -> list[Path]:
    """Writes the runs aside, brings them to storage, and makes them visible one by one."""
    if not batch:
        return []
    # One folder with an owner holds all of them: when we are killed it is found by its name and taken away.
    aside = f"{IMPORTING}{secrets.token_hex(6)}"
    with ConfinedDirectory.open(archive.root, create=True) as root, root.create_directory(aside) as directory:
        try:
            owner.claim(directory, [os.getpid()])
            for run in batch:
                with directory.create_directory(run.id()) as folder:
                    with folder.create_file(SUMMARY) as file:
                        file.write(format_json_file(_make_summary(run, source)).encode())
                    if original is not None:
                        with (
                            original.open("rb") as content,
                            folder.create_file(f"original{original.suffix or '.txt'}") as file,
                        ):
                            shutil.copyfileobj(content, file, 1 << 20)
            _sync_file_system(directory)
            return [_move_run_to_month(root, directory, run.id(), place_of(archive.root, run.id())) for run in batch]
        finally:
            with suppress(OSError):
                root.remove_tree(aside, last=(owner.NAME,))


def _move_run_to_month(root: ConfinedDirectory, aside: ConfinedDirectory, run_id: str, final: Path) -> Path:
    with root.enter(final.parent.name, create=True) as month, aside.enter(run_id) as folder:
        folder.share()
        try:
            aside.rename(run_id, month, final.name)
        except OSError:
            with month.enter(final.name) as run:
                if not run.has_file(SUMMARY):  # else somebody imported the same at the same time
                    raise
    return final


def _sync_file_system(directory: ConfinedDirectory) -> None:
    """All that was written to the file system of the directory is on storage: one call instead of one a file."""
    if ctypes.CDLL(None, use_errno=True).syncfs(directory.descriptor) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _make_summary(run: ImportedRun, source: Mapping[str, str]) -> dict[str, Any]:
    """The run.json of an imported run: that of a measurement, with `source` and without a record."""
    return {
        "schema": SCHEMA,
        "id": run.id(),
        "source": {"tool": run.tool, **source},
        "started": run.started.astimezone(UTC).isoformat(),
        "plan": {"id": run.name, "title": run.title or run.name},
        "target": run.target,
        "file_system": run.file_system,
        "host": run.host,
        "role": "run",
        "group": run.group,
        "status": run.status,
        "text": run.text,
        "seconds": run.seconds,
        "tasks": run.tasks,
        "nodes": run.nodes,
        "command": run.command,
        "history": {"version": HASH_VERSION, **run.key()},
        "experiment": dict(run.experiment),
        "context": dict(run.context),
        "phases": [_phase_to_json(phase) for phase in run.phases],
        "findings": [dict(finding) for finding in run.findings],
    }


def _phase_to_json(phase: ImportedPhase) -> dict[str, Any]:
    return {
        "phase": phase.phase,
        "op": phase.op,
        "backend": phase.backend,
        "cache": phase.cache,
        "measured": True,
        "done": phase.done,
        "bytes": phase.bytes,
        "ops": phase.ops,
        "seconds": phase.seconds,
        "bytes_per_s": phase.bytes_per_s,
        "ops_per_s": phase.ops_per_s,
        "definition": phase.definition,
        "findings": [],
        "also": dict(phase.also),
    }
