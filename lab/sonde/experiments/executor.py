# SPDX-License-Identifier: Apache-2.0
"""Executors of single runs of an experiment.

`EngineExecutor` runs the engine on the storage of this machine. Other executors, such as the simulator's, store runs
with the same files and set `simulated` in the run's facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from sonde.conduct.run import RunResult, RunSetup, conduct_run
from sonde.experiments.member_use import (
    apply_striping,
    find_unused_members,
    get_mpi_flavor,
    make_process_placement_arguments,
)
from sonde.launch.engine import Engine
from sonde.launch.launchers.launcher import Launcher
from sonde.launch.launchers.list import LAUNCHERS, LOCAL, make_launcher
from sonde.launch.preload import find_preload_library, make_preload_environment, validate_iobuf_settings
from sonde.launch.session import LineObserver
from sonde.model.errors import MachineError, UserError
from sonde.model.experiment.description import Clients, Storage, Variant
from sonde.model.plan import Plan
from sonde.model.record import RecordReader
from sonde.model.shell import quote_word
from sonde.model.system import System

# Launcher names in experiment files: without a launcher, and any launcher for MPI.
LOCAL_LAUNCHERS, _ANY_MPI_LAUNCHER = ("", LOCAL, "fork"), "mpi"


@dataclass(frozen=True)
class RunAttempt:
    """One run to execute."""

    plan: Plan
    name: str  # part of the run's id
    facts: Mapping[str, Any]  # for run.json: group, role, placement in the experiment
    clients: Clients
    variant: Variant | None = None
    storage: Storage = field(default_factory=Storage)
    swept: frozenset[str] = frozenset()  # paths of the members that distinguish the cells


class Executor(Protocol):
    """Executes runs one at a time and stores each in the archive."""

    simulated: bool

    def execute(self, attempt: RunAttempt) -> RunResult:
        """Blocks until the run is stored, whether it succeeded or not. Raises UserError if nothing was measured."""

    @property
    def stopped(self) -> bool:
        """Whether a signal requested a stop, so that no further run may begin."""


ExecutorFactory = Callable[[RunSetup, LineObserver, Callable[[RunAttempt], None]], Executor]


@dataclass
class StoppableExecutor:
    """Base of executors: notices when a stop signal was forwarded to the run."""

    setup: RunSetup
    observer: LineObserver
    stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        forward_stop = self.setup.on_stop

        def record_stop_signal() -> None:
            self.stopped = True
            forward_stop()

        self.setup = replace(self.setup, on_stop=record_stop_signal)


@dataclass
class EngineExecutor(StoppableExecutor):
    """Runs the engine on this machine or through a launcher."""

    launcher: str = ""  # replaces the experiment's launcher
    launcher_args: str = ""  # additional
    begin: Callable[[RunAttempt], None] = lambda attempt: None
    simulated: bool = False

    def execute(self, attempt: RunAttempt) -> RunResult:
        plan, launcher = resolve_launcher(
            attempt.plan, attempt.clients, self.launcher, self.launcher_args, self.setup.system
        )
        plan = apply_striping(plan, attempt.storage)
        setup = replace(self.setup, launcher=launcher)
        if attempt.variant is not None:
            setup = apply_variant(setup, attempt.variant)
        self.begin(replace(attempt, plan=plan))

        def find_unused_plan_members(record: RecordReader) -> list[dict[str, Any]]:
            return find_unused_members(attempt.clients, attempt.storage, record, plan, setup.system, attempt.swept)

        return conduct_run(plan, setup, self.observer, attempt.name, attempt.facts, find_unused_plan_members)


def resolve_launcher(
    plan: Plan, clients: Clients, requested_launcher: str = "", launcher_args: str = "", system: System | None = None
) -> tuple[Plan, Launcher]:
    """Returns the plan as the launcher needs it, and the launcher. Raises UserError."""
    name = requested_launcher or clients.launcher
    if name in LOCAL_LAUNCHERS:
        make_process_placement_arguments(LOCAL, clients, system)  # refuses what needs a launcher
        return plan, make_launcher(LOCAL, 1, launcher_args)
    if name == _ANY_MPI_LAUNCHER:
        usable = [
            launcher.name
            for launcher in reversed(LAUNCHERS)
            if launcher.name != LOCAL and not launcher.describe_unavailability()
        ]
        if not usable:
            raise MachineError("The experiment needs MPI, and there is neither srun nor mpiexec here.")
        name = usable[0]
    if name == "srun" and clients.nodes and clients.tasks_per_node:
        launcher_args = f"--nodes={clients.nodes} --ntasks-per-node={clients.tasks_per_node} {launcher_args}"
    launcher = make_launcher(name, plan.processes, launcher_args)
    if placement := make_process_placement_arguments(name, clients, system, get_mpi_flavor(launcher)):
        # Arguments of the user come last, so that they win.
        launcher = make_launcher(
            name, plan.processes, f"{' '.join(quote_word(argument) for argument in placement)} {launcher_args}"
        )
    return plan.with_settings(["tasks.processes=null"]), launcher


def apply_variant(setup: RunSetup, variant: Variant) -> RunSetup:
    """Returns the setup with the engine, environment and preload library of a variant."""
    variables = {name: str(value) for name, value in (variant.environment or {}).items()}
    if variant.iobuf:
        library, parameters = find_preload_library(), {"IOBUF_PARAMS": variant.iobuf}
        validate_iobuf_settings(library, parameters)
        preload_environment = make_preload_environment(library, **parameters)
        variables |= {name: preload_environment[name] for name in ("LD_PRELOAD", *parameters)}
    engine = setup.engine
    if variant.engine:
        path = Path(variant.engine).expanduser()
        if not path.is_file():
            raise UserError(f"The engine of the variant {variant.id}, {variant.engine}, is not a file.")
        engine = Engine(path.absolute(), f"of the variant {variant.id}")
    return replace(setup, engine=engine, environment={**setup.environment, **variables})
