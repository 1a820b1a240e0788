# SPDX-License-Identifier: Apache-2.0
"""Conducts one run: a place in the archive, the launch, the record, the summary."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sonde
from sonde.launch.engine import Engine
from sonde.launch.launchers.launcher import Launcher
from sonde.launch.launchers.local import LocalLauncher
from sonde.launch.session import Job, Session
from sonde.model.errors import (
    BAD_INPUT,
    DONE,
    FAILED,
    INTERRUPTED,
    MISMATCH,
    DataMismatchError,
    MachineError,
    RunFailedError,
    StoppedError,
    UserError,
)
from sonde.model.lines import Line
from sonde.model.parents import Parents
from sonde.model.plan import Plan
from sonde.model.record import RecordReader
from sonde.model.system import System
from sonde.model.system.parents import parents_of
from sonde.store.archive import RECORD, Archive

Observer = Callable[[str, Line], None]


@dataclass(frozen=True)
class Setup:
    """With what a run is conducted, and where it is kept."""

    engine: Engine
    archive: Archive
    launcher: Launcher = field(default_factory=LocalLauncher)
    mpi_module: Path | None = None
    stopping: Callable[[], None] = lambda: None  # called when a signal was passed on to the engine
    environment: Mapping[str, str] = field(default_factory=dict)  # of the engine, beside that of this process
    described: System | None = None  # the machine that this is, or that is simulated: says whose targets are whose


@dataclass(frozen=True)
class Result:
    """A run that has been kept. `text` is one sentence when it did not end well."""

    folder: Path
    exit_code: int
    text: str
    record: RecordReader

    @property
    def id(self) -> str:
        return self.folder.name


def conduct(
    plan: Plan, setup: Setup, observer: Observer, name: str | None = None, facts: Mapping[str, Any] | None = None
) -> Result:
    """Runs `plan` and keeps what it gave, however it ended.

    Raises UserError when nothing was measured: the plan was refused, or nothing could be started.
    """
    known = {
        "lab": sonde.__version__,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "plan": {"id": plan.id, "title": plan.title},
        "target": str(plan.target),
        "launcher": setup.launcher.name,
        "engine_path": str(setup.engine.path),
        **({"environment": dict(setup.environment)} if setup.environment else {}),
        "role": "run",
        "group": None,
        **(facts or {}),
    }
    if setup.described is not None:
        known["parents"] = _parents(setup.described, plan, known.get("simulated")).as_json()
    draft = setup.archive.begin(name or plan.id, plan.to_json(), known)
    job = Job(
        setup.engine,
        setup.launcher,
        draft.plan_file.absolute(),
        draft.folder.absolute(),
        draft.id,
        plan.stages,
        setup.mpi_module,
        setup.environment,
        _directory(plan, draft.folder),
        plan.time_limit_s,
    )
    try:
        outcome = Session(job, observer, lambda pid: draft.claim(pid), setup.stopping).run()
    except UserError:
        setup.archive.discard(draft)
        raise
    if outcome.record.run is None and outcome.exit_code != DONE:
        setup.archive.discard(draft)
        raise failure(
            outcome.exit_code, _of_plan(plan, outcome.text) if outcome.exit_code == BAD_INPUT else outcome.text
        )
    record = _reread(draft.folder / RECORD, outcome.record) if plan.stages > 1 else outcome.record
    folder = setup.archive.commit(draft, record, outcome.exit_code, outcome.text)
    return Result(folder, outcome.exit_code, outcome.text, record)


def _parents(system: System, plan: Plan, simulated: Any) -> Parents:
    """Of the file system that the run is on. A simulated one names targets in its own way, and its mount."""
    if isinstance(simulated, Mapping):
        return parents_of(system, str(simulated.get("mount") or plan.target), simulated=True)
    return parents_of(system, str(plan.target))


def _directory(plan: Plan, folder: Path) -> Path | None:
    """Logs of operations that a plan names without a directory are kept with the run, so the engine runs there."""
    logs = [str(one["operations_file"]) for one in plan.phases if one.get("operations_file")]
    asks = any("/" not in one for one in logs) and Path(plan.target).is_absolute()
    return folder if asks else None


def failure(exit_code: int, text: str) -> UserError:
    """The error that ends the command with `exit_code`."""
    kinds: dict[int, type[UserError]] = {
        FAILED: RunFailedError,
        BAD_INPUT: UserError,
        MISMATCH: DataMismatchError,
        INTERRUPTED: StoppedError,
    }
    return kinds.get(exit_code, MachineError)(text or "The run did not end well, and the engine did not say why.")


def _of_plan(plan: Plan, text: str) -> str:
    return f"{plan.origin}: {text.removeprefix('Plan: ')}"


def _reread(path: Path, followed: RecordReader) -> RecordReader:
    """Stages were joined after they had been followed, with other times: the file is the truth."""
    from sonde.model.record import read_record

    try:
        return read_record(path)
    except OSError:
        return followed
