# SPDX-License-Identifier: Apache-2.0
"""Builds minimal runs and adds them to an archive; uses no code of the lab."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KEY = {"system": "s", "file_system": "lustre:/a probe", "plan_hash": "e" * 12, "node_class": "n", "epoch": "1"}
HOUR_NS = 3600 * 10**9


def build_phase(name: str = "write", rate: float = 1e9, **members: Any) -> dict[str, Any]:
    """Returns a finished phase of run.json."""
    row = {"phase": name, "op": name, "backend": "posix", "cache": "cold", "measured": True, "done": True}
    row |= {"bytes": 1 << 30, "ops": 1024, "failed": 0, "seconds": 1.0, "stopped_by": "volume", "findings": []}
    return row | {"bytes_per_s": rate, "ops_per_s": rate / 2**20, "definition": "sonde total"} | members


def build_run_document(run_id: str, phases: Sequence[dict[str, Any]] | None = None, **members: Any) -> dict[str, Any]:
    """Returns the content of a run.json."""
    started = f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}T{run_id[9:11]}:{run_id[11:13]}:{run_id[13:15]}Z"
    document = {
        "schema": "sonde-run/2",
        "id": run_id,
        "started": started,
        "status": "done",
        "seconds": 2.0,
        "role": "run",
    }
    document |= {"plan": {"id": "daily", "title": "The daily probe"}, "target": "/a/probe", "file_system": "lustre"}
    document |= {"host": "nid1", "tasks": 4, "nodes": 2, "history": KEY, "findings": []}
    return document | {"phases": list(phases) if phases is not None else [build_phase()]} | members


def add_run(root: Path, run_id: str, phases: Sequence[dict[str, Any]] | None = None, **members: Any) -> Path:
    """Adds a run to the archive by an atomic rename, as a writer does, and returns its folder."""
    incoming = root / f".incoming-{run_id}"
    incoming.mkdir(parents=True)
    (incoming / "run.json").write_text(json.dumps(build_run_document(run_id, phases, **members)), encoding="utf-8")
    run_folder = root / f"{run_id[:4]}-{run_id[4:6]}" / run_id
    run_folder.parent.mkdir(exist_ok=True)
    incoming.rename(run_folder)
    return run_folder


def age_archive(root: Path, hours: int = 1) -> None:
    """Dates every folder of the archive `hours` back, so that the index trusts what it reads."""
    folders = [path for path in root.glob("*/*") if path.is_dir() and ".index" not in path.parts]
    for path in [*folders, *(child for child in root.iterdir() if child.is_dir() and child.name != ".index"), root]:
        modified_ns = path.stat().st_mtime_ns
        os.utime(path, ns=(modified_ns, modified_ns - hours * HOUR_NS))
