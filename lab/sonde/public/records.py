# SPDX-License-Identifier: Apache-2.0
"""Public classes for what a run recorded: series, latency histograms and findings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from sonde.model.errors import UserError
from sonde.model.lines import Finding, HistogramLine, SeriesLine
from sonde.model.run import RecordedRun, read_recorded_run_folder
from sonde.public.tables import Convertible, Rows, make_arrow_table
from sonde.store.archive import RECORD


@dataclass(frozen=True)
class PhaseSeries(Convertible):
    """A phase in time, all tasks together: one value for each slice of `slice_s` seconds from the start of the phase.

    Columns: `start_s`, `seconds`, `bytes`, `ops`, `active` (tasks that were at work) and `bytes_per_s`.
    """

    phase: str
    slice_s: float
    bytes: tuple[int, ...]
    ops: tuple[int, ...]
    active: tuple[int, ...]

    def __len__(self) -> int:
        return max(len(self.bytes), len(self.ops))

    @property
    def bytes_per_s(self) -> tuple[float, ...]:
        """The rate in each slice. The last slice counts as a whole one, although the phase may end within it."""
        return tuple(value / self.slice_s for value in self.bytes)

    def to_arrow(self) -> Any:
        """Returns a `pyarrow.Table`, one row for each slice."""
        kinds = {"start_s": "float", "seconds": "float", "bytes": "int", "ops": "int", "active": "int"}
        values = zip_longest(self.bytes, self.ops, self.active, self.bytes_per_s)
        rows = [
            {"start_s": index * self.slice_s, "seconds": self.slice_s, "bytes": moved, "ops": ops, "active": active}
            | {"bytes_per_s": rate}
            for index, (moved, ops, active, rate) in enumerate(islice(values, len(self)))
        ]
        return make_arrow_table({**kinds, "bytes_per_s": "float"}, rows)


@dataclass(frozen=True)
class Bucket:
    """Operations that took from `low_ns` to less than `high_ns`."""

    low_ns: float
    high_ns: float
    count: int


@dataclass(frozen=True)
class Histogram(Convertible):
    """The latencies of one kind of operation of a phase. Columns: `low_ns`, `high_ns` and `count`, one row for each
    bucket."""

    phase: str
    operation: str
    """read, write, open, fsync, …"""
    count: int
    min_ns: float | None
    max_ns: float | None
    mean_ns: float | None
    overflow: int
    """Operations that took longer than the last bucket reaches; they are in no bucket."""
    buckets: tuple[Bucket, ...] = field(repr=False)
    """The fastest first; buckets without operations are left out."""

    def percentile(self, percent: float) -> float:
        """Returns the latency in ns that `percent` of the operations do not exceed, exact to the width of a bucket.

        Raises UserError if `percent` is not from 0 to 100, or if there was no operation.
        """
        if not 0 <= percent <= 100:
            raise UserError(f"There is no percentile {percent:g}; say a number from 0 to 100.")
        total = sum(bucket.count for bucket in self.buckets) + self.overflow
        if not total:
            raise UserError(f"{self.phase}: no {self.operation} was timed, so there is no percentile.")
        position = percent / 100 * total
        passed = 0
        for bucket in self.buckets:
            if passed + bucket.count >= position:
                value = bucket.low_ns + (position - passed) / bucket.count * (bucket.high_ns - bucket.low_ns)
                return min(max(value, self.min_ns or 0.0), value if self.max_ns is None else self.max_ns)
            passed += bucket.count
        return self.max_ns if self.max_ns is not None else self.buckets[-1].high_ns

    def to_arrow(self) -> Any:
        """Returns a `pyarrow.Table`, one row for each bucket."""
        kinds = {"low_ns": "float", "high_ns": "float", "count": "int"}
        return make_arrow_table(kinds, [vars(bucket) for bucket in self.buckets])


@dataclass(frozen=True)
class RunFinding:
    """Something that was noticed about a run or one of its phases: a claim with its evidence and advice."""

    id: str
    severity: str
    """info, warning (the number is doubtful) or invalid."""
    phase: str | None
    """None: about the whole run."""
    text: str
    advice: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


class RunFindings(Rows[RunFinding]):
    """Findings as a sequence; `evidence` is JSON text in the tables."""

    _kinds = dict.fromkeys(("id", "severity", "phase", "text", "advice", "evidence"), "text")

    @staticmethod
    def _to_row(finding: RunFinding) -> Mapping[str, Any]:
        return {**vars(finding), "evidence": json.dumps(dict(finding.evidence), ensure_ascii=False, default=str)}


def read_recorded_run(run_folder: Path) -> RecordedRun:
    """Returns the run of a folder. The last ones are kept in memory while their record is unchanged. Raises
    ReportError if the folder has no record."""
    try:
        changed_ns = (run_folder / RECORD).stat().st_mtime_ns
    except OSError:
        return read_recorded_run_folder(run_folder)  # whose error says what is wrong
    return _read_cached_run(run_folder, changed_ns)


@lru_cache(maxsize=8)
def _read_cached_run(run_folder: Path, changed_ns: int) -> RecordedRun:
    return read_recorded_run_folder(run_folder)


def find_phase_series(run_folder: Path, phase_id: str) -> PhaseSeries | None:
    """Returns the series over all tasks; None if the phase has none, like a result of another tool."""
    line = _find_total_series(run_folder, phase_id)
    return PhaseSeries(phase_id, line.slice_s, line.bytes, line.ops, line.active) if line else None


def _find_total_series(run_folder: Path, phase_id: str) -> SeriesLine | None:
    if not (run_folder / RECORD).is_file():
        return None
    record = read_recorded_run(run_folder).record.phases.get(phase_id)
    return record.total_series if record else None


def find_phase_histograms(run_folder: Path, phase_id: str) -> dict[str, Histogram]:
    """Returns the histograms of a phase by kind of operation."""
    if not (run_folder / RECORD).is_file():
        return {}
    record = read_recorded_run(run_folder).record.phases.get(phase_id)
    return {line.kind: _make_histogram(line) for line in record.histograms} if record else {}


def _make_histogram(histogram_line: HistogramLine) -> Histogram:
    buckets = tuple(
        Bucket(item[0], item[1], int(item[2])) for item in histogram_line.buckets if len(item) == 3 and item[2] > 0
    )
    mean = (
        histogram_line.sum_ns / histogram_line.count
        if histogram_line.sum_ns is not None and histogram_line.count
        else None
    )
    return Histogram(
        histogram_line.phase,
        histogram_line.kind,
        histogram_line.count,
        histogram_line.min_ns,
        histogram_line.max_ns,
        mean,
        histogram_line.overflow,
        buckets,
    )


def read_stored_findings(run_folder: Path, summary_document: Mapping[str, Any]) -> RunFindings:
    """Returns the findings of run.json, with evidence and advice from the record where it has them."""
    stored = [item for item in summary_document.get("findings") or () if isinstance(item, Mapping)]
    lines: dict[tuple[Any, ...], Finding] = {}
    if stored and (run_folder / RECORD).is_file():
        run = read_recorded_run(run_folder)
        lines = {(line.id, line.phase, line.text): line for line in (*run.record.all_findings, *run.findings)}
    return RunFindings([_make_run_finding(item, lines.get(_make_finding_key(item))) for item in stored])


def _make_finding_key(finding_members: Mapping[str, Any]) -> tuple[Any, ...]:
    return finding_members.get("id"), finding_members.get("phase"), finding_members.get("text")


def _make_run_finding(finding_members: Mapping[str, Any], finding_line: Finding | None) -> RunFinding:
    return RunFinding(
        id=str(finding_members.get("id") or ""),
        severity=str(finding_members.get("severity") or "info"),
        phase=finding_members.get("phase"),
        text=str(finding_members.get("text") or ""),
        advice=finding_line.advice if finding_line else str(finding_members.get("advice") or ""),
        evidence=finding_line.evidence if finding_line else {},
    )
