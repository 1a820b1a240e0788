# SPDX-License-Identifier: Apache-2.0
"""What a figure or a table shows: a metric of a phase in a cell, with the place of the cell on every axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sonde.experiments.judging.measured import MeasuredRuns
from sonde.experiments.judging.samples import MissingError, Samples
from sonde.experiments.judging.values import number_of
from sonde.model.experiment.claims import METRICS
from sonde.model.experiment.description import Figure, Table
from sonde.model.experiment.experiment import Cell, Experiment
from sonde.stats.ratio import Ratio, ratio
from sonde.stats.stopping import level_of_several

# Coordinates that are not axes of cells.
PHASE, PLAN, METRIC = "phase", "plan", "metric"


@dataclass(frozen=True)
class Point:
    """One metric of one phase in one cell. `at` has the cell's place on every axis, the plan, the phase, the metric."""

    at: Mapping[str, Any]
    cell: Cell
    phase: str
    metric: str
    samples: Samples

    @property
    def unit(self) -> str:
        return METRICS[self.metric][0]


@dataclass(frozen=True)
class Shown:
    """Points of a figure or a table, and what is missing, one sentence each."""

    points: tuple[Point, ...]
    missing: tuple[str, ...]


def points_of(one: Figure | Table, runs: MeasuredRuns) -> Shown:
    """Everything that a figure or a table asks for and that was measured."""
    found, missing = [], dict[str, None]()
    for metric in one.metrics:
        for cell, phase in asked(one, runs.experiment):
            try:
                samples = runs.samples(metric, phase, cell)
                if one.per:
                    divisor = _divisor(one.per, runs, cell, phase)
                    samples = replace(samples, values=tuple(value / divisor for value in samples.values))
            except MissingError as reason:
                missing[str(reason)] = None
                continue
            at = {**coordinates(runs.experiment, cell), PHASE: phase, METRIC: metric}
            found.append(Point(at, cell, phase, metric, samples))
    return Shown(tuple(found), tuple(missing))


def ratio_of(base: Point, here: Point) -> Ratio | None:
    """A point over another one, with its interval; None where one of them has a value that is not above 0."""
    if min(*base.samples.values, *here.samples.values) <= 0:
        return None
    asked_of = level_of_several([base.samples.look, here.samples.look])
    return ratio(base.samples.values, here.samples.values, asked_of)


def coordinates(experiment: Experiment, cell: Cell) -> dict[str, Any]:
    """The place of a cell on every axis, the plan among them."""
    return {**({PLAN: cell.plan} if experiment.file.plans else {}), **cell.at}


def asked(one: Figure | Table, experiment: Experiment) -> Iterator[tuple[Cell, str]]:
    """Cells and phases that a figure or a table shows, in their order."""
    where = settled(experiment, one.where or {})
    for cell in experiment.cells:
        if one.plans and cell.plan not in one.plans:
            continue
        here = coordinates(experiment, cell)
        if any(here.get(name) != value for name, value in where.items()):
            continue
        for phase in experiment.plans[cell.plan]["phases"]:
            if one.phases:
                wanted = phase["id"] in one.phases
            else:
                wanted = bool(phase.get("measure", True)) and not phase["op"].startswith(("mktree", "rmtree"))
            if wanted:
                yield cell, str(phase["id"])


def settled(experiment: Experiment, at: Mapping[str, Any]) -> dict[str, Any]:
    """Places as their axes write them ("64 KiB" may be 65536 there); what is no place stays as it is."""
    found = {axis.name: axis.place(at[axis.name]) for axis in experiment.axes if axis.name in at}
    return {name: value if (place := found.get(name)) is None else place.value for name, value in at.items()}


def _divisor(per: str, runs: MeasuredRuns, cell: Cell, phase: str) -> float:
    if per == "unit":
        return runs.units(cell)
    if per == "target":
        return runs.targets(cell)
    _, record, _ = runs.phases(phase, cell)[0]
    head = record.run
    if per == "node":
        return float((head.nodes if head else None) or 1)
    return float((head.tasks if head else None) or 1)


def label(experiment: Experiment, name: str, value: Any) -> str:
    """Words for a place on an axis, a phase or a plan."""
    if name == PLAN:
        title = next((one.title for one in experiment.file.plans if one.id == value), "")
        return title or str(value)
    axis = next((one for one in experiment.axes if one.name == name), None)
    place = axis.place(value) if axis is not None else None
    return place.label if place is not None else str(value)


def named(experiment: Experiment, name: str, value: Any) -> str:
    """The same where the name of the axis is needed to understand it: "in_flight 16", but "read" and "native"."""
    told = label(experiment, name, value)
    plain = told == str(value) and name not in (PHASE, PLAN)
    return f"{name} {told}" if plain and (isinstance(value, bool | int | float) or told[:1].isdigit()) else told


def title_of(experiment: Experiment, at: Mapping[str, Any]) -> str:
    """Words for a chart of its own: the places that all of its points share."""
    return " · ".join(named(experiment, name, value) for name, value in at.items() if value is not None)


def left_out(head: str, reason: object) -> str:
    """Not drawn: no run of cell base has it."""
    return f"{head}: {str(reason).rstrip('.')}."


def ordered(experiment: Experiment, name: str, values: Sequence[Any]) -> list[Any]:
    """Places in the order of their axis; sizes and numbers ascending where all of them are."""
    unique = list({str(one): one for one in values}.values())
    axis = next((one for one in experiment.axes if one.name == name), None)
    if axis is not None:
        order = [str(one.value) for one in axis.places]
        return sorted(unique, key=lambda one: order.index(str(one)) if str(one) in order else len(order))
    return unique


def numbers(values: Sequence[Any]) -> list[float] | None:
    """The number of each place; None where one has none, or two have the same."""
    found = [number_of(one) for one in values]
    known = [one for one in found if one is not None]
    return known if len(known) == len(values) and len(set(known)) == len(known) else None


def apart(points: Sequence[Point], inside: Sequence[str]) -> list[tuple[dict[str, Any], list[Point]]]:
    """Points by what differs between them and is not drawn inside a chart: one chart for each."""
    names = sorted({name for one in points for name in one.at})
    outside = [name for name in names if name not in inside and len({str(one.at.get(name)) for one in points}) > 1]
    groups: dict[tuple[str, ...], tuple[dict[str, Any], list[Point]]] = {}
    for one in points:
        key = tuple(str(one.at.get(name)) for name in outside)
        groups.setdefault(key, ({name: one.at.get(name) for name in outside}, []))[1].append(one)
    return list(groups.values())
