# SPDX-License-Identifier: Apache-2.0
"""One phase of which all is known, and a run that holds it, in memory only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sonde.model.line_members import ByteCounts, FileSystemFacts, OperationCounts, PhaseRates, Rate
from sonde.model.lines import EndLine, NodeLine, PhaseBeginLine, PhaseEndLine, TableLine
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import RecordedRun

MIB = 1 << 20


def run_with(
    phase: PhaseRecord, system: FileSystemFacts | None = None, status: str = "done", **plan: Any
) -> RecordedRun:
    """A run on one node with 16 GiB of memory, named nid1."""
    record = RecordReader()
    record.nodes.append(
        NodeLine(node=0, host="nid1", memory_bytes=1 << 34, file_system=system or FileSystemFacts("ext4"))
    )
    record.phases[phase.id] = phase
    record.end = EndLine(status=status)
    return RecordedRun(Path("r"), record, (), {}, plan, ())


def make_phase(
    op: str = "read", moved: int = 100 * MIB, operation_count: int = 100, seconds: float = 3.0, **begin: Any
) -> PhaseRecord:
    """A phase that moved these bytes with these operations in these seconds."""
    rate = Rate(moved, operation_count, seconds, moved / seconds, operation_count / seconds)
    end = PhaseEndLine(
        phase="p",
        bytes=ByteCounts(moved, moved, moved, 0),
        ops=OperationCounts(operation_count, operation_count),
        rates=PhaseRates(total=rate),
    )
    return PhaseRecord(PhaseBeginLine(phase="p", op=op, **begin), end)


def planned(**data: Any) -> dict[str, Any]:
    """The plan that `run_with` expects, with these members of `data`."""
    return {"data": data, "phases": [{"id": "p"}]}


def table(columns: tuple[str, ...], *rows: tuple[Any, ...]) -> TableLine:
    """Nodes or tasks of the phase."""
    return TableLine(phase="p", columns=columns, rows=rows)
