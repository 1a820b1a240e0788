# SPDX-License-Identifier: Apache-2.0
"""``sonde query``: SQL over the archive."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import OutputFile, add_existing_archive_option, add_json_option
from sonde.cli.run_selection import add_selection_options, open_catalog_with_progress
from sonde.model.errors import UserError
from sonde.model.units import format_count_with_noun
from sonde.store.archive import Archive
from sonde.store.selection import Selection
from sonde.terminal.encoding import escape_as_line
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json

_MAX_COMPLAINTS = 10


@click.command("query")
@click.argument("sql", required=False)
@click.option(
    "-o",
    "--output",
    "--out",
    "output",
    type=OutputFile(),
    metavar="FILE",
    help="Write the answer into a file that ends in .csv, .json or .parquet.",
)
@click.option(
    "--allow-files",
    is_flag=True,
    help="Let the query read and write any file that you may (read_csv, COPY, ATTACH) and load extensions.",
)
@add_selection_options
@add_existing_archive_option
@add_json_option
def command(
    sql: str | None, output: Path | None, allow_files: bool, wanted: Selection, archive: Archive, as_json: bool
) -> int:
    """Query the archive in SQL, as DuckDB understands it. Without SQL: list tables and columns.

    Tables: runs (one row for each run), phases (one row for each phase), and from the runs' files series (slices),
    tasks (per-task totals) and phases_full (every rate and percentile). The filters select the runs of the tables. SQL
    may be - for standard input. A query reaches no other file unless --allow-files is given.

    \b
    Examples:
      sonde query "SELECT op, median(bytes_per_s)/1e9 AS GBps FROM phases WHERE classification = 'storage' GROUP BY op"
      sonde query "SELECT run, p99_ns FROM phases_full" --plan quick --since 7d
      sonde query "SELECT * FROM runs WHERE write_bytes_per_s < 1e8" --json
      sonde query "FROM series" --plan quick -o slices.parquet
      sonde query

    More: sonde help tasks/archive
    """
    # The import of DuckDB takes longer than most commands.
    from sonde.store import sql as database
    from sonde.store.tableformat import write_table

    if sql is None:
        return _print_columns(database)
    text = sys.stdin.read() if sql == "-" else sql
    if not text.strip():
        raise UserError('The query is empty; write one like "SELECT count(*) FROM runs".')
    archive.recover_unfinished_runs()
    catalog = open_catalog_with_progress(archive.root)
    console = get_messages_console()
    if console.is_terminal:
        with console.status("asking", spinner="dots"):
            answer = database.execute_query(catalog, wanted, text, allow_files)
    else:
        answer = database.execute_query(catalog, wanted, text, allow_files)
    for complaint in answer.complaints[:_MAX_COMPLAINTS]:
        console.print(f"sonde: {complaint}", soft_wrap=True)
    if len(answer.complaints) > _MAX_COMPLAINTS:
        console.print(
            f"sonde: … and {len(answer.complaints) - _MAX_COMPLAINTS:,} more files like that.", soft_wrap=True
        )
    if output is not None:
        write_table(answer.table, output)
        console.print(f"{format_count_with_noun(answer.table.num_rows, 'row')} in {output}.", soft_wrap=True)
    elif as_json:
        print_json([dict(zip(answer.columns, map(_convert_cell_to_json, row), strict=True)) for row in answer.rows])
    else:
        _print_query_answer(answer)
    return 0


def _print_query_answer(arrow_table: Any) -> None:
    """Prints a table, or one value per line if the table is too wide."""
    console = get_results_console()
    cells = [list(map(_format_cell, row)) for row in arrow_table.rows]
    widths = [max([len(name), *(len(row[index]) for row in cells)]) for index, name in enumerate(arrow_table.columns)]
    if sum(widths) + 2 * len(widths) > console.width and len(widths) > 1:
        longest = max(map(len, arrow_table.columns))
        for row in cells:
            for name, value in zip(arrow_table.columns, row, strict=True):
                console.print(f"{escape_as_line(name):<{longest}}  {value}", soft_wrap=True)
            console.print()
        return
    table = make_plain_table()
    for name, kind in zip(arrow_table.columns, arrow_table.table.schema.types, strict=True):
        is_number = str(kind).startswith(("int", "uint", "double", "float", "decimal"))
        table.add_column(name, justify="right" if is_number else "left")
    for row in cells:
        table.add_row(*row)
    if arrow_table.columns:
        console.print(table)


def _format_cell(cell_value: Any) -> str:
    if isinstance(cell_value, float):
        # Rates in bytes/s are printed without exponent.
        return f"{cell_value:.0f}" if 1e5 <= abs(cell_value) < 1e15 else f"{cell_value:.6g}"
    if isinstance(cell_value, list):
        return escape_as_line(" ".join(map(str, cell_value)))
    return "-" if cell_value is None else escape_as_line(cell_value)


def _convert_cell_to_json(cell_value: Any) -> Any:
    if isinstance(cell_value, list):
        return [_convert_cell_to_json(item) for item in cell_value]
    if isinstance(cell_value, float) and not abs(cell_value) < float("inf"):
        return None
    return cell_value if isinstance(cell_value, str | int | float | bool | None) else str(cell_value)


def _print_columns(database: Any) -> int:
    table = make_plain_table()
    for title in ("table", "column", "type"):
        table.add_column(title)
    for part in database.TABLE_NAMES:
        for name, kind in database.list_table_columns(part):
            table.add_row(part, name, kind)
    table.add_row("tasks", "…", "and per-task totals, as the phases of a run have them")
    get_results_console().print(table)
    return 0
