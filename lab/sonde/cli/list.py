# SPDX-License-Identifier: Apache-2.0
"""``sonde list``: the runs in the archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click
from rich.text import Text

from sonde.cli.options import json_option, kept_archive_option
from sonde.cli.selecting import open_catalog, selection_options, steps
from sonde.findings.doubts import GOOD
from sonde.model.units import format_seconds
from sonde.store.archive import Archive
from sonde.store.durable import read_json
from sonde.store.selection import Selection
from sonde.store.summary import NAME as SUMMARY
from sonde.terminal.phase_words import rate_text
from sonde.terminal.screen import messages, plain_table, print_json, results

_STYLE = {"done": "green", "interrupted": "yellow"}
# Where no number is of storage: what it is about instead.
_BESIDES = {"cache": "cached", "short": "too short", "memory": "in memory"}
_USUAL = 100
_COMPLAINTS = 10
_COLUMNS = ("run", "started", "target", "file_system", "tasks", "status", "seconds", "folder", "source", "tags")
_JUDGED = ("verdict", "doubts")
_RATES = tuple(f"{way}_{what}" for way in ("write", "read") for what in ("bytes_per_s", "ops_per_s", "standing"))


@click.command("list")
@selection_options
@click.option(
    "-n",
    "--last",
    "count",
    type=click.IntRange(1),
    metavar="N",
    help=f"Only the last N. Default: {_USUAL}, with --json all.",
)
@click.option("-a", "--all", "everything", is_flag=True, help="Also the calibrations of checks.")
@kept_archive_option
@json_option
def command(wanted: Selection, count: int | None, everything: bool, archive: Archive, as_json: bool) -> int:
    """List the runs that are kept, the oldest first.

    \b
    Examples:
      sonde list
      sonde list --since 7d --status failed
      sonde list --plan quick --on /scratch -n 5
      sonde list --tag accepted --verdict good
    """
    archive.recover()
    catalog = open_catalog(archive.root)
    most = None if count is None and as_json else count or _USUAL
    found = catalog.find([*_COLUMNS, *_RATES, *_JUDGED], replace(wanted, calibrations=everything), most)
    shown = found.table.to_pylist()
    _complain(catalog.complaints())
    if as_json:
        print_json(_documents(archive, shown))
    elif shown:
        _print(shown)
        if count is None and found.count > len(shown):
            left_out = f"{found.count:,} runs match; these are the last {len(shown)}. -n N lists more."
            messages().print(f"sonde: {left_out}", soft_wrap=True)
    else:
        there = len(catalog.runs(["run"]))
        what = "no run like that" if there else "nothing yet; `sonde check DIR` makes the first runs"
        results().print(f"The archive {archive.root} holds {what}.", soft_wrap=True)
    return 0


def _complain(complaints: Sequence[str]) -> None:
    for complaint in complaints[:_COMPLAINTS]:
        messages().print(f"sonde: {complaint}", soft_wrap=True)
    if len(complaints) > _COMPLAINTS:
        messages().print(f"sonde: … and {len(complaints) - _COMPLAINTS:,} more folders like that.", soft_wrap=True)


def _documents(archive: Archive, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    documents = []
    with steps("reading runs") as step:
        for done, row in enumerate(rows):
            folder = archive.root / row["folder"]
            documents.append({**(read_json(folder / SUMMARY) or {}), "tags": row["tags"], "folder": str(folder)})
            if done % 1000 == 999:
                step(done, len(rows))
    return documents


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    tagged = any(row["tags"] for row in rows)
    table = plain_table()
    titles = ["run", "started (UTC)", "target", "tasks", "status", "time", "fastest write", "fastest read", "verdict"]
    for title in [*titles, *(["tags"] if tagged else [])]:
        right = title in ("tasks", "time") or "fastest" in title
        table.add_column(title, justify="right" if right else "left", no_wrap=title == "run")
    for row in rows:
        table.add_row(
            row["run"],
            (row["started"] or "")[:16].replace("T", " "),
            _target(row),
            str(row["tasks"] or "-"),
            Text(row["status"], style=_STYLE.get(row["status"], "red")),
            format_seconds(row["seconds"]) if row["seconds"] is not None else "-",
            _fastest(row, "write"),
            _fastest(row, "read"),
            _verdict(row),
            *([" ".join(row["tags"] or ())] if tagged else []),
        )
    results().print(table)


def _target(row: Mapping[str, Any]) -> str:
    where = f"{row['target']} ({row['file_system']})" if row["file_system"] else row["target"] or ""
    return f"{where} by {row['source']}".strip() if row["source"] else where


def _verdict(row: Mapping[str, Any]) -> Text:
    """How far its numbers can be trusted, and what was found against them."""
    verdict, doubts = row["verdict"] or "-", row["doubts"] or ()
    if verdict == GOOD and not _of_storage(row):
        verdict = "not of storage"
    style = {"doubtful": "yellow", "invalid": "red"}.get(verdict, "")
    return Text(f"{verdict}: {', '.join(doubts)}" if doubts else verdict, style=style)


def _of_storage(row: Mapping[str, Any]) -> bool:
    """Whether a number of it is one of storage, or none was judged by that."""
    ways = ("write", "read")
    return any(row[f"{way}_bytes_per_s"] for way in ways) or not any(row[f"{way}_standing"] for way in ways)


def _fastest(row: Mapping[str, Any], way: str) -> str:
    """The fastest number of storage; where there is none, what the fastest is about."""
    rate = row[f"{way}_bytes_per_s"]
    if rate:
        return rate_text(rate, row[f"{way}_ops_per_s"] or 0.0)
    return _BESIDES.get(row[f"{way}_standing"] or "", row[f"{way}_standing"] or "-")
