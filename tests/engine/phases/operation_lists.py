# SPDX-License-Identifier: Apache-2.0
"""Writes lists of operations byte by byte, as docs/reference/operations.md describes them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

READ, WRITE, OPEN, FSYNC, CLOSE, STAT, REMOVE = range(7)
READS, WRITES, CREATES = 1, 2, 4

Operation = tuple[int, int, int, int]  # kind, file, offset, length
THINK_NS = 5_000_000


def pack_list(
    operations_by_task: Sequence[Sequence[Operation]], file_sizes: Sequence[int], think_ns: int = THINK_NS
) -> bytes:
    """The list; each operation has the same think time, and each file one handle of its number."""
    largest = max(length for task in operations_by_task for _, _, _, length in task)
    count = sum(map(len, operations_by_task))
    header = struct.pack(
        "<8s6I4Q",
        b"SONDEOPS",
        1,
        len(operations_by_task),
        len(file_sizes),
        len(file_sizes),
        largest,
        0,
        count,
        sum(file_sizes),
        0,
        0,
    )
    tables = struct.pack(f"<{len(operations_by_task) + len(file_sizes)}Q", *map(len, operations_by_task), *file_sizes)
    rows = b""
    for task in operations_by_task:
        for kind, file, offset, length in task:
            handle = 0 if kind in (STAT, REMOVE) else file
            flags = READS | WRITES | CREATES if kind == OPEN else 0
            rows += struct.pack("<QQIIHBBI", think_ns, offset, length, file, handle, kind, flags, 0)
    return header + tables + rows


TWO_TASKS: tuple[tuple[Operation, ...], ...] = (
    (
        *((OPEN, 0, 0, 0), (WRITE, 0, 0, 1000), (WRITE, 0, 5000, 300), (OPEN, 1, 0, 0), (WRITE, 1, 7, 4096)),
        *((READ, 0, 5100, 200), (READ, 0, 5300, 0), (FSYNC, 0, 0, 0), (CLOSE, 0, 0, 0), (STAT, 0, 0, 0)),
        *((CLOSE, 1, 0, 0), (REMOVE, 1, 0, 0)),
    ),
    ((OPEN, 2, 0, 0), (WRITE, 2, 0, 1), (CLOSE, 2, 0, 0)),
)
SIZES = (5300, 4103, 1)
COUNTS = {"open": 3, "write": 4, "read": 2, "fsync": 1, "close": 3, "stat": 1, "remove": 1}
WRITTEN, READ_BYTES = 1000 + 300 + 4096 + 1, 200


def make_replay_plan(path: Path, list_path: Path, **members: Any) -> dict[str, Any]:
    """A plan that replays TWO_TASKS."""
    data: dict[str, Any] = {
        "files": {"mapping": "shared", "count": len(SIZES)},
        "access": {"transfer": 4096, "block": 4096},
    }
    data.update(members.pop("data", {}))
    phase = {"id": "replay", "op": "replay", "replay_file": str(list_path), **members.pop("phase", {})}
    return {
        "schema": "sonde-plan/2",
        "id": "again",
        "target": {"path": str(path), "min_free": 0, **members.pop("target", {})},
        "tasks": {"processes": 2},
        "data": data,
        "phases": [phase],
        "observe": {"progress": 0},
        **members,
    }
