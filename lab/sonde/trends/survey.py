# SPDX-License-Identifier: Apache-2.0
"""All histories of a site at once: settings learned on their noise, what was noticed, where each of them stands."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from sonde.stats.ratio import simulated_visible
from sonde.stats.segments import Segment
from sonde.stats.spread import robust_sd
from sonde.trends.budget import Budget, Calibration, calibrate, residuals
from sonde.trends.changes import Change, JointChange, changes, joint_changes
from sonde.trends.doubted import Doubted
from sonde.trends.lanes import Settings
from sonde.trends.series import Series
from sonde.trends.watch import watch

# A history shorter than this has no level yet.
SHORTEST = 5
# Runs that "now" is the median of.
_LATEST = 3
# The drop that is asked about: would so many runs show it against so many before?
_NEW, _KNOWN = 10, 40
# Runs of a history that its noise is learned from at most, and of all of them together: what more would add to what is
# known of the noise of a site with hundreds of histories is nothing, and cutting takes the square of the runs.
_MOST_LEARNED, _LEARNED_TOGETHER = 2000, 200_000
_LEAST_LEARNED = 500
# A change is fresh for so many runs.
FRESH = 10


@dataclass(frozen=True)
class Standing:
    """One history. `stretches` lie between its changes; `level` is the median of the one it is in, `now` that of its
    last three runs; `noise` the robust standard deviation of the logarithms; `visible` the drop that ten more runs
    would probably show (None: too short); `doubts` what was found against its last `FRESH` runs."""

    series: Series
    stretches: tuple[Segment, ...]
    now: float
    noise: float
    visible: float | None
    changes: tuple[Change, ...]
    doubts: tuple[Doubted, ...] = ()

    @property
    def level(self) -> float:
        return self.stretches[-1].level

    @property
    def slower(self) -> bool:
        """Whether its latest change is a drop that is not over and was noticed within its last ten runs."""
        last = self.changes[-1] if self.changes else None
        if last is None or not last.down or last.over:
            return False
        return int(np.sum(self.series.times > last.noticed)) < FRESH


@dataclass(frozen=True)
class Survey:
    """Histories that are long enough, and how many are not."""

    standings: tuple[Standing, ...]
    joint: tuple[JointChange, ...]
    budget: Budget
    calibration: Calibration
    short: int

    @property
    def series(self) -> list[Series]:
        return [one.series for one in self.standings]


def _levels(one: Series, own: Sequence[Change]) -> tuple[Segment, ...]:
    """The stretches between the changes that were noticed, so that a level and the marks beside it tell one story."""
    cuts = [0, *(int(np.searchsorted(one.times, change.first_after)) for change in own), len(one)]
    return tuple(
        Segment(first, end, float(np.median(one.values[first:end])))
        for first, end in itertools.pairwise(cuts)
        if first < end
    )


def survey(
    found: Sequence[Series],
    alarms_per_year: float = 1.0,
    smallest: float = Settings.smallest_change,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> Survey:
    """Watches all histories. `alarms_per_year` is the budget of false alarms of one series; `step` is told how far the
    work is."""
    long = [one for one in found if len(one) >= SHORTEST]
    pace = float(np.median([one.runs_per_year for one in long])) if long else 365.0
    budget = Budget(alarms_per_year, max(1.0, pace))
    total = 2 * len(long) + 2
    learned = min(_MOST_LEARNED, max(_LEAST_LEARNED, _LEARNED_TOGETHER // max(1, len(long))))
    noises = []
    for done, one in enumerate(long):
        noises.append(residuals(one.values[-learned:]))
        step(done + 1, total)
    calibration = calibrate(noises, budget, Settings(smallest_change=smallest))
    step(len(long) + 1, total)
    least = -log(1 - smallest)
    noticed = [one for one in changes(long, watch(long, calibration.settings)) if abs(log(one.size.value)) >= least]
    standings = []
    for at, one in enumerate(long):
        own = tuple(change for change in noticed if change.series == at)
        standings.append(
            Standing(
                series=one,
                stretches=_levels(one, own),
                now=float(np.median(one.values[-_LATEST:])),
                noise=robust_sd(noises[at]),
                visible=simulated_visible(noises[at], _KNOWN, _NEW),
                changes=own,
            )
        )
        step(len(long) + 2 + at, total)
    return Survey(tuple(standings), tuple(joint_changes(long, noticed)), budget, calibration, len(found) - len(long))
