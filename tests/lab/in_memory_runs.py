# SPDX-License-Identifier: Apache-2.0
"""Runs with known numbers, as records that stand nowhere but in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.experiments.claims.measured_runs import MeasuredRun, MeasuredRuns
from sonde.model.experiment import make_experiment
from sonde.model.experiment.experiment import Experiment
from sonde.model.record import RecordReader
from sonde.model.system.system import System


@dataclass(frozen=True)
class Phase:
    """One phase: its id and what its end says. Bytes and operations are those of `seconds`."""

    id: str = "write"
    op: str = "write"
    rate: float = 100e6
    ops: float = 100.0
    seconds: float = 10.0
    system_s: float | None = 2.0
    user_s: float | None = 1.0
    latency: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    stonewall: float | None = None
    residency: float | None = None
    failed: int = 0
    measured: bool = True
    tasks: Sequence[tuple[float, float, float]] = ()  # bytes, start and end of each
    nodes: Sequence[float] = ()  # bytes per second of each
    slices: Sequence[float] = ()  # bytes in each slice of 0.1 s
    order: int = 0
    command: tuple[float, float, float] | None = None  # real, user and system seconds of one before the phase
    command_outcome: str = "done"

    def lines(self) -> list[dict[str, Any]]:
        moved, done = round(self.rate * self.seconds), round(self.ops * self.seconds)
        total = {"bytes": moved, "ops": done, "seconds": self.seconds, "bytes_per_s": self.rate, "ops_per_s": self.ops}
        rates: dict[str, Any] = {"total": total}
        if self.stonewall is not None:
            rates["stonewall"] = {**total, "bytes_per_s": self.stonewall}
        head = {"type": "phase_begin", "phase": self.id, "index": self.order, "op": self.op, "measured": self.measured}
        cpu = {
            name: value for name, value in (("system_s", self.system_s), ("user_s", self.user_s)) if value is not None
        }
        end: dict[str, Any] = {
            "type": "phase_end",
            "phase": self.id,
            "stopped_by": "volume",
            "bytes": {"transferred": moved},
            "ops": {"done": done, "failed": self.failed},
            "seconds": {"elapsed": self.seconds},
            "rates": rates,
            "latency": dict(self.latency),
            "cpu": cpu,
        }
        if self.residency is not None:
            end["residency"] = self.residency
        lines = [*self._treatments(), head, end]
        if self.tasks:
            columns = ["task", "node", "stream", "bytes", "ops", "start_s", "end_s"]
            rows = [[index, 0, 0, b, b // 1000, start, stop] for index, (b, start, stop) in enumerate(self.tasks)]
            lines.append({"type": "tasks", "phase": self.id, "columns": columns, "rows": rows})
        if self.nodes:
            told_nodes = [[index, f"n{index}", 1, rate * 4, 0, 4.0] for index, rate in enumerate(self.nodes)]
            columns = ["node", "host", "tasks", "bytes", "ops", "seconds"]
            lines.append({"type": "nodes", "phase": self.id, "columns": columns, "rows": told_nodes})
        if self.slices:
            series = {
                "slice_s": 0.1,
                "bytes": [round(slice_bytes) for slice_bytes in self.slices],
                "active": [4] * len(self.slices),
            }
            lines.append({"type": "series", "phase": self.id, "scope": "all", **series})
        return lines

    def _treatments(self) -> list[dict[str, Any]]:
        if self.command is None:
            return []
        real, user, system = self.command
        members = {"kind": "command", "need": "best_effort", "outcome": self.command_outcome}
        return [{"type": "treatment", "phase": self.id, **members, "seconds": real, "user_s": user, "system_s": system}]


def record(phases: Sequence[Phase], status: str = "done", nodes: int = 1) -> RecordReader:
    """A record with these phases, in their order."""
    lines: list[dict[str, Any]] = [{"type": "run", "schema": "sonde-record/2", "nodes": nodes}]
    for index, phase in enumerate(phases):
        lines_of_phase = phase.lines()
        next(line for line in lines_of_phase if line["type"] == "phase_begin")["index"] = index
        lines += lines_of_phase
    lines.append({"type": "end", "status": status})
    reader = RecordReader()
    reader.parse_chunk("".join(json.dumps(line) + "\n" for line in lines).encode())
    return reader


def build_experiment(**members: Any) -> Experiment:
    """An experiment with one measured phase `write` by default."""
    plan = {"data": {"access": {"transfer": "1MiB", "volume": "1MiB"}}, "phases": [{"id": "write", "op": "write"}]}
    document = {"schema": "sonde-experiment/2", "id": "made", "plan": plan, **members}
    if "plans" in members:
        del document["plan"]
    return make_experiment(document, "made.toml")


def make_claim(text: str, **members: Any) -> dict[str, Any]:
    """One expectation with a claim."""
    return {"id": "C1", "level": "measured", "claim": text, **members}


def make_runs(
    experiment: Experiment, records: Mapping[str, Sequence[RecordReader]], system: System | None = None, **members: Any
) -> MeasuredRuns:
    """The source of these records, by id of the cell."""
    folders = {
        Path(f"/{cell}/{index}"): record
        for cell, record_list in records.items()
        for index, record in enumerate(record_list)
    }
    runs = [MeasuredRun(folder.parent.name, folder.name, folder) for folder in folders]
    return MeasuredRuns(experiment, runs, system=system, open_record=lambda path: folders[path.parent],
                        filters_by_classification=False, **members)  # fmt: skip
