# SPDX-License-Identifier: Apache-2.0
"""Samples of metrics from the records of an experiment's runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sonde.experiments.claims import metrics
from sonde.experiments.claims.number_use import describe_unusable_number
from sonde.experiments.claims.samples import MissingError, RateCurve, Samples
from sonde.experiments.schedule import make_stopping_rule
from sonde.model.errors import SystemFileError
from sonde.model.experiment.claims import CLIENT_METRICS, METRICS
from sonde.model.experiment.description import RunSchedule
from sonde.model.experiment.experiment import Cell, Experiment
from sonde.model.record import RECORD_FILE, PhaseRecord, RecordReader, read_record
from sonde.model.system.service import Pool, RatedPeak
from sonde.model.system.system import System
from sonde.stats.stopping import InterimLook
from sonde.telemetry.data import load_telemetry
from sonde.telemetry.memory_use import compute_occupied_memory

# Records cached in memory: several metrics of a cell are read in succession.
_MAX_CACHED_RECORDS = 256


@dataclass(frozen=True)
class MeasuredRun:
    """One run of one cell that is not a warm-up."""

    cell: str  # id of the cell
    name: str  # unique within the cell
    folder: Path


class MeasuredRuns:
    """A `samples.SampleSource` that reads the records of an experiment's runs.

    `refused` has the reasons of cells that were not run. `system` provides units and peaks; None if not given.
    `is_deterministic`: every run gives the same values, as with a model without noise, so one value is exact.
    """

    def __init__(
        self,
        experiment: Experiment,
        runs: Sequence[MeasuredRun],
        refusals_by_cell: Mapping[str, str] | None = None,
        system: System | None = None,
        open_record: Callable[[Path], RecordReader] = read_record,
        is_deterministic: bool = False,
        filters_by_classification: bool = True,
    ) -> None:
        self.experiment = experiment
        self.system = system
        self.is_deterministic = is_deterministic
        self.refused = dict(refusals_by_cell or {})
        self._classified = filters_by_classification
        self._about: Sequence[str] | None = None
        self._runs: dict[str, list[MeasuredRun]] = {}
        for run in runs:
            self._runs.setdefault(run.cell, []).append(run)
        self._read = lru_cache(maxsize=_MAX_CACHED_RECORDS)(lambda folder: _read_record_if_present(folder, open_record))

    def restrict_to_subjects(self, claim_subjects: Sequence[str]) -> MeasuredRuns:
        if not self._classified:
            return self
        restricted = copy.copy(self)  # shares the records that were read
        restricted._about = tuple(claim_subjects) or ("storage",)
        return restricted

    def list_finished_records(self, cell: Cell) -> list[tuple[str, RecordReader]]:
        """Returns name and record of each completed run of a cell. Raises MissingError if there is none."""
        runs = self._runs.get(cell.id, [])
        if not runs:
            raise MissingError(self.refused.get(cell.id) or f"cell {cell.id} has no run")
        read = [(run.name, record) for run in runs if (record := self._read(run.folder)) is not None]
        done = [(name, record) for name, record in read if record.status == "done"]
        if not done:
            raise MissingError(f"none of the {len(runs)} runs of cell {cell.id} came to its end")
        return done

    def list_run_folders(self, cell: Cell) -> list[Path]:
        """Returns the folders of the runs of a cell in order of time."""
        return [run.folder for run in self._runs.get(cell.id, [])]

    def run_count(self) -> int:
        """Returns the number of runs of all cells."""
        return sum(len(runs) for runs in self._runs.values())

    def count_unfinished_runs(self) -> int:
        """Returns the number of runs without a record, failed or interrupted; their numbers are ignored."""
        records = [self._read(run.folder) for runs in self._runs.values() for run in runs]
        return sum(record is None or record.status != "done" for record in records)

    def list_phase_records(self, phase_id: str, cell: Cell) -> list[tuple[str, RecordReader, PhaseRecord]]:
        """Returns name, record and phase record of each run of a cell that finished the phase. Raises MissingError."""
        phases = [
            (name, record, record.phases[phase_id])
            for name, record in self.list_finished_records(cell)
            if phase_id in record.phases and record.phases[phase_id].end is not None
        ]
        if not phases:
            raise MissingError(f"no run of cell {cell.id} finished a phase {phase_id}")
        return phases

    def _list_judged_records(
        self, metric_name: str, phase_id: str, cell: Cell
    ) -> list[tuple[str, RecordReader, PhaseRecord]]:
        """Returns the `list_phase_records` that a claim about this metric may be judged on. Raises MissingError."""
        records = self.list_phase_records(phase_id, cell)
        if self._about is None or metric_name in CLIENT_METRICS:
            return records
        reasons = [describe_unusable_number(record, phase_record, self._about) for _, record, phase_record in records]
        judged = [entry for entry, reason in zip(records, reasons, strict=True) if not reason]
        if not judged:
            raise MissingError(f"{phase_id} of cell {cell.id} is {reasons[-1]}")
        return judged

    def collect_samples(self, metric_name: str, phase_id: str, cell: Cell) -> Samples:
        values: list[tuple[str, float]] = []
        for name, record, phase_record in self._list_judged_records(metric_name, phase_id, cell):
            value = self._compute_metric(metric_name, record, phase_record, cell)
            if value is not None:
                values.append((name, value))
        if not values:
            raise MissingError(
                f"no record of cell {cell.id} says {metric_name} of {phase_id} ({METRICS[metric_name][1]})"
            )
        return Samples(
            tuple(value for _, value in values),
            tuple(name for name, _ in values),
            self.is_deterministic,
            self.determine_interim_look(cell),
        )

    def determine_interim_look(self, cell: Cell) -> InterimLook:
        stopping = make_stopping_rule(self.experiment.file.repeat or RunSchedule())
        return stopping.classify_look(len(self._runs.get(cell.id, [])))

    def _compute_metric(self, metric_name: str, record: RecordReader, phase: PhaseRecord, cell: Cell) -> float | None:
        if metric_name in metrics.PHASE_METRICS:
            return metrics.PHASE_METRICS[metric_name](phase)
        if metric_name == "client_memory":
            return compute_occupied_memory(record, phase, load_telemetry(record.folder))
        if metric_name == "duplex_efficiency":
            return metrics.compute_duplex_efficiency(record, phase)
        rate = metrics.compute_bandwidth(phase)
        if rate is None:
            return None
        if metric_name == "share_of_peak":
            return rate / self.get_peak_rate(cell, "read" if "read" in phase.begin.op else "write")
        divisor = metrics.DIVISORS_BY_METRIC[metric_name]
        if divisor == "node":
            return rate / float((record.run.nodes if record.run else None) or len(record.nodes) or 1)
        return rate / (self.count_storage_units(cell) if divisor == "unit" else self.count_storage_targets(cell))

    def collect_member_values(
        self, metric_name: str, phase_id: str, cell: Cell, member_kind: str
    ) -> Sequence[Sequence[float]]:
        if member_kind == "target":
            raise MissingError("records say nothing about single targets")
        values_by_run = [
            metrics.compute_member_metric(metric_name, phase_record, member_kind)
            for _, _, phase_record in self._list_judged_records(metric_name, phase_id, cell)
        ]
        recorded = [phase_record for phase_record in values_by_run if phase_record]
        if not recorded:
            raise MissingError(f"no record of cell {cell.id} says {metric_name} of each {member_kind}")
        if max(len(phase_record) for phase_record in recorded) < 2:
            raise MissingError(f"there is one {member_kind} only")
        return recorded

    def collect_task_end_times(self, phase_id: str, cell: Cell) -> Sequence[Sequence[float]]:
        ends_by_run = [
            task_ends
            for _, _, record in self._list_judged_records("time", phase_id, cell)
            if (task_ends := metrics.list_task_ends(record))
        ]
        if not ends_by_run:
            raise MissingError(f"no record of cell {cell.id} says when tasks of {phase_id} were done")
        return ends_by_run

    def collect_rate_curves(self, metric_name: str, phase_id: str, cell: Cell) -> Sequence[RateCurve]:
        curves = []
        for _, _, phase_record in self._list_judged_records(metric_name, phase_id, cell):
            series = phase_record.total_series
            if series is None or series.slice_s <= 0:
                continue
            amounts = series.ops if metric_name.startswith("operations") else series.bytes
            if any(amounts):
                curves.append(RateCurve(tuple(float(value) for value in amounts), series.active, series.slice_s))
        if not curves:
            raise MissingError(f"no record of cell {cell.id} has {phase_id} over time")
        return curves

    def count_storage_units(self, cell: Cell) -> float:
        storage = self.experiment.resolve_storage(cell)
        if storage.units is not None:
            return float(storage.units)
        name = self._get_storage_name(cell)
        count = len(self.system.find_units(name)) if self.system is not None and name else 0
        if not count:
            raise MissingError("how many units the storage has: say storage.units, or name the system with --system")
        return float(count)

    def count_storage_targets(self, cell: Cell) -> float:
        """Returns the number of storage targets (OSTs) of a cell. Raises MissingError."""
        storage = self.experiment.resolve_storage(cell)
        if storage.targets is not None:
            return float(storage.targets)
        name = self._get_storage_name(cell)
        count = (
            len(self.system.find_targets(name, "ost") or self.system.find_targets(name)) if self.system and name else 0
        )
        if not count:
            raise MissingError(
                "how many targets the storage has: say storage.targets, or name the system with --system"
            )
        return float(count)

    def get_peak_rate(self, cell: Cell, direction: str) -> float:
        """Returns the stated peak rate of a cell's storage in bytes/s. Without one, it is the sum over the units of the
        pool or file system. Raises MissingError."""
        storage = self.experiment.resolve_storage(cell)
        if storage.peak is not None:
            return storage.peak
        name = self._get_storage_name(cell)
        if self.system is not None and name:
            own_peak = _find_stated_peak(self.system, name, direction)
            if own_peak is not None:
                return own_peak
            unit_peaks = [_find_stated_peak(self.system, unit, direction) for unit in self.system.find_units(name)]
            if unit_peaks and all(peak is not None for peak in unit_peaks):
                return sum(peak for peak in unit_peaks if peak is not None)
        raise MissingError("the stated peak: say storage.peak, or name a system that has one with --system")

    def _get_storage_name(self, cell: Cell) -> str:
        """Returns the name of the cell's pool or file system in the system file; empty if it has none."""
        if self.system is None:
            return ""
        storage = self.experiment.resolve_storage(cell)
        for name in (storage.pool, str(cell.coordinates.get("file_system", "")), *storage.file_systems):
            if name:
                try:
                    self.system.get_part(name)
                except SystemFileError:
                    continue
                return name
        only = self.system.list_part_ids("file_systems")
        return only[0] if len(only) == 1 else ""


def _read_record_if_present(run_folder: Path, read_record: Callable[[Path], RecordReader]) -> RecordReader | None:
    try:
        return read_record(run_folder / RECORD_FILE)
    except OSError:
        return None


def _find_stated_peak(system: System, part_name: str, direction: str) -> float | None:
    table = system.get_part(part_name).table
    peak = getattr(table, "peak", None)
    rate = getattr(peak, direction, None) if isinstance(peak, RatedPeak) else None
    if rate is None and isinstance(table, Pool):
        return None
    return None if rate is None else float(rate)
