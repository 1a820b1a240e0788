# SPDX-License-Identifier: Apache-2.0
"""Runs for tests, as small as a run can be, and a look at an archive that trusts nothing but the files themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KEY = {"system": "s", "file_system": "lustre:/a probe", "plan_hash": "e" * 12, "node_class": "n", "epoch": "1"}
HOUR_NS = 3600 * 10**9


def phase(name: str = "write", rate: float = 1e9, **members: Any) -> dict[str, Any]:
    """A finished phase of run.json."""
    row = {"phase": name, "op": name, "backend": "posix", "cache": "cold", "measured": True, "done": True}
    row |= {"bytes": 1 << 30, "ops": 1024, "failed": 0, "seconds": 1.0, "stopped_by": "volume", "findings": []}
    return row | {"bytes_per_s": rate, "ops_per_s": rate / 2**20, "definition": "sonde total"} | members


def document(run_id: str, phases: Sequence[dict[str, Any]] | None = None, **members: Any) -> dict[str, Any]:
    """A run.json."""
    started = f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}T{run_id[9:11]}:{run_id[11:13]}:{run_id[13:15]}Z"
    made = {"schema": "sonde-run/1", "id": run_id, "started": started, "status": "done", "seconds": 2.0, "role": "run"}
    made |= {"plan": {"id": "daily", "title": "The daily probe"}, "target": "/a/probe", "file_system": "lustre"}
    made |= {"host": "nid1", "tasks": 4, "nodes": 2, "series": KEY, "findings": []}
    return made | {"phases": list(phases) if phases is not None else [phase()]} | members


def put(root: Path, run_id: str, phases: Sequence[dict[str, Any]] | None = None, **members: Any) -> Path:
    """A run in the archive, placed as a writer does it: whole, by a rename."""
    aside = root / f".incoming-{run_id}"
    aside.mkdir(parents=True)
    (aside / "run.json").write_text(json.dumps(document(run_id, phases, **members)), encoding="utf-8")
    final = root / f"{run_id[:4]}-{run_id[4:6]}" / run_id
    final.parent.mkdir(exist_ok=True)
    aside.rename(final)
    return final


def age(root: Path, hours: int = 1) -> None:
    """Makes all of the archive look as if nothing had happened for a while, so that the index trusts what it reads."""
    folders = [path for path in root.glob("*/*") if path.is_dir() and ".index" not in path.parts]
    for path in [*folders, *(one for one in root.iterdir() if one.is_dir() and one.name != ".index"), root]:
        before = path.stat().st_mtime_ns
        os.utime(path, ns=(before, before - hours * HOUR_NS))
