# SPDX-License-Identifier: Apache-2.0
"""Stores the official result of IO500 as a run of the archive, so that its numbers have a history."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from sonde.model.history_key import compute_run_key, read_site_facts
from sonde.model.record import RecordReader
from sonde.sources.formats import read_result_file
from sonde.sources.import_defaults import ImportDefaults
from sonde.store.archive import Archive
from sonde.store.imports import add_imported_runs


def store_result_in_archive(
    archive: Archive, result_file: Path, target_directory: str, record: RecordReader
) -> Path | None:
    """Adds `result_file` (result.txt). `record`: of one of its phases, for the names of the system and the file system.
    Returns the folder of the run; None if the archive already has the same result. Raises UserError."""
    zone = datetime.now().astimezone().tzinfo
    (imported,) = read_result_file(result_file, ImportDefaults() if zone is None else ImportDefaults(zone=zone))
    if record.run is not None:
        key = compute_run_key(record.run, record.nodes, target_directory, read_site_facts())
        imported = replace(imported, system=key.system, file_system=key.file_system, node_class=key.node_class)
    imported = replace(
        imported,
        target=target_directory,
        host=record.nodes[0].host if record.nodes else "",
        nodes=record.run.nodes if record.run else None,
    )
    added = add_imported_runs(
        archive, [imported], {"file": result_file.name, "format": "IO500 result"}, result_file, lambda done: None
    )
    return added.folders[0] if added.folders else None
