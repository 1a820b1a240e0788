# SPDX-License-Identifier: Apache-2.0
"""Parts of JSON whose form nobody promised: plans, evidence, lanes, facts about nodes, tables with free columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from sonde.model.lines import TableLine


def number(holder: object, *path: str) -> float | None:
    """The finite number at that path of members, or None when it is absent or something else."""
    value = member(holder, path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer beyond the range of a float
        return None


def text(holder: object, *path: str) -> str:
    """The text at that path of members; empty when absent. Numbers and truth values become text."""
    value = member(holder, path)
    if value is None or isinstance(value, Mapping | list | tuple):
        return ""
    return str(value)


def items(holder: object, *path: str) -> list[Any]:
    """The array at that path of members; empty when absent or something else."""
    value = member(holder, path)
    return list(value) if isinstance(value, list | tuple) else []


def members(holder: object, *path: str) -> Mapping[str, Any]:
    """The object at that path of members; empty when absent or something else."""
    value = member(holder, path)
    return value if isinstance(value, Mapping) else {}


def member(holder: object, path: Iterable[str]) -> Any:
    """Whatever stands at that path of members; None when any of them is absent."""
    value = holder
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def joined(lines: Iterable[TableLine]) -> TableLine | None:
    """The rows of all lines of a table, in the order of their tasks; None when there are none."""
    ordered = sorted(lines, key=lambda line: line.first_task)
    rows = tuple(row for line in ordered for row in line.rows)
    return TableLine(columns=ordered[0].columns, rows=rows) if rows else None


def column(rows: TableLine, *names: str) -> list[float] | None:
    """The numbers of the first column that exists under one of these names (what is not a number counts as 0)."""
    for name in names:
        if name in rows.columns:
            at = rows.columns.index(name)
            return [number({"v": row[at]}, "v") or 0.0 if at < len(row) else 0.0 for row in rows.rows]
    return None
