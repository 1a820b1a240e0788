# SPDX-License-Identifier: Apache-2.0
"""Draws tables for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sonde.charts.markup import Markup


def render_notebook_table(column_names: Sequence[str], rows: Sequence[Sequence[Any]], row_count: int) -> str:
    """Returns an HTML table of the rows, of which there are `row_count` in all."""
    head = Markup("").join(Markup("<th>{}</th>").format(_render_cell(name)) for name in column_names)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup("<td>{}</td>").format(_render_cell(value)) for value in row)
        )
        for row in rows
    )
    more = Markup("<p>{} of {} rows</p>").format(len(rows), row_count) if len(rows) < row_count else Markup("")
    return str(Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}").format(head, body, more))


def _render_cell(cell_value: Any) -> Markup:
    if cell_value is None:
        return Markup("")
    return Markup.escape(f"{cell_value:.6g}" if isinstance(cell_value, float) else cell_value)
