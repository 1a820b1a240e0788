# SPDX-License-Identifier: Apache-2.0
"""Members of documents whose form nobody promised: what is there is read, and what is not there is no error."""

from __future__ import annotations

import pytest

from sonde.model.json_access import (
    concatenate_table_lines,
    get_column_numbers,
    get_finite_number,
    get_items,
    get_member,
    get_object,
    get_text,
)
from sonde.model.lines import TableLine

DOCUMENT = {
    "rate": 2.5,
    "count": 3,
    "zero": 0,
    "yes": True,
    "word": "cold",
    "none": None,
    "wide": 10**400,
    "endless": float("inf"),
    "inner": {"rate": 7, "list": [1, 2], "word": "1"},
    "pair": (4, 5),
}


@pytest.mark.parametrize(
    ("member_path", "member_value"),
    [("rate", 2.5), ("count", 3.0), ("zero", 0.0), ("inner rate", 7.0), ("yes", None), ("word", None), ("none", None),
     ("wide", None), ("endless", None), ("inner", None), ("inner word", None), ("absent", None), ("rate deeper", None),
     ("inner absent", None)],
)  # fmt: skip
def test_only_finite_numbers_are_returned(member_path: str, member_value: float | None) -> None:
    number = get_finite_number(DOCUMENT, *member_path.split())
    assert number == member_value
    assert number is None or isinstance(number, float)


@pytest.mark.parametrize(
    ("member_path", "member_value"),
    [("word", "cold"), ("rate", "2.5"), ("zero", "0"), ("yes", "True"), ("none", ""), ("inner", ""), ("pair", ""),
     ("inner list", ""), ("inner word", "1"), ("absent", "")],
)  # fmt: skip
def test_scalar_values_are_returned_as_text(member_path: str, member_value: str) -> None:
    assert get_text(DOCUMENT, *member_path.split()) == member_value


def test_wrong_json_types_give_empty_lists_and_objects() -> None:
    assert get_items(DOCUMENT, "inner", "list") == [1, 2]
    assert get_items(DOCUMENT, "pair") == [4, 5]
    assert get_items(DOCUMENT, "word") == get_items(DOCUMENT, "inner") == get_items(DOCUMENT, "absent") == []
    assert get_object(DOCUMENT, "inner") == DOCUMENT["inner"]
    assert get_object(DOCUMENT, "pair") == get_object(DOCUMENT, "absent") == {}
    assert get_member(DOCUMENT, ["inner", "rate"]) == 7
    assert get_member(DOCUMENT, ["pair", "x"]) is None
    assert get_member(DOCUMENT, []) is DOCUMENT


def table(first_task: int, *rows: list[object], columns: tuple[str, ...] = ("task", "rate")) -> TableLine:
    return TableLine(columns=columns, rows=tuple(tuple(row) for row in rows), first_task=first_task)


def test_the_lines_of_a_table_are_joined_in_the_order_of_their_tasks() -> None:
    joined = concatenate_table_lines([table(2, [2, 5.0]), table(0, [0, 3.0], [1, 4.0])])
    assert joined is not None
    assert joined.columns == ("task", "rate")
    assert [list(row) for row in joined.rows] == [[0, 3.0], [1, 4.0], [2, 5.0]]
    assert concatenate_table_lines([]) is concatenate_table_lines([table(0)]) is None


def test_column_uses_the_first_name_and_0_for_other_values() -> None:
    rows = table(0, [0, 3.0], [1, "much"], [2], [3, 8], [4, 0])
    assert get_column_numbers(rows, "rate") == [3.0, 0.0, 0.0, 8.0, 0.0]
    assert get_column_numbers(rows, "speed", "rate", "task") == [3.0, 0.0, 0.0, 8.0, 0.0]
    assert get_column_numbers(rows, "task", "rate") == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert get_column_numbers(rows, "speed") is None
