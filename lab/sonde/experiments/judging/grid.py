# SPDX-License-Identifier: Apache-2.0
"""Which cells a claim speaks of: axes that it does not name are the same on both sides, and it must hold in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sonde.experiments.judging.samples import MissingError
from sonde.model.experiment.axes import Axis
from sonde.model.experiment.claims import Claim, Metric
from sonde.model.experiment.experiment import Cell, Experiment

Context = Mapping[str, Any]
PLAN = "plan"


@dataclass(frozen=True)
class Term:
    """A metric of a claim, and the axis that a function walks along (empty: none)."""

    metric: Metric
    over: str


def terms_of(claim: Claim) -> list[Term]:
    """Every metric of a claim with the axis of the function around it."""
    around = {id(one.of): str(one.options.get("over", "")) for one in claim.functions()}
    return [Term(one, around.get(id(one), "")) for one in claim.metrics()]


class Grid:
    """The cells of an experiment, found by what a claim says of them."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.axes: dict[str, Axis] = {one.name: one for one in experiment.axes}
        self._cells = [(self._where(cell), cell) for cell in experiment.cells]
        self._phases = {name: [phase["id"] for phase in plan["phases"]] for name, plan in experiment.plans.items()}

    def _where(self, cell: Cell) -> dict[str, Any]:
        return {**({PLAN: cell.plan} if self.experiment.file.plans else {}), **cell.at}

    def contexts(self, claim: Claim) -> list[Context]:
        """The places on all axes that the claim leaves open, for which every metric of it has its cells.

        Raises MissingError when there is none.
        """
        found: list[dict[str, Any]] = [{}]
        for term in terms_of(claim):
            here = self._open(term)
            if not here:
                told = ", ".join(f"{name}={value}" for name, value in term.metric.at.items()) or "its plan"
                raise MissingError(f"no cell with {told} measures {term.metric.phase or term.metric.name}")
            found = [{**one, **other} for one in found for other in here if _agree(one, other)]
        if not found:
            raise MissingError("no cell has everything that the claim compares")
        unique: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
        for one in found:
            unique.setdefault(tuple(sorted((name, str(value)) for name, value in one.items())), one)
        return list(unique.values())

    def _open(self, term: Term) -> list[dict[str, Any]]:
        """Places on the axes that a metric does not name."""
        named = {*term.metric.at, term.over}
        found: list[dict[str, Any]] = []
        for where, _ in self._matching(term.metric):
            rest = {name: value for name, value in where.items() if name not in named}
            if rest not in found:
                found.append(rest)
        return found

    def cells_of(self, claim: Claim) -> list[Cell]:
        """Every cell that a claim looks at, in the order of the file."""
        wanted = {cell.id for metric in claim.metrics() for _, cell in self._matching(metric)}
        return [cell for _, cell in self._cells if cell.id in wanted]

    def _matching(self, metric: Metric) -> Iterator[tuple[dict[str, Any], Cell]]:
        wanted = {name: self._value(name, value) for name, value in metric.at.items()}
        for where, cell in self._cells:
            if metric.phase and metric.phase not in self._phases[cell.plan]:
                continue
            if all(name in where and where[name] == value for name, value in wanted.items()):
                yield where, cell

    def _value(self, name: str, value: Any) -> Any:
        place = self.axes[name].place(value) if name in self.axes else None
        return place.value if place is not None else value

    def cell(self, metric: Metric, context: Context) -> Cell:
        """The cell of a metric in a context. Raises MissingError."""
        for where, cell in self._matching(metric):
            if _agree({name: value for name, value in where.items() if name not in metric.at}, context):
                return cell
        raise MissingError(f"no cell measures {metric.phase or metric.name} here")

    def along(self, metric: Metric, over: str, context: Context) -> list[tuple[Any, Cell]]:
        """Value and cell of each place on the axis `over` that exists, in its order. Raises MissingError."""
        fixed = {name: value for name, value in context.items() if name != over}
        found = [
            (where[over], cell)
            for where, cell in self._matching(metric)
            if over in where
            and _agree({name: value for name, value in where.items() if name not in (*metric.at, over)}, fixed)
        ]
        if over in self.axes:
            order = [str(one.value) for one in self.axes[over].places]
            found.sort(key=lambda one: order.index(str(one[0])))
        if len(found) < 2:
            raise MissingError(
                f"{over} has {len(found) or 'no'} place{'' if len(found) == 1 else 's'} here; two are needed"
            )
        return found

    def phase_of(self, metric: Metric, cell: Cell) -> str:
        """The phase that a metric means: its own, or the only measured one of the plan."""
        if metric.phase:
            return metric.phase
        plan = self.experiment.plans[cell.plan]
        measured = [str(phase["id"]) for phase in plan["phases"] if phase.get("measure", True)]
        if len(measured) != 1:
            raise MissingError(f"{metric.name}() names no phase, and the plan measures {len(measured)}")
        return measured[0]


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(name not in other or other[name] == value for name, value in one.items())
