# SPDX-License-Identifier: Apache-2.0
"""The value that everything about histories works on."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.trends.series import Series

DAY = 86400.0


def series(times: list[float]) -> Series:
    return Series({"system": "edison", "file_system": "", "op": "read"}, np.array(times), np.ones(len(times)))


@pytest.mark.parametrize(
    ("times", "pace"),
    [
        ([DAY * day for day in range(101)], 365.25),
        ([DAY / 2 * step for step in range(101)], 730.5),
        ([60.0 * minute for minute in range(100)], 365.0),  # an hour and a half of work is no pace
        ([0.0], 365.0),
        ([], 365.0),
    ],
)
def test_the_pace_of_a_history(times: list[float], pace: float) -> None:
    assert series(times).runs_per_year == pytest.approx(pace)


def test_the_usual_distance_ignores_gaps_and_repeats() -> None:
    assert series([0.0, 0.0, DAY, 2 * DAY, 60 * DAY, 61 * DAY]).interval_s == DAY
    assert series([]).interval_s == DAY
    assert series([0.0, 0.0, 0.0, 0.0, DAY]).interval_s == DAY


def test_the_name_is_what_the_labels_say() -> None:
    assert series([0.0]).name == "edison · read"


def test_up_to_a_time() -> None:
    assert len(series([0.0, DAY, 2 * DAY]).until(DAY)) == 2


def test_times_that_go_back_are_refused() -> None:
    with pytest.raises(ValueError, match="ascend"):
        series([1.0, 0.0])
    with pytest.raises(ValueError, match="one time for each value"):
        Series({}, np.zeros(2), np.ones(3))
