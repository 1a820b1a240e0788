# SPDX-License-Identifier: Apache-2.0
"""``sonde query``: SQL over the archive."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import json_option, kept_archive_option
from sonde.cli.selecting import open_catalog, selection_options
from sonde.model.errors import UserError
from sonde.model.units import counted
from sonde.store.archive import Archive
from sonde.store.selection import Selection
from sonde.terminal.screen import messages, plain_table, print_json, results

_COMPLAINTS = 10


@click.command("query")
@click.argument("sql", required=False)
@click.option(
    "-o",
    "--output",
    "--out",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the answer into a file that ends in .csv, .json or .parquet.",
)
@selection_options
@kept_archive_option
@json_option
def command(sql: str | None, out: Path | None, wanted: Selection, archive: Archive, as_json: bool) -> int:
    """Ask the archive in SQL, as DuckDB understands it. Without SQL: which tables and columns there are.

    Tables: runs (one row a run), phases (one row a phase), and from the files of the runs series (time slices), tasks
    (per-task totals) and phases_full (every rate and percentile). The filters say which runs the tables hold. SQL may
    be - for standard input.

    \b
    Examples:
      sonde query "SELECT op, median(bytes_per_s) / 1e9 AS GBps FROM phases WHERE standing = 'storage' GROUP BY op"
      sonde query "SELECT run, p99_ns FROM phases_full" --plan quick --since 7d
      sonde query "SELECT * FROM runs WHERE write_bytes_per_s < 1e8" --json
      sonde query "FROM series" --plan quick -o slices.parquet
      sonde query
    """
    # DuckDB takes longer to import than most commands take to run
    from sonde.store import sql as database
    from sonde.store.tableformat import write_table

    if sql is None:
        return _columns(database)
    text = sys.stdin.read() if sql == "-" else sql
    if not text.strip():
        raise UserError('The query is empty; write one like "SELECT count(*) FROM runs".')
    archive.recover()
    catalog = open_catalog(archive.root)
    console = messages()
    if console.is_terminal:
        with console.status("asking", spinner="dots"):
            answer = database.ask(catalog, wanted, text)
    else:
        answer = database.ask(catalog, wanted, text)
    for complaint in answer.complaints[:_COMPLAINTS]:
        console.print(f"sonde: {complaint}", soft_wrap=True)
    if len(answer.complaints) > _COMPLAINTS:
        console.print(f"sonde: … and {len(answer.complaints) - _COMPLAINTS:,} more files like that.", soft_wrap=True)
    if out is not None:
        write_table(answer.table, out)
        console.print(f"{counted(len(answer.rows), 'row')} in {out}.", soft_wrap=True)
    elif as_json:
        print_json([dict(zip(answer.columns, map(_json_value, row), strict=True)) for row in answer.rows])
    else:
        _print(answer)
    return 0


def _print(answer: Any) -> None:
    """As a table, or where that is too wide, one value a line."""
    console = results()
    cells = [list(map(_cell, row)) for row in answer.rows]
    widths = [max([len(name), *(len(row[at]) for row in cells)]) for at, name in enumerate(answer.columns)]
    if sum(widths) + 2 * len(widths) > console.width and len(widths) > 1:
        longest = max(map(len, answer.columns))
        for row in cells:
            for name, value in zip(answer.columns, row, strict=True):
                console.print(f"{name:<{longest}}  {value}", soft_wrap=True)
            console.print()
        return
    table = plain_table()
    for name, kind in zip(answer.columns, answer.table.schema.types, strict=True):
        number = str(kind).startswith(("int", "uint", "double", "float", "decimal"))
        table.add_column(name, justify="right" if number else "left")
    for row in cells:
        table.add_row(*row)
    if answer.columns:
        console.print(table)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        # rates in bytes/s are read by people who count digits: no exponent where whole numbers do
        return f"{value:.0f}" if 1e5 <= abs(value) < 1e15 else f"{value:.6g}"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "-" if value is None else str(value)


def _json_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_json_value(one) for one in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _columns(database: Any) -> int:
    table = plain_table()
    for title in ("table", "column", "type"):
        table.add_column(title)
    for part in database.TABLES:
        for name, kind in database.columns_of(part):
            table.add_row(part, name, kind)
    table.add_row("tasks", "…", "and per-task totals, as the phases of a run have them")
    results().print(table)
    return 0
