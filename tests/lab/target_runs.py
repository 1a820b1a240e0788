# SPDX-License-Identifier: Apache-2.0
"""Stored runs with one direct phase and the latency of requests at each storage target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_run(
    folder: Path,
    node: dict[str, Any],
    latencies: dict[str, int],
    direct: bool = True,
    phase: str = "any",
    op: str = "read",
    rate: float = 1e8,
    simulated: bool = False,
) -> Path:
    """A run with one phase, and the latency of requests at each target in nanoseconds."""
    folder.mkdir()
    columns = ["target", "ops", "single_ops", "single_ns", "p50_ns"]
    lines: list[dict[str, Any]] = [
        {"type": "run", "schema": "sonde-record/2", **({"simulated": {"mount": "m"}} if simulated else {})},
        {"type": "node", "node": 0, "host": "n1", **node},
        {"type": "phase_begin", "phase": phase, "index": 0, "op": op, "backend": "posix", "direct": direct},
        {
            "type": "targets",
            "phase": phase,
            "columns": columns,
            "rows": [[name, 10, 10, 10 * value, value] for name, value in latencies.items()],
        },
        {"type": "phase_end", "phase": phase, "rates": {"total": {"bytes_per_s": rate, "ops_per_s": 100.0}}},
    ]
    (folder / "record.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
