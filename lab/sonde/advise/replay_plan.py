# SPDX-License-Identifier: Apache-2.0
"""The plan that replays a list of operations, and what it did compared with the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.advise.call_costs import CalibrationPhase
from sonde.advise.call_log import CallKind, CallLog
from sonde.advise.operation_list import OperationList, build_operation_list, build_preparation_operations
from sonde.model.lines import HistogramLine
from sonde.model.plan import Plan
from sonde.model.record import RecordReader

REPLAY_PHASE, PREPARATION_PHASE = "replay", "prepare"


@dataclass(frozen=True)
class ReplayRequest:
    """How calls are replayed. `stripes` is the stripe count of new files; None: what the directory gives."""

    target: str
    has_think_time: bool = True
    is_cold: bool = False  # the page cache is dropped before the replay
    stripes: int | None = None


@dataclass(frozen=True)
class Replay:
    """A plan and the lists that it uses."""

    plan: Plan
    operations: OperationList


def build_replay(log: CallLog, list_folder: Path, request: ReplayRequest, plan_name: str = "replay") -> Replay:
    """Writes the lists into `list_folder` and returns the plan."""
    operations = build_operation_list(log)
    preparation = build_preparation_operations(operations, log if request.has_think_time else None)
    file = operations.write_file(list_folder)
    replay: dict[str, Any] = {
        "id": REPLAY_PHASE,
        "op": "replay",
        "replay_file": str(file),
        "think_time": "as_traced" if request.has_think_time else "none",
    }
    if request.is_cold:
        replay["before"] = [{"kind": "drop_page_cache", "need": "required"}]
    phases = [replay]
    largest = max(operations.longest_operation_bytes, 1)
    if preparation is not None:
        file = preparation.write_file(list_folder)
        largest = max(largest, preparation.longest_operation_bytes)
        phases.insert(
            0,
            {
                "id": PREPARATION_PHASE,
                "op": "replay",
                "replay_file": str(file),
                "think_time": "none",
                "measure": False,
            },
        )
    return Replay(_build_replay_plan(log, request, phases, plan_name, largest), operations)


def make_calibration_plan(phases: Sequence[CalibrationPhase], list_folder: Path, request: ReplayRequest) -> Plan:
    """Writes the lists of a calibration into `list_folder` and returns the plan. With a cold cache, reads begin with
    one."""
    documents, largest = [], 1
    for phase in phases:
        operations = build_operation_list(phase.calls)
        largest = max(largest, operations.longest_operation_bytes)
        document: dict[str, Any] = {
            "id": phase.phase_id,
            "op": "replay",
            "replay_file": str(operations.write_file(list_folder)),
            "think_time": "none",
        }
        if request.is_cold and phase.kind == "read":
            document["before"] = [{"kind": "drop_page_cache", "need": "required"}]
        documents.append(document)
    return _build_replay_plan(phases[0].calls, request, documents, "calibration", largest)


def _build_replay_plan(
    log: CallLog,
    request: ReplayRequest,
    phase_documents: list[dict[str, Any]],
    plan_name: str,
    longest_operation_bytes: int,
) -> Plan:
    target: dict[str, Any] = {"path": request.target}
    if request.stripes is not None:
        target["striping"] = {"count": request.stripes}
    document = {
        "id": plan_name,
        "title": f"Replay of {log.source}",
        "target": target,
        "tasks": {"processes": len(log.tasks)},
        "data": {
            "files": {"mapping": "shared", "count": len(log.files), "name": "file"},
            "access": {"transfer": longest_operation_bytes, "block": longest_operation_bytes},
        },
        "phases": phase_documents,
    }
    return Plan.from_document(document, log.source)


@dataclass(frozen=True)
class KindComparison:
    """Calls of one kind in the original and in the replay."""

    kind: str
    original_calls: int
    original_bytes: int
    original_s: float
    calls: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class ReplayComparison:
    """A replay next to its original. Seconds are those inside calls, summed over tasks."""

    kinds: tuple[KindComparison, ...]
    is_complete: bool

    @property
    def original_s(self) -> float:
        return sum(row.original_s for row in self.kinds)

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self.kinds)

    @property
    def time_ratio(self) -> float | None:
        """Time of the replay by time of the original; None where the log has no times."""
        return self.seconds / self.original_s if self.original_s > 0 else None

    @property
    def is_exact(self) -> bool:
        """Whether reads, writes and their bytes are those of the original."""
        return self.is_complete and all(
            (row.calls, row.bytes) == (row.original_calls, row.original_bytes)
            for row in self.kinds
            if row.kind in ("read", "write")
        )

    def to_json(self) -> dict[str, Any]:
        """The comparison as members of run.json."""
        return {
            "kinds": [vars(row) for row in self.kinds],
            "original_s": self.original_s,
            "replayed_s": self.seconds,
            "ratio": self.time_ratio,
            "is_exact": self.is_exact,
        }


def compare_replay(log: CallLog, record: RecordReader) -> ReplayComparison:
    """Compares the calls of the log with those that the engine issued and timed."""
    totals = log.sum_calls_by_kind()
    histograms = _read_histograms_by_call_kind(record)
    amounts = _read_bytes_by_call_kind(record)
    rows = []
    for kind in CallKind:
        name = kind.name.lower()  # as the record calls it
        original, replayed = totals.get(kind), histograms.get(name)
        if original is None and replayed is None:
            continue
        rows.append(
            KindComparison(
                name,
                original.calls if original else 0,
                original.bytes if original else 0,
                original.seconds if original else 0.0,
                replayed.count if replayed else 0,
                amounts.get(name, 0),
                (replayed.sum_ns or 0.0) * 1e-9 if replayed else 0.0,
            )
        )
    return ReplayComparison(tuple(rows), record.status == "done")


def read_replayed_io_seconds(record: RecordReader) -> float:
    """Seconds inside all calls of the replay, summed over tasks."""
    return sum(line.sum_ns or 0.0 for line in _read_histograms_by_call_kind(record).values()) * 1e-9


def _read_histograms_by_call_kind(record: RecordReader) -> dict[str, HistogramLine]:
    phase = record.phases.get(REPLAY_PHASE)
    return {line.kind: line for line in phase.histograms} if phase is not None else {}


def _read_bytes_by_call_kind(record: RecordReader) -> dict[str, int]:
    phase = record.phases.get(REPLAY_PHASE)
    if phase is None or phase.end is None:
        return {}
    return {"read": phase.end.bytes.read, "write": phase.end.bytes.written}
