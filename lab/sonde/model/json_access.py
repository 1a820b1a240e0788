# SPDX-License-Identifier: Apache-2.0
"""Typed access to JSON without a fixed schema: plans, evidence, node facts, tables with variable columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from sonde.model.lines import TableLine


def get_finite_number(json_object: object, *member_path: str) -> float | None:
    """Returns the finite number at a member path, or None when it is absent or not a finite number."""
    return convert_to_finite_number(get_member(json_object, member_path))


def convert_to_finite_number(json_value: object) -> float | None:
    """Returns a finite number as float, or None for anything else."""
    if isinstance(json_value, bool) or not isinstance(json_value, int | float):
        return None
    try:
        return float(json_value) if math.isfinite(json_value) else None
    except OverflowError:  # an integer beyond the range of a float
        return None


def get_text(json_object: object, *member_path: str) -> str:
    """Returns the text at a member path; empty when absent. Numbers and booleans are converted to text."""
    value = get_member(json_object, member_path)
    if value is None or isinstance(value, Mapping | list | tuple):
        return ""
    return str(value)


def get_items(json_object: object, *member_path: str) -> list[Any]:
    """Returns the array at a member path; empty when absent or not an array."""
    value = get_member(json_object, member_path)
    return list(value) if isinstance(value, list | tuple) else []


def get_object(json_object: object, *member_path: str) -> Mapping[str, Any]:
    """Returns the object at a member path; empty when absent or not an object."""
    value = get_member(json_object, member_path)
    return value if isinstance(value, Mapping) else {}


def get_member(json_object: object, member_path: Iterable[str]) -> Any:
    """Returns the value at a member path; None when a member on the path is absent."""
    value = json_object
    for name in member_path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def concatenate_table_lines(table_lines: Iterable[TableLine]) -> TableLine | None:
    """Joins the lines that a table of the record was split into, in order of their tasks. Returns None without rows."""
    ordered_tables = sorted(table_lines, key=lambda line: line.first_task)
    rows = tuple(row for line in ordered_tables for row in line.rows)
    return TableLine(columns=ordered_tables[0].columns, rows=rows) if rows else None


def get_column_numbers(table: TableLine, *column_names: str) -> list[float] | None:
    """Returns the numbers of the first column with one of these names; other values count as 0."""
    for name in column_names:
        if name in table.columns:
            index = table.columns.index(name)
            return [convert_to_finite_number(row[index]) or 0.0 if index < len(row) else 0.0 for row in table.rows]
    return None
