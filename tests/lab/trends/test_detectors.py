# SPDX-License-Identifier: Apache-2.0
"""Changes that the two detectors report, and when."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.trends.detectors import DetectorBank, DetectorSettings, DetectorState
from sonde.trends.history import History
from sonde.trends.watch import find_alarms_in_histories, find_alarms_in_rows


def history(steps: dict[int, float], runs: int = 100, noise: float = 0.05, seed: int = 1) -> np.ndarray:
    """Logarithms of rates that are multiplied by a factor from a run on."""
    values = np.random.default_rng(seed).normal(0, noise, runs)
    for run, factor in steps.items():
        values[run:] += np.log(factor)
    return values


def test_a_collapse_is_noticed_with_the_third_run() -> None:
    alarms = find_alarms_in_rows(np.array([history({60: 0.14}, seed=seed) for seed in range(20)]))
    assert {alarm.noticed for alarm in alarms} == {62}
    assert {alarm.detector for alarm in alarms} == {"collapse"}
    assert {alarm.first for alarm in alarms} == {60}
    assert all(0.12 < alarm.level_ratio < 0.17 for alarm in alarms)


def test_small_lasting_change_is_noticed_in_either_direction() -> None:
    for factor in (0.82, 1.22):
        alarms = find_alarms_in_rows(np.array([history({60: factor}, noise=0.05, seed=seed) for seed in range(40)]))
        right = [alarm for alarm in alarms if 60 <= alarm.noticed < 75 and abs(alarm.first - 60) <= 2]
        assert len(right) >= 36
        assert all((alarm.level_ratio < 1) == (factor < 1) for alarm in right)
        assert {alarm.detector for alarm in right} == {"drift"} or factor < 1


def test_trend_detector_needs_twenty_runs() -> None:
    """Ten runs and ten of another level: no split of twenty runs is clearer, and a rise is not the gate's."""
    values = np.concatenate([np.zeros(10), np.full(10, 0.5)]) + 0.001 * np.arange(20)
    (alarm,) = find_alarms_in_rows(values[None, :])
    assert (alarm.detector, alarm.first, alarm.noticed) == ("drift", 10, 19)
    assert find_alarms_in_rows(values[None, :19]) == []


def test_changes_too_small_to_matter_raise_no_alarm() -> None:
    rows = np.array([history({60: 0.95}, noise=0.005, seed=seed) for seed in range(20)])
    assert find_alarms_in_rows(rows) == []
    assert len(find_alarms_in_rows(rows, DetectorSettings(smallest_change=0.03))) == 20


def test_rise_before_a_collapse_does_not_delay_its_detection() -> None:
    """A rise right before a collapse restarts the history of the trend detector; the collapse must not wait for it."""
    rows = np.array([history({60: 1.5, 70: 0.14 / 1.5}, seed=seed) for seed in range(20)])
    for series in range(20):
        collapse = [
            alarm_found for alarm_found in find_alarms_in_rows(rows[series : series + 1]) if alarm_found.noticed >= 70
        ]
        assert collapse[0].noticed == 72


def test_drop_raises_a_single_collapse_alarm() -> None:
    rows = np.array([history({60: 0.3}, runs=160, seed=seed) for seed in range(30)])
    alarms = find_alarms_in_rows(rows)
    assert len([alarm for alarm in alarms if alarm.detector == "collapse"]) == 30


def test_gap_does_not_shift_later_alarms() -> None:
    values = history({60: 0.2}, runs=80)
    with_gaps = np.insert(values, [10, 40, 61], np.nan)
    bank = DetectorBank(1)
    alarms = [alarm for value in with_gaps for alarm in bank.push_runs(np.array([value]))]
    assert [(alarm.first, alarm.noticed) for alarm in alarms] == [(62, 65)]


def test_flat_history_with_ties_raises_no_alarm() -> None:
    assert find_alarms_in_rows(np.zeros((1, 200))) == []
    assert find_alarms_in_rows(np.round(history({}, runs=300)[None, :], 1)) == []


def test_histories_have_individual_lengths_and_settings() -> None:
    def make_history(name: str, values: np.ndarray) -> History:
        return History({"name": name}, 86400.0 * np.arange(float(values.size)), np.exp(values))

    some = [
        make_history("a", history({60: 0.2})),
        make_history("b", history({30: 0.2}, runs=40)),
        make_history("c", history({})),
    ]
    assert [(alarm.history, alarm.first) for alarm in find_alarms_in_histories(some)] == [(1, 30), (0, 60)]
    deaf = DetectorSettings(collapse_change=0.99, smallest_change=0.99)
    assert [
        alarm.history for alarm in find_alarms_in_histories(some, [deaf, DetectorSettings(), DetectorSettings()])
    ] == [1]


