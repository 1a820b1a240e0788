# SPDX-License-Identifier: Apache-2.0
"""Forecasts what a cell needs before it is run: files, bytes, space, time; and whether it can give valid numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from sonde.experiments.cells import PreparedCell
from sonde.experiments.equivalent_command import EquivalentCommand, find_equivalent_command
from sonde.experiments.executor import LOCAL_LAUNCHERS
from sonde.launch.engine import Engine
from sonde.model.backends import BACKENDS_WITHOUT_STORAGE
from sonde.model.errors import EXIT_BAD_INPUT, EXIT_ENVIRONMENT, UserError
from sonde.model.plan import Plan
from sonde.model.required_space import RequiredSpace, compute_required_space
from sonde.model.units import format_bytes, parse_bytes, parse_duration
from sonde.model.volume import PhaseVolume, compute_phase_volumes

# A buffered read comes from storage only if the data exceeds memory by this factor.
_MIN_DATA_TO_MEMORY_RATIO = 1.5
_READ_OPS = ("read", "reread", "read_only")
_CACHE_EMPTYING_KINDS = ("drop_page_cache", "fadvise", "remount", "memory_hog", "command")


@dataclass(frozen=True)
class PhaseForecast:
    """The forecast of one phase of one run."""

    id: str
    op: str
    files: int
    bytes: int  # of one pass, all tasks
    operations: int
    memory_share: float | None  # bytes of one client node / its memory
    seconds: float | None  # None if no rate is known
    is_from_memory: bool  # a buffered read of data that fits into memory, without emptying the cache before


@dataclass(frozen=True)
class Forecast:
    """The forecast of one run of a cell."""

    prepared: PreparedCell
    tasks: int = 0
    phases: tuple[PhaseForecast, ...] = ()
    space: int = 0  # bytes of storage, certainly needed
    max_space: int = 0  # bytes of storage if no stonewall ends a phase early
    available: int | None = None
    equivalent: EquivalentCommand = field(default_factory=EquivalentCommand)
    refusal: str = ""  # one sentence why the cell cannot be run or cannot be valid
    exit_code: int = EXIT_BAD_INPUT  # of the refusal: bad input, or an unsuitable machine
    runs: int = 0  # minimum number of runs of the cell, warm-ups included

    @property
    def cell_id(self) -> str:
        return self.prepared.cell.id

    @property
    def may_fill_storage(self) -> bool:
        """Whether only a stonewall keeps a run from using the space that must stay free."""
        if self.available is None or self.refusal:
            return False
        return self.max_space > self.space and self.max_space + _get_reserved_bytes(self.prepared.plan) > self.available

    @property
    def run_seconds(self) -> float | None:
        """Seconds of one run; None if the duration of a phase is unknown."""
        durations = [seconds.seconds for seconds in self.phases]
        return None if None in durations else sum(seconds for seconds in durations if seconds is not None)

    @property
    def known_seconds(self) -> float:
        """Sum of the known durations of one run, in seconds."""
        return sum(phase.seconds or 0.0 for phase in self.phases)


class Forecaster:
    """Computes forecasts from the engine's resolved plan and the free space of the file systems."""

    def __init__(
        self, engine: Engine, bytes_per_s: float | None = None, run_count: int = 1, launcher: str = ""
    ) -> None:
        self._engine, self._rate, self._runs, self._launcher = engine, bytes_per_s, run_count, launcher
        self._facts = cache(self._probe_directory)

    def _probe_directory(self, directory: str) -> Mapping[str, Any]:
        return self._engine.probe_directory(Path(directory))

    def forecast_cell(self, prepared_cell: PreparedCell) -> Forecast:
        """Returns the forecast of a cell; `refusal` holds the reason if it cannot be run."""
        if prepared_cell.refusal:
            return Forecast(prepared_cell, refusal=prepared_cell.refusal, exit_code=prepared_cell.exit_code)
        plan, processes = prepared_cell.plan, prepared_cell.plan.processes
        try:
            facts = self._facts(prepared_cell.directory)
            resolved = self._engine.resolve_plan(plan.document, processes)
        except UserError as reason:
            return Forecast(prepared_cell, refusal=str(reason).removeprefix("plan: "), exit_code=reason.exit_code)
        memory, tasks = facts.get("memory_bytes"), processes * plan.threads
        nodes = (
            1
            if (self._launcher or prepared_cell.clients.launcher) in LOCAL_LAUNCHERS
            else prepared_cell.clients.nodes or 1
        )
        volumes = compute_phase_volumes(plan, tasks, nodes, memory)
        space = compute_required_space(plan, tasks, nodes, memory)
        if nodes == 1:  # The engine's counts are exact, but only for one node.
            space = RequiredSpace(int(resolved["space"]["bytes"]), int(resolved["space"]["most_bytes"]))
            volumes = [
                replace(volume, **{name: answered_phase[name] for name in ("files", "segments", "operations", "bytes")})
                for volume, answered_phase in zip(volumes, resolved["phases"], strict=True)
            ]
        available = self._get_available_bytes(prepared_cell)
        forecast = Forecast(
            prepared_cell,
            tasks,
            tuple(
                self._forecast_phase(plan, phase, volume, memory, nodes)
                for phase, volume in zip(plan.phases, volumes, strict=True)
            ),
            space.bytes,
            space.most_bytes,
            available,
            find_equivalent_command(plan, volumes),
            runs=self._runs,
        )
        missing_space = _describe_missing_space(forecast)
        return replace(
            forecast,
            refusal=missing_space or _describe_impossible_residency(forecast),
            exit_code=EXIT_ENVIRONMENT if missing_space else EXIT_BAD_INPUT,
        )

    def _get_available_bytes(self, prepared_cell: PreparedCell) -> int | None:
        """Returns the free space in bytes.

        For a pool: what fits if files are distributed evenly over its directories.
        """
        directories = prepared_cell.measured_directories
        available = {
            directory: (self._facts(directory).get("file_system") or {}).get("available_bytes")
            for directory in directories
        }
        if None in available.values():
            return None
        if len(directories) == 1:
            return available[directories[0]]
        devices = [os.stat(directory).st_dev for directory in directories]
        shares = [devices.count(device) / len(directories) for device in devices]
        return min(
            int(int(available[directory] or 0) / share) for directory, share in zip(directories, shares, strict=True)
        )

    def _forecast_phase(
        self,
        plan: Plan,
        phase_table: Mapping[str, Any],
        phase_volume: PhaseVolume,
        memory_bytes: int | None,
        node_count: int,
    ) -> PhaseForecast:
        memory_share = phase_volume.bytes / node_count / memory_bytes if memory_bytes else None
        is_from_memory = False
        if (
            phase_volume.op in _READ_OPS
            and not plan.is_tree_phase(phase_table)
            and phase_volume.backend not in BACKENDS_WITHOUT_STORAGE
        ):
            is_emptied = any(
                str(treatment["kind"]) in _CACHE_EMPTYING_KINDS for treatment in phase_table.get("before", ())
            )
            is_direct = bool(plan.resolve_data(phase_table)["io"]["direct"])
            is_from_memory = (
                memory_share is not None
                and memory_share < _MIN_DATA_TO_MEMORY_RATIO
                and not is_emptied
                and not is_direct
            )
        return PhaseForecast(
            phase_volume.id,
            phase_volume.op,
            phase_volume.files,
            phase_volume.bytes,
            phase_volume.operations,
            memory_share,
            self._estimate_seconds(phase_table, phase_volume),
            is_from_memory,
        )

    def _estimate_seconds(self, resolved_phase: Mapping[str, Any], volume: PhaseVolume) -> float | None:
        sleep_seconds = sum(
            parse_duration(treatment["time"])
            for treatment in resolved_phase.get("before", ())
            if treatment["kind"] == "sleep"
        )
        if volume.time_limit_s is not None:
            return sleep_seconds + volume.time_limit_s
        if volume.bytes and self._rate:
            seconds = volume.bytes / self._rate
            return sleep_seconds + (min(seconds, volume.stonewall_s) if volume.stonewall_s is not None else seconds)
        return None if volume.bytes or volume.operations else sleep_seconds


