# SPDX-License-Identifier: Apache-2.0
"""What changed together: parted by size, described briefly, and held against what was planted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sonde.trends.changes import JointChange, changes, joint_changes
from sonde.trends.scope import explain, parts_by_size
from sonde.trends.series import Series
from sonde.trends.watch import watch

DAY = 86400.0
LABELS = ("system", "file_system", "experiment", "operation")
CELLS = list(itertools.product(("a", "b"), ("fs1", "fs2", "fs3"), ("posix", "mpiio"), ("read", "write")))
# What is planted: conditions that hold for the series that change, and what they point to.
PLANTED = [
    ({"experiment": "mpiio", "operation": "read"}, "clients"),
    ({"operation": "write"}, "clients"),
    ({"file_system": "fs2"}, "storage"),
    ({"file_system": "fs1", "operation": "read"}, "storage"),
    ({"system": "b"}, "machine"),
    ({"system": "a", "operation": "read"}, "machine"),
]


def year(random: np.random.Generator, planted: dict[str, str], factor: float, runs: int = 80) -> list[Series]:
    """Daily runs of all cells with one-sided noise that neighbors share; the planted cells change at run 50."""
    site = []
    for cell in CELLS:
        labels = dict(zip(LABELS, cell, strict=True))
        noise = -random.gamma(0.5, random.uniform(0.03, 0.15), runs)
        noise[1:] = 0.8 * noise[1:] + 0.2 * noise[:-1]
        if all(labels[name] == value for name, value in planted.items()):
            noise[50:] += np.log(factor) * random.uniform(0.8, 1.2)
        site.append(Series(labels, DAY * np.arange(float(runs)) + random.uniform(0, 7200), 1e9 * np.exp(noise)))
    return site


def largest(site: list[Series]) -> JointChange:
    return max(joint_changes(site, changes(site, watch(site))), key=lambda one: len(one.changes))


def test_of_joint_changes_planted_in_simulated_years_nine_in_ten_are_described_right() -> None:
    random = np.random.default_rng(11)
    right = total = causes = 0
    for planted, cause in PLANTED:
        for factor in (0.2, 0.45, 0.7, 1.6):
            part = max(largest(year(random, planted, factor)).parts, key=lambda one: len(one.changes))
            total += 1
            right += [dict(scope.where) for scope in part.explanation.scopes] == [planted]
            causes += part.explanation.cause == cause
    assert right >= 0.9 * total
    assert causes >= 0.9 * total


def test_two_causes_in_one_night_are_two_parts() -> None:
    random = np.random.default_rng(2)
    site = year(random, {"experiment": "mpiio", "operation": "read"}, 0.15)
    for at, one in enumerate(site):
        if one.labels["file_system"] == "fs3" and one.labels["operation"] == "write":
            site[at] = Series(one.labels, one.times, one.values * np.where(np.arange(len(one)) < 50, 1.0, 1.7))
    joint = largest(site)
    first, second = sorted(joint.parts, key=lambda part: part.largest.size.value)[:: max(1, len(joint.parts) - 1)]
    assert [dict(scope.where) for scope in first.explanation.scopes] == [{"experiment": "mpiio", "operation": "read"}]
    assert [dict(scope.where) for scope in second.explanation.scopes] == [{"file_system": "fs3", "operation": "write"}]
    assert (first.explanation.cause, second.explanation.cause) == ("clients", "storage")


def test_changes_are_parted_by_direction_and_by_half_the_size() -> None:
    sizes = [(np.log(one), 0.01) for one in (0.14, 0.84, 1.59, 0.16, 0.80, 0.13)]
    assert parts_by_size(sizes) == [[5, 0, 3], [2], [4, 1]]
    assert parts_by_size([]) == []


def test_a_size_within_the_error_of_the_largest_belongs_to_it() -> None:
    assert parts_by_size([(-1.0, 0.3), (-0.45, 0.1)]) == [[0, 1]]
    assert parts_by_size([(-1.0, 0.01), (-0.45, 0.01)]) == [[0], [1]]


def cells(**conditions: str) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The cells that fit the conditions, and the others."""
    every = [dict(zip(LABELS, cell, strict=True)) for cell in CELLS]
    fitting = [one for one in every if all(one[name] == value for name, value in conditions.items())]
    return fitting, [one for one in every if one not in fitting]


@pytest.mark.parametrize("conditions", [planted for planted, _ in PLANTED])
def test_one_series_that_was_missed_does_not_change_the_description(conditions: dict[str, str]) -> None:
    changed, stood = cells(**conditions)
    why = explain(changed[1:], [*stood, changed[0]])
    assert [dict(scope.where) for scope in why.scopes] == [conditions]
    assert (why.scopes[0].spared, why.uncovered) == (1, 0)


def test_series_that_share_nothing_are_not_forced_under_one_roof() -> None:
    every = [dict(zip(LABELS, cell, strict=True)) for cell in CELLS]
    changed = [every[0], every[11], every[17], every[23]]
    why = explain(changed, [one for one in every if one not in changed])
    assert sum(scope.changed for scope in why.scopes) < len(changed)
    assert why.cause in ("unknown", "storage", "machine or storage")
    assert why.sure == "one of several explanations" or why.uncovered > 0


def test_everything_that_changed_is_everything() -> None:
    every = [dict(zip(LABELS, cell, strict=True)) for cell in CELLS]
    why = explain(every, [])
    assert (dict(why.scopes[0].where), why.cause) == ({}, "everything")


def test_with_one_file_system_clients_and_servers_cannot_be_told_apart() -> None:
    every = [one for one in cells(file_system="fs1")[0] if one["system"] == "a"]
    changed = [one for one in every if one["operation"] == "read"]
    assert explain(changed, [one for one in every if one not in changed]).cause == "test"


def test_labels_that_only_number_a_series_describe_nothing() -> None:
    """The first label of each row tells all of them apart, and is not what the changed ones share."""
    rows = [{"series": str(at), "file_system": name} for at, name in enumerate(("a", "a", "b", "b"))]
    why = explain(rows[:2], rows[2:])
    assert [dict(scope.where) for scope in why.scopes] == [{"file_system": "a"}]
    assert (why.stood, why.untold) == (2, 0)
    assert explain(rows[:2], rows[2:], 3).untold == 3