@pytest.mark.parametrize("values", [[1.0, -1.0], [1.0, float("nan")], [0.0, 1.0]])
def test_a_series_has_values_above_zero(values: list[float]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        History({}, np.array([0.0, 1.0]), np.array(values))


LEVEL = [0.0] * 10


def find_first_alarm(values: list[float], settings: DetectorSettings | None = None) -> tuple[object, ...] | None:
    """Detector, first run and the run that noticed the first alarm."""
    alarms = find_alarms_in_rows(np.array([values]), settings)
    return (alarms[0].detector, alarms[0].first, alarms[0].noticed) if alarms else None


@pytest.mark.parametrize(
    ("values", "noticed"),
    [
        (LEVEL + [-0.17] * 3, True),  # 15 % are 0.1625
        (LEVEL + [-0.16] * 3, False),
        (LEVEL[1:] + [-0.17] * 3, False),  # nine runs are no level yet
        (LEVEL + [-0.17] * 2, False),
        ([*LEVEL, -0.9, -0.16, -0.9], False),  # each of the three counts
        ([0.05, -0.05] * 5 + [-0.30] * 3, True),  # four times 1.4826 * 0.05 are 0.2965
        ([0.05, -0.05] * 5 + [-0.29] * 3, False),
        (LEVEL + [0.5] * 3, False),
        ([-5.0] * 4 + [0.0] * 6 + [-1.2, -1.1, -1.0], True),  # four spells of the level were lower still
        ([-5.0] * 5 + [0.0] * 6 + [-1.2, -1.1, -1.0], False),  # of eleven the sixth is the middle one, but not of all
    ],
)
def test_collapse_needs_three_runs_below_both_limits(values: list[float], noticed: bool) -> None:
    assert find_first_alarm(values) == (("collapse", 10, 12) if noticed else None)


def test_an_alarm_of_the_gate_has_levels_and_strength() -> None:
    (alarm,) = find_alarms_in_rows(np.array([[*LEVEL, -0.5, -0.2, -0.4]]))
    assert (alarm.history, alarm.before, alarm.after) == (0, 0.0, -0.4)
    assert alarm.strength == pytest.approx(-0.4 / 0.02)  # noise is never less than 2 %
    assert alarm.level_ratio == pytest.approx(np.exp(-0.4))


@pytest.mark.parametrize(("drop", "noticed"), [(1.21, True), (1.19, False)])
def test_collapse_of_70_percent_is_reported_at_any_sensitivity(drop: float, noticed: bool) -> None:
    dull = DetectorSettings(collapse_deviations=1000.0)
    assert find_first_alarm(LEVEL + [-drop] * 3, dull) == (("collapse", 10, 12) if noticed else None)
    scattered = [0.3, -0.3] * 5  # four times its noise is 1.78: more than a collapse
    assert find_first_alarm(scattered + [-1.7] * 3, dull) is None
    assert find_first_alarm(scattered + [-1.8] * 3, dull) == ("collapse", 10, 12)


@pytest.mark.parametrize(("rise", "noticed"), [(0.106, True), (0.105, False), (-0.106, True), (-0.105, False)])
def test_drift_is_detected_from_10_percent(rise: float, noticed: bool) -> None:
    """10 % down are 0.1054 as a logarithm; the same is asked of a rise."""
    assert find_first_alarm([0.0] * 10 + [rise] * 10) == (("drift", 10, 19) if noticed else None)


def test_lower_level_is_reference_until_20_new_runs() -> None:
    bank = DetectorBank(1)
    stands = []
    for value in [*LEVEL, *[-0.5] * 3, *[-1.5] * 3, *[-1.5] * 17]:
        bank.push_runs(np.array([value]))
        stands.append(bank.get_detector_state(0))
    assert (stands[11].runs, stands[11].filled, stands[11].reference) == (12, 12, None)
    assert (stands[12].runs, stands[12].filled) == (13, 3)
    assert stands[12].reference == pytest.approx((-0.5, 0.02))
    assert (stands[15].runs, stands[15].filled) == (16, 3)  # reported again: it fell once more
    assert stands[15].reference == pytest.approx((-1.5, 0.02))
    assert stands[31].reference is not None
    assert (stands[32].filled, stands[32].reference) == (20, None)


def test_after_a_rise_the_gate_compares_with_the_level_before() -> None:
    bank = DetectorBank(1)
    alarms = [alarm for value in [*LEVEL, *[0.5] * 10] for alarm in bank.push_runs(np.array([value]))]
    assert [alarm.detector for alarm in alarms] == ["drift"]
    assert bank.get_detector_state(0).reference == pytest.approx((0.0, 0.02))
    assert bank.get_detector_state(0).filled == 10
    again = [alarm for value in [-0.2] * 3 for alarm in bank.push_runs(np.array([value]))]
    assert [(alarm.detector, alarm.before, alarm.after) for alarm in again] == [("collapse", 0.0, -0.2)]


@pytest.mark.parametrize(
    ("runs", "filled", "stands"),
    [(5, 5, True), (5, 6, False), (90, 80, True), (90, 81, False), (5, -1, False), (0, 0, True)],
)
def test_invalid_detector_state_is_rejected(runs: int, filled: int, stands: bool) -> None:
    if stands:
        assert DetectorState(runs, filled, None).filled == filled
        return
    with pytest.raises(ValueError, match="no detector has such a state"):
        DetectorState(runs, filled, None)


def test_default_detector_settings_equal_the_published_settings() -> None:
    assert DetectorSettings() == DetectorSettings(2000.0, 0.10, 4.0, 0.15, 0.70, 0.02)
