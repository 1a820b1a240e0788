# SPDX-License-Identifier: Apache-2.0
"""Plans of the hdf5 backend for its tests, and lines of their records."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

TRANSFER, BLOCK, SEGMENTS = 4096, 16384, 3
SEED = 77


def make_plan(folder: Path, **data: Any) -> dict[str, Any]:
    """A write that is read back, and a verified read. The payload is that of `ior -l offset`."""
    members: dict[str, Any] = {
        "backend": "hdf5",
        "files": {"mapping": "shared"},
        "access": {"transfer": TRANSFER, "block": BLOCK, "segments": SEGMENTS},
        "payload": {"kind": "ior_offset", "seed": SEED},
        "verify": "both",
    }
    members.update(data)
    return {
        "schema": "sonde-plan/2",
        "id": "h5",
        "target": {"path": str(folder), "directory": "run", "keep": True, "min_free": 0},
        "data": members,
        "phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}],
    }


def read_record(folder: Path, line_type: str) -> list[dict[str, Any]]:
    lines = [json.loads(text) for text in (folder / "record").read_text().splitlines()]
    return [line for line in lines if line["type"] == line_type]


def read_sentence(result: subprocess.CompletedProcess[str]) -> str:
    """The only line of the engine; those of a launcher do not count."""
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith("sonde-engine: ")]
    return sentence
