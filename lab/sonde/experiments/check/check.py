# SPDX-License-Identifier: Apache-2.0
"""``sonde check``: probes the file system of a directory, chooses data volumes, measures, and explains the figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sonde.conduct.run import RunResult, RunSetup, conduct_run, make_engine_failure
from sonde.experiments.check.figures import CheckFigure, compute_figures, make_headline, select_best_figures
from sonde.experiments.check.plans import (
    MIB,
    CalibratedSpeed,
    CheckedMachine,
    CheckPart,
    build_calibration_plan,
    build_file_calibration_plan,
    estimate_check_seconds,
    plan_check_parts,
)
from sonde.launch.session import LineObserver
from sonde.model.confined_files import ConfinedDirectory
from sonde.model.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, MachineError, StoppedError, UserError
from sonde.model.limits import MAX_RESIDENCY_OF_COLD_FILE
from sonde.model.plan import Plan
from sonde.model.required_space import compute_required_space
from sonde.store.archive import Archive, make_run_id
from sonde.store.shards import REPORTS_FOLDER

_FIRST_VOLUME, _LARGEST_VOLUME = 16 * MIB, 1024 * MIB
_MIN_CALIBRATION_S = 0.4
_CALIBRATION_FILE_COUNT = 200


def describe_zero_size(file_system_facts: Mapping[str, Any]) -> str:
    """Returns text about a file system with a size of 0 bytes and what to do; the engine uses the same text."""
    kind = str(file_system_facts.get("type") or "a kind of its own")
    # A network client reports 0 until its servers have reported their sizes.
    if file_system_facts.get("network") or kind.startswith("fuse"):
        return (
            f"{kind}, which says that it has a size of 0 bytes: either its servers have not told theirs yet, so"
            f" try again in a minute, or it holds no data, so name another directory"
        )
    return f"{kind}, which is no file system for data: name another directory"


@dataclass
class CheckObserver:
    """Callbacks of the check; each may be replaced."""

    on_part: Callable[[str, int, int, Plan], None] = lambda title, number, count, plan: None
    on_line: LineObserver = lambda kind, line: None
    on_done: Callable[[RunResult], None] = lambda result: None
    on_expected: Callable[[float, int], None] = lambda seconds, space: (
        None
    )  # expected seconds, and maximum bytes of space


@dataclass
class CheckResult:
    """The result of a check."""

    group: str
    target: Path
    machine: CheckedMachine
    full: bool
    figures: list[CheckFigure] = field(default_factory=list)
    runs: list[RunResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    exit_code: int = EXIT_OK

    @property
    def headline(self) -> str:
        """One sentence with the best numbers and their caveats."""
        return make_headline(self.figures, self.machine)

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON document of the result (schema sonde-check/2)."""
        return {
            "schema": "sonde-check/3",
            "id": self.group,
            "target": str(self.target),
            "full": self.full,
            "file_system": self.machine.file_system,
            "memory_backed": self.machine.memory_backed,
            "cpus": self.machine.cpus,
            "memory_bytes": self.machine.memory,
            "exit_code": self.exit_code,
            "headline": self.headline,
            "best": [number.to_json() for number in select_best_figures(self.figures)],
            "figures": [figure.to_json() for figure in self.figures],
            "notes": self.notes,
            "runs": [result.id for result in self.runs],
        }


def store_check_result(result: CheckResult, archive: Archive) -> Path:
    """Stores the JSON document of the result with the reports of the archive, and returns the folder of the reports."""
    with (
        ConfinedDirectory.open(archive.root) as root,
        root.open_subdirectory(REPORTS_FOLDER, create_if_absent=True) as directory,
    ):
        directory.write_json_file(f"{result.group}.json", result.to_json())
    return archive.root / REPORTS_FOLDER


