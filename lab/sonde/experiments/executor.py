# SPDX-License-Identifier: Apache-2.0
"""Who carries out one run of an experiment. The runner asks an `Executor`, and does not know which it is.

`Measured` lets the engine do it, on the storage of this machine. Another one may let a model of the machine do it: it
puts a run with the same files into the archive, and says so in the facts of the run (`Place.simulated`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from sonde.conduct.run import Observer, Result, Setup, conduct
from sonde.launch.engine import Engine
from sonde.launch.launchers.launcher import Launcher
from sonde.launch.launchers.list import LAUNCHERS, LOCAL, make_launcher
from sonde.launch.preload import check_settings, environment, find_library
from sonde.model.errors import MachineError, UserError
from sonde.model.experiment.description import Clients, Storage, Variant
from sonde.model.plan import Plan

# Words of experiment files for "on this machine", and for "whatever starts MPI here".
HERE, _ANY_MPI = ("", LOCAL, "fork"), "mpi"


@dataclass(frozen=True)
class Attempt:
    """One run that is to be carried out."""

    plan: Plan
    name: str  # becomes a part of the run's id
    facts: Mapping[str, Any]  # for run.json: group, role, place in the experiment
    clients: Clients
    variant: Variant | None = None
    storage: Storage = field(default_factory=Storage)


class Executor(Protocol):
    """Carries out runs, one at a time, and keeps each in the archive."""

    simulated: bool

    def execute(self, attempt: Attempt) -> Result:
        """Blocks until the run is kept, however it ended. Raises UserError when nothing was measured."""

    @property
    def stopped(self) -> bool:
        """Whether somebody asked to stop: no further run is to be begun."""


@dataclass
class Stoppable:
    """What executors have in common: they notice when a signal was passed on to what does the run."""

    setup: Setup
    observer: Observer
    stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        told = self.setup.stopping

        def stopping() -> None:
            self.stopped = True
            told()

        self.setup = replace(self.setup, stopping=stopping)


@dataclass
class Measured(Stoppable):
    """The engine, on this machine or through a launcher."""

    launcher: str = ""  # instead of what the experiment says
    words: str = ""  # more arguments for the launcher
    begin: Callable[[Attempt], None] = lambda attempt: None
    simulated: bool = False

    def execute(self, attempt: Attempt) -> Result:
        plan, launcher = launched(attempt.plan, attempt.clients, self.launcher, self.words)
        setup = replace(self.setup, launcher=launcher)
        if attempt.variant is not None:
            setup = of_variant(setup, attempt.variant)
        self.begin(replace(attempt, plan=plan))
        return conduct(plan, setup, self.observer, attempt.name, attempt.facts)


def launched(plan: Plan, clients: Clients, instead: str = "", words: str = "") -> tuple[Plan, Launcher]:
    """The plan as its launcher needs it, and the launcher. Raises UserError."""
    name = instead or clients.launcher
    if name in HERE:
        return plan, make_launcher(LOCAL, 1, words)
    if name == _ANY_MPI:
        usable = [one.name for one in reversed(LAUNCHERS) if one.name != LOCAL and not one.available()]
        if not usable:
            raise MachineError("The experiment needs MPI, and there is neither srun nor mpiexec here.")
        name = usable[0]
    if name == "srun" and clients.nodes and clients.tasks_per_node:
        words = f"--nodes={clients.nodes} --ntasks-per-node={clients.tasks_per_node} {words}"
    return plan.with_settings(["tasks.processes=null"]), make_launcher(name, plan.processes, words)


def of_variant(setup: Setup, variant: Variant) -> Setup:
    """With what a side of a comparison is conducted: its engine, its environment, its buffering layer."""
    variables = {name: str(value) for name, value in (variant.environment or {}).items()}
    if variant.iobuf:
        library, asked = find_library(), {"IOBUF_PARAMS": variant.iobuf}
        check_settings(library, asked)
        under = environment(library, **asked)
        variables |= {name: under[name] for name in ("LD_PRELOAD", *asked)}
    engine = setup.engine
    if variant.engine:
        path = Path(variant.engine).expanduser()
        if not path.is_file():
            raise UserError(f"The engine of the variant {variant.id}, {variant.engine}, is not a file.")
        engine = Engine(path.absolute(), f"of the variant {variant.id}")
    return replace(setup, engine=engine, environment={**setup.environment, **variables})
