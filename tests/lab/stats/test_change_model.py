# SPDX-License-Identifier: Apache-2.0
"""The thresholds are what they are said to be: derived anew with fewer series, and tried on noise without change."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.stats.change_model import (
    AVERAGE_RUN_LENGTH_RANGE,
    MIN_RUNS,
    MIN_SIDE_RUNS,
    WINDOW_RUNS,
    interpolate_thresholds,
    simulate_thresholds,
)
from sonde.stats.change_table import DETECTION_THRESHOLDS
from sonde.stats.ranks import RankWindow


def test_threshold_table_is_reproduced_by_simulation() -> None:
    derived = simulate_thresholds(100, series_count=8000, seed=5)
    assert derived == pytest.approx(np.array(DETECTION_THRESHOLDS[100]), abs=0.06)


def test_thresholds_exist_for_every_count_and_grow_with_arl0() -> None:
    rows = np.array([DETECTION_THRESHOLDS[arl0] for arl0 in sorted(DETECTION_THRESHOLDS)])
    assert rows.shape[1] == WINDOW_RUNS - MIN_RUNS + 1
    assert np.all(np.diff(rows, axis=0) > 0)


def test_thresholds_are_interpolated_between_table_rows() -> None:
    low, middle, high = interpolate_thresholds(500), interpolate_thresholds(700), interpolate_thresholds(1000)
    assert np.all(np.isinf(middle[:MIN_RUNS]))
    assert np.all((low[MIN_RUNS:] < middle[MIN_RUNS:]) & (middle[MIN_RUNS:] < high[MIN_RUNS:]))
    for border in AVERAGE_RUN_LENGTH_RANGE:
        assert interpolate_thresholds(border)[MIN_RUNS:] == pytest.approx(DETECTION_THRESHOLDS[border])
    half_way = interpolate_thresholds((500 * 1000) ** 0.5)[MIN_RUNS:]  # between the logarithms
    assert half_way == pytest.approx((np.array(DETECTION_THRESHOLDS[500]) + DETECTION_THRESHOLDS[1000]) / 2)
    for outside in (AVERAGE_RUN_LENGTH_RANGE[0] - 1, AVERAGE_RUN_LENGTH_RANGE[1] + 1):
        with pytest.raises(ValueError, match=f"^ARL0 is {outside}; thresholds are known from 100 to 20000$"):
            interpolate_thresholds(outside)


@pytest.mark.parametrize("draw", ["normal", "standard_cauchy"])
def test_mean_time_to_false_alarm_holds_for_any_noise(draw: str) -> None:
    random = np.random.default_rng(11)
    limits = interpolate_thresholds(100)
    window, alarms, watched = RankWindow(6000, WINDOW_RUNS), 0, 0
    for _ in range(90):
        window.append_values(getattr(random, draw)(size=window.filled.size))
        strength = np.abs(window.find_strongest_splits(MIN_SIDE_RUNS)[0])
        over = strength > limits[window.filled]
        alarms += int(over.sum())
        watched += window.filled.size if window.filled[0] >= MIN_RUNS else 0
        window.select_series(~over)
    assert watched / alarms == pytest.approx(100, rel=0.1)


def test_each_row_is_smooth_and_the_window_ends_it() -> None:
    """Thresholds of neighboring counts are alike but for the last, that of a full window: a digit that was typed wrong
    stands out."""
    assert [*DETECTION_THRESHOLDS] == [factor * 10**power for power in (2, 3, 4) for factor in (1, 2, 5)][:-1]
    for row in DETECTION_THRESHOLDS.values():
        steps = np.diff(row[:-1])
        assert np.all(np.abs(steps) < 0.02)
        assert np.all(np.abs(np.diff(steps)) < 0.003)
        assert 0 < row[-1] - row[-2] < 0.15


class _Told:
    """A window whose strongest splits are known: evenly from nothing to that of the step."""

    def __init__(self, series: int, width: int) -> None:
        assert width == WINDOW_RUNS
        self.filled, self.step = np.zeros(series), 0

    def append_values(self, newest_values: np.ndarray) -> None:
        assert newest_values.size == self.filled.size
        self.step += 1

    def find_strongest_splits(self, shortest: int) -> tuple[np.ndarray, None]:
        assert shortest == 2
        top = 2 + 0.01 * self.step + 0.0001 * self.step**2 if self.step < WINDOW_RUNS else self.step
        signs = np.where(np.arange(self.filled.size) % 2, 1, -1)
        return signs * np.linspace(0, top, self.filled.size), None

    def select_series(self, keep: np.ndarray) -> None:
        self.filled = self.filled[keep]


def test_threshold_is_exceeded_by_one_series_in_arl0(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 1001 series those between 0 and the top of the step, evenly: the 99th of hundred is at 0.99 of the top.
    Those above it leave. Tops on a parabola stay as they are; with the window full it is the mean of the steps 90 to
    90 + `settling_steps`."""
    monkeypatch.setattr("sonde.stats.change_model.RankWindow", _Told)
    thresholds = simulate_thresholds(100, series_count=1001, seed=1)
    counts = np.arange(MIN_RUNS, WINDOW_RUNS)
    assert thresholds[:-1] == pytest.approx(0.99 * (2 + 0.01 * counts + 0.0001 * counts**2))
    assert thresholds[-1] == pytest.approx(0.99 * np.mean(range(90, 120)))
    assert simulate_thresholds(100, series_count=1001, seed=1, settling_steps=4)[-1] == pytest.approx(
        0.99 * np.mean(range(90, 94))
    )


def test_series_above_its_threshold_leave_the_simulation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dropped_counts: list[int] = []

    class Counted(_Told):
        def select_series(self, keep: np.ndarray) -> None:
            dropped_counts.append(int(np.sum(~keep)))
            self.filled = self.filled[keep]

    monkeypatch.setattr("sonde.stats.change_model.RankWindow", Counted)
    simulate_thresholds(100, series_count=101, seed=1)
    assert dropped_counts[0] == 1  # of 101 the hundredth is the threshold itself
