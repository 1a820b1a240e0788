# SPDX-License-Identifier: Apache-2.0
"""What running a cell would take, before it is run: files, bytes, space, time; and whether it can be valid at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from sonde.experiments.cells import Prepared
from sonde.experiments.classic import Classic, classic
from sonde.experiments.executor import HERE
from sonde.launch.engine import Engine
from sonde.model.errors import BAD_INPUT, ENVIRONMENT, UserError
from sonde.model.plan import Plan
from sonde.model.units import format_bytes, parse_bytes, parse_duration
from sonde.model.volume import PhaseVolume, phase_volumes, written_bytes

# A file that is read from storage must be larger than the memory that could hold it, with room for doubt.
_BEYOND_MEMORY = 1.5
_READS = ("read", "reread", "read_only")
_EMPTIES = ("drop_page_cache", "fadvise", "remount", "memory_hog", "command")
_NO_STORAGE = ("null", "paced")


@dataclass(frozen=True)
class PhaseForecast:
    """One phase of one run."""

    id: str
    op: str
    files: int
    bytes: int  # of one pass, all tasks
    operations: int
    of_memory: float | None  # bytes of one client node over its memory
    seconds: float | None  # None where no rate is known
    from_memory: bool  # a buffered read of what fits into memory, and nothing empties the cache before


@dataclass(frozen=True)
class Forecast:
    """One run of a cell."""

    prepared: Prepared
    tasks: int = 0
    phases: tuple[PhaseForecast, ...] = ()
    space: int = 0  # bytes of storage
    available: int | None = None
    classic: Classic = field(default_factory=Classic)
    refused: str = ""  # one sentence why the cell cannot be run, or cannot be valid
    code: int = BAD_INPUT  # exit code of that: what was asked for is wrong, or this machine cannot do it
    runs: int = 0  # of the cell at least, warm-ups too

    @property
    def cell(self) -> str:
        return self.prepared.cell.id

    @property
    def seconds(self) -> float | None:
        """Of one run; None where it is not known of every phase."""
        known = [one.seconds for one in self.phases]
        return None if None in known else sum(one for one in known if one is not None)

    @property
    def at_least(self) -> float:
        """Seconds of one run that are known."""
        return sum(one.seconds or 0.0 for one in self.phases)


class Forecaster:
    """Asks the engine, which alone knows what a plan would touch, and the file systems how much room there is."""

    def __init__(self, engine: Engine, rate: float | None = None, runs: int = 1, launcher: str = "") -> None:
        self._engine, self._rate, self._runs, self._launcher = engine, rate, runs, launcher
        self._facts = cache(self._probe)

    def _probe(self, directory: str) -> Mapping[str, Any]:
        return self._engine.probe(Path(directory))

    def of(self, prepared: Prepared) -> Forecast:
        """The forecast of a cell. What it cannot be run for is said in `refused`."""
        if prepared.refused:
            return Forecast(prepared, refused=prepared.refused, code=prepared.code)
        plan, processes = prepared.plan, prepared.plan.processes
        try:
            facts = self._facts(prepared.directory)
            answer = self._engine.resolve(plan.document, processes)
        except UserError as reason:
            return Forecast(prepared, refused=str(reason).removeprefix("plan: "), code=reason.exit_code)
        memory, tasks = facts.get("memory_bytes"), processes * plan.threads
        nodes = 1 if (self._launcher or prepared.clients.launcher) in HERE else prepared.clients.nodes or 1
        volumes = phase_volumes(plan, tasks, nodes, memory)
        space = written_bytes(volumes)
        if nodes == 1:  # the engine counts for one node only, and there it knows better
            space = int(answer["space"]["bytes"])
            volumes = [
                replace(one, **{name: said[name] for name in ("files", "segments", "operations", "bytes")})
                for one, said in zip(volumes, answer["phases"], strict=True)
            ]
        available = self._available(prepared)
        found = Forecast(
            prepared,
            tasks,
            tuple(
                self._phase(plan, phase, one, memory, nodes) for phase, one in zip(plan.phases, volumes, strict=True)
            ),
            space,
            available,
            classic(plan, volumes),
            runs=self._runs,
        )
        no_room = _no_room(found)
        return replace(found, refused=no_room or _never_valid(found), code=ENVIRONMENT if no_room else BAD_INPUT)

    def _available(self, prepared: Prepared) -> int | None:
        """Bytes that fit; of a pool of several directories as many as fit when files go to them in turn."""
        places = prepared.places
        free = {one: (self._facts(one).get("file_system") or {}).get("available_bytes") for one in places}
        if None in free.values():
            return None
        if len(places) == 1:
            return free[places[0]]
        devices = [os.stat(one).st_dev for one in places]
        shares = [devices.count(device) / len(places) for device in devices]
        return min(int(int(free[one] or 0) / share) for one, share in zip(places, shares, strict=True))

    def _phase(
        self, plan: Plan, phase: Mapping[str, Any], one: PhaseVolume, memory: int | None, nodes: int
    ) -> PhaseForecast:
        share = one.bytes / nodes / memory if memory else None
        cached = False
        if one.op in _READS and not plan.on_tree(phase) and one.backend not in _NO_STORAGE:
            emptied = any(str(before["kind"]) in _EMPTIES for before in phase.get("before", ()))
            direct = bool(plan.data_of(phase)["io"]["direct"])
            cached = share is not None and share < _BEYOND_MEMORY and not emptied and not direct
        return PhaseForecast(
            one.id, one.op, one.files, one.bytes, one.operations, share, self._seconds(phase, one), cached
        )

    def _seconds(self, phase: Mapping[str, Any], one: PhaseVolume) -> float | None:
        waits = sum(parse_duration(before["time"]) for before in phase.get("before", ()) if before["kind"] == "sleep")
        if one.time is not None:
            return waits + one.time
        if one.bytes and self._rate:
            seconds = one.bytes / self._rate
            return waits + (min(seconds, one.stonewall) if one.stonewall is not None else seconds)
        return None if one.bytes or one.operations else waits


def _no_room(found: Forecast) -> str:
    if found.available is None:
        return ""
    kept = parse_bytes(found.prepared.plan.resolved()["target"]["min_free"])
    if found.space + kept <= found.available:
        return ""
    return (
        f"It needs {format_bytes(found.space)} in {found.prepared.directory}, where {format_bytes(found.available)} are"
        f" available{f' and {format_bytes(kept)} must stay free' if kept else ''}; make it smaller with --profile or"
        " --set, or name another directory."
    )


def _never_valid(found: Forecast) -> str:
    """A read that must come from storage, and cannot."""
    for phase, one in zip(found.prepared.plan.phases, found.phases, strict=True):
        limit = phase.get("valid", {}).get("max_resident")
        if one.from_memory and limit is not None and float(limit) < 1:
            return (
                f"{one.id} asks that at most {100 * float(limit):g} % of what it reads is in memory, but it reads"
                f" {format_bytes(one.bytes)} that were just written and fit into memory; empty the cache before it"
                f' (before = [{{ kind = "drop_page_cache" }}]), read directly, or use more data.'
            )
    return ""


def code_of(codes: Iterable[int]) -> int:
    """Exit code of an experiment of which no cell can be run, from the codes of its cells: 3 where this machine is in
    the way of all of them, else 2, since there is something to be asked for differently."""
    return ENVIRONMENT if set(codes) == {ENVIRONMENT} else BAD_INPUT


def total_seconds(found: Sequence[Forecast]) -> tuple[float, bool]:
    """Seconds of all runs that are known, and whether they are all."""
    ready = [one for one in found if not one.refused]
    return sum(one.at_least * one.runs for one in ready), all(one.seconds is not None for one in ready)
