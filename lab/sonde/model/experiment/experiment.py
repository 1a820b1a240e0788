# SPDX-License-Identifier: Apache-2.0
"""An experiment as the lab uses it: its plans, its cells, and the plan of each cell."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from sonde.model.errors import ExperimentError, PlanError, suggestion
from sonde.model.experiment.axes import Axis, Place, axes_of
from sonde.model.experiment.claims import Claim, parse_claim
from sonde.model.experiment.description import Clients, ExperimentFile, Storage
from sonde.model.plan import Plan
from sonde.model.settings import set_member
from sonde.model.tables.reading import Reading, read_table

T = TypeVar("T")
# First names of paths that are the experiment's own; every other path is of its plans.
OWN = ("clients", "storage", "repeat", "sweep")
# Stands for the directory to measure, which the user names when the experiment is run.
NO_TARGET = "/no-target-yet"


@dataclass(frozen=True)
class Cell:
    """One point of the sweep: a plan, and where it lies on each axis."""

    plan: str
    at: Mapping[str, Any]  # axis -> value
    settings: tuple[tuple[str, Any], ...]  # what is set, by path, in order

    @property
    def id(self) -> str:
        """A stable name: axis=value in the order of the axes. The cell of a plan without axes is named by the plan."""
        parts = [f"{name}={value}" for name, value in self.at.items()]
        return ",".join(([f"plan={self.plan}"] if self.plan else []) + parts) or "base"


@dataclass(frozen=True, eq=False)
class Experiment:
    """A checked experiment. Make one with `read_experiment`; change it with `with_profile` or `with_settings`."""

    file: ExperimentFile
    document: Mapping[str, Any]  # as it was read, with plans read from their files
    origin: str

    @property
    def id(self) -> str:
        return self.file.id

    @property
    def title(self) -> str:
        return self.file.title or self.file.id

    @property
    def profiles(self) -> tuple[str, ...]:
        """Names of its profiles."""
        return tuple(self.file.profiles or ())

    @cached_property
    def plans(self) -> Mapping[str, Mapping[str, Any]]:
        """Document of each plan by its id; an only plan has the empty id."""
        if self.file.plan is not None:
            return {"": self.file.plan}
        return {one.id: one.plan for one in self.file.plans}

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Axes of the cells."""
        return axes_of(self.file)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, in the order of the file: the last axis runs fastest."""
        return tuple(cell for plan in self.plans for cell in self._cells_of(plan))

    @cached_property
    def claims(self) -> Mapping[str, Claim]:
        """Claim of each expectation by its id."""
        return {one.id: parse_claim(one.claim) for one in self.file.expect}

    def _cells_of(self, plan: str) -> Iterator[Cell]:
        axes = [axis for axis in self.axes if not axis.plans or plan in axis.plans]
        together = [axis for axis in axes if not axis.alone]
        alone = [axis for axis in axes if axis.alone]
        # where the plan itself lies on the axes that are walked one at a time
        own = {axis.name: one for axis in alone for one in axis.places if self._base(plan, one)}
        for places in itertools.product(*(axis.places for axis in together)):
            chosen = dict(zip((axis.name for axis in together), places, strict=True)) | own
            yield _cell(plan, chosen)
            for axis in alone:
                others = [one for one in axis.places if own.get(axis.name) is not one]
                yield from (_cell(plan, {**chosen, axis.name: one}) for one in others)

    def _base(self, plan: str, place: Place) -> bool:
        """True when a place sets what the plan says anyway: the cell without it is the same one."""
        return all(_at(self._whole(plan), path) == value for path, value in place.settings)

    def _whole(self, plan: str) -> Mapping[str, Any]:
        own = {name: self.document[name] for name in OWN if name in self.document}
        return {**self.plans[plan], **own}

    def plan_of(self, cell: Cell, target: str = NO_TARGET) -> Plan:
        """The plan of a cell with everything set, for the directory `target`.

        Raises PlanError, and ExperimentError for a wrong value of `clients` or `storage`.
        """
        document = copy.deepcopy(dict(self.plans[cell.plan]))
        for path, value in self._settings_of(cell):
            if path.partition(".")[0] not in OWN:
                set_member(document, path, value)
        document.setdefault("id", f"{self.id}.{cell.plan}" if cell.plan else self.id)
        _put_target(document, self.storage_of(cell), target)
        _put_clients(document, self.clients_of(cell), self.storage_of(cell))
        return Plan.from_document(document, self.origin)

    def clients_of(self, cell: Cell) -> Clients:
        """Who does the I/O in a cell. Raises ExperimentError."""
        return self._own_part(cell, "clients", Clients)

    def storage_of(self, cell: Cell) -> Storage:
        """What is measured in a cell: pool, units, targets. Raises ExperimentError."""
        return self._own_part(cell, "storage", Storage)

    def _own_part(self, cell: Cell, name: str, cls: type[T]) -> T:
        own = {name: copy.deepcopy(self.document.get(name, {}))}
        for path, value in self._settings_of(cell):
            if path.partition(".")[0] == name:
                set_member(own, path, value)
        return read_table(cls, own[name], Reading(ExperimentError, self.origin, (name,)))

    def _settings_of(self, cell: Cell) -> tuple[tuple[str, Any], ...]:
        """What a cell sets, by path: its variant first, then its axes."""
        chosen = next((one for one in self.file.variants if one.id == cell.at.get("variant")), None)
        return (*((chosen.set or {}).items() if chosen is not None else ()), *cell.settings)

    def missing(self, claim: Claim) -> str | None:
        """The first cell that a claim names and this experiment (in this profile) does not have, as axis=value."""
        axes = {axis.name: axis for axis in self.axes}
        named = [(name, value) for metric in claim.metrics() for name, value in metric.at.items()]
        named += [
            (str(one.options["over"]), one.options["at"])
            for one in claim.functions()
            if {"over", "at"} <= set(one.options)
        ]
        for name, value in named:
            if name in axes and axes[name].place(value) is None:
                return f"{name}={value}"
        return None

    def changed(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The document with members changed by path. Raises ExperimentError for a path that leads nowhere."""
        document = copy.deepcopy(dict(self.document))
        for path, value in settings.items():
            try:
                _change(document, path, value)
            except PlanError as reason:
                raise ExperimentError(f"{self.origin}: {path}: {reason}") from None
        return document


