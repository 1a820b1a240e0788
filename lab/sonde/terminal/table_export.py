# SPDX-License-Identifier: Apache-2.0
"""Tables of a verb as CSV, JSON, Markdown or Parquet, with exact numbers in base units instead of formatted text."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from sonde.model.errors import UserError
from sonde.model.units import FormattedNumber
from sonde.terminal.encoding import escape_as_line, print_plain_text
from sonde.terminal.fitting_table import FittingTable

EXPORT_FORMATS = ("csv", "json", "md", "parquet")
_WHOLE_NUMBER_PATTERN = re.compile(r"[-+−]?\d{1,3}(?:,?\d{3})*|[-+−]?\d+")
_DECIMAL_NUMBER_PATTERN = re.compile(r"[-+−]?\d+\.\d+(?:e[-+]?\d+)?")

CellValue = str | int | float | None


@dataclass(frozen=True)
class ExportedTable:
    """Column titles, with the unit of numbers in parentheses, and rows of values; an absent cell is None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[CellValue, ...], ...]


def extract_table_values(table: FittingTable) -> ExportedTable:
    """Returns the values of a printed table, with a title of each column that no other column has."""
    columns = [[_split_value_and_unit(cell) for cell in column.cells] for column in table.columns]
    titles: list[str] = []
    plain_titles = _make_distinct_titles([_get_plain_text(column.header) for column in table.columns])
    for position, (title, column, values) in enumerate(zip(plain_titles, table.columns, columns, strict=True), start=1):
        units = {unit for _, unit in values if unit}
        is_mixed = len(units) > 1 or any(isinstance(value, str) for value, _ in values)
        if units and is_mixed:  # a column of several units, or of numbers among words, stays as printed
            columns[position - 1] = [(_get_plain_text(cell) or None, "") for cell in column.cells]
        elif units:
            title = f"{title} ({units.pop()})"
        titles.append(title)
    rows = zip(*([value for value, _ in values] for values in columns), strict=True)
    return ExportedTable(tuple(titles), tuple(rows))


def _make_distinct_titles(printed_titles: Sequence[str]) -> list[str]:
    """Returns titles of columns: "before, runs, after, runs" is "before, runs, after, after runs".

    A first column without a title has names, a last one comments.
    """
    titles: list[str] = []
    for position, printed in enumerate(printed_titles, start=1):
        title = printed
        if not title:
            untitled = {1: "name", len(printed_titles): "comment"}
            title = untitled.get(position, f"column {position}")
        if title in titles:
            title = f"{titles[-1]} {title}"
        titles.append(title if title not in titles else f"{title} {position}")
    return titles


def _get_plain_text(cell: object) -> str:
    return (cell.plain if isinstance(cell, Text) else str(cell)).strip()


def _split_value_and_unit(cell: object) -> tuple[CellValue, str]:
    """Returns the value of a cell and its unit, "" for texts and plain numbers."""
    if isinstance(cell, FormattedNumber):
        return cell.value, cell.unit
    text = _get_plain_text(cell)
    if text in ("", "-", "–"):
        return None, ""
    number = text.replace("−", "-").replace(",", "")
    if _WHOLE_NUMBER_PATTERN.fullmatch(text):
        return int(number), ""
    if _DECIMAL_NUMBER_PATTERN.fullmatch(text):
        return float(number), ""
    return text, ""


def write_tables_to_stdout(tables: Sequence[FittingTable], file_format: str) -> None:
    """Writes the tables to standard output. Tables with the same columns become one.

    Raises UserError if the format cannot hold them or standard output is a terminal.
    """
    exported = _merge_tables_with_same_columns([extract_table_values(table) for table in tables])
    if file_format == "parquet":
        _write_parquet(exported)
    elif file_format == "json":
        print_plain_text(json.dumps([_make_json_document(table) for table in exported], indent=2))
    elif file_format == "csv":
        print_plain_text("\n".join(_format_csv(table) for table in exported), line_end="")
    else:
        print_plain_text("\n".join(_format_markdown(table) for table in exported), line_end="")


def _merge_tables_with_same_columns(tables: Sequence[ExportedTable]) -> list[ExportedTable]:
    rows: dict[tuple[str, ...], list[tuple[CellValue, ...]]] = {}
    for table in tables:
        rows.setdefault(table.columns, []).extend(table.rows)
    return [ExportedTable(columns, tuple(values)) for columns, values in rows.items()]


def _make_json_document(table: ExportedTable) -> dict[str, Any]:
    return {"columns": list(table.columns), "rows": [dict(zip(table.columns, row, strict=True)) for row in table.rows]}


def _format_csv(table: ExportedTable) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([escape_as_line(cell) if isinstance(cell, str) else cell for cell in row] for row in table.rows)
    return text.getvalue()


def _format_markdown(table: ExportedTable) -> str:
    numeric = [all(not isinstance(row[index], str) for row in table.rows) for index in range(len(table.columns))]
    lines = [
        _make_markdown_row(table.columns),
        "|" + "|".join("---:" if is_numeric else "---" for is_numeric in numeric) + "|",
        *(_make_markdown_row(["" if cell is None else cell for cell in row]) for row in table.rows),
    ]
    return "".join(f"{line}\n" for line in lines)


def _make_markdown_row(cells: Sequence[object]) -> str:
    texts = [escape_as_line(cell) for cell in cells]
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _write_parquet(tables: Sequence[ExportedTable]) -> None:
    if len(tables) > 1:
        raise UserError(f"This command prints {len(tables)} tables, and a Parquet file holds one; use --export json.")
    if sys.stdout.isatty():
        raise UserError("Parquet is not text: write it to a file, as in `sonde list --export parquet > runs.parquet`.")
    import pyarrow  # slow to import
    from pyarrow import parquet

    table = tables[0]
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    arrays = [_make_arrow_array(pyarrow, column) for column in columns]
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(arrays, names=list(table.columns)), sink)
    sys.stdout.flush()
    sys.stdout.buffer.write(sink.getvalue())
    sys.stdout.buffer.flush()


def _make_arrow_array(pyarrow: Any, values: Sequence[CellValue]) -> Any:
    """Returns the values as one column: numbers if all are numbers, else text."""
    if any(isinstance(value, str) for value in values):
        return pyarrow.array([None if value is None else str(value) for value in values], pyarrow.string())
    if any(isinstance(value, float) for value in values):
        return pyarrow.array([None if value is None else float(value) for value in values], pyarrow.float64())
    return pyarrow.array(list(values), pyarrow.int64() if any(value is not None for value in values) else None)
