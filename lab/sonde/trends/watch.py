# SPDX-License-Identifier: Apache-2.0
"""Histories run by run, as they were when each run was the latest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sonde.stats.ranks import Floats
from sonde.trends.lanes import Alarm, Lanes, Place, Settings
from sonde.trends.series import Series

Ints = NDArray[np.int64]
# Runs of each history that are taken at a time.
_STRETCH = 512


def watch_rows(logarithms: Floats, settings: Settings | None = None) -> list[Alarm]:
    """Alarms of many histories of equal length (rows), in the order in which they were raised."""
    lanes = Lanes(logarithms.shape[0], settings or Settings())
    alarms: list[Alarm] = []
    for run in range(logarithms.shape[1]):
        alarms += lanes.push(logarithms[:, run])
    return alarms


@dataclass(frozen=True)
class Watched:
    """What the watch of one history noticed, and where it stands."""

    place: Place
    alarms: tuple[Alarm, ...]


def watch(series: Sequence[Series], settings: Sequence[Settings] | Settings | None = None) -> list[Alarm]:
    """Alarms of all `series`; `Alarm.series` counts them. `settings` are one for all, or one each.

    Runs of one series come in their own order; where series are of different length the shorter ones just end.
    """
    if settings is None or isinstance(settings, Settings):
        return in_order(go_on([one.logarithms for one in series], settings or Settings()))
    alarms: list[Alarm] = []
    for one in dict.fromkeys(settings):
        members = [at for at, own in enumerate(settings) if own == one]
        found = in_order(go_on([series[at].logarithms for at in members], one))
        alarms += [replace(alarm, series=members[alarm.series]) for alarm in found]
    return sorted(alarms, key=lambda alarm: float(series[alarm.series].times[alarm.noticed]))


def in_order(watched: Sequence[Watched]) -> list[Alarm]:
    """All alarms as a watch of all series at once raises them: run by run, of each run those of the gate first."""
    alarms = [alarm for one in watched for alarm in one.alarms]
    return sorted(alarms, key=lambda one: (one.noticed, one.lane != "gate", one.series))


def go_on(
    rows: Sequence[Floats],
    settings: Settings,
    before: Mapping[int, Watched] | None = None,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> list[Watched]:
    """What is noticed in these histories (logarithms, without gaps). Those in `before` (by their position) are watched
    from where that watch stood: with its answers, whichever they are. `step` is told how many runs were watched.
    """
    known = before or {}
    lanes = Lanes(len(rows), settings)
    alarms: list[list[Alarm]] = [[] for _ in rows]
    for at, one in known.items():
        lanes.resume(at, one.place, rows[at])
        alarms[at] = [replace(alarm, series=at) for alarm in one.alarms]
    places = [lanes.place(at) for at in range(len(rows))]
    begun = np.array([place.runs for place in places], dtype=np.int64)
    rest = np.array([one.size for one in rows], dtype=np.int64) - begun
    members, done, total = np.arange(len(rows)), 0, int(rest.sum())
    column = 0
    while members.size:
        # who has ended leaves when half of all have: a long history does not pay for many short ones
        keep = rest[members] > column
        for row in np.flatnonzero(~keep):
            ended = int(members[row])
            # it saw gaps while others went on
            places[ended] = replace(lanes.place(int(row)), runs=rows[ended].size)
        if not keep.all():
            members = members[keep]
            lanes.keep(keep)
        if not members.size:
            break
        until = int(np.sort(rest[members])[(members.size - 1) // 2])
        for begin in range(column, until, _STRETCH):
            end = min(until, begin + _STRETCH)
            for run in _columns(rows, members, begun, begin, end).T:
                for alarm in lanes.push(run):
                    at = int(members[alarm.series])
                    alarms[at].append(replace(alarm, series=at))
            done += int(np.sum(np.clip(rest[members] - begin, 0, end - begin)))
            step(done, total)
        column = until
    return [Watched(place, tuple(own)) for place, own in zip(places, alarms, strict=True)]


def _columns(rows: Sequence[Floats], members: Ints, begun: Ints, begin: int, end: int) -> Floats:
    """Of these histories the runs from `begin` to `end`, counted from where the watch began; NaN after their last."""
    found = np.full((members.size, end - begin), np.nan)
    for row, at in enumerate(members):
        part = rows[at][begun[at] + begin : begun[at] + end]
        found[row, : part.size] = part
    return found
