# SPDX-License-Identifier: Apache-2.0
"""Conducts one run: creates the run folder, launches the engine, follows the record, writes the summary."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sonde.conduct.device_requests import find_calls_above_device_limit, read_device_limit
from sonde.conduct.sampling import describe_lost_sources, sample_at_phase_borders, start_telemetry_sampling
from sonde.launch.engine import ERRORS_BY_EXIT_CODE, Engine
from sonde.launch.launchers.launcher import Launcher
from sonde.launch.launchers.local import LocalLauncher
from sonde.launch.program_environment import list_loaded_modules
from sonde.launch.session import NO_DEVICE, DevicePermission, EngineLaunch, EngineSession, LineObserver
from sonde.model.errors import (
    EXIT_BAD_INPUT,
    EXIT_OK,
    MachineError,
    UserError,
)
from sonde.model.parents import TargetParents
from sonde.model.plan import Plan
from sonde.model.record import RecordReader
from sonde.model.run import LAB_FINDINGS
from sonde.model.system import System
from sonde.model.system.parents import find_target_parents
from sonde.model.version import __version__
from sonde.store.archive import RECORD, Archive


@dataclass(frozen=True)
class RunSetup:
    """Engine, launcher, archive and environment of a run."""

    engine: Engine
    archive: Archive
    launcher: Launcher = field(default_factory=LocalLauncher)
    mpi_module: Path | None = None
    on_stop: Callable[[], None] = lambda: None  # called when a signal was passed on to the engine
    environment: Mapping[str, str] = field(default_factory=dict)  # of the engine, beside that of this process
    system: System | None = None  # the machine that this is, or that is simulated: says whose targets are whose
    device_permission: DevicePermission = NO_DEVICE


@dataclass(frozen=True)
class RunResult:
    """A stored run. `text` is one sentence when the run did not succeed."""

    folder: Path
    exit_code: int
    text: str
    record: RecordReader

    @property
    def id(self) -> str:
        return self.folder.name


def conduct_run(
    plan: Plan,
    setup: RunSetup,
    observer: LineObserver,
    run_name: str | None = None,
    extra_run_facts: Mapping[str, Any] | None = None,
    inspect_record: Callable[[RecordReader], Sequence[Mapping[str, Any]]] = lambda record: (),
) -> RunResult:
    """Runs `plan` and stores the record, regardless of how the run ends.

    `inspect_record` returns findings about the whole run, which run.json stores as `lab_findings`.

    Raises UserError when nothing was measured: the engine rejected the plan or could not start.
    """
    run_facts = {
        "lab": __version__,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "plan": {"id": plan.id, "title": plan.title},
        "target": plan.target_name,
        "launcher": setup.launcher.name,
        "engine_path": str(setup.engine.path),
        **({"environment": dict(setup.environment)} if setup.environment else {}),
        "modules": list_loaded_modules(os.environ),
        "role": "run",
        "group": None,
        **(extra_run_facts or {}),
    }
    if setup.system is not None:
        run_facts["parents"] = _find_parents_of_targets(setup.system, plan, run_facts.get("simulated")).to_json()
    draft = setup.archive.begin_run(run_name or plan.id, plan.to_json(), run_facts)
    job = EngineLaunch(
        setup.engine,
        setup.launcher,
        draft.plan_file.absolute(),
        draft.folder.absolute(),
        draft.id,
        plan.stage_count,
        setup.mpi_module,
        setup.environment,
        _choose_working_directory(plan, draft.folder),
        plan.time_limit_s,
        setup.device_permission,
    )
    try:
        with start_telemetry_sampling(draft.folder, "simulated" in run_facts) as sampler:
            observer = sample_at_phase_borders(sampler, observer)
            session = EngineSession(job, observer, lambda pid: draft.record_writer_processes(pid), setup.on_stop)
            outcome = session.run_all_stages()
    except UserError:
        setup.archive.discard_run(draft)
        raise
    if outcome.record.run is None and outcome.exit_code != EXIT_OK:
        setup.archive.discard_run(draft)
        raise make_engine_failure(
            outcome.exit_code,
            _describe_plan_error(plan, outcome.text) if outcome.exit_code == EXIT_BAD_INPUT else outcome.text,
        )
    record = _read_merged_record(draft.folder / RECORD, outcome.record) if plan.stage_count > 1 else outcome.record
    limit = None if "simulated" in run_facts else read_device_limit(plan.target)
    device_findings = find_calls_above_device_limit(plan, limit)
    if findings := [*inspect_record(record), *device_findings, *describe_lost_sources(sampler)]:
        draft = replace(draft, facts={**draft.facts, LAB_FINDINGS: [dict(finding) for finding in findings]})
    folder = setup.archive.commit_run(draft, record, outcome.exit_code, outcome.text)
    record.folder = folder
    return RunResult(folder, outcome.exit_code, outcome.text, record)


def _find_parents_of_targets(system: System, plan: Plan, simulated_member: Any) -> TargetParents:
    """Servers and units of the targets of the run's file system. A simulated run names its mount, and targets in the
    simulator's form."""
    if isinstance(simulated_member, Mapping):
        return find_target_parents(system, str(simulated_member.get("mount") or plan.target), is_simulated=True)
    return find_target_parents(system, plan.target_name)


def _choose_working_directory(plan: Plan, run_folder: Path) -> Path | None:
    """Operation logs without a directory belong into the folder of the run, so the engine runs there."""
    logs = [str(phase["operations_file"]) for phase in plan.phases if phase.get("operations_file")]
    needs_directory = any("/" not in phase for phase in logs) and Path(plan.target).is_absolute()
    return run_folder if needs_directory else None


def make_engine_failure(exit_code: int, stderr_text: str) -> UserError:
    """The error that ends the command with `exit_code`."""
    return ERRORS_BY_EXIT_CODE.get(exit_code, MachineError)(
        stderr_text or "The run failed, and the engine printed no reason."
    )


def _describe_plan_error(plan: Plan, stderr_text: str) -> str:
    return f"{plan.origin}: {stderr_text.removeprefix('Plan: ')}"


def _read_merged_record(record_file: Path, live_record: RecordReader) -> RecordReader:
    """Reads the merged record of several stages: merging changed the times of the lines that were followed."""
    from sonde.model.record import read_record

    try:
        return read_record(record_file)
    except OSError:
        return live_record
