# SPDX-License-Identifier: Apache-2.0
"""All histories of a site at once: settings learned on their noise, what was noticed, where each of them stands."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import log

import numpy as np

from sonde.stats.ranks import Floats
from sonde.stats.ratio import simulated_visible
from sonde.stats.segments import Segment, segments
from sonde.stats.spread import robust_sd
from sonde.trends.budget import ENOUGH, Budget, Calibration, calibrate, residuals
from sonde.trends.changes import Change, JointChange, changes, joint_changes
from sonde.trends.doubted import Doubted
from sonde.trends.known import Known, digest
from sonde.trends.lanes import Settings
from sonde.trends.series import Series, telling_labels
from sonde.trends.watch import go_on, in_order

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
# Settings are learned from what was before the Monday (UTC) of the week of the latest run.
_WEEK_S, _MONDAY_S = 7 * 86400.0, 4 * 86400.0
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

    @functools.cached_property
    def series(self) -> tuple[Series, ...]:
        return tuple(one.series for one in self.standings)

    @functools.cached_property
    def telling(self) -> tuple[str, ...]:
        """Labels that tell these histories from each other."""
        return telling_labels(self.series)


def _levels(one: Series, own: Sequence[Change]) -> tuple[Segment, ...]:
    """The stretches between the changes that were noticed, so that a level and the marks beside it tell one story."""
    cuts = [0, *(int(np.searchsorted(one.times, change.first_after)) for change in own), len(one)]
    return tuple(
        Segment(first, end, float(np.median(one.values[first:end])))
        for first, end in itertools.pairwise(cuts)
        if first < end
    )


@dataclass(frozen=True)
class _Learned:
    """What the runs that noise is learned from say: their stretches, the robust standard deviation of the rest, and the
    drop that would show."""

    values: Floats
    parts: tuple[Segment, ...]
    noise: float
    visible: float | None

    @property
    def residuals(self) -> Floats:
        return residuals(self.values, self.parts)


def survey(
    found: Sequence[Series],
    alarms_per_year: float = 1.0,
    smallest: float = Settings.smallest_change,
    step: Callable[[int, int], None] = lambda done, total: None,
    known: Known | None = None,
) -> Survey:
    """Watches all histories. `alarms_per_year` is the budget of false alarms of one series; `step` is told how far the
    work is. What `known` has from an earlier survey is not found out again; the answers are the same without it."""
    known = known or Known()
    long = [one for one in found if len(one) >= SHORTEST]
    total = 4 * len(long)
    taught = _taught(long)
    pace = float(np.median([one.runs_per_year for one in taught])) if long else 365.0
    budget = Budget(alarms_per_year, max(1.0, pace))
    most = min(_MOST_LEARNED, max(_LEAST_LEARNED, _LEARNED_TOGETHER // max(1, len(long))))
    learned = []
    for done, one in enumerate(taught):
        learned.append(_learn(one.values[-most:], known))
        step(done + 1, total)
    calibration = _calibrated(learned, budget, Settings(smallest_change=smallest), known, step)
    noticed = _noticed(long, calibration.settings, known, step)
    least = -log(1 - smallest)
    noticed = [one for one in noticed if abs(log(one.size.value)) >= least]
    of_series: dict[int, list[Change]] = {}
    for change in noticed:
        of_series.setdefault(change.series, []).append(change)
    standings = []
    for at, one in enumerate(long):
        own = tuple(of_series.get(at, ()))
        standings.append(
            Standing(
                series=one,
                stretches=_levels(one, own),
                now=float(np.median(one.values[-_LATEST:])),
                noise=learned[at].noise,
                visible=learned[at].visible,
                changes=own,
            )
        )
        step(3 * len(long) + 1 + at, total)
    joint = tuple(joint_changes(long, noticed, known.ratio))
    return Survey(tuple(standings), joint, budget, calibration, len(found) - len(long))


def _taught(long: Sequence[Series]) -> list[Series]:
    """The runs that noise and pace are learned from: of histories that are long enough those before the week of the
    latest run of all. So settings stand for a week, and a new run costs a look at its own history."""
    latest = max((float(one.times[-1]) for one in long), default=0.0)
    week = (latest - _MONDAY_S) // _WEEK_S * _WEEK_S + _MONDAY_S
    counts = [int(np.searchsorted(one.times, week)) for one in long]
    return [
        Series(one.labels, one.times[:count], one.values[:count], one.unit) if count >= ENOUGH else one
        for one, count in zip(long, counts, strict=True)
    ]


def _learn(values: Floats, known: Known) -> _Learned:
    def make() -> _Learned:
        parts = tuple(segments(values))
        noise = residuals(values, parts)
        return _Learned(values, parts, robust_sd(noise), simulated_visible(noise, _KNOWN, _NEW))

    return known.answer(
        f"noise {digest(values)}",
        make,
        lambda kept: _Learned(values, tuple(Segment(*part) for part in kept[0]), kept[1], kept[2]),
        lambda one: [[[part.first, part.end, part.level] for part in one.parts], one.noise, one.visible],
    )


def _calibrated(
    learned: Sequence[_Learned], budget: Budget, settings: Settings, known: Known, step: Callable[[int, int], None]
) -> Calibration:
    tries = 0

    def tried() -> None:
        # nobody knows how many it takes: each goes a tenth of what is left
        nonlocal tries
        tries += 1
        step(len(learned) + int(len(learned) * (1 - 0.9**tries)), 4 * len(learned))

    return known.answer(
        f"settings {digest(repr(budget), repr(settings), *(one.values for one in learned))}",
        lambda: calibrate([one.residuals for one in learned], budget, settings, step=tried),
        Calibration.from_json,
        asdict,
    )


def _noticed(
    long: Sequence[Series], settings: Settings, known: Known, step: Callable[[int, int], None]
) -> list[Change]:
    before = {at: stood for at, one in enumerate(long) if (stood := known.watched(one, settings)) is not None}

    def watched(done: int, total: int) -> None:
        step(2 * len(long) + len(long) * done // total, 4 * len(long))

    found = go_on([one.logarithms for one in long], settings, before, watched)
    for one, far in zip(long, found, strict=True):
        known.keep_watched(one, settings, far)
    return changes(long, in_order(found), known.ratio)
