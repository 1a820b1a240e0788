# SPDX-License-Identifier: Apache-2.0
"""Stores generated records as runs in an archive, for tests that compare several outputs of the same run."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from make_record import write_run
from record_scene import Scene

from sonde.experiments.check.plans import GIB, CheckedMachine
from sonde.model.confined_files import ConfinedDirectory
from sonde.model.record import read_record
from sonde.store.shards import locate_run_folder
from sonde.store.summary import build_summary_document
from sonde.store.tables import write_tables

NOISY = {
    "id": "noisy_node",
    "severity": "warning",
    "text": "other processes used 2.0 cores of this node during the phase",
    "advice": "repeat on a quiet node",
}
TMPFS = {"type": "tmpfs", "source": "tmpfs", "memory_backed": True}
MACHINE = CheckedMachine(
    4, 16 * GIB, 500 * GIB, "ext4", memory_backed=False, direct=True, io_uring=True, evict="fadvise"
)


def store_run(archive: Path, run_id: str, scene: Scene) -> Path:
    """Stores a run in the archive as the lab does and returns its folder."""
    folder = write_run(locate_run_folder(archive, run_id), scene)
    record = read_record(folder / "record.ndjson")
    facts: dict[str, object] = {"id": run_id, "role": "run", "group": None, "target": scene.path}
    facts["plan"] = {"id": scene.plan, "title": scene.title}
    document = build_summary_document(record, facts, 1 if scene.status == "failed" else 0, "")
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    with ConfinedDirectory.open(folder) as directory:
        write_tables(directory, run_id, record)
    return folder


def normalize_blanks(text: str) -> str:
    """Replaces blanks, markup and line ends by one blank each, since pages and terminals break lines differently."""
    return re.sub(r"[\s\u00a0]+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text)))
