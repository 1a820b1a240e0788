# SPDX-License-Identifier: Apache-2.0
"""Made records as runs in an archive, and text as people read it: for tests of what several surfaces say of them."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from make_record import Scene, write_run

from sonde.experiments.check.plans import GIB, Machine
from sonde.model.record import read_record
from sonde.store.shards import place_of
from sonde.store.summary import summarize
from sonde.store.tables import write_tables

NOISY = {
    "id": "noisy_node",
    "severity": "warning",
    "text": "other processes used 2.0 cores of this node during the phase",
    "advice": "repeat on a quiet node",
}
TMPFS = {"type": "tmpfs", "source": "tmpfs", "memory_backed": True}
MACHINE = Machine(4, 16 * GIB, 500 * GIB, "ext4", memory_backed=False, direct=True, io_uring=True, evict="fadvise")


def keep(archive: Path, run_id: str, scene: Scene) -> Path:
    """A run in the archive, as the lab keeps one."""
    folder = write_run(place_of(archive, run_id), scene)
    record = read_record(folder / "record.ndjson")
    facts: dict[str, object] = {"id": run_id, "role": "run", "group": None, "target": scene.path}
    facts["plan"] = {"id": scene.plan, "title": scene.title}
    document = summarize(record, facts, 1 if scene.status == "failed" else 0, "")
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    write_tables(folder, run_id, record)
    return folder


def one_blank(text: str) -> str:
    """Text with every run of blanks, markup and line ends as one blank; pages and terminals break lines differently."""
    return re.sub(r"[\s\u00a0]+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text)))
