# SPDX-License-Identifier: Apache-2.0
"""What changed together: parted by size, described briefly, and held against what was planted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sonde.trends.changes import JointChange, group_changes, measure_changes
from sonde.trends.history import History
from sonde.trends.scope import explain_changes, group_changes_by_size
from sonde.trends.watch import find_alarms_in_histories

DAY = 86400.0
LABELS = ("system", "file_system", "experiment", "operation")
CELLS = list(itertools.product(("a", "b"), ("fs1", "fs2", "fs3"), ("posix", "mpiio"), ("read", "write")))
# What is planted: conditions that hold for the series that change, and what they point to.
PLANTED_SCOPES = [
    ({"experiment": "mpiio", "operation": "read"}, "clients"),
    ({"operation": "write"}, "clients"),
    ({"file_system": "fs2"}, "storage"),
    ({"file_system": "fs1", "operation": "read"}, "storage"),
    ({"system": "b"}, "machine"),
    ({"system": "a", "operation": "read"}, "machine"),
]


def make_year_of_histories(
    random: np.random.Generator, planted: dict[str, str], factor: float, runs: int = 80
) -> list[History]:
    """Daily runs of all cells with one-sided noise that neighbors share; the planted cells change at run 50."""
    site = []
    for cell in CELLS:
        labels = dict(zip(LABELS, cell, strict=True))
        noise = -random.gamma(0.5, random.uniform(0.03, 0.15), runs)
        noise[1:] = 0.8 * noise[1:] + 0.2 * noise[:-1]
        if all(labels[name] == value for name, value in planted.items()):
            noise[50:] += np.log(factor) * random.uniform(0.8, 1.2)
        site.append(History(labels, DAY * np.arange(float(runs)) + random.uniform(0, 7200), 1e9 * np.exp(noise)))
    return site


def find_largest_joint_change(site: list[History]) -> JointChange:
    return max(
        group_changes(site, measure_changes(site, find_alarms_in_histories(site))),
        key=lambda joint_change: len(joint_change.changes),
    )


def test_nine_of_ten_planted_joint_changes_are_described_right() -> None:
    random = np.random.default_rng(11)
    right = total = causes = 0
    for planted, cause in PLANTED_SCOPES:
        for factor in (0.2, 0.45, 0.7, 1.6):
            part = max(
                find_largest_joint_change(make_year_of_histories(random, planted, factor)).parts,
                key=lambda joint_change: len(joint_change.changes),
            )
            total += 1
            right += [dict(scope.conditions) for scope in part.explanation.scopes] == [planted]
            causes += part.explanation.cause == cause
    assert right >= 0.9 * total
    assert causes >= 0.9 * total


def test_two_causes_in_one_night_are_two_parts() -> None:
    random = np.random.default_rng(2)
    site = make_year_of_histories(random, {"experiment": "mpiio", "operation": "read"}, 0.15)
    for index, history in enumerate(site):
        if history.labels["file_system"] == "fs3" and history.labels["operation"] == "write":
            site[index] = History(
                history.labels, history.times, history.values * np.where(np.arange(len(history)) < 50, 1.0, 1.7)
            )
    joint = find_largest_joint_change(site)
    first, second = sorted(joint.parts, key=lambda part: part.largest_change.size.value)[
        :: max(1, len(joint.parts) - 1)
    ]
    assert [dict(scope.conditions) for scope in first.explanation.scopes] == [
        {"experiment": "mpiio", "operation": "read"}
    ]
    assert [dict(scope.conditions) for scope in second.explanation.scopes] == [
        {"file_system": "fs3", "operation": "write"}
    ]
    assert (first.explanation.cause, second.explanation.cause) == ("clients", "storage")


def test_changes_are_parted_by_direction_and_by_half_the_size() -> None:
    sizes = [(np.log(ratio), 0.01) for ratio in (0.14, 0.84, 1.59, 0.16, 0.80, 0.13)]
    assert group_changes_by_size(sizes) == [[5, 0, 3], [2], [4, 1]]
    assert group_changes_by_size([]) == []


def test_size_within_the_error_of_the_largest_joins_its_group() -> None:
    assert group_changes_by_size([(-1.0, 0.3), (-0.45, 0.1)]) == [[0, 1]]
    assert group_changes_by_size([(-1.0, 0.01), (-0.45, 0.01)]) == [[0], [1]]


def cells(**conditions: str) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The cells that fit the conditions, and the others."""
    every = [dict(zip(LABELS, cell, strict=True)) for cell in CELLS]
    fitting = [cell for cell in every if all(cell[name] == value for name, value in conditions.items())]
    return fitting, [cell for cell in every if cell not in fitting]


