# SPDX-License-Identifier: Apache-2.0
"""The gate before users are let in: is what was just measured within what the baseline says, and when is it not?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from sonde.model.errors import UserError
from sonde.model.series import SeriesKey
from sonde.model.units import counted
from sonde.stats.spread import robust_sd
from sonde.trends.lanes import Settings
from sonde.trends.sides import Side, SideNumber, differences_of_key, numbers_of, pairs

# Below this many baseline runs a limit is a guess.
LEAST = 5
# All of so many runs in a row must be low.
IN_A_ROW = 3


@dataclass(frozen=True)
class Judged:
    """One number: what the baseline had, the limit that follows, what was measured now."""

    key: SeriesKey
    plan: str
    baseline: tuple[float, ...]
    usual: float
    limit: float
    measured: tuple[float, ...]
    differs_in: tuple[tuple[str, str, str], ...]

    @property
    def low(self) -> int:
        """How many of the measured runs are below the limit."""
        return sum(value < self.limit for value in self.measured)

    @property
    def bad(self) -> bool:
        """Whether all of them are: a single low run is weather."""
        return self.low == len(self.measured)

    @property
    def change(self) -> float:
        """Median now by median then, less 1."""
        return float(np.median(self.measured)) / self.usual - 1


def limit_of(values: Sequence[float], settings: Settings | None = None) -> tuple[float, float]:
    """The median of `values` and the limit below it: four robust standard deviations and 15 %, whichever is lower."""
    settings = settings or Settings()
    logs = np.log(np.asarray(values, dtype=float))
    middle = float(np.median(logs))
    spread = max(robust_sd(logs), settings.least_spread)
    drop = max(settings.gate_deviations * spread, -log(1 - settings.gate_change))
    return exp(middle), exp(middle - drop)


def judge(baseline: Side, now: Side, settings: Settings | None = None) -> list[Judged]:
    """Each number that baseline and runs have in common. Raises UserError when the baseline cannot judge."""
    both = pairs(numbers_of(baseline.runs), numbers_of(now.runs))
    if not both:
        raise UserError(
            f"{baseline.name} and {now.name} have no number in common; set a baseline of the same experiment on the"
            " same storage with `sonde baseline set`."
        )
    few = [old for old, _ in both if len(old.values) < LEAST]
    if few:
        raise UserError(
            f"{baseline.name} holds {counted(len(few[0].values), 'run')} of {few[0].key.phase}; a limit needs {LEAST}"
            " at least, and ten are better: add runs with `sonde baseline set`."
        )
    return sorted((_judged(old, new, settings) for old, new in both), key=lambda one: one.key)


def _judged(old: SideNumber, new: SideNumber, settings: Settings | None) -> Judged:
    usual, limit = limit_of(old.values, settings)
    differs = tuple(differences_of_key(old.key, new.key))
    return Judged(new.key, new.plan, old.values, usual, limit, new.values, differs)
