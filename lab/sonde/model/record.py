# SPDX-License-Identifier: Apache-2.0
"""Reads a record and groups its lines by phase. ``schema/record/README.md`` defines the format.

Unknown line types and members are ignored. A truncated last line indicates a crash; the lines before it are valid.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from sonde.model.confined_files import open_file
from sonde.model.documents import MAX_LINE_BYTES
from sonde.model.errors import RecordError
from sonde.model.line_decoding import parse_record_line
from sonde.model.lines import (
    EndLine,
    ErrorLine,
    Finding,
    HistogramLine,
    LayoutLine,
    NodeLine,
    PhaseBeginLine,
    PhaseEndLine,
    ProgressLine,
    RecordLine,
    RunLine,
    SeriesLine,
    TableLine,
    TargetsLine,
    TreatmentLine,
)

# Name of the record in the folder of a run.
RECORD_FILE = "record.ndjson"


@dataclass
class PhaseRecord:
    """All lines of one phase."""

    begin: PhaseBeginLine
    end: PhaseEndLine | None = None
    treatments: list[TreatmentLine] = field(default_factory=list)
    series: list[SeriesLine] = field(default_factory=list)
    histograms: list[HistogramLine] = field(default_factory=list)
    nodes: list[TableLine] = field(default_factory=list)
    tasks: list[TableLine] = field(default_factory=list)
    layout: LayoutLine | None = None
    targets: TargetsLine | None = None
    findings: list[Finding] = field(default_factory=list)
    errors: list[ErrorLine] = field(default_factory=list)
    progress: ProgressLine | None = None  # the latest

    @property
    def id(self) -> str:
        return self.begin.phase

    @property
    def residency(self) -> float | None:
        """Fraction of the data in the page cache before the phase: measured at its start or after the last
        treatment."""
        if self.end is not None and self.end.residency is not None:
            return self.end.residency
        return self.residency_after_treatments

    @property
    def residency_after_treatments(self) -> float | None:
        """Residency after the last treatment that measured it."""
        return next(
            (
                treatment.residency_after
                for treatment in reversed(self.treatments)
                if treatment.residency_after is not None
            ),
            None,
        )

    @property
    def total_series(self) -> SeriesLine | None:
        """The series over all tasks."""
        return next((series for series in self.series if series.scope == "all"), None)

    @property
    def task_times(self) -> tuple[list[float], list[int]]:
        """Seconds from start to end of each active task, and its node; empty when not recorded."""
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
    """Parses a record incrementally, from pieces of any size."""

    def __init__(self) -> None:
        self.run: RunLine | None = None
        self.nodes: list[NodeLine] = []
        self.phases: dict[str, PhaseRecord] = {}
        self.findings: list[Finding] = []  # of the whole run
        self.errors: list[ErrorLine] = []  # all of them
        self.end: EndLine | None = None
        self.problems: list[str] = []
        self.folder = Path()  # of the run, with the files next to the record; empty while the run is live
        self._pending: dict[str, list[TreatmentLine]] = {}  # treatments come before their phase begins
        self._rest = b""
        self._is_too_long = False  # the line that is being read
        self._number = 0

    def parse_chunk(self, record_chunk: bytes) -> list[tuple[str, RecordLine]]:
        """Returns the lines that `record_chunk` completes. Lines of more than MAX_LINE_BYTES are skipped."""
        if self._is_too_long:
            _, newline, record_chunk = record_chunk.partition(b"\n")
            if not newline:
                return []
            self._is_too_long = False
        pieces = (self._rest + record_chunk).split(b"\n")
        self._rest = pieces.pop()
        lines = [line for piece in pieces if (line := self._parse_line_bytes(piece)) is not None]
        if len(self._rest) > MAX_LINE_BYTES:
            self._number += 1
            self.problems.append(
                f"Line {self._number} of the record is longer than {MAX_LINE_BYTES >> 20} MiB; it was skipped."
            )
            self._rest, self._is_too_long = b"", True
        return lines

    def finish_input(self) -> list[tuple[str, RecordLine]]:
        """Ends the input: a complete last line without a newline counts."""
        remainder, self._rest = self._rest, b""
        if not remainder.strip():
            return []
        try:
            parse_record_line(remainder.decode("utf-8", "replace"))
        except RecordError:
            self.problems.append("The record breaks off in the middle of its last line.")
            return []
        line = self._parse_line_bytes(remainder)
        return [line] if line else []

    @property
    def status(self) -> str:
        """done, failed, interrupted or mismatch; "lost" when the record has no end."""
        return self.end.status if self.end else "lost"

    @property
    def current_phase(self) -> PhaseRecord | None:
        """The phase that has begun and not ended, or None."""
        return next((phase for phase in reversed(self.phases.values()) if phase.end is None), None)

    @property
    def all_findings(self) -> list[Finding]:
        return self.findings + [finding for phase in self.phases.values() for finding in phase.findings]

    def _parse_line_bytes(self, line_bytes: bytes) -> tuple[str, RecordLine] | None:
        self._number += 1
        if not line_bytes.strip():
            return None
        try:
            kind, line = parse_record_line(line_bytes.decode("utf-8", "replace"))
        except RecordError as reason:
            self.problems.append(f"Line {self._number} of the record {reason}; it was skipped.")
            return None
        self._store_line(kind, line)
        return kind, line

    def _store_line(self, line_kind: str, line: RecordLine) -> None:
        match line:
            case RunLine():
                self.run = self.run or line
            case NodeLine():
                if all(node.node != line.node for node in self.nodes):
                    self.nodes.append(line)
            case TreatmentLine():
                phase = self.phases.get(line.phase)
                (phase.treatments if phase else self._pending.setdefault(line.phase, [])).append(line)
            case PhaseBeginLine():
                self.phases[line.phase] = PhaseRecord(line, treatments=self._pending.pop(line.phase, []))
            case EndLine():
                self.end = line
            case Finding() if line.phase is None or line.phase not in self.phases:
                self.findings.append(line)
            case ErrorLine():
                self.errors.append(line)
                if line.phase in self.phases:
                    self.phases[line.phase].errors.append(line)
            case (
                ProgressLine()
                | PhaseEndLine()
                | SeriesLine()
                | HistogramLine()
                | TableLine()
                | TargetsLine()
                | LayoutLine()
                | Finding()
            ):
                self._store_phase_line(line_kind, line)
            case _:
                pass

    def _store_phase_line(
        self,
        line_kind: str,
        line: ProgressLine | PhaseEndLine | SeriesLine | HistogramLine | TableLine | TargetsLine | LayoutLine | Finding,
    ) -> None:
        name = str(line.phase)
        if name not in self.phases:
            self.problems.append(f'Line {self._number} of the record belongs to a phase "{name}" that never began.')
            return
        phase = self.phases[name]
        match line:
            case ProgressLine():
                phase.progress = line
            case PhaseEndLine():
                phase.end = line
            case SeriesLine():
                phase.series.append(line)
            case HistogramLine():
                phase.histograms.append(line)
            case TableLine():
                (phase.tasks if line_kind == "tasks" else phase.nodes).append(line)
            case LayoutLine():
                phase.layout = line
            case TargetsLine():
                phase.targets = line
            case Finding():
                phase.findings.append(line)


def read_record(record_file: Path) -> RecordReader:
    """Reads a whole record file. Raises OSError when it cannot be read or is not a regular file."""
    with open_file(record_file) as file:
        reader = read_record_from_open_file(file)
    reader.folder = record_file.parent
    return reader


def read_record_from_open_file(file: BinaryIO, block_bytes: int = 1 << 20) -> RecordReader:
    """Reads the record in an open file, `block_bytes` bytes at a time."""
    reader = RecordReader()
    while piece := file.read(block_bytes):
        reader.parse_chunk(piece)
    reader.finish_input()
    return reader


def merge_stage_records(stage_records: Iterable[bytes], start_offsets_s: Iterable[float]) -> bytes:
    """Merges the records of consecutive engine processes of one run into one record.

    Times are shifted by `start_offsets_s` (seconds from the start of the first process to the start of each). The
    result has the first `run` line and the last `end` line."""
    lines: list[bytes] = []
    last_end: bytes | None = None
    machines: set[Any] = set()
    has_run_line = False
    for data, offset in zip(stage_records, start_offsets_s, strict=True):
        for piece in data.split(b"\n"):
            if not piece.strip():
                continue
            try:
                line = json.loads(piece)
                line_type = line["type"]
                line["t"] = round(float(line.get("t", 0.0)) + offset, 9)
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
                continue  # malformed lines were reported while the stage ran
            if (line_type == "run" and has_run_line) or (line_type == "node" and line.get("node") in machines):
                continue
            has_run_line = has_run_line or line_type == "run"
            if line_type == "node":
                machines.add(line.get("node"))
            serialized = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()
            if line_type == "end":
                last_end = serialized
            else:
                lines.append(serialized)
    if last_end is not None:
        lines.append(last_end)
    return b"".join(line + b"\n" for line in lines)
