# SPDX-License-Identifier: Apache-2.0
"""``sonde export``: writes runs into one file, for another archive or another tool."""

from __future__ import annotations

from pathlib import Path

import click

from sonde.cli.options import OutputFile, add_existing_archive_option
from sonde.cli.run_selection import (
    add_selection_options,
    open_catalog_with_progress,
    open_progress_bar,
    select_run_folders,
)
from sonde.model.errors import UserError
from sonde.store.archive import Archive
from sonde.store.packing import PACK_SUFFIXES, is_pack_file_name, pack_runs
from sonde.store.selection import Selection
from sonde.terminal.screen import get_messages_console, get_results_console

_TABLE_SUFFIXES = (".csv", ".json", ".parquet")
_SELECT_STATEMENTS = {
    "phases": "SELECT runs.* EXCLUDE (folder),"
    ' phases.* EXCLUDE (run, started_s, plan, "group", seconds, findings, validity),'
    " phases.seconds AS phase_seconds, phases.findings AS phase_findings, phases.validity AS phase_validity"
    " FROM runs LEFT JOIN phases USING (run) ORDER BY started_s, run, position",
    "targets": 'SELECT started, plan, "group", targets.* FROM targets LEFT JOIN runs USING (run)'
    " ORDER BY started_s, run, phase, kind, target",
}


@click.command("export")
@click.argument("output", type=OutputFile(), metavar="FILE")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("-a", "--all", "everything", is_flag=True, help="All runs of the archive.")
@click.option(
    "--table",
    "rows",
    type=click.Choice(["phases", "targets"]),
    default="phases",
    show_default=True,
    help="Rows of a table: one for each phase, or one for each storage target, phase and kind of operation.",
)
@add_selection_options
@add_existing_archive_option
def command(
    output: Path, runs: tuple[str, ...], everything: bool, rows: str, wanted: Selection, archive: Archive
) -> int:
    """Write runs into FILE: those that match the names and the filters, as far as given.

    A name that ends in .tar, .tar.gz, .tar.xz or .zip gets the runs with all their files; `sonde import` brings them
    into another archive. One that ends in .csv, .json or .parquet gets a table with a row a phase, or with `--table
    targets` a row for each storage target.

    \b
    Examples:
      sonde export accepted.tar.gz --tag accepted
      sonde export last.zip last
      sonde export history.csv --plan daily --since 2026-01-01
      sonde export everything.parquet --all
      sonde export osts.csv last --table targets

    More: sonde help tasks/archive
    """
    if not is_pack_file_name(output) and output.suffix not in _TABLE_SUFFIXES:
        raise UserError(
            f'"{output}" does not say its format: it ends in one of {", ".join((*PACK_SUFFIXES, *_TABLE_SUFFIXES))}.'
        )
    if is_pack_file_name(output) and rows != "phases":
        raise UserError(f"--table {rows} is for tables, and {output} gets the runs with all their files; leave it out.")
    archive.recover_unfinished_runs()
    if everything and not runs:
        folders = [
            archive.root / folder
            for folder in open_catalog_with_progress(archive.root).read_run_table(["folder"])["folder"].to_pylist()
        ]
    else:
        folders = select_run_folders(archive, runs, wanted, "export")
    if not folders:
        raise UserError("No run matches; nothing was written.")
    if is_pack_file_name(output):
        with open_progress_bar("packing") as step:
            complaints = pack_runs(folders, output, step)
        for complaint in complaints:
            get_messages_console().print(f"sonde: {complaint}", soft_wrap=True)
    else:
        _write_table_rows(archive, folders, output, rows)
    count = f"{len(folders):,} runs" if len(folders) != 1 else folders[0].name
    get_messages_console().print(f"{count} written.", soft_wrap=True)
    get_results_console().print(str(output), soft_wrap=True)
    return 0


def _write_table_rows(archive: Archive, run_folders: list[Path], table_file: Path, row_kind: str) -> None:
    from sonde.store import sql
    from sonde.store.tableformat import write_table

    catalog = open_catalog_with_progress(archive.root)
    ids = [folder.name for folder in run_folders]
    wanted = Selection(ids=ids, calibrations=True)
    answer = sql.execute_query(catalog, wanted, _SELECT_STATEMENTS[row_kind])
    write_table(answer.table, table_file)
