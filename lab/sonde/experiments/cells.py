# SPDX-License-Identifier: Apache-2.0
"""Prepares cells: directory, plan and clients of each, or the reason why it cannot be run."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from sonde.experiments.directories import Directories
from sonde.experiments.environment_setup import add_engine_treatments
from sonde.experiments.pool_plan import distribute_files_over_directories
from sonde.model.confined_files import remove_tree
from sonde.model.errors import EXIT_BAD_INPUT, UserError
from sonde.model.experiment import Cell, Experiment
from sonde.model.experiment.description import Clients
from sonde.model.plan import Plan
from sonde.model.target_names import make_target_absolute

_EMPTY_PLAN = Plan({}, "")


@dataclass(frozen=True)
class PreparedCell:
    """A cell with its plan. If it cannot be run, `refusal` is one sentence and `exit_code` the matching exit code."""

    cell: Cell
    directory: str = ""
    plan: Plan = _EMPTY_PLAN
    clients: Clients = field(default_factory=Clients)
    refusal: str = ""
    exit_code: int = EXIT_BAD_INPUT
    pool_directories: tuple[str, ...] = ()  # of a pool that has more than one directory
    shared_directories: tuple[str, ...] = ()  # shared by the runs of this cell, removed at the end

    @property
    def measured_directories(self) -> tuple[str, ...]:
        """The directories that are measured: one, or all of a pool."""
        return self.pool_directories or (self.directory,)

    def remove_shared_directories(self) -> None:
        """Removes the directories that the runs of this cell share."""
        for directory in self.shared_directories:
            with suppress(OSError):
                remove_tree(Path(directory))


def prepare_cells(experiment: Experiment, directories: Directories, run_group: str) -> list[PreparedCell]:
    """Prepares all cells in the order of the file. Raises UserError for an unknown location name."""
    directories.require_known_names(experiment)
    return [_prepare_cell(experiment, directories, cell, run_group) for cell in experiment.cells]


def _prepare_cell(experiment: Experiment, directories: Directories, cell: Cell, run_group: str) -> PreparedCell:
    directory = ""
    try:
        counted_cell = directories.add_storage_counts(experiment, cell)
        directory = directories.find_directory(experiment, cell)
        clients = experiment.resolve_clients(counted_cell)
        storage = experiment.resolve_storage(counted_cell)
        if clients.nodes is None and clients.per_target is not None and storage.targets is not None:
            clients = replace(clients, nodes=clients.per_target * storage.targets)
        plan = _make_titled_plan(experiment, counted_cell, directory)
        plan = add_engine_treatments(plan, experiment.file.treatments)
        shared_directories: tuple[str, ...] = ()
        if experiment.file.repeat is not None and experiment.file.repeat.fresh == "none":
            plan, shared_directory = _use_one_directory_for_runs_of_cell(plan, run_group, cell)
            shared_directories = (shared_directory,)
        pool_directories = directories.get_pool_directories(experiment, cell)
        if pool_directories:
            plan = distribute_files_over_directories(plan, pool_directories, storage.pool)
    except UserError as reason:
        refusal = str(reason).removeprefix(f"{experiment.origin}: ")
        return PreparedCell(cell, directory, refusal=refusal, exit_code=reason.exit_code)
    return PreparedCell(
        cell, directory, plan, clients, pool_directories=pool_directories, shared_directories=shared_directories
    )


def _make_titled_plan(experiment: Experiment, cell: Cell, target_directory: str) -> Plan:
    """Returns the plan of a cell with an absolute target path and a title that names the cell."""
    plan = experiment.build_plan_of_cell(cell, target_directory)
    target = {**plan.document["target"], "path": make_target_absolute(target_directory)}
    template = experiment.file.title or experiment.id
    title = template if cell.id == "base" else f"{template}: {cell.id}"
    return Plan.from_document({**plan.document, "target": target, "title": title}, experiment.origin)


def _use_one_directory_for_runs_of_cell(plan: Plan, run_group: str, cell: Cell) -> tuple[Plan, str]:
    """Returns the plan with one directory for all runs of the cell, and that directory."""
    directory_name = f"sonde-{run_group}-{hashlib.sha256(cell.id.encode()).hexdigest()[:8]}"
    target = {**plan.document["target"], "directory": directory_name, "keep": True, "use_existing": True}
    return Plan.from_document({**plan.document, "target": target}, plan.origin), str(plan.target / directory_name)
