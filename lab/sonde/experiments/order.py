# SPDX-License-Identifier: Apache-2.0
"""In which order the runs of an experiment come, and when a cell has had enough of them.

Cells are run in blocks: every cell once, in an order drawn anew for each block, then all again. Whatever drifts while
the experiment runs (fill level, load of others, temperature) then falls on all cells alike instead of on the last one.
The order of a block depends on the seed and on the number of the block alone, and the decision who takes part in it
on the repeats before it: an experiment that is broken off and taken up again has the same runs in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from sonde.model.experiment import Cell
from sonde.model.experiment.description import Repeat
from sonde.stats.stopping import Stopping

# Rates of one run by phase; of the repeats of a cell by their number.
Rates = Mapping[str, float]
IN_ORDER = "in_order"
_MOST_OF_LEAST = 10  # repeats at most, where an interval is asked for and `max` is not given


@dataclass(frozen=True)
class Turn:
    """One run that is to be done."""

    cell: Cell
    repeat: int  # from 0, warm-ups by themselves
    warm_up: bool


def stopping_of(repeat: Repeat) -> Stopping:
    """When a cell has enough repeats."""
    if repeat.interval is None:
        return Stopping(repeat.min, repeat.min)
    return Stopping(repeat.min, repeat.max or _MOST_OF_LEAST * repeat.min, repeat.interval)


class Schedule:
    """Hands out turns one after the other.

    `rates` tells what the repeats of a cell (by its id) gave so far; `given_up` which cells are not run any more.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        repeat: Repeat,
        seed: int,
        rates: Callable[[str], Mapping[int, Rates]],
        given_up: Callable[[str], bool],
    ) -> None:
        self.stopping = stopping_of(repeat)
        self.cells, self._repeat, self._seed = cells, repeat, seed
        self._rates, self._given_up = rates, given_up

    def turns(self) -> Iterator[Turn]:
        """Every turn, also those that were done before."""
        if self._repeat.order == IN_ORDER:
            for cell in self.cells:
                yield from self._blocks([cell])
        else:
            yield from self._blocks(self.cells)

    def _blocks(self, cells: Sequence[Cell]) -> Iterator[Turn]:
        for number in range(self._repeat.warmup):
            yield from self._block(cells, number, True)
        number = 0
        while members := [cell for cell in cells if self._wants(cell, number)]:
            yield from self._block(members, number, False)
            number += 1

    def _block(self, cells: Sequence[Cell], number: int, warm_up: bool) -> Iterator[Turn]:
        drawn = list(cells)
        if self._repeat.order != IN_ORDER:
            Random(f"{self._seed} {'warm-up' if warm_up else 'repeat'} {number}").shuffle(drawn)
        for cell in drawn:
            if not self._given_up(cell.id):
                yield Turn(cell, number, warm_up)

    def _wants(self, cell: Cell, number: int) -> bool:
        """Whether a cell takes part in this block: sides of a comparison go on together until all have enough."""
        if self._given_up(cell.id):
            return False
        if number < self.stopping.least:
            return True
        return any(
            not self._enough(one, number)
            for one in self.cells
            if _same_but_variant(one, cell) and not self._given_up(one.id)
        )

    def _enough(self, cell: Cell, number: int) -> bool:
        if number >= self.stopping.most:
            return True
        before = [one for repeat, one in sorted(self._rates(cell.id).items()) if repeat < number]
        phases = {phase for one in before for phase, rate in one.items() if rate > 0}
        found = [[one[phase] for one in before if one.get(phase, 0) > 0] for phase in phases]
        return bool(found) and all(self.stopping.enough(values) for values in found)

    def expected(self, cell: Cell) -> int:
        """How many repeats the cell will probably take."""
        known = list(self._rates(cell.id).values())
        phases = {phase for one in known for phase in one}
        found = [[one[phase] for one in known if one.get(phase, 0) > 0] for phase in phases]
        return max((self.stopping.expected(values) for values in found if values), default=self.stopping.least)


def _same_but_variant(one: Cell, other: Cell) -> bool:
    def rest(cell: Cell) -> dict[str, object]:
        return {name: value for name, value in cell.at.items() if name != "variant"}

    return one.plan == other.plan and rest(one) == rest(other)
