# SPDX-License-Identifier: Apache-2.0
"""Cells made ready to be run: each with its directory, its plan and its clients, or with the reason why it is not."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

from sonde.experiments.directories import Directories
from sonde.experiments.joined import joined
from sonde.experiments.surroundings import with_treatments
from sonde.model.errors import BAD_INPUT, UserError
from sonde.model.experiment import Cell, Experiment
from sonde.model.experiment.description import Clients
from sonde.model.plan import Plan

_NO_PLAN = Plan({}, "")


@dataclass(frozen=True)
class Prepared:
    """A cell and what it takes to run it; `refused` is one sentence when it cannot be run, `code` its exit code."""

    cell: Cell
    directory: str = ""
    plan: Plan = _NO_PLAN
    clients: Clients = field(default_factory=Clients)
    refused: str = ""
    code: int = BAD_INPUT
    several: tuple[str, ...] = ()  # directories of a pool that has more than one
    left: tuple[str, ...] = ()  # directories that the runs of this cell share, and that are ours to remove

    @property
    def places(self) -> tuple[str, ...]:
        """Directories that are measured: one, or those of a pool that has several."""
        return self.several or (self.directory,)

    def clean(self) -> None:
        """Removes what runs of this cell left for each other."""
        for one in self.left:
            shutil.rmtree(one, ignore_errors=True)


def prepare(experiment: Experiment, directories: Directories, group: str) -> list[Prepared]:
    """Every cell, in the order of the file. Raises UserError when a name given by the user means nothing."""
    directories.check(experiment)
    return [_prepare(experiment, directories, cell, group) for cell in experiment.cells]


def _prepare(experiment: Experiment, directories: Directories, cell: Cell, group: str) -> Prepared:
    directory = ""
    try:
        counted = directories.counted(experiment, cell)
        directory = directories.of(experiment, cell)
        clients = experiment.clients_of(counted)
        storage = experiment.storage_of(counted)
        if clients.nodes is None and clients.per_target is not None and storage.targets is not None:
            clients = replace(clients, nodes=clients.per_target * storage.targets)
        plan = _named(experiment, counted, directory)
        plan = with_treatments(plan, experiment.file.treatments)
        left: tuple[str, ...] = ()
        if experiment.file.repeat is not None and experiment.file.repeat.fresh == "none":
            plan, shared = _shared(plan, group, cell)
            left = (shared,)
        several = directories.several(experiment, cell)
        if several:
            plan = joined(plan, several, storage.pool)
    except UserError as reason:
        why = str(reason).removeprefix(f"{experiment.origin}: ")
        return Prepared(cell, directory, refused=why, code=reason.exit_code)
    return Prepared(cell, directory, plan, clients, several=several, left=left)


def _named(experiment: Experiment, cell: Cell, directory: str) -> Plan:
    """The plan of a cell, for a directory that stands whatever folder it is read from, with a title that names it."""
    found = experiment.plan_of(cell, directory)
    where = {**found.document["target"], "path": str(Path(directory).absolute())}
    title = experiment.title if cell.id == "base" else f"{experiment.title}: {cell.id}"
    return Plan.from_document({**found.document, "target": where, "title": title}, experiment.origin)


def _shared(plan: Plan, group: str, cell: Cell) -> tuple[Plan, str]:
    """The plan with a directory that all runs of a cell have together: nothing is made anew."""
    name = f"sonde-{group}-{hashlib.sha256(cell.id.encode()).hexdigest()[:8]}"
    target = {**plan.document["target"], "directory": name, "keep": True, "use_existing": True}
    return Plan.from_document({**plan.document, "target": target}, plan.origin), str(plan.target / name)
