# SPDX-License-Identifier: Apache-2.0
"""The order of the runs of an experiment, and the number of repeats of each cell.

Cells run in blocks: each block runs every cell once, in a new random order. Drift during the experiment (fill level,
other load, temperature) then affects all cells equally. The order of a block depends only on the seed and the number
of the block, and its cells only on earlier repeats. An interrupted and resumed experiment therefore has the same runs
in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from sonde.model.experiment import Cell
from sonde.model.experiment.description import RunSchedule
from sonde.stats.stopping import StopRule

# Rates of one run by phase.
RatesByPhase = Mapping[str, float]
FILE_ORDER = "in_order"
_DEFAULT_MAX_FACTOR = 10  # maximum over minimum repeats, if an interval is given and `max` is not


@dataclass(frozen=True)
class ScheduledRun:
    """One run of the schedule."""

    cell: Cell
    repeat: int  # from 0; warm-ups are counted separately
    warm_up: bool


def make_stopping_rule(run_schedule: RunSchedule) -> StopRule:
    """Returns the rule that decides when a cell has enough repeats."""
    if run_schedule.interval is None:
        return StopRule(run_schedule.min, run_schedule.min)
    return StopRule(run_schedule.min, run_schedule.max or _DEFAULT_MAX_FACTOR * run_schedule.min, run_schedule.interval)


class Schedule:
    """Yields the runs of an experiment in order.

    `get_rates` returns the rates of a cell's finished repeats by number; `has_given_up` returns whether a cell is
    abandoned.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        repeat_rules: RunSchedule,
        seed: int,
        get_rates: Callable[[str], Mapping[int, RatesByPhase]],
        has_given_up: Callable[[str], bool],
    ) -> None:
        self.stopping = make_stopping_rule(repeat_rules)
        self.cells, self._repeat, self._seed = cells, repeat_rules, seed
        self._rates, self._given_up = get_rates, has_given_up

    def iterate_runs(self) -> Iterator[ScheduledRun]:
        """Yields every run, including those that earlier sessions finished."""
        if self._repeat.order == FILE_ORDER:
            for cell in self.cells:
                yield from self._iterate_blocks([cell])
        else:
            yield from self._iterate_blocks(self.cells)

    def _iterate_blocks(self, cells: Sequence[Cell]) -> Iterator[ScheduledRun]:
        for number in range(self._repeat.warmup):
            yield from self._arrange_block_of_runs(cells, number, True)
        number = 0
        while members := [cell for cell in cells if self._needs_run(cell, number)]:
            yield from self._arrange_block_of_runs(members, number, False)
            number += 1

    def _arrange_block_of_runs(
        self, cells: Sequence[Cell], block_number: int, is_warm_up: bool
    ) -> Iterator[ScheduledRun]:
        block = list(cells)
        if self._repeat.order != FILE_ORDER:
            Random(f"{self._seed} {'warm-up' if is_warm_up else 'repeat'} {block_number}").shuffle(block)
        for cell in block:
            if not self._given_up(cell.id):
                yield ScheduledRun(cell, block_number, is_warm_up)

    def _needs_run(self, cell: Cell, block_number: int) -> bool:
        """Returns whether a cell is part of this block. Variants of a cell continue until all have enough repeats."""
        if self._given_up(cell.id):
            return False
        if block_number < self.stopping.min_runs:
            return True
        return any(
            not self._has_enough_repeats(other, block_number)
            for other in self.cells
            if _differ_in_variant_only(other, cell) and not self._given_up(other.id)
        )

    def _has_enough_repeats(self, cell: Cell, block_number: int) -> bool:
        if block_number >= self.stopping.max_runs:
            return True
        earlier_rates = [rates for repeat, rates in sorted(self._rates(cell.id).items()) if repeat < block_number]
        phases = {phase for rates in earlier_rates for phase, rate in rates.items() if rate > 0}
        values_by_phase = [[rates[phase] for rates in earlier_rates if rates.get(phase, 0) > 0] for phase in phases]
        return bool(values_by_phase) and all(self.stopping.is_finished(values) for values in values_by_phase)

    def estimate_repeats(self, cell: Cell) -> int:
        """Returns the expected total number of repeats of a cell."""
        all_rates = list(self._rates(cell.id).values())
        phases = {phase for rates in all_rates for phase in rates}
        values_by_phase = [[rates[phase] for rates in all_rates if rates.get(phase, 0) > 0] for phase in phases]
        return max(
            (self.stopping.estimate_needed_runs(values) for values in values_by_phase if values),
            default=self.stopping.min_runs,
        )


def _differ_in_variant_only(first_cell: Cell, second_cell: Cell) -> bool:
    def get_other_axes(cell: Cell) -> dict[str, object]:
        return {name: value for name, value in cell.coordinates.items() if name != "variant"}

    return first_cell.plan == second_cell.plan and get_other_axes(first_cell) == get_other_axes(second_cell)
