# SPDX-License-Identifier: Apache-2.0
"""``sonde list``: the runs in the archive."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click
from rich.text import Text

from sonde.cli.options import archive_option, json_option
from sonde.cli.phase_words import rate_text
from sonde.cli.screen import messages, plain_table, print_json, results
from sonde.model.errors import UserError
from sonde.model.units import format_seconds
from sonde.store.archive import Archive
from sonde.store.summary import Summary

_STATUS = ("done", "failed", "interrupted", "mismatch", "lost")
_STYLE = {"done": "green", "interrupted": "yellow"}


@click.command("list")
@click.option("--plan", metavar="TEXT", help="Only runs whose plan has this in its id or title.")
@click.option("--on", "target", metavar="TEXT", help="Only runs whose target or file system has this in its name.")
@click.option("--status", type=click.Choice(_STATUS), help="Only runs that ended like this.")
@click.option("--since", metavar="WHEN", help="Only runs since then: 2026-11-21, or 12h, 7d, 2w ago.")
@click.option("-n", "--last", "count", type=click.IntRange(1), metavar="N", help="Only the last N.")
@click.option("-a", "--all", "everything", is_flag=True, help="Also the calibrations of checks.")
@archive_option
@json_option
def command(
    plan: str | None,
    target: str | None,
    status: str | None,
    since: str | None,
    count: int | None,
    everything: bool,
    archive: Archive,
    as_json: bool,
) -> int:
    """List the runs that are kept, the oldest first.

    \b
    Examples:
      sonde list
      sonde list --since 7d --status failed
      sonde list --plan quick --on /scratch -n 5
    """
    begin = _moment(since) if since else ""
    archive.recover()
    runs, complaints = archive.runs()
    found = [
        run
        for run in runs
        if (everything or run.role != "calibration")
        and (not status or run.status == status)
        and (not plan or plan.lower() in f"{run.plan} {run.title}".lower())
        and (not target or target.lower() in f"{run.target} {run.file_system}".lower())
        and run.started >= begin
    ]
    found = found[-count:] if count else found
    for complaint in complaints:
        messages().print(f"sonde: {complaint}", soft_wrap=True)
    if as_json:
        print_json([{**run.document, "folder": str(run.folder)} for run in found])
    elif found:
        _print(found)
    else:
        what = "no run like that" if runs else "nothing yet; `sonde check DIR` makes the first runs"
        results().print(f"The archive {archive.root} holds {what}.", soft_wrap=True)
    return 0


def _moment(text: str) -> str:
    """ISO time that sorts among the starts of runs."""
    ago = re.fullmatch(r"(\d{1,6})([hdw])", text.strip())
    if ago:
        unit = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}[ago[2]]
        return (datetime.now(UTC) - int(ago[1]) * unit).strftime("%Y-%m-%dT%H:%M:%S")
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UserError(
            f'--since "{text}" is not a time; write 2026-11-21, or 12h, 7d, 2w for that long ago.'
        ) from None
    moment = moment.astimezone(UTC) if moment.tzinfo else moment
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def _print(runs: list[Summary]) -> None:
    table = plain_table()
    for title in ("run", "started (UTC)", "target", "tasks", "status", "time", "fastest write", "fastest read"):
        table.add_column(title, justify="right" if title in ("tasks", "time") or "fastest" in title else "left")
    for run in runs:
        table.add_row(
            run.id,
            run.started[:16].replace("T", " "),
            f"{run.target} ({run.file_system})" if run.file_system else run.target,
            str(run.tasks or "-"),
            Text(run.status, style=_STYLE.get(run.status, "red")),
            format_seconds(run.seconds) if run.seconds is not None else "-",
            _fastest(run, reads=False),
            _fastest(run, reads=True),
        )
    results().print(table)


def _fastest(run: Summary, reads: bool) -> str:
    """The best phase of that direction; what is known to have come from the page cache does not count."""
    wanted = ("read", "reread", "read_only") if reads else ("write", "rewrite")
    phases = [
        one for one in run.phases if one.get("measured", True) and one.get("op") in wanted and one.get("bytes_per_s")
    ]
    honest = [
        one for one in phases if one.get("cache") != "warm" and "cache_suspect" not in (one.get("findings") or ())
    ]
    if phases and not honest:
        return "cached"
    best = max(honest, key=lambda one: float(one["bytes_per_s"]), default=None)
    return rate_text(float(best["bytes_per_s"]), float(best.get("ops_per_s") or 0.0)) if best else "-"
