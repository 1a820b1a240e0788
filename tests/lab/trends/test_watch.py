# SPDX-License-Identifier: Apache-2.0
"""Histories are watched in segments, each as if it were alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sonde.trends.detectors import Alarm, DetectorSettings, DetectorState
from sonde.trends.history import History
from sonde.trends.watch import HistoryWatch, find_alarms_in_histories, sort_alarms, watch_from_earlier_state

FALLING_RATES = np.r_[np.zeros(30), np.full(30, -1.0)] + 0.001 * np.sin(7 * np.arange(60))


def alarm(detector: str, noticed: int, series: int) -> Alarm:
    return Alarm(series, detector, noticed, 0, 0.0, 0.0, 1.0)  # type: ignore[arg-type]


def test_alarms_are_ordered_by_run_then_by_lane_then_by_series() -> None:
    ordered = [alarm("drift", 3, 2), alarm("collapse", 5, 1), alarm("collapse", 5, 4), alarm("drift", 5, 0)]
    state = DetectorState(0, 0, None)
    assert (
        sort_alarms([HistoryWatch(state, tuple(reversed(ordered[:2]))), HistoryWatch(state, tuple(ordered[2:]))])
        == ordered
    )


def test_watch_resumes_from_its_state_and_preserves_alarms() -> None:
    (half,) = watch_from_earlier_state([FALLING_RATES[:40]], DetectorSettings())
    assert (half.state.runs, half.state.filled) == (40, 10)
    (alarm,) = half.alarms
    assert (alarm.detector, alarm.first, alarm.noticed) == ("collapse", 30, 32)
    other_alarm = replace(alarm, history=7, strength=-1.0)
    rows = [np.zeros(50), FALLING_RATES]
    still, gone_on = watch_from_earlier_state(rows, DetectorSettings(), {1: HistoryWatch(half.state, (other_alarm,))})
    assert gone_on.alarms == (replace(other_alarm, history=1),), "what was told is not asked again"
    assert gone_on.state == watch_from_earlier_state([FALLING_RATES], DetectorSettings())[0].state
    assert (still.state, still.alarms) == (DetectorState(50, 50, None), ())
    ended = HistoryWatch(DetectorState(60, 30, None), (other_alarm,))
    assert watch_from_earlier_state([FALLING_RATES], DetectorSettings(), {0: ended})[0].alarms == (
        replace(other_alarm, history=0),
    )


def test_progress_counts_the_runs_of_all_histories() -> None:
    progress: list[tuple[int, int]] = []
    watches = watch_from_earlier_state(
        [np.zeros(1100), np.zeros(20), np.zeros(0)], DetectorSettings(), None, lambda *step: progress.append(step)
    )
    assert progress[-1] == (1120, 1120)
    assert progress == sorted(progress)
    assert {total for _, total in progress} == {1120}
    assert (40, 1120) in progress, "both up to the end of the shorter one"
    assert [watch.state.runs for watch in watches] == [1100, 20, 0]


def test_alarms_with_individual_settings_are_in_time_order() -> None:
    early = History({"op": "a"}, 100.0 + np.arange(60.0), np.exp(FALLING_RATES))
    late = History({"op": "b"}, 900.0 + np.arange(60.0), np.exp(FALLING_RATES))
    deaf = DetectorSettings(collapse_change=0.99, smallest_change=0.99, large_drop=0.999)
    assert [watch.history for watch in find_alarms_in_histories([late, early])] == [0, 1]
    assert [
        watch.history for watch in find_alarms_in_histories([late, early], [DetectorSettings(), DetectorSettings()])
    ] == [
        1,
        0,
    ]
    assert [
        watch.history
        for watch in find_alarms_in_histories([late, early, late], [DetectorSettings(), deaf, DetectorSettings()])
    ] == [0, 2]
    assert [watch.history for watch in find_alarms_in_histories([late, early], deaf)] == []