@pytest.mark.parametrize("conditions", [planted for planted, _ in PLANTED_SCOPES])
def test_one_series_that_was_missed_does_not_change_the_description(conditions: dict[str, str]) -> None:
    changed, stood = cells(**conditions)
    why = explain_changes(changed[1:], [*stood, changed[0]])
    assert [dict(scope.conditions) for scope in why.scopes] == [conditions]
    assert (why.scopes[0].spared, why.uncovered) == (1, 0)


def test_series_without_common_labels_get_no_single_scope() -> None:
    every = [dict(zip(LABELS, cell, strict=True)) for cell in CELLS]
    changed = [every[0], every[11], every[17], every[23]]
    why = explain_changes(changed, [cell for cell in every if cell not in changed])
    assert sum(scope.changed for scope in why.scopes) < len(changed)
    assert why.cause in ("unknown", "storage", "machine or storage")
    assert why.certainty == "one of several explanations" or why.uncovered > 0


def test_change_of_all_series_has_no_scope_conditions() -> None:
    every = [dict(zip(LABELS, cell, strict=True)) for cell in CELLS]
    why = explain_changes(every, [])
    assert (dict(why.scopes[0].conditions), why.cause) == ({}, "everything")


def test_single_file_system_cannot_separate_clients_and_servers() -> None:
    every = [cell for cell in cells(file_system="fs1")[0] if cell["system"] == "a"]
    changed = [cell for cell in every if cell["operation"] == "read"]
    assert explain_changes(changed, [cell for cell in every if cell not in changed]).cause == "test"


def test_labels_unique_to_each_series_are_no_scope() -> None:
    """The first label of each row tells all of them apart, and is not what the changed ones share."""
    rows = [
        {"history": str(index), "plan_hash": name * 2, "epoch": name * 3, "file_system": name}
        for index, name in enumerate(("a", "a", "b", "b"))
    ]
    why = explain_changes(rows[:2], rows[2:])
    assert [dict(scope.conditions) for scope in why.scopes] == [{"file_system": "a"}]
    assert (why.unchanged, why.unjudged) == (2, 0)
    assert explain_changes(rows[:2], rows[2:], 3).unjudged == 3


def cell(**labels: str) -> dict[str, str]:
    return {"experiment": "e1", "operation": "o1", "file_system": "fs1", **labels}


@pytest.mark.parametrize(
    ("stood", "price", "sure"),
    [
        # all of it would cost 1 and one for each that stood; the best description 1.5, or 2 where it needs both labels
        ([cell(operation="o2")], 1.5, "one of several explanations"),
        ([cell(operation="o2"), cell(experiment="e2")], 2.0, "likely"),
        ([cell(operation="o2"), cell(experiment="e2"), cell(experiment="e2", operation="o2")], 2.0, "clear"),
    ],
)
def test_certainty_follows_from_the_cost_of_the_next_description(
    stood: list[dict[str, str]], price: float, sure: str
) -> None:
    why = explain_changes([cell()] * 3, stood)
    (scope,) = why.scopes
    assert (scope.changed, scope.spared, len(scope.conditions)) == (3, 0, round(2 * (price - 1)))
    assert (why.cause, why.certainty) == ("test", sure)


@pytest.mark.parametrize(
    ("changed", "stood", "cause"),
    [
        ([{"file_system": "a"}] * 3, [{"file_system": "b"}] * 3, "storage"),
        ([{"system": "x", "file_system": "a"}, {"system": "x", "file_system": "b"}],
         [{"system": "y", "file_system": "a"}, {"system": "y", "file_system": "b"}], "machine"),
        ([{"system": "x", "file_system": "a"}] * 3, [{"system": "y", "file_system": "a"}] * 3, "machine or storage"),
        ([{"node_class": "x", "file_system": "a"}] * 3, [{"node_class": "y", "file_system": "a"}] * 3,
         "machine or storage"),
        ([{"operation": "r", "file_system": "a"}, {"operation": "r", "file_system": "b"}],
         [{"operation": "w", "file_system": "a"}, {"operation": "w", "file_system": "b"}], "clients"),
        ([{"operation": "r"}] * 3, [{"operation": "w"}] * 3, "test"),
        # one storage of two has that kind of access: neither the clients of both nor that storage alone
        ([{"operation": "r", "file_system": "a"}] * 3,
         [{"operation": "w", "file_system": "a"}, {"operation": "w", "file_system": "b"}] * 3, "unknown"),
        ([{"operation": "r"}] * 3, [], "everything"),
    ],
)  # fmt: skip
def test_likely_cause_follows_from_conditions_and_spans(
    changed: list[dict[str, str]], stood: list[dict[str, str]], cause: str
) -> None:
    assert explain_changes(changed, stood).cause == cause


