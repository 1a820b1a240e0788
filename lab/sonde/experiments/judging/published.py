# SPDX-License-Identifier: Apache-2.0
"""Samples from numbers that somebody published: the same claims on the same cells, with values taken as they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonde.experiments.judging.samples import Curve, MissingError, Samples
from sonde.model.experiment.experiment import Cell
from sonde.stats.stopping import Look


class Published:
    """A source of samples (`samples.Source`). `numbers` has the value (or the values of several runs) of a metric by
    metric, phase and id of the cell, in base units; `units` the building blocks by id of the cell."""

    settled = False

    def __init__(
        self,
        numbers: Mapping[tuple[str, str, str], float | Sequence[float]],
        units: Mapping[str, float] | None = None,
        members: Mapping[tuple[str, str, str], Sequence[float]] | None = None,
    ) -> None:
        self._numbers = dict(numbers)
        self._units = dict(units or {})
        self._members = dict(members or {})

    def samples(self, metric: str, phase: str, cell: Cell) -> Samples:
        found = self._numbers.get((metric, phase, cell.id))
        if found is None:
            raise MissingError(f"{metric} of {phase} in cell {cell.id} was not published")
        values = tuple(float(one) for one in found) if isinstance(found, Sequence) else (float(found),)
        return Samples(values, tuple(str(at) for at in range(len(values))), exact=True)

    def members(self, metric: str, phase: str, cell: Cell, per: str) -> Sequence[Sequence[float]]:
        found = self._members.get((metric, phase, cell.id))
        if found is None:
            raise MissingError(f"{metric} of each {per} in cell {cell.id} was not published")
        return [found]

    def finishes(self, phase: str, cell: Cell) -> Sequence[Sequence[float]]:
        raise MissingError(f"when the tasks of {phase} were done was not published")

    def curves(self, metric: str, phase: str, cell: Cell) -> Sequence[Curve]:
        raise MissingError(f"{metric} of {phase} over time was not published as numbers")

    def look(self, cell: Cell) -> Look:
        return Look.ONLY

    def units(self, cell: Cell) -> float:
        if cell.id not in self._units:
            raise MissingError(f"the units of cell {cell.id} were not published")
        return self._units[cell.id]
