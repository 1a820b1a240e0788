# SPDX-License-Identifier: Apache-2.0
"""Runs of an experiment on a described machine: a model of it takes the place of the engine and its storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sonde.conduct.run import Observer, Result, Setup, conduct
from sonde.experiments.executor import Attempt, Stoppable
from sonde.experiments.results import FACTS
from sonde.launch.simulator import SimulatedLauncher
from sonde.model.errors import UserError
from sonde.model.plan import Plan
from sonde.model.system import System


@dataclass
class Simulated(Stoppable):
    """Lets the simulator do each run, every one with a seed of its own."""

    launcher: SimulatedLauncher
    system: System
    begin: Callable[[Attempt], None] = lambda attempt: None
    simulated: bool = True

    def execute(self, attempt: Attempt) -> Result:
        variant = attempt.variant
        if variant is not None and (variant.iobuf or variant.engine or variant.environment):
            raise UserError(
                f"The variant {variant.id} runs a real program otherwise (iobuf, engine or environment), which a model"
                " of a machine does not know."
            )
        place = attempt.facts.get(FACTS) or {}
        launcher = replace(
            self.launcher,
            seed=self.launcher.seed + int(place.get("number", 0)),
            mount=_part(self.system, place.get("at") or {}) or self.launcher.mount,
        )
        clients = attempt.clients
        if clients.nodes:
            launcher = replace(launcher, nodes=min(clients.nodes, attempt.plan.processes))
        self.begin(attempt)
        return simulate(attempt.plan, self.setup, self.observer, launcher, attempt.name, attempt.facts)


def simulate(
    plan: Plan,
    setup: Setup,
    observer: Observer,
    launcher: SimulatedLauncher,
    name: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Result:
    """One plan on the machine of the launcher, kept as any other run. Raises UserError when nothing was simulated."""
    said = {"simulated": {"mount": launcher.mount, "seed": launcher.seed, "faults": list(launcher.faults)}}
    with_launcher = replace(setup, launcher=launcher)
    return conduct(_in_one_process(plan), with_launcher, observer, name, {**said, **(facts or {})})


def _part(system: System, at: Mapping[str, Any]) -> str:
    """The pool, mount or file system that a cell is on, where the system has a part of that name."""
    known = {one for kind in ("pools", "mounts", "file_systems") for one in system.ids(kind)}
    return next((str(at[axis]) for axis in ("pool", "mount", "file_system") if str(at.get(axis)) in known), "")


def _in_one_process(plan: Plan) -> Plan:
    """Processes of their own for some phases mean nothing to a model: nothing of it stays in a process's memory."""
    phases = [
        {key: value for key, value in phase.items() if key != "process"} for phase in plan.document.get("phases", [])
    ]
    return Plan.from_document({**plan.document, "phases": phases}, plan.origin)
