# SPDX-License-Identifier: Apache-2.0
"""Alarms as changes and joint changes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from sonde.stats.ratio import RateRatio
from sonde.trends.changes import (
    Change,
    JointChange,
    JointChangePart,
    _HistoriesWithChanges,
    _is_measured_around,
    _measure_unnoticed_change,
    group_changes,
    measure_changes,
)
from sonde.trends.detectors import Alarm
from sonde.trends.history import History
from sonde.trends.scope import UNEXPLAINED
from sonde.trends.watch import find_alarms_in_histories

DAY = 86400.0


def site(slow: set[tuple[str, str, str]], run: int = 60, factor: float = 0.2) -> list[History]:
    """Three file systems x two kinds of file x two directions; `slow` cells fall at `run`."""
    random = np.random.default_rng(3)
    histories = []
    cells = itertools.product(("fs1", "fs2", "fs3"), ("per_task", "shared"), ("read", "write"))
    for number, cell in enumerate(cells):
        values = np.exp(random.normal(0, 0.05, 100))
        if cell in slow:
            values[run + number % 2 :] *= factor
        labels = dict(zip(("file_system", "files", "operation"), cell, strict=True))
        histories.append(History(labels, DAY * np.arange(100.0) + 600.0 * number, 1e9 * values))
    return histories


def test_change_of_an_operation_on_all_systems_is_a_joint_change() -> None:
    series = site({(name, "shared", "read") for name in ("fs1", "fs2", "fs3")})
    joint_changes = group_changes(series, measure_changes(series, find_alarms_in_histories(series)))
    assert len(joint_changes) == 1
    assert len(joint_changes[0].changes) == 3
    (part,) = joint_changes[0].parts
    (scope,) = part.explanation.scopes
    assert scope.conditions == {"files": "shared", "operation": "read"}
    assert scope.spans == {"file_system": (3, 3)}
    assert (scope.changed, scope.spared, part.explanation.unchanged) == (3, 0, 9)
    assert (part.explanation.cause, part.explanation.certainty) == ("clients", "clear")
    assert all(0.17 < change.size.value < 0.23 and not change.is_temporary for change in joint_changes[0].changes)


def test_joint_change_counts_unaffected_series_in_its_scope() -> None:
    series = site({("fs1", "shared", "read"), ("fs2", "shared", "read")})
    joint_changes = group_changes(series, measure_changes(series, find_alarms_in_histories(series)))
    assert len(joint_changes) == 1
    (part,) = joint_changes[0].parts
    (scope,) = part.explanation.scopes
    assert scope.spared == 1
    assert scope.spans == {"file_system": (2, 3)}


def test_changes_weeks_from_each_other_do_not_join() -> None:
    series = site({("fs1", "shared", "read")}) + site({("fs2", "shared", "write")}, run=80)
    assert len(group_changes(series, measure_changes(series, find_alarms_in_histories(series)))) == 2


def test_temporary_change_is_distinguished_from_a_new_level() -> None:
    values = np.exp(np.random.default_rng(5).normal(0, 0.05, 100))
    values[60:64] *= 0.3
    series = [History({"name": "one"}, DAY * np.arange(100.0), values)]
    changes = measure_changes(series, find_alarms_in_histories(series))
    assert changes[0].is_temporary
    assert changes[0].size.value < 0.4
    assert changes[0].runs_to_notice == 3


def test_undecidable_series_are_counted_separately() -> None:
    """Two series fell; of the others one is as noisy as the change is large, one began later, one stood."""
    random = np.random.default_rng(6)
    days = DAY * np.arange(100.0)
    fell = np.exp(random.normal(0, 0.02, 100)) * np.where(np.arange(100) < 60, 1.0, 0.7)
    noisy, quiet = np.exp(random.normal(0, 1.0, 100)), np.exp(random.normal(0, 0.02, 100))
    gap = np.r_[0:2, 98:100]  # measured before and after, but hardly
    series = [
        History({"name": "fell"}, days, fell),
        History({"name": "noisy"}, days, noisy),
        History({"name": "young"}, days[70:], quiet[70:]),
        History({"name": "rare"}, days[gap], quiet[gap]),
        History({"name": "quiet"}, days, quiet),
        History({"name": "fell too"}, days, np.roll(quiet, 30) * np.where(np.arange(100) < 60, 1.0, 0.7)),
    ]
    changes = measure_changes(series, [watch for watch in find_alarms_in_histories(series) if watch.history in (0, 5)])
    (joint,) = group_changes(series, changes)
    (part,) = joint.parts
    assert len(part.changes) == 2
    assert (part.explanation.unchanged, part.explanation.unjudged) == (1, 2)


def test_lone_change_is_not_compared_with_other_series() -> None:
    """Sites with hundreds of histories have a change of one series every day; nothing is common to one series."""
    random = np.random.default_rng(8)
    days = DAY * np.arange(100.0)
    series = [History({"name": f"s{index}"}, days, np.exp(random.normal(0, 0.02, 100))) for index in range(5)]
    series[2] = History({"name": "s2"}, days, series[2].values * np.where(np.arange(100) < 60, 1.0, 0.5))
    (joint,) = group_changes(series, measure_changes(series, find_alarms_in_histories(series)))
    (part,) = joint.parts
    assert [joint_part.history for joint_part in part.changes] == [2]
    assert part.explanation == UNEXPLAINED


def test_change_contains_the_runs_before_and_after_it() -> None:
    values = np.where(np.arange(100) < 60, 1.0, 0.2) * np.exp(np.random.default_rng(7).normal(0, 0.02, 100))
    series = [History({"name": "one"}, DAY * np.arange(100.0), values)]
    (change,) = measure_changes(series, find_alarms_in_histories(series))
    assert (change.last_before, change.first_after, change.noticed) == (59 * DAY, 60 * DAY, 62 * DAY)
    assert (change.runs_to_notice, change.size.before, change.size.after) == (3, 30, 3)
    assert (change.since.before, change.since.after) == (30, 30)


def ratio_of_values(rates_before: Any, rates_after: Any, *, with_p_value: bool = True) -> RateRatio:
    """A ratio that says which values it is of: the values of a history are 1, 2, 3 …"""
    assert with_p_value
    return RateRatio(1.0, rates_before[0], rates_before[-1], None, int(rates_after[0]), int(rates_after[-1]), 0.95)


def get_compared_values(size: RateRatio) -> tuple[float | None, float | None, int, int]:
    """First and last value before, first and last after."""
    return size.low, size.high, size.before, size.after


def alarm(first: int, noticed: int, series: int = 0) -> Alarm:
    return Alarm(series, "drift", noticed, first, 0.0, 0.0, 5.0)


def make_counting_history(runs: int) -> History:
    return History({}, DAY * np.arange(float(runs)), np.arange(1.0, runs + 1))


def test_change_size_uses_30_runs_before_and_the_noticing_runs() -> None:
    (change,) = measure_changes([make_counting_history(100)], [alarm(50, 53)], ratio_of_values)
    assert get_compared_values(change.size) == (21, 50, 51, 54)
    assert get_compared_values(change.since) == (21, 50, 51, 80)
    assert (change.last_before, change.first_after, change.noticed, change.runs_to_notice) == (
        49 * DAY,
        50 * DAY,
        53 * DAY,
        4,
    )
    (early,) = measure_changes([make_counting_history(40)], [alarm(5, 8)], ratio_of_values)
    assert get_compared_values(early.size) == (1, 5, 6, 9)
    assert get_compared_values(early.since) == (1, 5, 6, 35)
    (late,) = measure_changes([make_counting_history(40)], [alarm(35, 39)], ratio_of_values)
    assert get_compared_values(late.since) == (6, 35, 36, 40)


def test_runs_beyond_another_change_of_the_same_series_do_not_count() -> None:
    series = [make_counting_history(100), make_counting_history(100)]
    changes = measure_changes(
        series, [alarm(40, 44), alarm(60, 62), alarm(50, 59), alarm(45, 45, series=1)], ratio_of_values
    )
    assert [get_compared_values(change.size) for change in changes] == [
        (11, 40, 41, 45),
        (51, 60, 61, 63),
        (41, 50, 51, 60),
        (16, 45, 46, 46),
    ]
    assert [get_compared_values(change.since) for change in changes] == [
        (11, 40, 41, 50), (51, 60, 61, 90), (41, 50, 51, 60), (16, 45, 46, 75)
    ]  # fmt: skip
    # noticed only after the next change had begun: those runs count after all
    (first, _) = measure_changes([make_counting_history(100)], [alarm(40, 48), alarm(43, 60)], ratio_of_values)
    assert get_compared_values(first.since) == (11, 40, 41, 49)


def make_change(series: int, value: float, day: float, *, since: float | None = None) -> Change:
    def ratio(value: float) -> RateRatio:
        return RateRatio(value, 0.9 * value, 1.1 * value, None, 9, 9, 0.95)

    times = DAY * (day - 1), DAY * day, DAY * (day + 2)
    return Change(series, "collapse", *times, 3, ratio(value), ratio(value if since is None else since))


def test_zero_change_is_no_drop_and_half_reversal_not_temporary() -> None:
    assert [make_change(0, value, 5).is_drop for value in (0.99, 1.0, 1.01)] == [True, False, False]
    assert [make_change(0, 4.0, 5, since=since).is_temporary for since in (1.99, 2.0, 0.51, 0.5)] == [
        True,
        False,
        True,
        False,
    ]


def test_joint_change_has_first_time_smallest_and_largest_change() -> None:
    few = (make_change(0, 0.5, 9), make_change(1, 0.4, 7), make_change(2, 2.1, 8))
    joint = JointChange((JointChangePart(few[:2], UNEXPLAINED), JointChangePart(few[2:], UNEXPLAINED)))
    assert joint.changes == few
    assert (joint.begin_time, joint.notice_time) == (7 * DAY, 9 * DAY)
    assert (joint.parts[0].smallest_change, joint.parts[0].largest_change) == (few[0], few[1])
    assert JointChangePart(few, UNEXPLAINED).smallest_change is few[0]
    assert JointChangePart(few, UNEXPLAINED).largest_change is few[1]


def test_joint_change_has_each_history_once_and_no_long_chains() -> None:
    daily = [History({"phase": f"p{index}"}, DAY * np.arange(60.0), np.full(60, 1e9)) for index in range(5)]
    chain = [make_change(index, 0.5, 10 + 2 * index) for index in range(5)]
    assert [[change.history for change in joint.changes] for joint in group_changes(daily, chain)] == [
        [0, 1],
        [2, 3],
        [4],
    ]
    twice = [make_change(0, 0.5, 10), make_change(1, 0.5, 11), make_change(0, 0.5, 12)]
    assert [[change.history for change in joint.changes] for joint in group_changes(daily, twice)] == [[0, 1], [0]]
    assert group_changes(daily, []) == []


def test_round_of_runs_is_not_split_between_joint_changes() -> None:
    """A group that began three days before would end between two runs of one morning."""
    daily = [History({"phase": f"p{index}"}, DAY * np.arange(60.0), np.full(60, 1e9)) for index in range(4)]
    changes = [make_change(index, 0.5, day) for index, day in enumerate((10, 12.99, 13.01, 13.02))]
    assert [[change.history for change in joint.changes] for joint in group_changes(daily, changes)] == [[0], [1, 2, 3]]


def test_simultaneous_rises_and_drops_are_two_parts() -> None:
    """Two fell and two rose; the fifth stood. Each part counts the other one as having moved otherwise."""
    labels = [{"file_system": name} for name in ("a", "a", "b", "b", "c")]
    daily = [History(labels, DAY * np.arange(60.0), np.full(60, 1e9)) for labels in labels]
    changes = [make_change(0, 0.3, 30), make_change(1, 0.3, 30), make_change(2, 2.0, 30), make_change(3, 2.0, 30)]
    (joint,) = group_changes(daily, changes)
    assert [[labels.history for labels in part.changes] for part in joint.parts] == [[0, 1], [2, 3]]
    assert [dict(part.explanation.scopes[0].conditions) for part in joint.parts] == [
        {"file_system": "a"}, {"file_system": "b"}
    ]  # fmt: skip
    assert [(part.explanation.unchanged, part.explanation.unjudged) for part in joint.parts] == [(3, 0), (3, 0)]


def test_parts_are_split_by_the_later_size_of_lasting_changes() -> None:
    """Two changes of 0.3 and 0.5 at first; later both are 0.3, so they are one part."""
    daily = [History({"phase": f"p{index}"}, DAY * np.arange(60.0), np.full(60, 1e9)) for index in range(2)]
    for since, parts in ((0.1, 1), (0.95, 2)):
        changes = [make_change(0, 0.1, 30), make_change(1, 0.5, 30, since=since)]
        (joint,) = group_changes(daily, changes)
        assert len(joint.parts) == parts


@pytest.mark.parametrize(
    ("day", "alive"), [(10.0, False), (10.5, True), (11.0, True), (19.0, True), (19.5, False), (9.0, False)]
)
def test_series_is_measured_on_a_day_with_runs_before_and_after(day: float, alive: bool) -> None:
    assert _is_measured_around(History({}, DAY * np.arange(10.0, 20.0), np.ones(10)), DAY * day) is alive
    assert _is_measured_around(History({}, np.zeros(0), np.zeros(0)), 0.0) is False


def test_change_of_a_series_is_measured_between_its_changes() -> None:
    examined = make_counting_history(100)

    def compare_counts(rates_before: Any, rates_after: Any, *, with_p_value: bool = True) -> RateRatio:
        assert not with_p_value
        return RateRatio(float(rates_before[0] * 1000 + rates_after[-1]), 1.0, np.e, None, 9, 9, 0.95)

    def ends(own_changes: list[Change], day: float) -> tuple[int, int]:
        interval = _measure_unnoticed_change(
            *_HistoriesWithChanges([examined], own_changes).select_rates_before_and_after(0, DAY * day), compare_counts
        )
        assert interval is not None
        assert interval[1] == pytest.approx(1 / 3.92)
        first, last = divmod(round(np.exp(interval[0])), 1000)
        return int(first), int(last)

    assert ends([], 50) == (21, 80)
    assert ends([make_change(0, 0.5, 40), make_change(0, 0.5, 70)], 50) == (41, 70)
    assert ends(
        [make_change(0, 0.5, 30), make_change(0, 0.5, 40), make_change(0, 0.5, 70), make_change(0, 0.5, 60)], 50
    ) == (41, 60)
    assert ends([make_change(0, 0.5, 10), make_change(0, 0.5, 90)], 50) == (21, 80)


def test_the_noise_of_few_equal_runs_is_two_percent() -> None:
    examined = History({}, DAY * np.arange(8.0), np.array([2.0] * 5 + [1.0] * 3))
    interval = _measure_unnoticed_change(examined.values[:5], examined.values[5:])
    assert interval == pytest.approx((-np.log(2), 0.02 * np.sqrt(np.pi / 2 * (1 / 5 + 1 / 3))))
    four = History({}, examined.times[1:], examined.values[1:])
    assert _measure_unnoticed_change(four.values[:4], four.values[4:]) is None, "four runs tell no noise"


def test_explanations_are_cached_by_their_inputs() -> None:
    """A joint change is explained again only when a run near it, or a label, is another one."""
    labels = [{"system": "edison", "file_system": name} for name in ("fs1", "fs1", "fs2", "fs2")]

    def list_keys(values: np.ndarray, third: str = "fs2") -> list[str]:
        keys = []
        series = [
            History({**label, "file_system": third} if index == 2 else label, DAY * np.arange(100.0), row)
            for index, (label, row) in enumerate(zip(labels, values, strict=True))
        ]

        def explain_and_note(explanation_key: str, compute_explanations: Any) -> Any:
            keys.append(explanation_key)
            return compute_explanations()

        changes = [make_change(index, 0.5, 50) for index in (0, 1)]
        group_changes(series, changes, get_explanations=explain_and_note)
        return keys

    values = 1e9 * np.exp(np.random.default_rng(1).normal(0, 0.05, (4, 100)))
    (key,) = list_keys(values)
    far, near = values.copy(), values.copy()
    far[2, 10] *= 2
    near[2, 60] *= 2
    assert list_keys(far) == [key]
    assert list_keys(near) != [key]
    assert list_keys(values, "fs3") != [key]


@pytest.mark.parametrize("day", [20, 40])
def test_series_with_a_change_at_another_time_is_unchanged_here(day: int) -> None:
    """Two fell on day 30. The third fell ten days before or after it, and from there on it is another level."""
    days = np.arange(60.0)
    noise = 1e9 * np.exp(np.random.default_rng(9).normal(0, 0.01, 60))
    site = [History({"file_system": "a"}, DAY * days, noise * np.where(days < 30, 1.0, 0.5)) for _ in range(2)]
    site.append(History({"file_system": "b"}, DAY * days, noise * np.where(days < day, 1.0, 0.4)))
    changes = [make_change(0, 0.5, 30), make_change(1, 0.5, 30), make_change(2, 0.4, day)]
    why = next(joint for joint in group_changes(site, changes) if len(joint.changes) == 2).parts[0].explanation
    assert (why.unchanged, why.unjudged) == (1, 0)
    blind = group_changes(site, changes[:2])[0].parts[0].explanation
    assert (blind.unchanged, blind.unjudged) == (0, 1), "without its own change it would seem to have moved"