def test_scope_has_four_conditions_and_part_three_scopes_at_most() -> None:
    names = "abcde"
    every = [dict(zip(names, values, strict=True)) for values in itertools.product("xy", repeat=5)]
    changed = [cell for cell in every if set(cell.values()) == {"x"}] * 9
    (scope,) = explain_changes(changed, [cell for cell in every if cell not in changed]).scopes
    assert (len(scope.conditions), scope.changed, scope.spared) == (4, 9, 1)
    places = [{"file_system": name} for name in "abcdefgh" for _ in range(5)]
    why = explain_changes(places[:20], places[20:])
    assert [(dict(cell.conditions), cell.changed) for cell in why.scopes] == [
        ({"file_system": name}, 5) for name in "abc"
    ]
    assert (why.uncovered, why.unchanged, why.cause) == (5, 20, "unknown")


def test_second_scope_must_cover_more_than_it_costs() -> None:
    """Four histories of fs1 changed and one of fs2; a second scope would cost 1.5 and cover one."""
    changed = [{"file_system": "a", "operation": str(index)} for index in range(4)] + [
        {"file_system": "b", "operation": "9"}
    ]
    stood = [{"file_system": name, "operation": str(index)} for name in "bc" for index in range(4)]
    why = explain_changes(changed, stood)
    (scope,) = why.scopes
    assert dict(scope.conditions) == {"file_system": "a"}
    assert (why.uncovered, scope.spans) == (1, {"operation": (4, 4)})


def test_spans_count_changed_values_under_the_conditions() -> None:
    rows = [{"operation": op, "file_system": name} for op in "rw" for name in "abc"]
    why = explain_changes(rows[:2], rows[2:])
    assert [
        (dict(description.conditions), description.changed, description.spared, description.spans)
        for description in why.scopes
    ] == [({"operation": "r"}, 2, 1, {"file_system": (2, 3)})]


def test_equivalent_labels_are_merged_and_missing_is_a_value() -> None:
    rows = [{"system": "x", "site": "north"}, {"system": "x", "site": "north", "cache": "cold"}, {"system": "y"}]
    why = explain_changes(rows[:2], [rows[2]] * 3)
    assert dict(why.scopes[0].conditions) == {"system": "x"}
    assert dict(explain_changes(rows[1:2] * 3, rows[:1] * 3).scopes[0].conditions) == {"cache": "cold"}
    assert dict(explain_changes(rows[:1] * 3, rows[1:2] * 3).scopes[0].conditions) == {"cache": ""}


@pytest.mark.parametrize(
    ("second", "together"),
    [
        ((-0.5, 0.0), True),
        ((-0.499, 0.0), False),
        ((-0.41, 0.24), True),  # 2.5 errors of 0.24 below the first, 0.4
        ((-0.39, 0.24), False),
        ((-0.31, 9.0), True),  # but no error makes less than half as a factor alike: 1 less ln 2, 0.307
        ((-0.30, 9.0), False),
        ((0.5, 9.0), False),
    ],
)
def test_sizes_within_factor_two_or_error_are_one_group(second: tuple[float, float], together: bool) -> None:
    assert group_changes_by_size([(-1.0, 0.0), second]) == ([[0, 1]] if together else [[0], [1]])
    if second[0] < 0:
        assert group_changes_by_size([(1.0, 0.0), (-second[0], second[1])]) == ([[0, 1]] if together else [[0], [1]])


def test_the_errors_of_both_sizes_add_up_as_squares() -> None:
    assert group_changes_by_size([(-1.0, 0.144), (-0.41, 0.192)]) == [[0, 1]]  # together 0.24
    assert group_changes_by_size([(-1.0, 0.144), (-0.39, 0.192)]) == [[0], [1]]
    assert group_changes_by_size([(0.0, 0.0), (0.0, 0.0)]) == [[0, 1]]
