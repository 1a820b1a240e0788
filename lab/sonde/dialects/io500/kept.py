# SPDX-License-Identifier: Apache-2.0
"""The official result of a run of IO500 as a run of the archive, beside those of its phases: so its numbers have a
history under IO500's names.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from sonde.model.record import RecordReader
from sonde.model.series import run_key, site_facts
from sonde.sources.about import About
from sonde.sources.formats import read_results
from sonde.store.archive import Archive
from sonde.store.imports import add_imported


def keep_result(archive: Archive, result: Path, target: str, record: RecordReader) -> Path | None:
    """Adds `result` (result.txt). `record`: of one of its phases, for the names of the system and the file system.
    Returns the folder of the run; None when the same result is there already. Raises UserError."""
    zone = datetime.now().astimezone().tzinfo
    (found,) = read_results(result, About() if zone is None else About(zone=zone))
    if record.run is not None:
        key = run_key(record.run, record.machines, target, site_facts())
        found = replace(found, system=key.system, file_system=key.file_system, node_class=key.node_class)
    found = replace(
        found,
        target=target,
        host=record.machines[0].host if record.machines else "",
        nodes=record.run.nodes if record.run else None,
    )
    added = add_imported(archive, [found], {"file": result.name, "format": "IO500 result"}, result, lambda done: None)
    return added.folders[0] if added.folders else None
