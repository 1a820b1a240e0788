# SPDX-License-Identifier: Apache-2.0
"""Samples from published numbers, which count as exact values, for the same claims and cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonde.experiments.claims.samples import MissingError, RateCurve, Samples
from sonde.model.experiment.experiment import Cell
from sonde.stats.stopping import InterimLook


class PublishedNumbers:
    """A `samples.SampleSource`.

    `published_values` has one value, or those of several runs, by metric, phase and cell id, in base units;
    `units_by_cell` has the number of storage units.
    """

    is_deterministic = False

    def __init__(
        self,
        published_values: Mapping[tuple[str, str, str], float | Sequence[float]],
        units_by_cell: Mapping[str, float] | None = None,
        member_values: Mapping[tuple[str, str, str], Sequence[float]] | None = None,
    ) -> None:
        self._numbers = dict(published_values)
        self._units = dict(units_by_cell or {})
        self._members = dict(member_values or {})

    def restrict_to_subjects(self, claim_subjects: Sequence[str]) -> PublishedNumbers:
        return self  # a document classifies nothing

    def collect_samples(self, metric_name: str, phase_id: str, cell: Cell) -> Samples:
        published = self._numbers.get((metric_name, phase_id, cell.id))
        if published is None:
            raise MissingError(f"{metric_name} of {phase_id} in cell {cell.id} was not published")
        values = (
            tuple(float(number) for number in published) if isinstance(published, Sequence) else (float(published),)
        )
        return Samples(values, tuple(str(index) for index in range(len(values))), is_exact=True)

    def collect_member_values(
        self, metric_name: str, phase_id: str, cell: Cell, member_kind: str
    ) -> Sequence[Sequence[float]]:
        published = self._members.get((metric_name, phase_id, cell.id))
        if published is None:
            raise MissingError(f"{metric_name} of each {member_kind} in cell {cell.id} was not published")
        return [published]

    def collect_task_end_times(self, phase_id: str, cell: Cell) -> Sequence[Sequence[float]]:
        raise MissingError(f"when the tasks of {phase_id} were done was not published")

    def collect_rate_curves(self, metric_name: str, phase_id: str, cell: Cell) -> Sequence[RateCurve]:
        raise MissingError(f"{metric_name} of {phase_id} over time was not published as numbers")

    def determine_interim_look(self, cell: Cell) -> InterimLook:
        return InterimLook.ONLY

    def count_storage_units(self, cell: Cell) -> float:
        if cell.id not in self._units:
            raise MissingError(f"the units of cell {cell.id} were not published")
        return self._units[cell.id]
