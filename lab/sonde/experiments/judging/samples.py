# SPDX-License-Identifier: Apache-2.0
"""Samples: the values of a metric in the runs of one cell, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sonde.model.experiment.experiment import Cell
from sonde.stats.bounds import Bounded
from sonde.stats.stopping import CONFIDENCE, Look, median_interval


class MissingError(Exception):
    """Something that a claim needs is not there. The message says what, without a capital and without a full stop."""


@dataclass(frozen=True)
class Samples:
    """Values of one metric in one cell, one a run. `runs` names the runs, so that two metrics of one run can be paired.

    `exact`: the value is known, not measured (a published number taken as it stands). `look`: how the repeats of the
    cell ended, which the interval has to know.
    """

    values: tuple[float, ...]
    runs: tuple[str, ...]
    exact: bool = False
    look: Look = Look.ONLY

    @property
    def count(self) -> int:
        return len(self.values)

    def bounds(self, confidence: float = CONFIDENCE) -> Bounded:
        """The median with its interval."""
        if self.exact:
            return Bounded.exact(float(np.median(self.values)))
        return middle_of(self.values, self.look, confidence)


def middle_of(values: Sequence[float], look: Look, confidence: float = CONFIDENCE) -> Bounded:
    """The median of values of the runs of one cell, in their order, with the interval that every surface states."""
    found = median_interval(values, look, confidence)
    return Bounded(found.value, found.low, found.high)


@dataclass(frozen=True)
class Curve:
    """The rate of one run over time: what was moved in each slice of `slice_s` seconds, and how many tasks worked."""

    amounts: tuple[float, ...]
    active: tuple[int, ...]
    slice_s: float


class Source(Protocol):
    """Where samples come from. Each method raises `MissingError` with what is not there.

    `settled`: what one run says is known, because another one would say the same.
    """

    settled: bool

    def samples(self, metric: str, phase: str, cell: Cell) -> Samples:
        """The metric in each run of the cell, one value a run."""

    def members(self, metric: str, phase: str, cell: Cell, per: str) -> Sequence[Sequence[float]]:
        """The metric of each node, task or target (`per`), for each run."""

    def finishes(self, phase: str, cell: Cell) -> Sequence[Sequence[float]]:
        """When each task was done, seconds from the start of the first one, for each run."""

    def curves(self, metric: str, phase: str, cell: Cell) -> Sequence[Curve]:
        """The rate over time, for each run."""

    def look(self, cell: Cell) -> Look:
        """How the repeats of the cell ended: their number was given, or they were looked at until they were enough."""

    def units(self, cell: Cell) -> float:
        """Building blocks of the storage of the cell."""
