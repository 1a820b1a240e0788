# SPDX-License-Identifier: Apache-2.0
"""Runs the detectors over histories, run by run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sonde.stats.ranks import Floats
from sonde.trends.detectors import Alarm, DetectorBank, DetectorSettings, DetectorState
from sonde.trends.history import History

Ints = NDArray[np.int64]
# Runs of each history that are copied at a time.
_RUNS_PER_BATCH = 512


def find_alarms_in_rows(log_rate_rows: Floats, settings: DetectorSettings | None = None) -> list[Alarm]:
    """Alarms of many histories of equal length (rows), in the order in which they were raised."""
    bank = DetectorBank(log_rate_rows.shape[0], settings or DetectorSettings())
    alarms: list[Alarm] = []
    for run in range(log_rate_rows.shape[1]):
        alarms += bank.push_runs(log_rate_rows[:, run])
    return alarms


@dataclass(frozen=True)
class HistoryWatch:
    """The alarms of one history and the state of its detectors."""

    state: DetectorState
    alarms: tuple[Alarm, ...]


def find_alarms_in_histories(
    histories: Sequence[History], detector_settings: Sequence[DetectorSettings] | DetectorSettings | None = None
) -> list[Alarm]:
    """Alarms of all histories; `Alarm.history` is the position in `histories`. `detector_settings` are one for all, or
    one each.

    Histories may differ in length: a shorter one ends earlier.
    """
    if detector_settings is None or isinstance(detector_settings, DetectorSettings):
        return sort_alarms(
            watch_from_earlier_state([line.log_rates for line in histories], detector_settings or DetectorSettings())
        )
    alarms: list[Alarm] = []
    for fromkey in dict.fromkeys(detector_settings):
        members = [index for index, setting in enumerate(detector_settings) if setting == fromkey]
        result = sort_alarms(watch_from_earlier_state([histories[member].log_rates for member in members], fromkey))
        alarms += [replace(alarm, history=members[alarm.history]) for alarm in result]
    return sorted(alarms, key=lambda alarm: float(histories[alarm.history].times[alarm.noticed]))


def sort_alarms(history_watches: Sequence[HistoryWatch]) -> list[Alarm]:
    """All alarms in order of runs; at the same run those of the collapse detector come first."""
    alarms = [alarm for watch in history_watches for alarm in watch.alarms]
    return sorted(alarms, key=lambda alarm: (alarm.noticed, alarm.detector != "collapse", alarm.history))


def watch_from_earlier_state(
    log_rate_rows: Sequence[Floats],
    settings: DetectorSettings,
    earlier_watches: Mapping[int, HistoryWatch] | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[HistoryWatch]:
    """Watches histories (logarithms, without gaps). Those in `earlier_watches`, by position, resume from that watch and
    keep its alarms. `on_progress` receives the number of watched runs and the total.
    """
    watches = earlier_watches or {}
    bank = DetectorBank(len(log_rate_rows), settings)
    alarms: list[list[Alarm]] = [[] for _ in log_rate_rows]
    for index, watch in watches.items():
        bank.resume_history(index, watch.state, log_rate_rows[index])
        alarms[index] = [replace(alarm, history=index) for alarm in watch.alarms]
    states = [bank.get_detector_state(index) for index in range(len(log_rate_rows))]
    begun = np.array([state.runs for state in states], dtype=np.int64)
    remaining = np.array([row.size for row in log_rate_rows], dtype=np.int64) - begun
    members, done, total = np.arange(len(log_rate_rows)), 0, int(remaining.sum())
    column = 0
    while members.size:
        # Ended histories are dropped when half of all have ended: a long one must not carry many short ones.
        keep = remaining[members] > column
        for row in np.flatnonzero(~keep):
            ended = int(members[row])
            # It counted gaps while others continued.
            states[ended] = replace(bank.get_detector_state(int(row)), runs=log_rate_rows[ended].size)
        if not keep.all():
            members = members[keep]
            bank.select_histories(keep)
        if not members.size:
            break
        until = int(np.sort(remaining[members])[(members.size - 1) // 2])
        for begin in range(column, until, _RUNS_PER_BATCH):
            end = min(until, begin + _RUNS_PER_BATCH)
            for run in _stack_padded_rows(log_rate_rows, members, begun, begin, end).T:
                for alarm in bank.push_runs(run):
                    history_index = int(members[alarm.history])
                    alarms[history_index].append(replace(alarm, history=history_index))
            done += int(np.sum(np.clip(remaining[members] - begin, 0, end - begin)))
            on_progress(done, total)
        column = until
    return [HistoryWatch(position, tuple(alarm)) for position, alarm in zip(states, alarms, strict=True)]


def _stack_padded_rows(
    log_rate_rows: Sequence[Floats], row_indices: Ints, watch_starts: Ints, begin_run: int, end_run: int
) -> Floats:
    """Runs `begin_run` to `end_run` of each member, counted from the start of its watch; NaN after its last run."""
    result = np.full((row_indices.size, end_run - begin_run), np.nan)
    for row, member in enumerate(row_indices):
        part = log_rate_rows[member][watch_starts[member] + begin_run : watch_starts[member] + end_run]
        result[row, : part.size] = part
    return result
