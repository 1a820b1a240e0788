# SPDX-License-Identifier: Apache-2.0
"""``sonde check``: looks at the file system under a directory, finds volumes that fit, measures, says what it means."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sonde.conduct.run import Observer, Result, Setup, conduct, failure
from sonde.experiments.check.figures import Figure, best_of, figures, headline
from sonde.experiments.check.plans import (
    MIB,
    Machine,
    Part,
    Speed,
    calibration,
    expected_seconds,
    file_calibration,
    parts,
)
from sonde.model.errors import DONE, FAILED, INTERRUPTED, MachineError, StoppedError, UserError
from sonde.model.limits import COLD
from sonde.model.plan import Plan
from sonde.model.volume import phase_volumes, written_bytes
from sonde.store.archive import new_id

_FIRST_VOLUME, _LARGEST_VOLUME = 16 * MIB, 1024 * MIB
_LONG_ENOUGH_S = 0.4
_FEW_FILES = 200


def without_room(system: Mapping[str, Any]) -> str:
    """What kind of file system has a size of 0 bytes, and what to do; as the engine says it of a run."""
    kind = str(system.get("type") or "a kind of its own")
    # A client of several servers says 0 until these have told their sizes.
    if system.get("network") or kind.startswith("fuse"):
        return (
            f"{kind}, which says that it has a size of 0 bytes: either its servers have not told theirs yet, so try"
            " again in a minute, or it holds no data, so name another directory"
        )
    return f"{kind}, which is no file system for data: name another directory"


@dataclass
class Watcher:
    """What the check tells while it works; each member may be replaced."""

    part: Callable[[str, int, int, Plan], None] = lambda title, number, count, plan: None
    line: Observer = lambda kind, line: None
    done: Callable[[Result], None] = lambda result: None
    expected: Callable[[float, int], None] = lambda seconds, space: None  # how long, and bytes of space at most


@dataclass
class CheckResult:
    """All of it."""

    group: str
    target: Path
    machine: Machine
    full: bool
    figures: list[Figure] = field(default_factory=list)
    runs: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    exit_code: int = DONE

    @property
    def headline(self) -> str:
        """All of it in one sentence, and what speaks against it."""
        return headline(self.figures, self.machine)

    def as_json(self) -> dict[str, Any]:
        """The machine form."""
        return {
            "schema": "sonde-check/2",
            "id": self.group,
            "target": str(self.target),
            "full": self.full,
            "file_system": self.machine.file_system,
            "memory_backed": self.machine.memory_backed,
            "cpus": self.machine.cpus,
            "memory_bytes": self.machine.memory,
            "exit_code": self.exit_code,
            "headline": self.headline,
            "best": [one.as_json() for one in best_of(self.figures)],
            "figures": [figure.as_json() for figure in self.figures],
            "notes": self.notes,
            "runs": [result.id for result in self.runs],
        }


class Check:
    """One check of one directory."""

    def __init__(self, target: Path, setup: Setup, full: bool, watcher: Watcher) -> None:
        self._target = target.absolute()
        self._setup = replace(setup, stopping=self._stop)
        self._told = setup.stopping
        self._stopped = False
        self._full = full
        self._watcher = watcher
        self._group = new_id("check")
        self._notes: list[str] = []

    def run(self) -> CheckResult:
        """Measures. Raises UserError when nothing could be measured or the user stopped it during calibration."""
        machine = self._look()
        machine, speed = self._calibrate(machine)
        found = parts(str(self._target), machine, speed, self._full)
        self._watcher.expected(expected_seconds(machine, speed, self._full), self._space(found))
        result = CheckResult(self._group, self._target, machine, self._full, notes=self._notes)
        records = {}
        for number, part in enumerate(found, start=1):
            try:
                run = self._measure(part, number, len(found))
            except (StoppedError, KeyboardInterrupt):
                run, self._stopped = None, True
            if run is not None:
                self._keep(result, part, run)
                records[part.key] = (run.id, run.record)
            if self._stopped:
                result.exit_code = INTERRUPTED
                break
        result.figures = figures(records, machine, machine.direct and machine.io_uring)
        if not result.runs:
            if self._stopped:
                raise StoppedError("The check was interrupted before anything was measured.")
            raise MachineError(self._notes[-1] if self._notes else "Nothing could be measured.")
        return result

    def _space(self, found: Sequence[Part]) -> int:
        """Bytes that the largest part needs: each removes what it wrote."""
        plans = ((Plan.from_document(one.document, f"the check of {self._target}"), one.tasks) for one in found)
        return max((written_bytes(phase_volumes(plan, tasks)) for plan, tasks in plans), default=0)

    def _keep(self, result: CheckResult, part: Part, run: Result) -> None:
        result.runs.append(run)
        if run.exit_code != DONE:
            self._notes.append(f"{part.title}: {run.text}")
        # a part that met its time limit was not interrupted by anybody: the others may still be measured
        code = FAILED if run.exit_code == INTERRUPTED else run.exit_code
        result.exit_code = result.exit_code or code

    def _stop(self) -> None:
        self._stopped = True
        self._told()

    def _measure(self, part: Part, number: int, count: int) -> Result | None:
        plan = Plan.from_document(part.document, f"the check of {self._target}")
        self._watcher.part(part.title, number, count, plan)
        try:
            run = self._conduct(plan, f"check-{part.key}", "check", part.key)
        except StoppedError:
            raise
        except UserError as reason:
            # One part that this file system refuses must not cost the others.
            self._notes.append(f"{part.title}: {reason}")
            return None
        self._watcher.done(run)
        return run

    def _conduct(self, plan: Plan, name: str, role: str, part: str) -> Result:
        facts = {"role": role, "group": self._group, "part": part}
        return conduct(plan, self._setup, self._watcher.line, name, facts)

    def _look(self) -> Machine:
        facts = self._setup.engine.probe(self._target)
        system = facts.get("file_system") or {}
        if not system.get("total_bytes") and not system.get("available_bytes"):
            raise MachineError(f"{self._target} is on {without_room(system)}.")
        if system.get("read_only"):
            raise MachineError(
                f"{self._target} is on a read-only file system: name another directory, or mount it writable."
            )
        if (system.get("block_device") or {}).get("kind") == "loop":
            self._notes.append(
                "The file system is in a file (loop device): what counts as storage here may be memory of this machine."
            )
        backends = {str(one.get("name")): one for one in self._setup.engine.backends(self._target)}
        uring = backends.get("io_uring", {})
        return Machine(
            cpus=len(os.sched_getaffinity(0)),
            memory=int(facts.get("memory_bytes") or _memory()),
            available=int(system.get("available_bytes") or 0),
            file_system=str(system.get("type") or "unknown"),
            memory_backed=bool(system.get("memory_backed")),
            direct=not system.get("memory_backed"),
            io_uring=bool(uring.get("usable", uring.get("yes", False))),
            evict=None if system.get("memory_backed") else "fadvise",
            network=bool(system.get("network")),
            discard="discard" in str(system.get("options", "")).split(","),
        )

    def _calibrate(self, machine: Machine) -> tuple[Machine, Speed]:
        """Grows the volume until the measurement takes long enough to mean something, two seconds at most."""
        volume = _FIRST_VOLUME
        largest = min(_LARGEST_VOLUME, machine.available // 10, machine.memory // 10)
        if machine.available < 4 * _FIRST_VOLUME:
            raise MachineError(
                f"{self._target} has only {machine.available // MIB} MiB free; a check needs at least"
                f" {4 * _FIRST_VOLUME // MIB} MiB: free some space, or name a directory on a larger file system."
            )
        while True:
            run = self._calibration_run(machine, volume)
            write = run.record.phases["write"].end if "write" in run.record.phases else None
            if write is None or write.rates.total is None:
                raise failure(FAILED if run.exit_code in (DONE, INTERRUPTED) else run.exit_code, run.text)
            machine = self._learned(machine, run)
            if write.rates.total.seconds >= _LONG_ENOUGH_S or volume >= largest:
                break
            volume = min(4 * volume, max(largest, _FIRST_VOLUME))
        files, file_removal = self._file_speed()
        read = run.record.phases["read"].end if "read" in run.record.phases else None
        cold = read.rates.total if read else None
        speed = Speed(
            to_storage=write.rates.total.bytes_per_s,
            from_storage=cold.bytes_per_s if cold else write.rates.total.bytes_per_s,
            files=files,
            removal=volume / _removal_seconds(run),
            file_removal=file_removal,
        )
        return machine, speed

    def _calibration_run(self, machine: Machine, volume: int) -> Result:
        document = calibration(str(self._target), volume, machine.evict or "fadvise", machine.direct)
        plan = Plan.from_document(document, f"the check of {self._target}")
        self._watcher.part("Calibration", 0, 0, plan)
        run = self._conduct(plan, "check-calibration", "calibration", "calibration")
        if self._stopped:
            raise StoppedError(run.text or "The check was interrupted.")
        return run

    def _learned(self, machine: Machine, run: Result) -> Machine:
        """What the calibration showed about direct I/O and about emptying the cache."""
        values = asdict(machine)
        direct = run.record.phases.get("direct")
        if machine.direct and (direct is None or direct.end is None or not direct.end.ops.done):
            values["direct"] = False
            why = direct.errors[0].text if direct and direct.errors else run.text
            self._notes.append(f"Direct I/O does not work here, so there are no direct figures: {why}")
        read = run.record.phases.get("read")
        after = read.resident_after_treatments if read else None
        if machine.evict and after is not None and after > COLD:
            # POSIX_FADV_DONTNEED touches our own files only; dropping all caches costs everybody on this machine.
            values["evict"] = "drop_page_cache" if machine.evict == "fadvise" and os.geteuid() == 0 else None
            if values["evict"] is None:
                self._notes.append("The page cache could not be emptied here, so there are no figures for cold reads.")
        return Machine(**values)

    def _file_speed(self) -> tuple[float, float]:
        """Small files a second: created, removed."""
        plan = Plan.from_document(file_calibration(str(self._target), _FEW_FILES), f"the check of {self._target}")
        self._watcher.part("Calibration", 0, 0, plan)
        run = self._conduct(plan, "check-calibration", "calibration", "calibration-files")
        end = run.record.phases["create"].end if "create" in run.record.phases else None
        if self._stopped:
            raise StoppedError(run.text or "The check was interrupted.")
        removal = run.record.phases["remove"].end if "remove" in run.record.phases else None
        created, removed = (one.rates.total if one else None for one in (end, removal))
        return created.ops_per_s if created else float(_FEW_FILES), removed.ops_per_s if removed else float("inf")


def _removal_seconds(run: Result) -> float:
    """How long it took to remove what the run had made: from its last phase to its end."""
    ends = [phase.end.t for phase in run.record.phases.values() if phase.end]
    end = run.record.end
    return max(1e-3, end.t - max(ends)) if end and ends else 1e-3


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
