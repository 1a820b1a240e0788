# SPDX-License-Identifier: Apache-2.0
"""Alarms in words and in groups: what changed at the same time is one event, and what it spared says where to look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from sonde.stats.ratio import Ratio, ratio
from sonde.trends.lanes import Alarm, Lane
from sonde.trends.series import Series

# Changes of different series are one event when they lie this many runs apart at most.
TOGETHER_RUNS = 3
# Runs on each side that the size of a change is estimated from.
_AROUND = 30


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


def changes(series: Sequence[Series], alarms: Sequence[Alarm]) -> list[Change]:
    """Each alarm with its times and the size of the change, from up to 30 runs before it.

    Runs from before an earlier change, or after a later one, do not count.
    """
    found = []
    for alarm in alarms:
        one = series[alarm.series]
        same = [other.first for other in alarms if other.series == alarm.series]
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
                size=ratio(one.values[begin : alarm.first], one.values[alarm.first : alarm.noticed + 1]),
                since=ratio(one.values[begin : alarm.first], one.values[alarm.first : max(end, alarm.noticed + 1)]),
            )
        )
    return found


@dataclass(frozen=True)
class Event:
    """Changes at one time. `scope` are the labels that all changed series share and not all series have;
    `whole` says that every series with these labels changed."""

    changes: tuple[Change, ...]
    scope: Mapping[str, str]
    whole: bool

    @property
    def time(self) -> float:
        """The earliest first run after."""
        return min(change.first_after for change in self.changes)

    @property
    def noticed(self) -> float:
        return min(change.noticed for change in self.changes)


def events(series: Sequence[Series], found: Sequence[Change]) -> list[Event]:
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
    return [_event(series, group) for group in groups]


def _event(series: Sequence[Series], group: Sequence[Change]) -> Event:
    changed = [series[change.series] for change in group]
    shared = {
        name: value
        for name, value in changed[0].labels.items()
        if all(one.labels.get(name) == value for one in changed)
        and any(one.labels.get(name) != value for one in series)
    }
    time = min(change.first_after for change in group)
    alive = [one for one in series if len(one) and one.times[0] < time <= one.times[-1]]
    alike = [one for one in alive if all(one.labels.get(name) == value for name, value in shared.items())]
    return Event(tuple(group), shared, len(alike) == len(group))
