# SPDX-License-Identifier: Apache-2.0
"""Draws tables for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from sonde.model.escaping import escape_line


def draw_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], count: int) -> str:
    """Returns an HTML table of the rows, of which there are `count` in all."""
    head = Markup("").join(Markup("<th>{}</th>").format(_to_cell(name)) for name in columns)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(_to_cell(value)) for value in row))
        for row in rows
    )
    more = Markup("<p>{} of {} rows</p>").format(len(rows), count) if len(rows) < count else Markup("")
    return str(Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}").format(head, body, more))


def _to_cell(value: Any) -> Markup:
    if value is None:
        return Markup("")
    return escape(f"{value:.6g}" if isinstance(value, float) else escape_line(str(value), 200))