def _cell(plan: str, chosen: Mapping[str, Place]) -> Cell:
    settings = tuple(setting for place in chosen.values() for setting in place.settings)
    return Cell(plan, {name: place.value for name, place in chosen.items()}, settings)


def _at(document: Mapping[str, Any], path: str) -> Any:
    here: Any = document
    for step in path.split("."):
        if isinstance(here, list):
            here = next((one for one in here if isinstance(one, Mapping) and one.get("id") == step), None)
        else:
            here = here.get(step) if isinstance(here, Mapping) else None
    return here


def _put_target(document: dict[str, Any], storage: Storage, directory: str) -> None:
    """The directory, and the full stripe of the RAID group, where the plan does not say them."""
    target = document.setdefault("target", {})
    if not isinstance(target, dict):
        return  # the plan's own check says so
    target.setdefault("path", directory)
    if storage.data_width is not None and storage.segment is not None:
        target.setdefault("full_stripe", storage.data_width * storage.segment)


def _put_clients(document: dict[str, Any], clients: Clients, storage: Storage) -> None:
    """Processes and threads of the plan."""
    nodes = clients.nodes
    if nodes is None and clients.per_target is not None and storage.targets is not None:
        nodes = clients.per_target * storage.targets
    tasks: dict[str, int] = {}
    if nodes is not None or clients.tasks_per_node is not None:
        tasks["processes"] = (nodes or 1) * (clients.tasks_per_node or 1)
    if clients.threads is not None:
        tasks["threads"] = clients.threads
    if tasks:
        document["tasks"] = {**document.get("tasks", {}), **tasks}


def _change(document: dict[str, Any], path: str, value: Any) -> None:
    first, _, rest = path.partition(".")
    if first == "sweep":
        _change_sweep(document, rest, value)
    elif first == "variants":
        _change_variant(document, rest, value)
    elif first in OWN or first == "plans":
        if first == "plans":
            name, _, rest = rest.partition(".")
            _change(_named_plan(document, name), rest, value)
        else:
            set_member(document, path, value)
    else:
        plans = [document["plan"]] if isinstance(document.get("plan"), dict) else _plans(document)
        having = [plan for plan in plans if first in plan] if first in ("data", "meta") else plans
        for plan in having or plans:
            set_member(plan, path, value)


def _kept_labels(sweep: Mapping[str, Any], values: Any) -> list[str]:
    """Labels of the values that stay; none when a value is new, which nobody named."""
    labels, old = sweep.get("labels", []), sweep.get("values")
    if not isinstance(old, list) or not isinstance(values, list) or len(labels) != len(old):
        return []
    return [labels[old.index(one)] for one in values] if all(one in old for one in values) else []


def _plans(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one["plan"] for one in document.get("plans", []) if isinstance(one.get("plan"), dict)]


def _named_plan(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    known = {one.get("id"): one["plan"] for one in document.get("plans", [])}
    if name not in known:
        raise PlanError(f'there is no plan "{name}".{suggestion(name, [str(one) for one in known])}')
    return {"plan": known[name]}


def _change_variant(document: Mapping[str, Any], path: str, value: Any) -> None:
    name, _, member = path.partition(".")
    known = {str(one.get("id")): one for one in document.get("variants", [])}
    if name not in known:
        raise PlanError(f'there is no variant "{name}".{suggestion(name, known)}')
    if not member:
        raise PlanError(f'"variants.{name}" names no member; say which, like variants.{name}.engine=PATH.')
    set_member(known[name], member, value)


def _change_sweep(document: Mapping[str, Any], name: str, values: Any) -> None:
    for one in document.get("sweep", []):
        paths = one.get("paths", [])
        own = one.get("name") or (paths if isinstance(paths, str) else next(iter(paths), "")).rpartition(".")[2]
        if own == name:
            one["labels"] = _kept_labels(one, values)
            one["values"] = values
            return
    raise PlanError(f'there is no axis "{name}" whose values could be replaced.')
