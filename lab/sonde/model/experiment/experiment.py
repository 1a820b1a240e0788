# SPDX-License-Identifier: Apache-2.0
"""An experiment as the lab uses it: its plans, its cells, and the plan of each cell."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from sonde.model.errors import ExperimentError, PlanError, suggest_close_name
from sonde.model.experiment.axes import AxisValue, SweepAxis, build_cell_axes
from sonde.model.experiment.claim_parser import parse_claim
from sonde.model.experiment.claims import Claim
from sonde.model.experiment.description import Clients, ExperimentFile, Storage
from sonde.model.plan import Plan
from sonde.model.plan_title import compose_title, list_title_members
from sonde.model.settings import set_member_at_path
from sonde.model.tables.table_reader import ReadContext, read_table

MemberType = TypeVar("MemberType")
# First members of paths that belong to the experiment; every other path belongs to its plans.
EXPERIMENT_MEMBERS = ("clients", "storage", "repeat", "sweep")
# Placeholder for the target directory, which the user names when the experiment runs.
PLACEHOLDER_TARGET = "/no-target-yet"


@dataclass(frozen=True)
class Cell:
    """One combination of a plan and a value of each axis."""

    plan: str
    coordinates: Mapping[str, Any]  # axis -> value
    settings: tuple[tuple[str, Any], ...]  # what is set, by path, in order

    @property
    def id(self) -> str:
        """A stable name: axis=value in the order of the axes; for a plan without axes, the name of the plan."""
        parts = [f"{name}={value}" for name, value in self.coordinates.items()]
        return ",".join(([f"plan={self.plan}"] if self.plan else []) + parts) or "base"


@dataclass(frozen=True, eq=False)
class Experiment:
    """A checked experiment. Create one with `read_experiment`; change it with `change_members_by_path`."""

    file: ExperimentFile
    document: Mapping[str, Any]  # as it was read, with plans read from their files
    origin: str

    @property
    def id(self) -> str:
        return self.file.id

    @cached_property
    def title(self) -> str:
        """The title, with the values that all cells have of the members that it names in braces."""
        template = self.file.title or self.file.id
        if not list_title_members(template):
            return template
        return compose_title(template, list(self._resolve_valid_plans()))

    def _resolve_valid_plans(self) -> Iterator[Mapping[str, Any]]:
        for cell in self.cells:
            with suppress(PlanError, ExperimentError):  # the run of the cell reports it
                yield self.build_plan_of_cell(cell).resolve()

    @property
    def profile_names(self) -> tuple[str, ...]:
        """Names of its profiles."""
        return tuple(self.file.profiles or ())

    @cached_property
    def plans(self) -> Mapping[str, Mapping[str, Any]]:
        """Document of each plan by its id; an only plan has the empty id."""
        if self.file.plan is not None:
            return {"": self.file.plan}
        return {named_plan.id: named_plan.plan for named_plan in self.file.plans}

    @cached_property
    def axes(self) -> tuple[SweepAxis, ...]:
        """Axes of the cells."""
        return build_cell_axes(self.file)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, in the order of the file: the last axis runs fastest."""
        return tuple(cell for plan in self.plans for cell in self._make_cells_of_plan(plan))

    @cached_property
    def claims(self) -> Mapping[str, Claim]:
        """Claim of each expectation by its id."""
        return {expectation.id: parse_claim(expectation.claim) for expectation in self.file.expect}

    def _make_cells_of_plan(self, plan_id: str) -> Iterator[Cell]:
        axes = [axis for axis in self.axes if not axis.plans or plan_id in axis.plans]
        combined_axes = [axis for axis in axes if not axis.is_one_at_a_time]
        single_axes = [axis for axis in axes if axis.is_one_at_a_time]
        # values that the plan already has on axes that vary one at a time
        base_values = {
            axis.name: axis_value
            for axis in single_axes
            for axis_value in axis.values
            if self._is_value_of_plan(plan_id, axis_value)
        }
        for combination in itertools.product(*(axis.values for axis in combined_axes)):
            value_by_axis = dict(zip((axis.name for axis in combined_axes), combination, strict=True)) | base_values
            yield _build_cell(plan_id, value_by_axis)
            for axis in single_axes:
                other_values = [
                    axis_value for axis_value in axis.values if base_values.get(axis.name) is not axis_value
                ]
                yield from (
                    _build_cell(plan_id, {**value_by_axis, axis.name: axis_value}) for axis_value in other_values
                )

    def _is_value_of_plan(self, plan_id: str, axis_value: AxisValue) -> bool:
        """Returns whether the plan already has the values that this axis value sets."""
        return all(
            _get_member_at_path(self._merge_plan_and_experiment_members(plan_id), path) == value
            for path, value in axis_value.settings
        )

    def _merge_plan_and_experiment_members(self, plan_id: str) -> Mapping[str, Any]:
        experiment_members = {name: self.document[name] for name in EXPERIMENT_MEMBERS if name in self.document}
        return {**self.plans[plan_id], **experiment_members}

    def build_plan_of_cell(self, cell: Cell, target_directory: str = PLACEHOLDER_TARGET) -> Plan:
        """Returns the plan of a cell with all its settings, for the directory `target_directory`.

        Raises PlanError, and ExperimentError for a wrong value of `clients` or `storage`.
        """
        document = copy.deepcopy(dict(self.plans[cell.plan]))
        for path, value in self._list_settings_of_cell(cell):
            if path.partition(".")[0] not in EXPERIMENT_MEMBERS:
                set_member_at_path(document, path, value)
        document.setdefault("id", f"{self.id}.{cell.plan}" if cell.plan else self.id)
        _set_target_directory(document, self.resolve_storage(cell), target_directory)
        _set_task_numbers(document, self.resolve_clients(cell), self.resolve_storage(cell))
        return Plan.from_document(document, self.origin)

    def resolve_clients(self, cell: Cell) -> Clients:
        """Returns the clients of a cell. Raises ExperimentError."""
        return self._read_member_of_cell(cell, "clients", Clients)

    def resolve_storage(self, cell: Cell) -> Storage:
        """Returns the storage of a cell: pool, units, targets. Raises ExperimentError."""
        return self._read_member_of_cell(cell, "storage", Storage)

    def find_swept_paths(self) -> frozenset[str]:
        """Returns the paths of the members whose values distinguish cells: those of axes and of variants."""
        paths = {path for cell in self.cells for path, _ in cell.settings}
        return frozenset(paths.union(*(variant.set or {} for variant in self.file.variants)))

    def _read_member_of_cell(self, cell: Cell, member_name: str, cls: type[MemberType]) -> MemberType:
        document = {member_name: copy.deepcopy(self.document.get(member_name, {}))}
        for path, value in self._list_settings_of_cell(cell):
            if path.partition(".")[0] == member_name:
                set_member_at_path(document, path, value)
        return read_table(cls, document[member_name], ReadContext(ExperimentError, self.origin, (member_name,)))

    def _list_settings_of_cell(self, cell: Cell) -> tuple[tuple[str, Any], ...]:
        """Returns the settings of a cell by path: those of its variant first, then those of its axes."""
        variant = next(
            (candidate for candidate in self.file.variants if candidate.id == cell.coordinates.get("variant")), None
        )
        return (*((variant.set or {}).items() if variant is not None else ()), *cell.settings)

    def find_missing_cell(self, claim: Claim) -> str | None:
        """Returns the first axis=value that a claim names and this experiment (in its profile) does not have, or
        None."""
        axes = {axis.name: axis for axis in self.axes}
        coordinates = [
            (name, value) for metric in claim.iterate_metrics() for name, value in metric.coordinates.items()
        ]
        coordinates += [
            (str(function.options["over"]), function.options["at"])
            for function in claim.iterate_functions()
            if {"over", "at"} <= set(function.options)
        ]
        for name, value in coordinates:
            if name in axes and axes[name].find_axis_value(value) is None:
                return f"{name}={value}"
        return None

    def apply_settings(self, value_by_path: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the document with members changed by path. Raises ExperimentError for an unknown path."""
        document = copy.deepcopy(dict(self.document))
        for path, value in value_by_path.items():
            try:
                _set_member(document, path, value)
            except PlanError as error:
                raise ExperimentError(f"{self.origin}: {path}: {error}") from None
        return document


def _build_cell(plan_id: str, value_by_axis: Mapping[str, AxisValue]) -> Cell:
    settings = tuple(setting for axis_value in value_by_axis.values() for setting in axis_value.settings)
    return Cell(plan_id, {name: axis_value.value for name, axis_value in value_by_axis.items()}, settings)


def _get_member_at_path(experiment_document: Mapping[str, Any], member_path: str) -> Any:
    node: Any = experiment_document
    for step in member_path.split("."):
        if isinstance(node, list):
            node = next((entry for entry in node if isinstance(entry, Mapping) and entry.get("id") == step), None)
        else:
            node = node.get(step) if isinstance(node, Mapping) else None
    return node


def _set_target_directory(plan_document: dict[str, Any], storage: Storage, target_directory: str) -> None:
    """Sets the target directory and the full RAID stripe where the plan does not give them."""
    target = plan_document.setdefault("target", {})
    if not isinstance(target, dict):
        return  # the check of the plan reports it
    target.setdefault("path", target_directory)
    if storage.data_width is not None and storage.segment is not None:
        target.setdefault("full_stripe", storage.data_width * storage.segment)


def _set_task_numbers(plan_document: dict[str, Any], clients: Clients, storage: Storage) -> None:
    """Sets processes and threads of the plan, and whether they are bound to cores."""
    nodes = clients.nodes
    if nodes is None and clients.per_target is not None and storage.targets is not None:
        nodes = clients.per_target * storage.targets
    tasks: dict[str, int | bool] = {}
    if nodes is not None or clients.tasks_per_node is not None:
        tasks["processes"] = (nodes or 1) * (clients.tasks_per_node or 1)
    if clients.threads is not None:
        tasks["threads"] = clients.threads
    if clients.pin in ("core", "none"):
        tasks["pin"] = clients.pin == "core"
    if tasks:
        plan_document["tasks"] = {**plan_document.get("tasks", {}), **tasks}


def _set_member(experiment_document: dict[str, Any], member_path: str, member_value: Any) -> None:
    first, _, remaining_path = member_path.partition(".")
    if first == "sweep":
        _set_sweep_values(experiment_document, remaining_path, member_value)
    elif first == "variants":
        _set_variant_member(experiment_document, remaining_path, member_value)
    elif first in EXPERIMENT_MEMBERS or first == "plans":
        if first == "plans":
            name, _, remaining_path = remaining_path.partition(".")
            _set_member(_find_plan_document(experiment_document, name), remaining_path, member_value)
        else:
            set_member_at_path(experiment_document, member_path, member_value)
    else:
        plans = (
            [experiment_document["plan"]]
            if isinstance(experiment_document.get("plan"), dict)
            else _list_plan_documents(experiment_document)
        )
        plans_with_table = [plan for plan in plans if first in plan] if first in ("data", "meta") else plans
        for plan in plans_with_table or plans:
            set_member_at_path(plan, member_path, member_value)


def _select_labels_of_values(sweep_table: Mapping[str, Any], axis_values: Any) -> list[str]:
    """Returns the labels of the remaining values; none when a value is new and so has no label."""
    labels, old_values = sweep_table.get("labels", []), sweep_table.get("values")
    if not isinstance(old_values, list) or not isinstance(axis_values, list) or len(labels) != len(old_values):
        return []
    return (
        [labels[old_values.index(value)] for value in axis_values]
        if all(value in old_values for value in axis_values)
        else []
    )


def _list_plan_documents(experiment_document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [entry["plan"] for entry in experiment_document.get("plans", []) if isinstance(entry.get("plan"), dict)]


def _find_plan_document(experiment_document: Mapping[str, Any], plan_id: str) -> dict[str, Any]:
    plans = {entry.get("id"): entry["plan"] for entry in experiment_document.get("plans", [])}
    if plan_id not in plans:
        raise PlanError(f'there is no plan "{plan_id}".{suggest_close_name(plan_id, [str(entry) for entry in plans])}')
    return {"plan": plans[plan_id]}


def _set_variant_member(experiment_document: Mapping[str, Any], member_path: str, member_value: Any) -> None:
    name, _, member = member_path.partition(".")
    variants = {str(entry.get("id")): entry for entry in experiment_document.get("variants", [])}
    if name not in variants:
        raise PlanError(f'there is no variant "{name}".{suggest_close_name(name, variants)}')
    if not member:
        raise PlanError(f'"variants.{name}" names no member; say which, like variants.{name}.engine=PATH.')
    set_member_at_path(variants[name], member, member_value)


def _set_sweep_values(experiment_document: Mapping[str, Any], sweep_name: str, replacement_values: Any) -> None:
    for sweep in experiment_document.get("sweep", []):
        paths = sweep.get("paths", [])
        axis_name = sweep.get("name") or (paths if isinstance(paths, str) else next(iter(paths), "")).rpartition(".")[2]
        if axis_name == sweep_name:
            sweep["labels"] = _select_labels_of_values(sweep, replacement_values)
            sweep["values"] = replacement_values
            return
    raise PlanError(f'there is no axis "{sweep_name}" whose values could be replaced.')
