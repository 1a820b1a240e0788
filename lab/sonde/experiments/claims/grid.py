# SPDX-License-Identifier: Apache-2.0
"""Finds the cells of a claim. Axes that the claim does not name are equal on both sides; it must hold in each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sonde.experiments.claims.samples import MissingError
from sonde.model.experiment.axes import SweepAxis
from sonde.model.experiment.claims import Claim, MetricReference
from sonde.model.experiment.experiment import Cell, Experiment

ClaimContext = Mapping[str, Any]
PLAN_AXIS = "plan"


@dataclass(frozen=True)
class ClaimTerm:
    """A metric of a claim, and the axis that a function of it runs along (empty: none)."""

    metric: MetricReference
    axis: str


def list_claim_terms(claim: Claim) -> list[ClaimTerm]:
    """Returns every metric of a claim with the axis of its enclosing function."""
    axes_by_metric = {id(part.metric): str(part.options.get("over", "")) for part in claim.iterate_functions()}
    return [ClaimTerm(part, axes_by_metric.get(id(part), "")) for part in claim.iterate_metrics()]


class CellGrid:
    """The cells of an experiment, by their values on the axes."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.axes: dict[str, SweepAxis] = {axis.name: axis for axis in experiment.axes}
        self._cells = [(self._get_coordinates(cell), cell) for cell in experiment.cells]
        self._phases = {name: [phase["id"] for phase in plan["phases"]] for name, plan in experiment.plans.items()}

    def _get_coordinates(self, cell: Cell) -> dict[str, Any]:
        return {**({PLAN_AXIS: cell.plan} if self.experiment.file.plans else {}), **cell.coordinates}

    def find_contexts(self, claim: Claim) -> list[ClaimContext]:
        """Returns the combinations of values on the axes that the claim leaves open, if every metric has cells there.

        Raises MissingError if there is none.
        """
        joint: list[dict[str, Any]] = [{}]
        for term in list_claim_terms(claim):
            open_contexts = self._list_contexts_of_term(term)
            if not open_contexts:
                description = (
                    ", ".join(f"{name}={value}" for name, value in term.metric.coordinates.items()) or "its plan"
                )
                raise MissingError(f"no cell with {description} measures {term.metric.phase or term.metric.name}")
            joint = [
                {**context, **open_context}
                for context in joint
                for open_context in open_contexts
                if _do_contexts_agree(context, open_context)
            ]
        if not joint:
            raise MissingError("no cell has everything that the claim compares")
        unique: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
        for context in joint:
            unique.setdefault(tuple(sorted((name, str(value)) for name, value in context.items())), context)
        return list(unique.values())

    def _list_contexts_of_term(self, term: ClaimTerm) -> list[dict[str, Any]]:
        """Returns the combinations of values on the axes that a metric does not name."""
        fixed_axes = {*term.metric.coordinates, term.axis}
        open_contexts: list[dict[str, Any]] = []
        for coordinates, _ in self._find_matching_cells(term.metric):
            open_axes = {name: value for name, value in coordinates.items() if name not in fixed_axes}
            if open_axes not in open_contexts:
                open_contexts.append(open_axes)
        return open_contexts

    def list_cells_of_claim(self, claim: Claim) -> list[Cell]:
        """Returns every cell that a claim uses, in the order of the file."""
        cell_ids = {cell.id for metric in claim.iterate_metrics() for _, cell in self._find_matching_cells(metric)}
        return [cell for _, cell in self._cells if cell.id in cell_ids]

    def _find_matching_cells(self, metric: MetricReference) -> Iterator[tuple[dict[str, Any], Cell]]:
        fixed = {name: self._resolve_axis_value(name, value) for name, value in metric.coordinates.items()}
        for coordinates, cell in self._cells:
            if metric.phase and metric.phase not in self._phases[cell.plan]:
                continue
            if all(name in coordinates and coordinates[name] == value for name, value in fixed.items()):
                yield coordinates, cell

    def _resolve_axis_value(self, axis_name: str, value_or_label: Any) -> Any:
        axis_place = self.axes[axis_name].find_axis_value(value_or_label) if axis_name in self.axes else None
        return axis_place.value if axis_place is not None else value_or_label

    def find_cell(self, metric: MetricReference, context: ClaimContext) -> Cell:
        """Returns the cell of a metric in a context. Raises MissingError."""
        for coordinates, cell in self._find_matching_cells(metric):
            if _do_contexts_agree(
                {name: value for name, value in coordinates.items() if name not in metric.coordinates}, context
            ):
                return cell
        raise MissingError(f"no cell measures {metric.phase or metric.name} here")

    def list_cells_along(
        self, metric: MetricReference, axis_name: str, context: ClaimContext
    ) -> list[tuple[Any, Cell]]:
        """Returns value and cell of each existing place on an axis, in order. Raises MissingError."""
        fixed = {name: value for name, value in context.items() if name != axis_name}
        cells = [
            (coordinates[axis_name], cell)
            for coordinates, cell in self._find_matching_cells(metric)
            if axis_name in coordinates
            and _do_contexts_agree(
                {name: value for name, value in coordinates.items() if name not in (*metric.coordinates, axis_name)},
                fixed,
            )
        ]
        if axis_name in self.axes:
            order = [str(cell_value.value) for cell_value in self.axes[axis_name].values]
            cells.sort(key=lambda cell_value: order.index(str(cell_value[0])))
        if len(cells) < 2:
            raise MissingError(
                f"{axis_name} has {len(cells) or 'no'} place{'' if len(cells) == 1 else 's'} here; two are needed"
            )
        return cells

    def get_phase_of_metric(self, metric: MetricReference, cell: Cell) -> str:
        """Returns the phase of a metric: the one it names, or the only measured phase of the plan.

        Raises MissingError.
        """
        if metric.phase:
            return metric.phase
        plan = self.experiment.plans[cell.plan]
        measured = [str(phase["id"]) for phase in plan["phases"] if phase.get("measure", True)]
        if len(measured) != 1:
            raise MissingError(f"{metric.name}() names no phase, and the plan measures {len(measured)}")
        return measured[0]


def _do_contexts_agree(first_context: Mapping[str, Any], second_context: Mapping[str, Any]) -> bool:
    return all(name not in second_context or second_context[name] == value for name, value in first_context.items())
