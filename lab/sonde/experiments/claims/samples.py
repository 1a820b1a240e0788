# SPDX-License-Identifier: Apache-2.0
"""Samples: the values of a metric in the runs of one cell, and the protocol of their sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sonde.model.experiment.experiment import Cell
from sonde.stats.bounds import BoundedValue
from sonde.stats.stopping import CONFIDENCE, InterimLook, compute_median_interval


class MissingError(Exception):
    """Data that a claim needs is missing. The message names it, without capital and full stop."""


@dataclass(frozen=True)
class Samples:
    """Values of one metric in one cell, one for each run. `runs` names the runs, to pair two metrics of the same run.

    `is_exact`: the value is given, not measured (a published number). `look`: how the repeats of the cell ended, which
    the confidence interval depends on.
    """

    values: tuple[float, ...]
    runs: tuple[str, ...]
    is_exact: bool = False
    look: InterimLook = InterimLook.ONLY

    @property
    def count(self) -> int:
        return len(self.values)

    def compute_median_bounds(self, confidence: float = CONFIDENCE) -> BoundedValue:
        """Returns the median with its confidence interval."""
        if self.is_exact:
            return BoundedValue.from_exact_value(float(np.median(self.values)))
        return compute_median_bounds(self.values, self.look, confidence)


def compute_median_bounds(
    run_values: Sequence[float], interim_look: InterimLook, confidence: float = CONFIDENCE
) -> BoundedValue:
    """Returns the median of the values of one cell's runs, in order of time, with its confidence interval."""
    interval = compute_median_interval(run_values, interim_look, confidence)
    return BoundedValue(interval.value, interval.low, interval.high)


@dataclass(frozen=True)
class RateCurve:
    """One run over time: amounts and number of active tasks in each slice of `slice_s` seconds."""

    amounts: tuple[float, ...]
    active_tasks: tuple[int, ...]
    slice_s: float


class SampleSource(Protocol):
    """A source of samples. Each method raises `MissingError` for missing data.

    `is_deterministic`: the values of one run are exact, because every run gives the same.
    """

    is_deterministic: bool

    def restrict_to_subjects(self, claim_subjects: Sequence[str]) -> SampleSource:
        """Returns the source with only those numbers that a claim about `claim_subjects` (storage, cache) may be judged
        on."""

    def collect_samples(self, metric_name: str, phase_id: str, cell: Cell) -> Samples:
        """Returns the metric in each run of the cell, one value for each run."""

    def collect_member_values(
        self, metric_name: str, phase_id: str, cell: Cell, member_kind: str
    ) -> Sequence[Sequence[float]]:
        """Returns the metric of each node, task or target, for each run."""

    def collect_task_end_times(self, phase_id: str, cell: Cell) -> Sequence[Sequence[float]]:
        """Returns the end of each task in seconds from the first start, for each run."""

    def collect_rate_curves(self, metric_name: str, phase_id: str, cell: Cell) -> Sequence[RateCurve]:
        """Returns the rate over time, for each run."""

    def determine_interim_look(self, cell: Cell) -> InterimLook:
        """Returns how the repeats of the cell ended: at a fixed number, or when the interval was narrow enough."""

    def count_storage_units(self, cell: Cell) -> float:
        """Returns the number of storage units of the cell."""
