# SPDX-License-Identifier: Apache-2.0
"""Histories are watched in stretches, each as if it were alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sonde.trends.lanes import Alarm, Place, Settings
from sonde.trends.series import Series
from sonde.trends.watch import Watched, go_on, in_order, watch

FALLS = np.r_[np.zeros(30), np.full(30, -1.0)] + 0.001 * np.sin(7 * np.arange(60))


def alarm(lane: str, noticed: int, series: int) -> Alarm:
    return Alarm(series, lane, noticed, 0, 0.0, 0.0, 1.0)  # type: ignore[arg-type]


def test_alarms_are_ordered_by_run_then_by_lane_then_by_series() -> None:
    ordered = [alarm("trend", 3, 2), alarm("gate", 5, 1), alarm("gate", 5, 4), alarm("trend", 5, 0)]
    place = Place(0, 0, None)
    assert in_order([Watched(place, tuple(reversed(ordered[:2]))), Watched(place, tuple(ordered[2:]))]) == ordered


def test_a_watch_goes_on_from_where_it_stood_and_keeps_its_alarms() -> None:
    (half,) = go_on([FALLS[:40]], Settings())
    assert (half.place.runs, half.place.filled) == (40, 10)
    (alarm,) = half.alarms
    assert (alarm.lane, alarm.first, alarm.noticed) == ("gate", 30, 32)
    told = replace(alarm, series=7, strength=-1.0)
    rows = [np.zeros(50), FALLS]
    still, gone_on = go_on(rows, Settings(), {1: Watched(half.place, (told,))})
    assert gone_on.alarms == (replace(told, series=1),), "what was told is not asked again"
    assert gone_on.place == go_on([FALLS], Settings())[0].place
    assert (still.place, still.alarms) == (Place(50, 50, None), ())
    ended = Watched(Place(60, 30, None), (told,))
    assert go_on([FALLS], Settings(), {0: ended})[0].alarms == (replace(told, series=0),)


def test_progress_counts_the_runs_of_all_histories() -> None:
    told: list[tuple[int, int]] = []
    found = go_on([np.zeros(1100), np.zeros(20), np.zeros(0)], Settings(), None, lambda *at: told.append(at))
    assert told[-1] == (1120, 1120)
    assert told == sorted(told)
    assert {total for _, total in told} == {1120}
    assert (40, 1120) in told, "both up to the end of the shorter one"
    assert [one.place.runs for one in found] == [1100, 20, 0]


def test_histories_with_settings_of_their_own_have_their_alarms_in_order_of_time() -> None:
    early = Series({"op": "a"}, 100.0 + np.arange(60.0), np.exp(FALLS))
    late = Series({"op": "b"}, 900.0 + np.arange(60.0), np.exp(FALLS))
    deaf = Settings(gate_change=0.99, smallest_change=0.99, collapse=0.999)
    assert [one.series for one in watch([late, early])] == [0, 1]
    assert [one.series for one in watch([late, early], [Settings(), Settings()])] == [1, 0]
    assert [one.series for one in watch([late, early, late], [Settings(), deaf, Settings()])] == [0, 2]
    assert [one.series for one in watch([late, early], deaf)] == []
