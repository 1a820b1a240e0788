# SPDX-License-Identifier: Apache-2.0
"""Alarms as changes, and changes of one time as a joint change: its parts, and what it spared, say where to look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log, pi
from typing import Protocol

import numpy as np

from sonde.stats.ranks import Floats
from sonde.stats.ratio import LEAST, Ratio, ratio
from sonde.stats.spread import robust_sd
from sonde.trends.lanes import Alarm, Lane
from sonde.trends.scope import ALONE, Explanation, explain, parts_by_size
from sonde.trends.series import Series

# Changes of different series are a joint change when they lie this many runs apart at most.
TOGETHER_RUNS = 3
# Runs on each side that the size of a change is estimated from.
_AROUND = 30
# Standard error of a logarithm of a change that too few runs measured for an interval.
_UNKNOWN_ERROR = 0.15
# Real series are never quieter than this (standard deviation of a logarithm).
_LEAST_SPREAD = 0.02


@dataclass(frozen=True)
class Change:
    """One series changed its level between two of its runs."""

    series: int
    lane: Lane
    last_before: float  # time of the last run at the old level
    first_after: float
    noticed: float
    runs_to_notice: int
    size: Ratio  # by the runs up to the one that it was noticed with
    since: Ratio  # by up to 30 runs after it

    @property
    def down(self) -> bool:
        return self.size.value < 1.0

    @property
    def over(self) -> bool:
        """Whether later runs are back at less than half of the change: a spell, not a new level."""
        return abs(log(self.since.value)) < abs(log(self.size.value)) / 2


class RatioOf(Protocol):
    """How the ratio of two sides is found: `sonde.stats.ratio.ratio`, or from memory."""

    def __call__(self, before: Floats, after: Floats, *, test: bool = ...) -> Ratio: ...


def changes(series: Sequence[Series], alarms: Sequence[Alarm], ratio_of: RatioOf = ratio) -> list[Change]:
    """Each alarm with its times and the size of the change, from up to 30 runs before it.

    Runs from before an earlier change, or after a later one, do not count.
    """
    found = []
    firsts: dict[int, list[int]] = {}
    for alarm in alarms:
        firsts.setdefault(alarm.series, []).append(alarm.first)
    for alarm in alarms:
        one, same = series[alarm.series], firsts[alarm.series]
        begin = max((first for first in same if first < alarm.first), default=0)
        end = min((first for first in same if first > alarm.first), default=len(one))
        begin, end = max(begin, alarm.first - _AROUND), min(end, alarm.first + _AROUND)
        found.append(
            Change(
                series=alarm.series,
                lane=alarm.lane,
                last_before=float(one.times[alarm.first - 1]),
                first_after=float(one.times[alarm.first]),
                noticed=float(one.times[alarm.noticed]),
                runs_to_notice=alarm.noticed - alarm.first + 1,
                size=ratio_of(one.values[begin : alarm.first], one.values[alarm.first : alarm.noticed + 1]),
                since=ratio_of(one.values[begin : alarm.first], one.values[alarm.first : max(end, alarm.noticed + 1)]),
            )
        )
    return found


@dataclass(frozen=True)
class Part:
    """Changes of one direction and size at one time, and what they have in common."""

    changes: tuple[Change, ...]
    explanation: Explanation

    @property
    def smallest(self) -> Change:
        """The change of the least size."""
        return min(self.changes, key=lambda one: abs(log(one.size.value)))

    @property
    def largest(self) -> Change:
        return max(self.changes, key=lambda one: abs(log(one.size.value)))


@dataclass(frozen=True)
class JointChange:
    """What changed at one time: one part for each direction and size, the largest first."""

    parts: tuple[Part, ...]

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(change for part in self.parts for change in part.changes)

    @property
    def time(self) -> float:
        """The earliest first run after."""
        return min(change.first_after for change in self.changes)

    @property
    def noticed(self) -> float:
        return min(change.noticed for change in self.changes)


def joint_changes(series: Sequence[Series], found: Sequence[Change], ratio_of: RatioOf = ratio) -> list[JointChange]:
    """Groups of changes, the oldest first.

    A group reaches no further than three runs (of the slower series) from its first change, so that a chain of small
    distances does not join what is weeks apart. A series is in a group once.
    """
    groups: list[list[Change]] = []
    for change in sorted(found, key=lambda one: one.first_after):
        reach = TOGETHER_RUNS * series[change.series].interval_s
        group = groups[-1] if groups else []
        near = bool(group) and change.first_after - group[0].first_after <= max(
            reach, TOGETHER_RUNS * series[group[0].series].interval_s
        )
        if near and all(other.series != change.series for other in group):
            group.append(change)
        else:
            groups.append([change])
    own: dict[int, list[Change]] = {}
    for change in found:
        own.setdefault(change.series, []).append(change)
    return [_joint(series, own, group, ratio_of) for group in groups]


def _joint(
    series: Sequence[Series], changes_of: Mapping[int, Sequence[Change]], group: Sequence[Change], ratio_of: RatioOf
) -> JointChange:
    time = min(change.first_after for change in group)
    own = {change.series for change in group}
    sizes = parts_by_size([_size_and_error(change) for change in group])
    # what a single series has in common with itself is no question, and looking at all others is dear
    several = any(len(places) > 1 for places in sizes)
    around = {
        at: _around(one, changes_of.get(at, ()), time, ratio_of)
        for at, one in enumerate(series)
        if several and at not in own
    }
    parts = []
    for places in sizes:
        members = tuple(group[place] for place in places)
        if len(members) == 1:
            parts.append(Part(members, ALONE))
            continue
        typical = float(np.median([log(change.size.value) for change in members]))
        stood = [series[change.series].labels for change in group if change not in members]
        untold = 0
        for at, change_there in around.items():
            if change_there is None:
                untold += _alive(series[at], time)
            elif _stood(change_there, typical):
                stood.append(series[at].labels)
            else:
                untold += 1
        parts.append(Part(members, explain([series[one.series].labels for one in members], stood, untold)))
    return JointChange(tuple(parts))


def _alive(one: Series, time: float) -> bool:
    """Whether it was measured before and after."""
    return len(one) > 0 and bool(one.times[0] < time <= one.times[-1])


def _size_and_error(change: Change) -> tuple[float, float]:
    """The logarithm of the change and its standard error; a broad one where no interval is known."""
    best = change.size if change.over or change.since.low is None else change.since
    return log(best.value), _error(best)


def _error(size: Ratio) -> float:
    if size.low is None or size.high is None:
        return _UNKNOWN_ERROR
    return log(size.high / size.low) / (2 * 1.96)


def _around(one: Series, own: Sequence[Change], time: float, ratio_of: RatioOf = ratio) -> tuple[float, float] | None:
    """How a series moved at a time at which no change of it was noticed, as a logarithm with its standard error.

    From up to 30 runs on either side that no noticed change of its own parts from that time; where these are too few
    for an interval, the error is that of medians in the noise before. None when a side has no run, or none to tell
    noise from.
    """
    begin = max((change.first_after for change in own if change.first_after <= time), default=-inf)
    end = min((change.first_after for change in own if change.first_after > time), default=inf)
    first, at, last = (int(np.searchsorted(one.times, moment)) for moment in (begin, time, end))
    before, after = one.values[max(first, at - _AROUND) : at], one.values[at : min(last, at + _AROUND)]
    if not before.size or not after.size:
        return None
    size = ratio_of(before, after, test=False)
    if size.low is not None:
        return log(size.value), _error(size)
    if before.size < LEAST:
        return None
    spread = max(robust_sd(np.log(before)), _LEAST_SPREAD)
    return log(size.value), spread * float(np.sqrt(pi / 2 * (1 / before.size + 1 / after.size)))


def _stood(size: tuple[float, float], typical: float) -> bool:
    """Whether a series can be said not to have made the change whose logarithm is `typical`: with 95 % confidence it
    moved by less than half of it, or the other way."""
    value, error = size
    toward = value if typical > 0 else -value
    return toward + 1.96 * error < abs(typical) / 2