class FileSystemCheck:
    """Runs one check of one directory."""

    def __init__(self, target_directory: Path, setup: RunSetup, is_full_check: bool, observer: CheckObserver) -> None:
        self._target = target_directory.absolute()
        self._setup = replace(setup, on_stop=self._request_stop)
        self._forward_stop = setup.on_stop
        self._stopped = False
        self._full = is_full_check
        self._observer = observer
        self._group = make_run_id("check")
        self._notes: list[str] = []

    def measure_all_parts(self) -> CheckResult:
        """Runs all parts. Raises UserError if nothing was measured or the user stopped it during calibration."""
        machine = self._probe_machine()
        machine, speed = self._calibrate_volume(machine)
        check_parts = plan_check_parts(str(self._target), machine, speed, self._full)
        self._observer.on_expected(
            estimate_check_seconds(machine, speed, self._full), self._compute_required_space(check_parts)
        )
        result = CheckResult(self._group, self._target, machine, self._full, notes=self._notes)
        records = {}
        for number, part in enumerate(check_parts, start=1):
            try:
                run = self._measure_part(part, number, len(check_parts))
            except (StoppedError, KeyboardInterrupt):
                run, self._stopped = None, True
            if run is not None:
                self._record_run(result, part, run)
                records[part.key] = (run.id, run.record)
            if self._stopped:
                result.exit_code = EXIT_INTERRUPTED
                break
        result.figures = compute_figures(records, machine, machine.direct and machine.io_uring)
        if not result.runs:
            if self._stopped:
                raise StoppedError("The check was interrupted before anything was measured.")
            raise MachineError(self._notes[-1] if self._notes else "Nothing could be measured.")
        return result

    def _compute_required_space(self, check_parts: Sequence[CheckPart]) -> int:
        """Returns the bytes that the largest part needs; each part removes its files."""
        plans = (
            (Plan.from_document(part.document, f"the check of {self._target}"), part.tasks) for part in check_parts
        )
        return max((compute_required_space(plan, tasks).most_bytes for plan, tasks in plans), default=0)

    def _record_run(self, result: CheckResult, part: CheckPart, run_result: RunResult) -> None:
        result.runs.append(run_result)
        if run_result.exit_code != EXIT_OK:
            self._notes.append(f"{part.title}: {run_result.text}")
        # A part that reached its time limit was not interrupted by the user: the check continues.
        code = EXIT_FAILED if run_result.exit_code == EXIT_INTERRUPTED else run_result.exit_code
        result.exit_code = result.exit_code or code

    def _request_stop(self) -> None:
        self._stopped = True
        self._forward_stop()

    def _measure_part(self, part: CheckPart, part_number: int, part_count: int) -> RunResult | None:
        plan = Plan.from_document(part.document, f"the check of {self._target}")
        self._observer.on_part(part.title, part_number, part_count, plan)
        try:
            run = self._conduct_run_of_part(plan, f"check-{part.key}", "check", part.key)
        except StoppedError:
            raise
        except UserError as reason:
            # A part that this file system refuses must not stop the others.
            self._notes.append(f"{part.title}: {reason}")
            return None
        self._observer.on_done(run)
        return run

    def _conduct_run_of_part(self, plan: Plan, run_name: str, run_role: str, part_name: str) -> RunResult:
        facts = {"role": run_role, "group": self._group, "part": part_name}
        return conduct_run(plan, self._setup, self._observer.on_line, run_name, facts)

    def _probe_machine(self) -> CheckedMachine:
        facts = self._setup.engine.probe_directory(self._target)
        system = facts.get("file_system") or {}
        if not system.get("total_bytes") and not system.get("available_bytes"):
            raise MachineError(f"{self._target} is on {describe_zero_size(system)}.")
        if system.get("read_only"):
            raise MachineError(
                f"{self._target} is on a read-only file system: name another directory, or mount it writable."
            )
        if (system.get("block_device") or {}).get("kind") == "loop":
            self._notes.append(
                "The file system is in a file (loop device): what counts as storage here may be memory of this machine."
            )
        backends = {str(backend.get("name")): backend for backend in self._setup.engine.list_backends(self._target)}
        io_uring = backends.get("io_uring", {})
        return CheckedMachine(
            cpus=len(os.sched_getaffinity(0)),
            memory=int(facts.get("memory_bytes") or _get_physical_memory()),
            available=int(system.get("available_bytes") or 0),
            file_system=str(system.get("type") or "unknown"),
            memory_backed=bool(system.get("memory_backed")),
            direct=not system.get("memory_backed"),
            io_uring=bool(io_uring.get("usable", io_uring.get("yes", False))),
            evict=None if system.get("memory_backed") else "fadvise",
            network=bool(system.get("network")),
            discard="discard" in str(system.get("options", "")).split(","),
        )

    def _calibrate_volume(self, machine: CheckedMachine) -> tuple[CheckedMachine, CalibratedSpeed]:
        """Increases the volume until a calibration run takes long enough to give a usable rate."""
        volume = _FIRST_VOLUME
        largest = min(_LARGEST_VOLUME, machine.available // 10, machine.memory // 10)
        if machine.available < 4 * _FIRST_VOLUME:
            raise MachineError(
                f"{self._target} has only {machine.available // MIB} MiB free; a check needs at least"
                f" {4 * _FIRST_VOLUME // MIB} MiB: free some space, or name a directory on a larger file system."
            )
        while True:
            run = self._conduct_calibration_run(machine, volume)
            write = run.record.phases["write"].end if "write" in run.record.phases else None
            if write is None or write.rates.total is None:
                raise make_engine_failure(
                    EXIT_FAILED if run.exit_code in (EXIT_OK, EXIT_INTERRUPTED) else run.exit_code, run.text
                )
            machine = self._apply_calibration(machine, run)
            if write.rates.total.seconds >= _MIN_CALIBRATION_S or volume >= largest:
                break
            volume = min(4 * volume, max(largest, _FIRST_VOLUME))
        files, file_removal = self._measure_file_rates()
        read = run.record.phases["read"].end if "read" in run.record.phases else None
        cold = read.rates.total if read else None
        speed = CalibratedSpeed(
            write_bytes_per_s=write.rates.total.bytes_per_s,
            read_bytes_per_s=cold.bytes_per_s if cold else write.rates.total.bytes_per_s,
            files_per_s=files,
            removal_bytes_per_s=volume / _compute_removal_seconds(run),
            removal_files_per_s=file_removal,
        )
        return machine, speed

    def _conduct_calibration_run(self, machine: CheckedMachine, volume_bytes: int) -> RunResult:
        document = build_calibration_plan(str(self._target), volume_bytes, machine.evict or "fadvise", machine.direct)
        plan = Plan.from_document(document, f"the check of {self._target}")
        self._observer.on_part("Calibration", 0, 0, plan)
        run = self._conduct_run_of_part(plan, "check-calibration", "calibration", "calibration")
        if self._stopped:
            raise StoppedError(run.text or "The check was interrupted.")
        return run

    def _apply_calibration(self, machine: CheckedMachine, run_result: RunResult) -> CheckedMachine:
        """Returns the machine facts, corrected by what the calibration showed about direct I/O and cache eviction."""
        direct = run_result.record.phases.get("direct")
        if machine.direct and (direct is None or direct.end is None or not direct.end.ops.done):
            machine = replace(machine, direct=False)
            reason = direct.errors[0].text if direct and direct.errors else run_result.text
            self._notes.append(f"Direct I/O does not work here, so there are no direct figures: {reason}")
        read = run_result.record.phases.get("read")
        residency_after = read.residency_after_treatments if read else None
        if machine.evict and residency_after is not None and residency_after > MAX_RESIDENCY_OF_COLD_FILE:
            # POSIX_FADV_DONTNEED affects only our files; dropping all caches slows every user of this machine.
            evict = "drop_page_cache" if machine.evict == "fadvise" and os.geteuid() == 0 else None
            machine = replace(machine, evict=evict)
            if evict is None:
                self._notes.append("The page cache could not be emptied here, so there are no figures for cold reads.")
        return machine

    def _measure_file_rates(self) -> tuple[float, float]:
        """Measures the rates of small files per second: creation, removal."""
        plan = Plan.from_document(
            build_file_calibration_plan(str(self._target), _CALIBRATION_FILE_COUNT), f"the check of {self._target}"
        )
        self._observer.on_part("Calibration", 0, 0, plan)
        run = self._conduct_run_of_part(plan, "check-calibration", "calibration", "calibration-files")
        end = run.record.phases["create"].end if "create" in run.record.phases else None
        if self._stopped:
            raise StoppedError(run.text or "The check was interrupted.")
        removal = run.record.phases["remove"].end if "remove" in run.record.phases else None
        created, removed = (phase_end.rates.total if phase_end else None for phase_end in (end, removal))
        return created.ops_per_s if created else float(
            _CALIBRATION_FILE_COUNT
        ), removed.ops_per_s if removed else float("inf")


def _compute_removal_seconds(run_result: RunResult) -> float:
    """Returns the seconds from the end of the last phase to the end of the run, in which the files are removed."""
    ends = [phase.end.t for phase in run_result.record.phases.values() if phase.end]
    end = run_result.record.end
    return max(1e-3, end.t - max(ends)) if end and ends else 1e-3


def _get_physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
