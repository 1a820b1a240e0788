# SPDX-License-Identifier: Apache-2.0
"""Members of an experiment that are kept as they stand: what is said of wrong ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sonde.model.experiment.values import (
    number_complaint,
    plan_complaint,
    profiles_complaint,
    settings_complaint,
    texts_complaint,
    values_complaint,
)


@pytest.mark.parametrize(
    ("complaint", "good"),
    [
        (plan_complaint, ["name", {"phases": []}]),
        (values_complaint, [[1], ["4KiB", "8KiB"], [True, False],
                            {"from": 1, "to": 8, "factor": 2}, {"from": "4KiB", "to": "1MiB", "step": "4KiB"},
                            {"from": 1, "to": 2, "factor": 1.01}]),
        (settings_complaint, [{}, {"a.b": 1, "c": 2}]),
        (texts_complaint, [{}, {"a": "b", "c": 1, "d": 1.5, "e": True}]),
        (profiles_complaint, [{}, {"ci": {"a.b": 1}}]),
        (number_complaint, ["1.6 GB/s", 3, 0.5, 0]),
    ],
)  # fmt: skip
def test_good_ones_have_no_complaint(complaint: Callable[[object], str | None], good: list[object]) -> None:
    assert [complaint(one) for one in good] == [None] * len(good)


RANGE = {"from": 1, "to": 8, "factor": 2}


@pytest.mark.parametrize(
    ("complaint", "wrong", "words"),
    [
        (plan_complaint, "", "is empty"),
        (plan_complaint, 7, "is 7; it must be a plan (a table)"),
        (values_complaint, [], "is empty"),
        (values_complaint, [1, 2, 3, 2], "has 2 twice"),
        (values_complaint, [1, 0, 0], "has 0 twice"),
        (values_complaint, [[1], [1]], "has [1] twice"),
        (number_complaint, True, "is true; write it as it is printed"),
        (number_complaint, "", 'is ""; write it as it is printed'),
        (number_complaint, [3], "is [3]; write it as it is printed"),
        (number_complaint, float("nan"), "is NaN; write it as it is printed"),
        (values_complaint, 7, "is 7; it must be a list of values"),
        (values_complaint, RANGE | {"by": 2}, 'has no member "by"'),
        (values_complaint, {"to": 8, "factor": 2}, "needs from, to and one of"),
        (values_complaint, {"from": 8, "factor": 2}, "needs from, to and one of"),
        (values_complaint, {"from": 1, "to": 8}, "needs from, to and one of"),
        (values_complaint, RANGE | {"step": 1}, "needs from, to and one of"),
        (values_complaint, RANGE | {"from": True}, "has true for from"),
        (values_complaint, RANGE | {"to": [1]}, "has [1] for to"),
        (values_complaint, RANGE | {"to": float("inf")}, "for to; write a number"),
        (values_complaint, {"from": 1, "to": 8, "step": None}, "has null for step"),
        (values_complaint, RANGE | {"factor": 1}, "has the factor 1; a factor is larger than 1"),
        (values_complaint, RANGE | {"factor": True}, "has the factor true"),
        (values_complaint, RANGE | {"factor": "2"}, 'has the factor "2"'),
        (settings_complaint, [], "is []; it must be a table of paths and values"),
        (settings_complaint, {"a": 1, "b..c": 2}, 'has the path "b..c"'),
        (settings_complaint, {"": 1}, 'has the path ""'),
        (texts_complaint, "x", 'is "x"; it must be a table of names and texts'),
        (texts_complaint, {"a": "b", "c": []}, "has [] for c; it must be a text or a number"),
        (texts_complaint, {"": []}, "has [] for ;"),
        (profiles_complaint, 1, "is 1; it must be a table of profiles"),
        (profiles_complaint, {"good": {}, "ci": 3}, "ci is 3; it must be a table of paths"),
    ],
)
def test_wrong_ones_are_named(complaint: Callable[[object], str | None], wrong: object, words: str) -> None:
    said = complaint(wrong)
    assert said is not None
    assert words in said
    assert said.endswith(".")
