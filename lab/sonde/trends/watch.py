# SPDX-License-Identifier: Apache-2.0
"""Histories run by run, as they were when each run was the latest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sonde.stats.ranks import Floats
from sonde.trends.lanes import Alarm, Lanes, Settings
from sonde.trends.series import Series


def watch_rows(logarithms: Floats, settings: Settings | None = None) -> list[Alarm]:
    """Alarms of many histories of equal length (rows), in the order in which they were raised."""
    lanes = Lanes(logarithms.shape[0], settings or Settings())
    alarms: list[Alarm] = []
    for run in range(logarithms.shape[1]):
        alarms += lanes.push(logarithms[:, run])
    return alarms


def watch(series: Sequence[Series], settings: Sequence[Settings] | Settings | None = None) -> list[Alarm]:
    """Alarms of all `series`; `Alarm.series` counts them. `settings` are one for all, or one each.

    Runs of one series come in their own order; where series are of different length the shorter ones just end.
    """
    if settings is None or isinstance(settings, Settings):
        return _watch_alike(series, range(len(series)), settings or Settings())
    alarms: list[Alarm] = []
    for one in dict.fromkeys(settings):
        alarms += _watch_alike(series, [at for at, own in enumerate(settings) if own == one], one)
    return sorted(alarms, key=lambda alarm: float(series[alarm.series].times[alarm.noticed]))


def _watch_alike(series: Sequence[Series], members: Sequence[int], settings: Settings) -> list[Alarm]:
    longest = max((len(series[at]) for at in members), default=0)
    rows = np.full((len(members), longest), np.nan)
    for row, at in enumerate(members):
        rows[row, : len(series[at])] = series[at].logarithms
    return [replace(alarm, series=members[alarm.series]) for alarm in watch_rows(rows, settings)]
