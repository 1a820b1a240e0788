# SPDX-License-Identifier: Apache-2.0
"""Members of an experiment that are kept as they stand: what is said of wrong ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sonde.model.experiment.values import (
    find_plan_problem,
    find_profiles_problem,
    find_published_number_problem,
    find_settings_problem,
    find_texts_problem,
    find_values_problem,
)


@pytest.mark.parametrize(
    ("expected_complaint", "good"),
    [
        (find_plan_problem, ["name", {"phases": []}]),
        (find_values_problem, [[1], ["4KiB", "8KiB"], [True, False],
                            {"from": 1, "to": 8, "factor": 2}, {"from": "4KiB", "to": "1MiB", "step": "4KiB"},
                            {"from": 1, "to": 2, "factor": 1.01}]),
        (find_settings_problem, [{}, {"a.b": 1, "c": 2}]),
        (find_texts_problem, [{}, {"a": "b", "c": 1, "d": 1.5, "e": True}]),
        (find_profiles_problem, [{}, {"ci": {"a.b": 1}}]),
        (find_published_number_problem, ["1.6 GB/s", 3, 0.5, 0]),
    ],
)  # fmt: skip
def test_valid_values_have_no_complaint(expected_complaint: Callable[[object], str | None], good: list[object]) -> None:
    assert [expected_complaint(value) for value in good] == [None] * len(good)


RANGE = {"from": 1, "to": 8, "factor": 2}


@pytest.mark.parametrize(
    ("expected_complaint", "wrong", "expected_fragment"),
    [
        (find_plan_problem, "", "is empty"),
        (find_plan_problem, 7, "is 7; it must be a plan (a table)"),
        (find_values_problem, [], "is empty"),
        (find_values_problem, [1, 2, 3, 2], "has 2 twice"),
        (find_values_problem, [1, 0, 0], "has 0 twice"),
        (find_values_problem, [[1], [1]], "has [1] twice"),
        (find_published_number_problem, True, "is true; write it as it is printed"),
        (find_published_number_problem, "", 'is ""; write it as it is printed'),
        (find_published_number_problem, [3], "is [3]; write it as it is printed"),
        (find_published_number_problem, float("nan"), "is NaN; write it as it is printed"),
        (find_values_problem, 7, "is 7; it must be a list of values"),
        (find_values_problem, RANGE | {"by": 2}, 'has no member "by"'),
        (find_values_problem, {"to": 8, "factor": 2}, "needs from, to and one of"),
        (find_values_problem, {"from": 8, "factor": 2}, "needs from, to and one of"),
        (find_values_problem, {"from": 1, "to": 8}, "needs from, to and one of"),
        (find_values_problem, RANGE | {"step": 1}, "needs from, to and one of"),
        (find_values_problem, RANGE | {"from": True}, "has true for from"),
        (find_values_problem, RANGE | {"to": [1]}, "has [1] for to"),
        (find_values_problem, RANGE | {"to": float("inf")}, "for to; write a number"),
        (find_values_problem, {"from": 1, "to": 8, "step": None}, "has null for step"),
        (find_values_problem, RANGE | {"factor": 1}, "has the factor 1; a factor is larger than 1"),
        (find_values_problem, RANGE | {"factor": True}, "has the factor true"),
        (find_values_problem, RANGE | {"factor": "2"}, 'has the factor "2"'),
        (find_settings_problem, [], "is []; it must be a table of paths and values"),
        (find_settings_problem, {"a": 1, "b..c": 2}, 'has the path "b..c"'),
        (find_settings_problem, {"": 1}, 'has the path ""'),
        (find_texts_problem, "x", 'is "x"; it must be a table of names and texts'),
        (find_texts_problem, {"a": "b", "c": []}, "has [] for c; it must be a text or a number"),
        (find_texts_problem, {"": []}, "has [] for ;"),
        (find_profiles_problem, 1, "is 1; it must be a table of profiles"),
        (find_profiles_problem, {"good": {}, "ci": 3}, "ci is 3; it must be a table of paths"),
    ],
)
def test_invalid_values_get_a_specific_complaint(
    expected_complaint: Callable[[object], str | None], wrong: object, expected_fragment: str
) -> None:
    sentence = expected_complaint(wrong)
    assert sentence is not None
    assert expected_fragment in sentence
    assert sentence.endswith(".")
