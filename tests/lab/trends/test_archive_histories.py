# SPDX-License-Identifier: Apache-2.0
"""Repeats of one probe become one value of a history."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.model.history_key import HistoryKey
from sonde.store import history
from sonde.trends.archive_histories import ProbeValue, merge_repeats_into_histories

KEY = HistoryKey("a", "fs1", "hash", "fat", "e", "p1", "stat", "cold", "sonde total", "ops_per_s")


def make_series(
    groups: tuple[str, ...], times: list[float], values: list[float], plan: str = "probe"
) -> history.StoredHistory:
    runs = tuple(f"r{number}" for number in range(len(times)))
    return history.StoredHistory(KEY, plan, np.array(times), np.array(values), runs, groups)


@pytest.mark.parametrize(
    ("kind", "expected_values"), [("delivered", [5.0, 2.5, 8.0, 9.0]), ("capability", [5.0, 3.0, 8.0, 9.0])]
)
def test_runs_of_one_group_are_one_value_at_the_time_of_the_first(
    kind: ProbeValue, expected_values: list[float]
) -> None:
    """Five alone, two and three of one probe, then eight and nine alone."""
    (history,) = merge_repeats_into_histories(
        [make_series(("", "g", "g", "", ""), [1, 2, 4, 3, 5], [5, 2, 3, 8, 9])], kind
    )
    assert history.times.tolist() == [1, 2, 3, 5]
    assert history.values.tolist() == expected_values
    assert history.runs == ("r0", "r1", "r3", "r4")
    assert (history.unit, history.labels["experiment"]) == ("op/s", "probe")


def test_second_best_of_four_repeats_is_the_capability() -> None:
    repeats = make_series(("g",) * 4, [1, 2, 3, 4], [5, 2, 9, 7])
    assert merge_repeats_into_histories([repeats], "capability")[0].values.tolist() == [7]
    assert merge_repeats_into_histories([repeats])[0].values.tolist() == [6]


def test_overlapping_groups_are_ordered_by_their_first_runs() -> None:
    (history,) = merge_repeats_into_histories([make_series(("h", "g", "h", "g"), [2, 1, 3, 4], [20, 10, 40, 30])])
    assert (history.times.tolist(), history.values.tolist(), history.runs) == ([1, 2], [20, 30], ("r1", "r0"))


def test_runs_without_repeats_are_used_individually() -> None:
    (history,) = merge_repeats_into_histories([make_series(("", ""), [1, 2], [3, 4], plan="")])
    assert (history.values.tolist(), history.runs, history.labels["experiment"]) == ([3, 4], ("r0", "r1"), "hash")
    assert history.unit == "op/s"
