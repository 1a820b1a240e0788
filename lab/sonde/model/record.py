# SPDX-License-Identifier: Apache-2.0
"""The record: what the engine wrote, gathered by phase. ``schema/record/README.md`` defines it.

Readers ignore what they do not know: a line of an unknown type, an unknown member. A last line that was cut off is the
mark of a crash, not of a bad record: what stands before it counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.model.decode import parse_line
from sonde.model.errors import RecordError
from sonde.model.lines import (
    End,
    ErrorLine,
    Finding,
    HistogramLine,
    LayoutLine,
    Line,
    NodeLine,
    PhaseBegin,
    PhaseEnd,
    Progress,
    RunLine,
    SeriesLine,
    TableLine,
    TargetsLine,
    TreatmentLine,
)


@dataclass
class PhaseRecord:
    """Everything a record says about one phase."""

    begin: PhaseBegin
    end: PhaseEnd | None = None
    treatments: list[TreatmentLine] = field(default_factory=list)
    series: list[SeriesLine] = field(default_factory=list)
    histograms: list[HistogramLine] = field(default_factory=list)
    nodes: list[TableLine] = field(default_factory=list)
    tasks: list[TableLine] = field(default_factory=list)
    layout: LayoutLine | None = None
    targets: TargetsLine | None = None
    findings: list[Finding] = field(default_factory=list)
    errors: list[ErrorLine] = field(default_factory=list)
    progress: Progress | None = None  # the latest

    @property
    def id(self) -> str:
        return self.begin.phase

    @property
    def resident(self) -> float | None:
        """Share of the data in the page cache before the phase: measured then, or after the last treatment."""
        if self.end is not None and self.end.resident is not None:
            return self.end.resident
        return self.resident_after_treatments

    @property
    def resident_after_treatments(self) -> float | None:
        """The same as the last treatment that looked left it."""
        return next((one.resident_after for one in reversed(self.treatments) if one.resident_after is not None), None)

    @property
    def whole_series(self) -> SeriesLine | None:
        """The series over all tasks."""
        return next((one for one in self.series if one.scope == "all"), None)

    @property
    def task_times(self) -> tuple[list[float], list[int]]:
        """Seconds from start to end of each task that did something, and its node; empty when not recorded."""
        seconds: list[float] = []
        nodes: list[int] = []
        for table in self.tasks:
            if not {"start_s", "end_s", "node"} <= set(table.columns):
                return [], []
            start, end, node = (table.columns.index(name) for name in ("start_s", "end_s", "node"))
            for row in table.rows:
                if row[start] is not None and row[end] is not None and float(row[end]) > float(row[start]):
                    seconds.append(float(row[end]) - float(row[start]))
                    nodes.append(int(row[node] or 0))
        return seconds, nodes


class RecordReader:
    """Takes the bytes of a record as they come and keeps what they mean. Feed it pieces of any size."""

    def __init__(self) -> None:
        self.run: RunLine | None = None
        self.machines: list[NodeLine] = []
        self.phases: dict[str, PhaseRecord] = {}
        self.findings: list[Finding] = []  # of the whole run
        self.errors: list[ErrorLine] = []  # all of them
        self.end: End | None = None
        self.problems: list[str] = []
        self._pending: dict[str, list[TreatmentLine]] = {}  # treatments come before their phase begins
        self._rest = b""
        self._number = 0

    def feed(self, data: bytes) -> list[tuple[str, Line]]:
        """The lines that `data` completes."""
        pieces = (self._rest + data).split(b"\n")
        self._rest = pieces.pop()
        return [line for piece in pieces if (line := self._take(piece)) is not None]

    def finish(self) -> list[tuple[str, Line]]:
        """No more bytes come: a last line without its end of line counts when it is whole."""
        rest, self._rest = self._rest, b""
        if not rest.strip():
            return []
        try:
            parse_line(rest.decode("utf-8", "replace"))
        except RecordError:
            self.problems.append("The record breaks off in the middle of its last line.")
            return []
        line = self._take(rest)
        return [line] if line else []

    @property
    def status(self) -> str:
        """done, failed, interrupted or mismatch; "lost" when the record has no end."""
        return self.end.status if self.end else "lost"

    @property
    def current(self) -> PhaseRecord | None:
        """The phase that has begun and not ended."""
        return next((one for one in reversed(self.phases.values()) if one.end is None), None)

    @property
    def all_findings(self) -> list[Finding]:
        return self.findings + [finding for phase in self.phases.values() for finding in phase.findings]

    def _take(self, piece: bytes) -> tuple[str, Line] | None:
        self._number += 1
        if not piece.strip():
            return None
        try:
            kind, line = parse_line(piece.decode("utf-8", "replace"))
        except RecordError as reason:
            self.problems.append(f"Line {self._number} of the record {reason}; it was skipped.")
            return None
        self._keep(kind, line)
        return kind, line

    def _keep(self, kind: str, line: Line) -> None:
        match line:
            case RunLine():
                self.run = self.run or line
            case NodeLine():
                if all(known.node != line.node for known in self.machines):
                    self.machines.append(line)
            case TreatmentLine():
                phase = self.phases.get(line.phase)
                (phase.treatments if phase else self._pending.setdefault(line.phase, [])).append(line)
            case PhaseBegin():
                self.phases[line.phase] = PhaseRecord(line, treatments=self._pending.pop(line.phase, []))
            case End():
                self.end = line
            case Finding() if line.phase is None or line.phase not in self.phases:
                self.findings.append(line)
            case ErrorLine():
                self.errors.append(line)
                if line.phase in self.phases:
                    self.phases[line.phase].errors.append(line)
            case (
                Progress()
                | PhaseEnd()
                | SeriesLine()
                | HistogramLine()
                | TableLine()
                | TargetsLine()
                | LayoutLine()
                | Finding()
            ):
                self._keep_of_phase(kind, line)
            case _:
                pass

    def _keep_of_phase(
        self,
        kind: str,
        line: Progress | PhaseEnd | SeriesLine | HistogramLine | TableLine | TargetsLine | LayoutLine | Finding,
    ) -> None:
        name = str(line.phase)
        if name not in self.phases:
            self.problems.append(f'Line {self._number} of the record belongs to a phase "{name}" that never began.')
            return
        phase = self.phases[name]
        match line:
            case Progress():
                phase.progress = line
            case PhaseEnd():
                phase.end = line
            case SeriesLine():
                phase.series.append(line)
            case HistogramLine():
                phase.histograms.append(line)
            case TableLine():
                (phase.tasks if kind == "tasks" else phase.nodes).append(line)
            case LayoutLine():
                phase.layout = line
            case TargetsLine():
                phase.targets = line
            case Finding():
                phase.findings.append(line)


def read_record(path: Path) -> RecordReader:
    """Reads a whole record file. Raises OSError when it cannot be read."""
    reader = RecordReader()
    for piece in _pieces(path):
        reader.feed(piece)
    reader.finish()
    return reader


def _pieces(path: Path, size: int = 1 << 20) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(size):
            yield piece


def join_stages(records: Iterable[bytes], offsets: Iterable[float]) -> bytes:
    """One record from those of several engine processes of one run, in their order.

    Times are moved by `offsets` (seconds from the start of the first to the start of each); the `run` line is the
    first one's, the `end` line the last one's, so that the whole reads like a run in one process.
    """
    lines: list[bytes] = []
    last_end: bytes | None = None
    machines: set[Any] = set()
    began = False
    for data, offset in zip(records, offsets, strict=True):
        for piece in data.split(b"\n"):
            try:
                found = json.loads(piece)
                kind = found["type"]
                found["t"] = round(float(found.get("t", 0.0)) + offset, 9)
            except (ValueError, TypeError, KeyError):
                continue  # a broken line was counted when the stage was followed
            if (kind == "run" and began) or (kind == "node" and found.get("node") in machines):
                continue
            began = began or kind == "run"
            if kind == "node":
                machines.add(found.get("node"))
            text = json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
            if kind == "end":
                last_end = text
            else:
                lines.append(text)
    if last_end is not None:
        lines.append(last_end)
    return b"".join(line + b"\n" for line in lines)
