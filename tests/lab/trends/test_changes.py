# SPDX-License-Identifier: Apache-2.0
"""Alarms as changes and joint changes."""

from __future__ import annotations

import itertools

import numpy as np

from sonde.trends.changes import changes, joint_changes
from sonde.trends.scope import ALONE
from sonde.trends.series import Series
from sonde.trends.watch import watch

DAY = 86400.0


def site(slow: set[tuple[str, str, str]], run: int = 60, factor: float = 0.2) -> list[Series]:
    """Three file systems x two kinds of file x two directions; `slow` cells fall at `run`."""
    random = np.random.default_rng(3)
    found = []
    cells = itertools.product(("fs1", "fs2", "fs3"), ("per_task", "shared"), ("read", "write"))
    for number, cell in enumerate(cells):
        values = np.exp(random.normal(0, 0.05, 100))
        if cell in slow:
            values[run + number % 2 :] *= factor
        labels = dict(zip(("file_system", "files", "operation"), cell, strict=True))
        found.append(Series(labels, DAY * np.arange(100.0) + 600.0 * number, 1e9 * values))
    return found


def test_one_kind_of_read_on_all_file_systems_is_one_joint_change_with_its_scope() -> None:
    series = site({(name, "shared", "read") for name in ("fs1", "fs2", "fs3")})
    found = joint_changes(series, changes(series, watch(series)))
    assert len(found) == 1
    assert len(found[0].changes) == 3
    (part,) = found[0].parts
    (scope,) = part.explanation.scopes
    assert scope.where == {"files": "shared", "operation": "read"}
    assert scope.spans == {"file_system": (3, 3)}
    assert (scope.changed, scope.spared, part.explanation.stood) == (3, 0, 9)
    assert (part.explanation.cause, part.explanation.sure) == ("clients", "clear")
    assert all(0.17 < change.size.value < 0.23 and not change.over for change in found[0].changes)


def test_a_part_of_what_shares_the_labels_is_said_to_be_a_part() -> None:
    series = site({("fs1", "shared", "read"), ("fs2", "shared", "read")})
    found = joint_changes(series, changes(series, watch(series)))
    assert len(found) == 1
    (part,) = found[0].parts
    (scope,) = part.explanation.scopes
    assert scope.spared == 1
    assert scope.spans == {"file_system": (2, 3)}


def test_changes_weeks_apart_do_not_join() -> None:
    series = site({("fs1", "shared", "read")}) + site({("fs2", "shared", "write")}, run=80)
    assert len(joint_changes(series, changes(series, watch(series)))) == 2


def test_a_spell_that_passed_is_told_from_a_new_level() -> None:
    values = np.exp(np.random.default_rng(5).normal(0, 0.05, 100))
    values[60:64] *= 0.3
    series = [Series({"name": "one"}, DAY * np.arange(100.0), values)]
    found = changes(series, watch(series))
    assert found[0].over
    assert found[0].size.value < 0.4
    assert found[0].runs_to_notice == 3


def test_what_cannot_say_whether_it_moved_is_counted_apart() -> None:
    """Two series fell; of the others one is as noisy as the change is large, one began later, one stood."""
    random = np.random.default_rng(6)
    days = DAY * np.arange(100.0)
    fell = np.exp(random.normal(0, 0.02, 100)) * np.where(np.arange(100) < 60, 1.0, 0.7)
    noisy, quiet = np.exp(random.normal(0, 1.0, 100)), np.exp(random.normal(0, 0.02, 100))
    gap = np.r_[0:2, 98:100]  # measured before and after, but hardly
    series = [
        Series({"name": "fell"}, days, fell),
        Series({"name": "noisy"}, days, noisy),
        Series({"name": "young"}, days[70:], quiet[70:]),
        Series({"name": "rare"}, days[gap], quiet[gap]),
        Series({"name": "quiet"}, days, quiet),
        Series({"name": "fell too"}, days, np.roll(quiet, 30) * np.where(np.arange(100) < 60, 1.0, 0.7)),
    ]
    found = changes(series, [one for one in watch(series) if one.series in (0, 5)])
    (joint,) = joint_changes(series, found)
    (part,) = joint.parts
    assert len(part.changes) == 2
    assert (part.explanation.stood, part.explanation.untold) == (1, 2)


def test_a_series_that_changed_alone_is_not_held_against_all_others() -> None:
    """Sites with hundreds of histories have a change of one series every day; nothing is common to one series."""
    random = np.random.default_rng(8)
    days = DAY * np.arange(100.0)
    series = [Series({"name": f"s{at}"}, days, np.exp(random.normal(0, 0.02, 100))) for at in range(5)]
    series[2] = Series({"name": "s2"}, days, series[2].values * np.where(np.arange(100) < 60, 1.0, 0.5))
    (joint,) = joint_changes(series, changes(series, watch(series)))
    (part,) = joint.parts
    assert [one.series for one in part.changes] == [2]
    assert part.explanation == ALONE


def test_a_change_names_the_runs_around_it() -> None:
    values = np.where(np.arange(100) < 60, 1.0, 0.2) * np.exp(np.random.default_rng(7).normal(0, 0.02, 100))
    series = [Series({"name": "one"}, DAY * np.arange(100.0), values)]
    (one,) = changes(series, watch(series))
    assert (one.last_before, one.first_after, one.noticed) == (59 * DAY, 60 * DAY, 62 * DAY)
    assert (one.runs_to_notice, one.size.before, one.size.after) == (3, 30, 3)
    assert (one.since.before, one.since.after) == (30, 30)
