# SPDX-License-Identifier: Apache-2.0
"""Samples from the records of the runs of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sonde.experiments.judging import metrics
from sonde.experiments.judging.samples import Curve, MissingError, Samples
from sonde.experiments.order import stopping_of
from sonde.model.errors import SystemFileError
from sonde.model.experiment.claims import METRICS
from sonde.model.experiment.description import Repeat
from sonde.model.experiment.experiment import Cell, Experiment
from sonde.model.record import PhaseRecord, RecordReader, read_record
from sonde.model.system.service import Peak, Pool
from sonde.model.system.system import System
from sonde.stats.stopping import Look

RECORD = "record.ndjson"
# Records that are kept in memory at a time: a cell is asked for several metrics in a row.
_KEPT = 256


@dataclass(frozen=True)
class MeasuredRun:
    """One run of one cell that counts: not a warm-up."""

    cell: str  # id of the cell
    name: str  # what names the run: the same for no other one of its cell
    folder: Path


class MeasuredRuns:
    """A source of samples (`samples.Source`): what the runs of an experiment recorded.

    `refused` says, by cell, why a cell was not run. `system` answers for units and peaks; None when nobody named one.
    `settled`: another run would say the same, as of a model without noise, so one value is the value.
    """

    def __init__(
        self,
        experiment: Experiment,
        runs: Sequence[MeasuredRun],
        refused: Mapping[str, str] | None = None,
        system: System | None = None,
        read: Callable[[Path], RecordReader] = read_record,
        settled: bool = False,
    ) -> None:
        self.experiment = experiment
        self.system = system
        self.settled = settled
        self.refused = dict(refused or {})
        self._runs: dict[str, list[MeasuredRun]] = {}
        for run in runs:
            self._runs.setdefault(run.cell, []).append(run)
        self._read = lru_cache(maxsize=_KEPT)(lambda folder: _record(folder, read))

    def records(self, cell: Cell) -> list[tuple[str, RecordReader]]:
        """Name and record of each run of a cell that came to its end. Raises MissingError when there is none."""
        runs = self._runs.get(cell.id, [])
        if not runs:
            raise MissingError(self.refused.get(cell.id) or f"cell {cell.id} has no run")
        read = [(run.name, record) for run in runs if (record := self._read(run.folder)) is not None]
        done = [(name, record) for name, record in read if record.status == "done"]
        if not done:
            raise MissingError(f"none of the {len(runs)} runs of cell {cell.id} came to its end")
        return done

    def folders(self, cell: Cell) -> list[Path]:
        """Folders of the runs of a cell, in their order."""
        return [run.folder for run in self._runs.get(cell.id, [])]

    def count(self) -> int:
        """Runs of all cells."""
        return sum(len(listed) for listed in self._runs.values())

    def not_done(self) -> int:
        """Runs that have no record, failed, or were interrupted: their numbers are left out."""
        records = [self._read(run.folder) for listed in self._runs.values() for run in listed]
        return sum(record is None or record.status != "done" for record in records)

    def phases(self, phase: str, cell: Cell) -> list[tuple[str, RecordReader, PhaseRecord]]:
        """One phase of each run of a cell. Raises MissingError."""
        found = [
            (name, record, record.phases[phase])
            for name, record in self.records(cell)
            if phase in record.phases and record.phases[phase].end is not None
        ]
        if not found:
            raise MissingError(f"no run of cell {cell.id} finished a phase {phase}")
        return found

    def samples(self, metric: str, phase: str, cell: Cell) -> Samples:
        values: list[tuple[str, float]] = []
        for name, record, one in self.phases(phase, cell):
            value = self._value(metric, record, one, cell)
            if value is not None:
                values.append((name, value))
        if not values:
            raise MissingError(f"no record of cell {cell.id} says {metric} of {phase} ({METRICS[metric][1]})")
        return Samples(
            tuple(value for _, value in values), tuple(name for name, _ in values), self.settled, self.look(cell)
        )

    def look(self, cell: Cell) -> Look:
        rule = stopping_of(self.experiment.file.repeat or Repeat())
        return rule.look(len(self._runs.get(cell.id, [])))

    def _value(self, metric: str, record: RecordReader, phase: PhaseRecord, cell: Cell) -> float | None:
        if metric in metrics.OF_PHASE:
            return metrics.OF_PHASE[metric](phase)
        if metric == "duplex_efficiency":
            return metrics.duplex_efficiency(record, phase)
        rate = metrics.bandwidth(phase)
        if rate is None:
            return None
        if metric == "share_of_peak":
            return rate / self.peak(cell, "read" if "read" in phase.begin.op else "write")
        divisor = metrics.DIVIDED[metric]
        if divisor == "node":
            return rate / float((record.run.nodes if record.run else None) or len(record.machines) or 1)
        return rate / (self.units(cell) if divisor == "unit" else self.targets(cell))

    def members(self, metric: str, phase: str, cell: Cell, per: str) -> Sequence[Sequence[float]]:
        if per == "target":
            raise MissingError("records say nothing about single targets")
        found = [metrics.of_members(metric, one, per) for _, _, one in self.phases(phase, cell)]
        known = [one for one in found if one]
        if not known:
            raise MissingError(f"no record of cell {cell.id} says {metric} of each {per}")
        if max(len(one) for one in known) < 2:
            raise MissingError(f"there is one {per} only")
        return known

    def finishes(self, phase: str, cell: Cell) -> Sequence[Sequence[float]]:
        found = [one for _, _, record in self.phases(phase, cell) if (one := metrics.task_ends(record))]
        if not found:
            raise MissingError(f"no record of cell {cell.id} says when tasks of {phase} were done")
        return found

    def curves(self, metric: str, phase: str, cell: Cell) -> Sequence[Curve]:
        found = []
        for _, _, one in self.phases(phase, cell):
            line = one.whole_series
            if line is None or line.slice_s <= 0:
                continue
            amounts = line.ops if metric.startswith("operations") else line.bytes
            if any(amounts):
                found.append(Curve(tuple(float(value) for value in amounts), line.active, line.slice_s))
        if not found:
            raise MissingError(f"no record of cell {cell.id} has {phase} over time")
        return found

    def units(self, cell: Cell) -> float:
        storage = self.experiment.storage_of(cell)
        if storage.units is not None:
            return float(storage.units)
        name = self._place(cell)
        count = len(self.system.units_of(name)) if self.system is not None and name else 0
        if not count:
            raise MissingError("how many units the storage has: say storage.units, or name the system with --system")
        return float(count)

    def targets(self, cell: Cell) -> float:
        """Targets (OSTs) of the storage of a cell. Raises MissingError."""
        storage = self.experiment.storage_of(cell)
        if storage.targets is not None:
            return float(storage.targets)
        name = self._place(cell)
        count = len(self.system.targets_of(name, "ost") or self.system.targets_of(name)) if self.system and name else 0
        if not count:
            raise MissingError(
                "how many targets the storage has: say storage.targets, or name the system with --system"
            )
        return float(count)

    def peak(self, cell: Cell, direction: str) -> float:
        """The stated peak of the storage of a cell, bytes per second; of a pool or file system without one, the sum of
        its units'. Raises MissingError."""
        storage = self.experiment.storage_of(cell)
        if storage.peak is not None:
            return storage.peak
        name = self._place(cell)
        if self.system is not None and name:
            own = _stated(self.system, name, direction)
            if own is not None:
                return own
            of_units = [_stated(self.system, unit, direction) for unit in self.system.units_of(name)]
            if of_units and all(one is not None for one in of_units):
                return sum(one for one in of_units if one is not None)
        raise MissingError("the stated peak: say storage.peak, or name a system that has one with --system")

    def _place(self, cell: Cell) -> str:
        """The pool or the file system of a cell, as the system file calls it; empty when it has none there."""
        if self.system is None:
            return ""
        storage = self.experiment.storage_of(cell)
        for name in (storage.pool, str(cell.at.get("file_system", "")), *storage.file_systems):
            if name:
                try:
                    self.system.item(name)
                except SystemFileError:
                    continue
                return name
        only = self.system.ids("file_systems")
        return only[0] if len(only) == 1 else ""


def _record(folder: Path, read: Callable[[Path], RecordReader]) -> RecordReader | None:
    try:
        return read(folder / RECORD)
    except OSError:
        return None


def _stated(system: System, name: str, direction: str) -> float | None:
    table = system.item(name).table
    peak = getattr(table, "peak", None)
    rate = getattr(peak, direction, None) if isinstance(peak, Peak) else None
    if rate is None and isinstance(table, Pool):
        return None
    return None if rate is None else float(rate)
