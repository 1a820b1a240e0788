# SPDX-License-Identifier: Apache-2.0
"""What the two lanes notice, and when."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.trends.lanes import Lanes, Settings
from sonde.trends.series import Series
from sonde.trends.watch import watch, watch_rows


def history(steps: dict[int, float], runs: int = 100, noise: float = 0.05, seed: int = 1) -> np.ndarray:
    """Logarithms of rates that are multiplied by a factor from a run on."""
    values = np.random.default_rng(seed).normal(0, noise, runs)
    for run, factor in steps.items():
        values[run:] += np.log(factor)
    return values


def test_a_collapse_is_noticed_with_the_third_run() -> None:
    alarms = watch_rows(np.array([history({60: 0.14}, seed=seed) for seed in range(20)]))
    assert {alarm.noticed for alarm in alarms} == {62}
    assert {alarm.lane for alarm in alarms} == {"gate"}
    assert {alarm.first for alarm in alarms} == {60}
    assert all(0.12 < alarm.ratio < 0.17 for alarm in alarms)


def test_a_small_lasting_change_is_noticed_by_the_trend_in_either_direction() -> None:
    for factor in (0.82, 1.22):
        alarms = watch_rows(np.array([history({60: factor}, noise=0.05, seed=seed) for seed in range(40)]))
        right = [one for one in alarms if 60 <= one.noticed < 75 and abs(one.first - 60) <= 2]
        assert len(right) >= 36
        assert all((one.ratio < 1) == (factor < 1) for one in right)
        assert {one.lane for one in right} == {"trend"} or factor < 1


def test_the_trend_answers_from_the_twentieth_run_on() -> None:
    """Ten runs and ten of another level: no split of twenty runs is clearer, and a rise is not the gate's."""
    values = np.concatenate([np.zeros(10), np.full(10, 0.5)]) + 0.001 * np.arange(20)
    (alarm,) = watch_rows(values[None, :])
    assert (alarm.lane, alarm.first, alarm.noticed) == ("trend", 10, 19)
    assert watch_rows(values[None, :19]) == []


def test_changes_too_small_to_matter_are_not_told() -> None:
    rows = np.array([history({60: 0.95}, noise=0.005, seed=seed) for seed in range(20)])
    assert watch_rows(rows) == []
    assert len(watch_rows(rows, Settings(smallest_change=0.03))) == 20


def test_a_rise_does_not_make_the_gate_forget_the_level_before() -> None:
    """A rise right before a collapse restarts the history of the trend lane; the collapse must not wait for it."""
    rows = np.array([history({60: 1.5, 70: 0.14 / 1.5}, seed=seed) for seed in range(20)])
    for series in range(20):
        collapse = [one for one in watch_rows(rows[series : series + 1]) if one.noticed >= 70]
        assert collapse[0].noticed == 72


def test_one_drop_is_told_once() -> None:
    rows = np.array([history({60: 0.3}, runs=160, seed=seed) for seed in range(30)])
    alarms = watch_rows(rows)
    assert len([one for one in alarms if one.lane == "gate"]) == 30


def test_a_gap_takes_no_place() -> None:
    values = history({60: 0.2}, runs=80)
    with_gaps = np.insert(values, [10, 40, 61], np.nan)
    lanes = Lanes(1)
    alarms = [alarm for value in with_gaps for alarm in lanes.push(np.array([value]))]
    assert [(one.first, one.noticed) for one in alarms] == [(62, 65)]


def test_a_flat_history_with_ties_raises_nothing() -> None:
    assert watch_rows(np.zeros((1, 200))) == []
    assert watch_rows(np.round(history({}, runs=300)[None, :], 1)) == []


def test_series_of_different_length_and_settings_are_watched_each_by_its_own() -> None:
    def series(name: str, values: np.ndarray) -> Series:
        return Series({"name": name}, 86400.0 * np.arange(float(values.size)), np.exp(values))

    some = [series("a", history({60: 0.2})), series("b", history({30: 0.2}, runs=40)), series("c", history({}))]
    assert [(one.series, one.first) for one in watch(some)] == [(1, 30), (0, 60)]
    deaf = Settings(gate_change=0.99, smallest_change=0.99)
    assert [one.series for one in watch(some, [deaf, Settings(), Settings()])] == [1]


@pytest.mark.parametrize("values", [[1.0, -1.0], [1.0, float("nan")], [0.0, 1.0]])
def test_a_series_has_values_above_zero(values: list[float]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Series({}, np.array([0.0, 1.0]), np.array(values))
