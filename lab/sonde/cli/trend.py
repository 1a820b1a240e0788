# SPDX-License-Identifier: Apache-2.0
"""``sonde trend``: every history of the archive, what changed in it and when."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import archive_option, json_option
from sonde.cli.selecting import selection_options, steps
from sonde.model.errors import FAILED, UserError
from sonde.store.archive import Archive
from sonde.store.selection import Selection
from sonde.terminal.screen import messages, plain_table, print_json, results
from sonde.trends.changes import Change, Event
from sonde.trends.comparison_words import change_words
from sonde.trends.lanes import Settings
from sonde.trends.series import moment
from sonde.trends.survey import SHORTEST, Standing, Survey, survey
from sonde.trends.words import change_size, name_of, promise, told, value_of


@click.command("trend")
@selection_options
@click.option(
    "--measure",
    type=click.Choice(["delivered", "capability"]),
    default="delivered",
    show_default=True,
    help="Of several repeats of one probe: the median, which users get, or the best, which the system can do.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0.01, 50),
    default=1.0,
    show_default=True,
    metavar="N",
    help="False alarms that one series may raise in a year.",
)
@click.option(
    "--smallest",
    type=click.FloatRange(0.0, 0.99),
    default=Settings.smallest_change,
    show_default=True,
    metavar="SHARE",
    help="Changes below this share of the rate are not told.",
)
@click.option("--check", is_flag=True, help="Exit code 1 when a series has become slower within its last ten runs.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a report.")
@archive_option
@json_option
def command(
    wanted: Selection,
    measure: str,
    budget: float,
    smallest: float,
    check: bool,
    output: Path | None,
    archive: Archive,
    as_json: bool,
) -> int:
    """Watch every history of the archive run by run, and tell what changed, by how much and since when.

    A drop by 15 % or more that lies far outside the noise is told with the third run, a smaller lasting change when
    ranks show it. How often that may be wrong is the budget; with 60 runs of history the settings that keep it are
    learned from the noise of the site itself. Changes at the same time are one event.

    \b
    Examples:
      sonde trend
      sonde trend --plan quick --on /scratch --since 365d -o year.html
      sonde trend --check --budget 0.2
    """
    from sonde.store.history import all_series
    from sonde.trends.history import watched

    archive.recover()
    stored = all_series(archive, wanted)
    if not stored:
        raise UserError(f"The archive {archive.root} holds no series like that; `sonde list` shows its runs.")
    histories = watched(stored, "capability" if measure == "capability" else "delivered")
    with steps("watching histories") as step:
        found = survey(histories, budget, smallest, step)
    # written before anything is printed: who reads only the first lines still gets it
    page = _report(found, measure, output, as_json) if output is not None else None
    if as_json:
        print_json(_document(found, measure))
    else:
        _print(found, measure)
    if page is not None:
        (messages() if as_json else results()).print(f"Report  {page}", soft_wrap=True)
    return FAILED if check and any(one.slower for one in found.standings) else 0


def _report(found: Survey, measure: str, output: Path, quiet: bool) -> Path:
    from sonde.charts.study import write_study
    from sonde.cli.present import write_with
    from sonde.trends.history_page import history_study

    return write_with(lambda: write_study(history_study(found, measure), output), output, quiet)


def _print(found: Survey, measure: str) -> None:
    console = results()
    runs = sum(len(one.series) for one in found.standings)
    console.print(f"{len(found.standings)} series, {runs:,} probes ({measure}). {promise(found)}", soft_wrap=True)
    if found.short:
        console.print(f"{found.short} more have fewer than {SHORTEST} runs.", style="dim")
    console.print()
    if found.events:
        table = plain_table()
        for title in ("event", "noticed", "series", "what they share", "changes"):
            table.add_column(title, overflow="fold")
        for event in found.events:
            table.add_row(*_event_cells(found, event))
        console.print(table)
    else:
        console.print("No change was noticed.")
    console.print()
    table = plain_table()
    for title in ("series", "op", "runs", "level", "last three", "noise", "visible", "last change"):
        table.add_column(title, justify="left" if title in ("series", "op", "last change") else "right")
    for one in found.standings:
        table.add_row(*_standing_cells(one, found), style="bold red" if one.slower else None)
    console.print(table)
    console.print("visible: a drop of this size shows in ten runs, four times of five.", style="dim")


def _event_cells(found: Survey, event: Event) -> tuple[str, ...]:
    scope = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in told(event.scope).items())
    sizes = [change_size(change) for change in event.changes[:6]]
    more = [f"and {len(event.changes) - 6} more"] if len(event.changes) > 6 else []
    soonest = min(change.runs_to_notice for change in event.changes)
    return (
        f"{moment(event.time):%Y-%m-%d %H:%M}",
        f"after {soonest} runs",
        str(len(event.changes)),
        (scope or "-") if len(found.standings) > 1 else "-",
        ", ".join(sizes + more),
    )


def _standing_cells(one: Standing, found: Survey) -> tuple[str, ...]:
    last = one.changes[-1] if one.changes else None
    return (
        name_of(one.series, found.series),
        one.series.labels.get("operation", ""),
        f"{len(one.series):,}",
        value_of(one.level, one.series),
        value_of(one.now, one.series),
        f"{100 * one.noise:.1f} %",
        f"{100 * one.visible:.0f} %" if one.visible is not None else "-",
        f"{moment(last.first_after):%Y-%m-%d} {change_size(last)}" if last else "",
    )


def _document(found: Survey, measure: str) -> dict[str, Any]:
    return {
        "measure": measure,
        "budget": asdict(found.budget),
        "calibration": asdict(found.calibration),
        "short_series": found.short,
        "series": [
            {
                "labels": dict(one.series.labels),
                "unit": one.series.unit,
                "runs": len(one.series),
                "level": one.level,
                "now": one.now,
                "noise": one.noise,
                "visible_drop": one.visible,
                "slower": one.slower,
                "stretches": [asdict(part) for part in one.stretches],
                "changes": [_change(change) for change in one.changes],
            }
            for one in found.standings
        ],
        "events": [
            {
                "time": moment(event.time).isoformat(),
                "noticed": moment(event.noticed).isoformat(),
                "scope": dict(event.scope),
                "whole_scope": event.whole,
                "changes": [
                    {"series": found.series[one.series].labels.get("series", ""), **_change(one)}
                    for one in event.changes
                ],
            }
            for event in found.events
        ],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "lane": change.lane,
        "last_before": moment(change.last_before).isoformat(),
        "first_after": moment(change.first_after).isoformat(),
        "noticed": moment(change.noticed).isoformat(),
        "runs_to_notice": change.runs_to_notice,
        "ratio": asdict(change.size),
        "change": change_words(change.size),
        "passed": change.over,
    }
