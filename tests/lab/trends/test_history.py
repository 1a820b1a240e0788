# SPDX-License-Identifier: Apache-2.0
"""Repeats of one probe become one value of a history."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.model.series import SeriesKey
from sonde.store import history
from sonde.trends.history import Kind, watched

KEY = SeriesKey("a", "fs1", "hash", "fat", "e", "p1", "stat", "cold", "sonde total", "ops_per_s")


def stored(groups: tuple[str, ...], times: list[float], values: list[float], plan: str = "probe") -> history.Series:
    runs = tuple(f"r{at}" for at in range(len(times)))
    return history.Series(KEY, plan, np.array(times), np.array(values), runs, groups)


@pytest.mark.parametrize(
    ("kind", "values"), [("delivered", [5.0, 2.5, 8.0, 9.0]), ("capability", [5.0, 3.0, 8.0, 9.0])]
)
def test_runs_of_one_group_are_one_value_at_the_time_of_the_first(kind: Kind, values: list[float]) -> None:
    """Five alone, two and three of one probe, then eight and nine alone."""
    (one,) = watched([stored(("", "g", "g", "", ""), [1, 2, 4, 3, 5], [5, 2, 3, 8, 9])], kind)
    assert one.times.tolist() == [1, 2, 3, 5]
    assert one.values.tolist() == values
    assert one.runs == ("r0", "r1", "r3", "r4")
    assert (one.unit, one.labels["experiment"]) == ("op/s", "probe")


def test_of_four_repeats_the_second_best_tells_what_can_be_done() -> None:
    repeats = stored(("g",) * 4, [1, 2, 3, 4], [5, 2, 9, 7])
    assert watched([repeats], "capability")[0].values.tolist() == [7]
    assert watched([repeats])[0].values.tolist() == [6]


def test_groups_that_overlap_in_time_are_in_the_order_of_their_first_runs() -> None:
    (one,) = watched([stored(("h", "g", "h", "g"), [2, 1, 3, 4], [20, 10, 40, 30])])
    assert (one.times.tolist(), one.values.tolist(), one.runs) == ([1, 2], [20, 30], ("r1", "r0"))


def test_runs_that_all_stand_alone_are_taken_as_they_are() -> None:
    (one,) = watched([stored(("", ""), [1, 2], [3, 4], plan="")])
    assert (one.values.tolist(), one.runs, one.labels["experiment"]) == ([3, 4], ("r0", "r1"), "hash")
    assert one.unit == "op/s"
