# SPDX-License-Identifier: Apache-2.0
"""``sonde list``: the runs in the archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sonde.cli.options import add_existing_archive_option, add_json_option
from sonde.cli.run_selection import add_selection_options, open_catalog_with_progress, open_progress_bar
from sonde.model.errors import RecordError
from sonde.store.archive import Archive
from sonde.store.selection import Selection
from sonde.store.summary import read_summary
from sonde.terminal.run_list import (
    RUN_LIST_COLUMNS,
    RunListRow,
    make_row_for_each_group,
    make_row_for_each_run,
    print_run_list,
)
from sonde.terminal.screen import get_messages_console, get_results_console, print_json

if TYPE_CHECKING:
    from sonde.store.catalog import Catalog

_DEFAULT_LISTED_RUNS = 100
_MIN_FOLDED_GROUP_RUNS = 4  # smaller groups have a row for each run
_MAX_COMPLAINTS = 10


@click.command("list")
@add_selection_options
@click.option(
    "-n",
    "--last",
    "count",
    type=click.IntRange(1),
    metavar="N",
    help=f"Only the last N rows, with --json runs. Default: {_DEFAULT_LISTED_RUNS}, with --json all.",
)
@click.option("-a", "--all", "everything", is_flag=True, help="Include the calibration runs of checks.")
@click.option("--runs", "ungrouped", is_flag=True, help="A row for each run. Default: one row for the runs of a group.")
@add_existing_archive_option
@add_json_option
def command(
    wanted: Selection, count: int | None, everything: bool, ungrouped: bool, archive: Archive, as_json: bool
) -> int:
    """List the stored runs, the oldest first. The runs of an experiment, sweep or check are one row.

    \b
    Examples:
      sonde list
      sonde list --since 7d --status failed
      sonde list --plan quick --on /scratch -n 5
      sonde list --tag accepted --validity good --runs

    More: sonde help tasks/archive
    """
    archive.recover_unfinished_runs()
    catalog = open_catalog_with_progress(archive.root)
    selected = replace(wanted, calibrations=everything)
    if as_json:
        rows = catalog.find_runs(["run", "folder", "tags"], selected, count).table.to_pylist()
        _print_complaints(catalog.describe_foreign_folders())
        print_json(_make_run_documents(archive, rows))
        return 0
    lines, left_out = _select_last_rows(catalog, selected, count, ungrouped)
    _print_complaints(catalog.describe_foreign_folders())
    if lines:
        print_run_list(lines)
        if any(len(line.runs) > 1 for line in lines):
            get_messages_console().print("sonde: --runs lists each run of a group.", soft_wrap=True)
        if count is None and left_out:
            text = f"sonde: {left_out:,} earlier rows are not shown; -n N lists more."
            get_messages_console().print(text, soft_wrap=True)
    else:
        run_count = len(catalog.read_run_table(["run"]))
        content = "no run like that" if run_count else "nothing yet; `sonde check DIR` makes the first runs"
        get_results_console().print(f"The archive {archive.root} holds {content}.", soft_wrap=True)
    return 0


def _select_last_rows(
    catalog: Catalog, selection: Selection, max_rows: int | None, is_ungrouped: bool
) -> tuple[list[RunListRow], int]:
    """The last rows of the table, and how many came before. Only the names of the others are read."""
    names = catalog.find_runs(["run", "group"], selection, None).table.to_pylist()
    lines = make_row_for_each_run(names) if is_ungrouped else make_row_for_each_group(names, _MIN_FOLDED_GROUP_RUNS)
    last_lines = lines[-(max_rows or _DEFAULT_LISTED_RUNS) :]
    ids = [row["run"] for line in last_lines for row in line.runs]
    rows = catalog.find_runs(RUN_LIST_COLUMNS, replace(selection, ids=ids), None).table.to_pylist() if ids else []
    by_run = {row["run"]: row for row in rows}
    complete = [
        RunListRow(line.name, runs)
        for line in last_lines
        if (runs := [by_run[row["run"]] for row in line.runs if row["run"] in by_run])
    ]
    return complete, len(lines) - len(last_lines)


def _print_complaints(complaints: Sequence[str]) -> None:
    for complaint in complaints[:_MAX_COMPLAINTS]:
        get_messages_console().print(f"sonde: {complaint}", soft_wrap=True)
    if len(complaints) > _MAX_COMPLAINTS:
        get_messages_console().print(
            f"sonde: … and {len(complaints) - _MAX_COMPLAINTS:,} more folders like that.", soft_wrap=True
        )


def _make_run_documents(archive: Archive, index_rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    documents = []
    with open_progress_bar("reading runs") as step:
        for done, row in enumerate(index_rows):
            folder = archive.root / row["folder"]
            documents.append({**_read_summary_document(folder), "tags": row["tags"], "folder": str(folder)})
            if done % 1000 == 999:
                step(done, len(index_rows))
    return documents


def _read_summary_document(run_folder: Path) -> Mapping[str, Any]:
    """Returns the run.json; empty if the run was removed meanwhile."""
    try:
        return read_summary(run_folder).document
    except RecordError:
        return {}
