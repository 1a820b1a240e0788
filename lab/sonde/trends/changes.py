# SPDX-License-Identifier: Apache-2.0
"""Alarms as changes, and changes of one time as a joint change: its parts, and what it spared, say where to look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log, pi
from typing import Protocol

import numpy as np

from sonde.stats.ranks import Floats
from sonde.stats.ratio import MIN_RUNS_PER_SIDE, RateRatio, compare_rates
from sonde.stats.spread import compute_robust_sd
from sonde.trends.detectors import Alarm, Detector
from sonde.trends.history import History
from sonde.trends.scope import UNEXPLAINED, Explanation, explain, group_by_size

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

    history: int
    detector: Detector
    last_before: float  # time of the last run at the old level
    first_after: float
    noticed: float
    runs_to_notice: int
    size: RateRatio  # by the runs up to the one that it was noticed with
    since: RateRatio  # by up to 30 runs after it

    @property
    def is_drop(self) -> bool:
        return self.size.value < 1.0

    @property
    def is_temporary(self) -> bool:
        """Whether later runs reversed at least half of the change."""
        return abs(log(self.since.value)) < abs(log(self.size.value)) / 2


class RatioOf(Protocol):
    """Computes the ratio of two sides, or takes it from a cache."""

    def __call__(self, before: Floats, after: Floats, *, test: bool = ...) -> RateRatio: ...


def measure_changes(
    series: Sequence[History], alarms: Sequence[Alarm], ratio_of: RatioOf = compare_rates
) -> list[Change]:
    """Each alarm with its times and the size of the change, from up to 30 runs before it.

    Runs from before an earlier change, or after a later one, do not count.
    """
    result = []
    firsts: dict[int, list[int]] = {}
    for alarm in alarms:
        firsts.setdefault(alarm.history, []).append(alarm.first)
    for alarm in alarms:
        item, same = series[alarm.history], firsts[alarm.history]
        begin = max((first for first in same if first < alarm.first), default=0)
        end = min((first for first in same if first > alarm.first), default=len(item))
        begin, end = max(begin, alarm.first - _AROUND), min(end, alarm.first + _AROUND)
        result.append(
            Change(
                history=alarm.history,
                detector=alarm.detector,
                last_before=float(item.times[alarm.first - 1]),
                first_after=float(item.times[alarm.first]),
                noticed=float(item.times[alarm.noticed]),
                runs_to_notice=alarm.noticed - alarm.first + 1,
                size=ratio_of(item.values[begin : alarm.first], item.values[alarm.first : alarm.noticed + 1]),
                since=ratio_of(
                    item.values[begin : alarm.first], item.values[alarm.first : max(end, alarm.noticed + 1)]
                ),
            )
        )
    return result


@dataclass(frozen=True)
class Part:
    """Changes of one direction and size at one time, and what they have in common."""

    changes: tuple[Change, ...]
    explanation: Explanation

    @property
    def smallest(self) -> Change:
        """The change of the least size."""
        return min(self.changes, key=lambda change: abs(log(change.size.value)))

    @property
    def largest(self) -> Change:
        return max(self.changes, key=lambda change: abs(log(change.size.value)))


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
    def end(self) -> float:
        """The latest first run after."""
        return max(change.first_after for change in self.changes)

    @property
    def noticed(self) -> float:
        return min(change.noticed for change in self.changes)


def group_changes(
    series: Sequence[History], changes: Sequence[Change], ratio_of: RatioOf = compare_rates
) -> list[JointChange]:
    """Groups of changes, the oldest first.

    A group reaches no further than three runs (of the slower series) from its first change, so that a chain of small
    distances does not join what is weeks apart. A series is in a group once.
    """
    groups: list[list[Change]] = []
    for change in sorted(changes, key=lambda change: change.first_after):
        reach = TOGETHER_RUNS * series[change.history].interval_s
        group = groups[-1] if groups else []
        near = bool(group) and change.first_after - group[0].first_after <= max(
            reach, TOGETHER_RUNS * series[group[0].history].interval_s
        )
        if near and all(other.history != change.history for other in group):
            group.append(change)
        else:
            groups.append([change])
    changes_by_history: dict[int, list[Change]] = {}
    for change in changes:
        changes_by_history.setdefault(change.history, []).append(change)
    return [_joint(series, changes_by_history, group, ratio_of) for group in groups]


def _joint(
    series: Sequence[History], changes_of: Mapping[int, Sequence[Change]], group: Sequence[Change], ratio_of: RatioOf
) -> JointChange:
    time = min(change.first_after for change in group)
    histories = {change.history for change in group}
    # Changes of opposite directions are never one part, however uncertain their sizes are.
    directions = [[i for i, change in enumerate(group) if change.is_drop is is_drop] for is_drop in (True, False)]
    sizes = [
        [positions[index] for index in indexes]
        for positions in directions
        if positions
        for indexes in group_by_size([_size_and_error(group[position]) for position in positions])
    ]
    sizes.sort(key=lambda indexes: -max(abs(log(group[index].size.value)) for index in indexes))
    # what a single series has in common with itself is no question, and looking at all others is dear
    several = any(len(places) > 1 for places in sizes)
    nearby = {
        index: _find_nearby(line, changes_of.get(index, ()), time, ratio_of)
        for index, line in enumerate(series)
        if several and index not in histories
    }
    parts = []
    for places in sizes:
        members = tuple(group[position] for position in places)
        if len(members) == 1:
            parts.append(Part(members, UNEXPLAINED))
            continue
        typical = float(np.median([log(change.size.value) for change in members]))
        stood = [series[change.history].labels for change in group if change not in members]
        untold = 0
        for index_there, change_there in nearby.items():
            if change_there is None:
                untold += _alive(series[index_there], time)
            elif _stood(change_there, typical):
                stood.append(series[index_there].labels)
            else:
                untold += 1
        parts.append(Part(members, explain([series[member.history].labels for member in members], stood, untold)))
    return JointChange(tuple(parts))


def _alive(history: History, time: float) -> bool:
    """Whether it was measured before and after."""
    return len(history) > 0 and bool(history.times[0] < time <= history.times[-1])


def _size_and_error(change: Change) -> tuple[float, float]:
    """The logarithm of the change and its standard error; a broad one where no interval is known."""
    best = change.size if change.is_temporary or change.since.low is None else change.since
    return log(best.value), _error(best)


def _error(size: RateRatio) -> float:
    if size.low is None or size.high is None:
        return _UNKNOWN_ERROR
    return log(size.high / size.low) / (2 * 1.96)


def _find_nearby(
    history: History, changes: Sequence[Change], time: float, ratio_of: RatioOf = compare_rates
) -> tuple[float, float] | None:
    """How a series moved at a time at which no change of it was noticed, as a logarithm with its standard error.

    From up to 30 runs on either side that no noticed change of its own parts from that time; where these are too few
    for an interval, the error is that of medians in the noise before. None when a side has no run, or none to tell
    noise from.
    """
    begin = max((change.first_after for change in changes if change.first_after <= time), default=-inf)
    end = min((change.first_after for change in changes if change.first_after > time), default=inf)
    first, index, last = (int(np.searchsorted(history.times, moment)) for moment in (begin, time, end))
    before, after = (
        history.values[max(first, index - _AROUND) : index],
        history.values[index : min(last, index + _AROUND)],
    )
    if not before.size or not after.size:
        return None
    size = ratio_of(before, after, test=False)
    if size.low is not None:
        return log(size.value), _error(size)
    if before.size < MIN_RUNS_PER_SIDE:
        return None
    spread = max(compute_robust_sd(np.log(before)), _LEAST_SPREAD)
    return log(size.value), spread * float(np.sqrt(pi / 2 * (1 / before.size + 1 / after.size)))


def _stood(size: tuple[float, float], typical: float) -> bool:
    """Whether a series can be said not to have made the change whose logarithm is `typical`: with 95 % confidence it
    moved by less than half of it, or the other way."""
    value, error = size
    toward = value if typical > 0 else -value
    return toward + 1.96 * error < abs(typical) / 2
