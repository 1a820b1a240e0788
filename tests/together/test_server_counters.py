# SPDX-License-Identifier: Apache-2.0
"""The engine's figures for each target of a mounted machine equal the counters of its servers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

PAGE = 4096


def read_mount_counters(directory: Path) -> dict[str, dict[str, tuple[int, int]]]:
    """Requests and bytes of each target and kind, from `stats` of the mount."""
    counters: dict[str, dict[str, tuple[int, int]]] = {}
    for stats in sorted((directory / ".sonde" / "proc" / "fs" / "lustre" / "obdfilter").glob("*/stats")):
        lines = {line.split()[0]: line.split() for line in stats.read_text(encoding="utf-8").splitlines()}
        counters[stats.parent.name.rsplit("-", 1)[1]] = {
            kind: (int(lines[f"{kind}_bytes"][1]), int(lines[f"{kind}_bytes"][6]))
            for kind in ("write", "read")
            if f"{kind}_bytes" in lines
        }
    return counters


def test_targets_of_a_record_match_the_server_counters(
    mount_model: Callable[..., Path], engine: Path, tmp_path: Path
) -> None:
    """Three tasks write 51 pages each, and read 26 of them, in stripes of 16: no target has as much as another."""
    directory = mount_model("--speed", "1000")
    plan = {
        "schema": "sonde-plan/2",
        "id": "t",
        "target": {
            "path": str(directory),
            "min_free": 0,
            "use_existing": True,
            "keep": True,
            "striping": {"count": 2, "size": 16 * PAGE, "start": 1},
        },
        "tasks": {"threads": 3},
        "data": {
            "files": {"paths": [str(directory / "f")], "mapping": "per_task"},  # in place: no file of the engine's own
            "access": {"transfer": PAGE, "block": 51 * PAGE},
            "io": {"direct": True},
        },
        "phases": [
            {"id": "write", "op": "write", "open": "exclusive"},
            {"id": "read", "op": "read", "access": {"transfer": PAGE, "block": 26 * PAGE}},
        ],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    record = tmp_path / "record.ndjson"
    command = [str(engine), "run", str(tmp_path / "plan.json"), "--record", str(record)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    recorded: dict[str, dict[str, tuple[int, int]]] = {}
    for line in (json.loads(text) for text in record.read_text(encoding="utf-8").splitlines()):
        if line["type"] == "targets":
            for row in (dict(zip(line["columns"], row, strict=True)) for row in line["rows"]):
                recorded.setdefault(row["target"], {})[row["kind"]] = (row["ops"], row["bytes"])
    assert recorded == read_mount_counters(directory)
    # And both are what arithmetic says: the file begins on the second target.
    assert recorded["OST0001"] == {"write": (3 * 32, 3 * 32 * PAGE), "read": (3 * 16, 3 * 16 * PAGE)}
    assert recorded["OST0000"] == {"write": (3 * 19, 3 * 19 * PAGE), "read": (3 * 10, 3 * 10 * PAGE)}