def _get_reserved_bytes(plan: Plan) -> int:
    return parse_bytes(plan.resolve()["target"]["min_free"])


def _describe_missing_space(forecast: Forecast) -> str:
    if forecast.available is None:
        return ""
    reserved = _get_reserved_bytes(forecast.prepared.plan)
    if forecast.space + reserved <= forecast.available:
        return ""
    return (
        f"It needs {format_bytes(forecast.space)} in {forecast.prepared.directory}, where"
        f" {format_bytes(forecast.available)} are"
        f" available{f' and {format_bytes(reserved)} must stay free' if reserved else ''}; make it smaller with"
        " --profile or --set, or name another directory."
    )


def _describe_impossible_residency(forecast: Forecast) -> str:
    """Returns a sentence if a read must come from storage but would come from memory."""
    for phase, phase_forecast in zip(forecast.prepared.plan.phases, forecast.phases, strict=True):
        limit = phase.get("valid", {}).get("max_residency")
        if phase_forecast.is_from_memory and limit is not None and float(limit) < 1:
            return (
                f"{phase_forecast.id} asks that at most {100 * float(limit):g} % of what it reads is in memory,"
                f" but it reads {format_bytes(phase_forecast.bytes)} that were just written and fit into memory; empty"
                ' the cache before it (before = [{ kind = "drop_page_cache" }]), read directly, or use more data.'
            )
    return ""


def choose_exit_code_of_refusals(refusal_codes: Iterable[int]) -> int:
    """Returns the exit code of an experiment whose cells were all refused: 3 if this machine is the reason for all of
    them, else 2."""
    return EXIT_ENVIRONMENT if set(refusal_codes) == {EXIT_ENVIRONMENT} else EXIT_BAD_INPUT


def sum_known_seconds_with_completeness(forecasts: Sequence[Forecast]) -> tuple[float, bool]:
    """Returns the sum of the known seconds of all runs, and whether all are known."""
    accepted = [forecast for forecast in forecasts if not forecast.refusal]
    return sum(forecast.known_seconds * forecast.runs for forecast in accepted), all(
        forecast.run_seconds is not None for forecast in accepted
    )
