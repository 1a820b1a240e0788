# SPDX-License-Identifier: Apache-2.0
"""``sonde list``: the runs in the archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from sonde.cli.options import existing_archive_option, json_option
from sonde.cli.run_selection import open_catalog, progress_bar, selection_options
from sonde.findings.caveats import GOOD, label_finding
from sonde.findings.classification import Classification, label_classification
from sonde.model.errors import RecordError
from sonde.model.units import format_seconds
from sonde.store.archive import Archive
from sonde.store.selection import Selection
from sonde.store.summary import read_summary
from sonde.terminal.phase_text import format_rate_by_transfer
from sonde.terminal.screen import messages, plain_table, print_json, results

_STYLE = {"done": "green", "interrupted": "yellow"}
_DEFAULT_COUNT = 100
_MAX_COMPLAINTS = 10
_COLUMNS = ("run", "started", "target", "file_system", "tasks", "status", "seconds", "folder", "source", "tags")
_ASSESSMENT_COLUMNS = ("validity", "caveats")
_RATE_COLUMNS = tuple(
    f"{direction}_{measure}"
    for direction in ("write", "read")
    for measure in ("bytes_per_s", "ops_per_s", "classification")
)


@click.command("list")
@selection_options
@click.option(
    "-n",
    "--last",
    "count",
    type=click.IntRange(1),
    metavar="N",
    help=f"Only the last N. Default: {_DEFAULT_COUNT}, with --json all.",
)
@click.option("-a", "--all", "everything", is_flag=True, help="Include the calibration runs of checks.")
@existing_archive_option
@json_option
def command(wanted: Selection, count: int | None, everything: bool, archive: Archive, as_json: bool) -> int:
    """List the stored runs, the oldest first.

    \b
    Examples:
      sonde list
      sonde list --since 7d --status failed
      sonde list --plan quick --on /scratch -n 5
      sonde list --tag accepted --validity good
    """
    archive.recover()
    catalog = open_catalog(archive.root)
    limit = None if count is None and as_json else count or _DEFAULT_COUNT
    selection = catalog.find(
        [*_COLUMNS, *_RATE_COLUMNS, *_ASSESSMENT_COLUMNS], replace(wanted, calibrations=everything), limit
    )
    rows = selection.table.to_pylist()
    _print_complaints(catalog.complaints())
    if as_json:
        print_json(_documents(archive, rows))
    elif rows:
        _print_runs(rows)
        if count is None and selection.count > len(rows):
            left_out = f"{selection.count:,} runs match; these are the last {len(rows)}. -n N lists more."
            messages().print(f"sonde: {left_out}", soft_wrap=True)
    else:
        run_count = len(catalog.runs(["run"]))
        content = "no run like that" if run_count else "nothing yet; `sonde check DIR` makes the first runs"
        results().print(f"The archive {archive.root} holds {content}.", soft_wrap=True)
    return 0


def _print_complaints(complaints: Sequence[str]) -> None:
    for complaint in complaints[:_MAX_COMPLAINTS]:
        messages().print(f"sonde: {complaint}", soft_wrap=True)
    if len(complaints) > _MAX_COMPLAINTS:
        messages().print(f"sonde: … and {len(complaints) - _MAX_COMPLAINTS:,} more folders like that.", soft_wrap=True)


def _documents(archive: Archive, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    documents = []
    with progress_bar("reading runs") as step:
        for done, row in enumerate(rows):
            folder = archive.root / row["folder"]
            documents.append({**_read_document(folder), "tags": row["tags"], "folder": str(folder)})
            if done % 1000 == 999:
                step(done, len(rows))
    return documents


def _read_document(folder: Path) -> Mapping[str, Any]:
    """Returns the run.json; empty if the run was removed meanwhile."""
    try:
        return read_summary(folder).document
    except RecordError:
        return {}


def _print_runs(rows: Sequence[Mapping[str, Any]]) -> None:
    tagged = any(row["tags"] for row in rows)
    table = plain_table()
    titles = ["run", "started (UTC)", "target", "tasks", "status", "time", "fastest write", "fastest read", "validity"]
    for title in [*titles, *(["tags"] if tagged else [])]:
        right = title in ("tasks", "time") or "fastest" in title
        table.add_column(title, justify="right" if right else "left", no_wrap=title == "run")
    for row in rows:
        table.add_row(
            row["run"],
            (row["started"] or "")[:16].replace("T", " "),
            _format_target(row),
            str(row["tasks"] or "-"),
            Text(row["status"], style=_STYLE.get(row["status"], "red")),
            format_seconds(row["seconds"]) if row["seconds"] is not None else "-",
            _fastest_storage_rate(row, "write"),
            _fastest_storage_rate(row, "read"),
            _format_validity(row),
            *([" ".join(row["tags"] or ())] if tagged else []),
        )
    results().print(table)


def _format_target(row: Mapping[str, Any]) -> str:
    target = f"{row['target']} ({row['file_system']})" if row["file_system"] else row["target"] or ""
    return f"{target} by {row['source']}".strip() if row["source"] else target


def _format_validity(row: Mapping[str, Any]) -> Text:
    """How far its numbers can be trusted, and what was found against them."""
    validity, caveats = row["validity"] or "-", row["caveats"] or ()
    if validity == GOOD and not _has_storage_number(row):
        validity = Classification.SIMULATED.label if _is_simulated(row) else "not of storage"
    style = {"doubtful": "yellow", "invalid": "red"}.get(validity, "")
    return Text(f"{validity}: {', '.join(map(label_finding, caveats))}" if caveats else validity, style=style)


def _is_simulated(row: Mapping[str, Any]) -> bool:
    return any(row[f"{direction}_classification"] == Classification.SIMULATED.value for direction in ("write", "read"))


def _has_storage_number(row: Mapping[str, Any]) -> bool:
    """Returns whether the run has a storage number, or no classified number at all."""
    directions = ("write", "read")
    return any(row[f"{direction}_bytes_per_s"] for direction in directions) or not any(
        row[f"{direction}_classification"] for direction in directions
    )


def _fastest_storage_rate(row: Mapping[str, Any], direction: str) -> str:
    """Returns the fastest storage rate, or the classification of the fastest other number."""
    rate = row[f"{direction}_bytes_per_s"]
    if rate:
        return format_rate_by_transfer(rate, row[f"{direction}_ops_per_s"] or 0.0)
    return label_classification(row[f"{direction}_classification"] or "-")
