# SPDX-License-Identifier: Apache-2.0
"""Samples from published numbers, which count as exact values, for the same claims and cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonde.experiments.claims.samples import MissingError, RateCurve, Samples
from sonde.model.experiment.experiment import Cell
from sonde.stats.stopping import InterimLook


class PublishedNumbers:
    """A `samples.SampleSource`.

    `numbers` has one value, or those of several runs, by metric, phase and cell id, in base units; `units` has the
    number of storage units by cell id.
    """

    is_deterministic = False

    def __init__(
        self,
        numbers: Mapping[tuple[str, str, str], float | Sequence[float]],
        units: Mapping[str, float] | None = None,
        members: Mapping[tuple[str, str, str], Sequence[float]] | None = None,
    ) -> None:
        self._numbers = dict(numbers)
        self._units = dict(units or {})
        self._members = dict(members or {})

    def restrict_to(self, about: Sequence[str]) -> PublishedNumbers:
        return self  # a document classifies nothing

    def samples(self, metric: str, phase: str, cell: Cell) -> Samples:
        published = self._numbers.get((metric, phase, cell.id))
        if published is None:
            raise MissingError(f"{metric} of {phase} in cell {cell.id} was not published")
        values = (
            tuple(float(number) for number in published) if isinstance(published, Sequence) else (float(published),)
        )
        return Samples(values, tuple(str(index) for index in range(len(values))), is_exact=True)

    def members(self, metric: str, phase: str, cell: Cell, member_kind: str) -> Sequence[Sequence[float]]:
        published = self._members.get((metric, phase, cell.id))
        if published is None:
            raise MissingError(f"{metric} of each {member_kind} in cell {cell.id} was not published")
        return [published]

    def task_end_times(self, phase: str, cell: Cell) -> Sequence[Sequence[float]]:
        raise MissingError(f"when the tasks of {phase} were done was not published")

    def curves(self, metric: str, phase: str, cell: Cell) -> Sequence[RateCurve]:
        raise MissingError(f"{metric} of {phase} over time was not published as numbers")

    def look(self, cell: Cell) -> InterimLook:
        return InterimLook.ONLY

    def units(self, cell: Cell) -> float:
        if cell.id not in self._units:
            raise MissingError(f"the units of cell {cell.id} were not published")
        return self._units[cell.id]
