# SPDX-License-Identifier: Apache-2.0
"""``sonde trend``: every history of the archive, what changed in it and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from sonde.cli.options import json_option, kept_archive_option
from sonde.cli.selecting import open_catalog, selection_options, steps
from sonde.model.errors import ENVIRONMENT, FAILED, UserError
from sonde.model.units import counted
from sonde.store.archive import Archive
from sonde.store.selection import Selection
from sonde.terminal.screen import messages, plain_table, print_json, results
from sonde.trends.changes import Change, JointChange, Part
from sonde.trends.comparison_words import change_words
from sonde.trends.lanes import Settings
from sonde.trends.remembered import Memory, of_histories, of_index, of_question
from sonde.trends.series import Series, moment
from sonde.trends.survey import Standing, Survey, survey
from sonde.trends.words import change_size, doubted_share, joint_sentences, name_of, promise, value_of, verdict

# Series of a part that are named one by one.
_NAMED = 6


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
@click.option(
    "--check",
    is_flag=True,
    help="Exit code 1 when a series became slower within its last ten runs, 3 when no series is long enough to tell.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a report.")
@kept_archive_option
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
    learned from the noise of the site itself. What changes at the same time is one joint
    change, and what it has in common is said.

    \b
    Examples:
      sonde trend
      sonde trend --plan quick --on /scratch --since 365d -o year.html
      sonde trend --check --budget 0.2
    """
    archive.recover()
    found = _survey(archive, wanted, measure, budget, smallest, drawn=output is not None)
    # written before anything is printed: who reads only the first lines still gets it
    page = _report(found, measure, output, as_json) if output is not None else None
    if as_json:
        print_json(_document(found, measure))
    else:
        _print(found, measure)
    if page is not None:
        (messages() if as_json else results()).print(f"Report  {page}", soft_wrap=True)
    if not check:
        return 0
    return ENVIRONMENT if not found.standings else FAILED if any(one.slower for one in found.standings) else 0


def _survey(archive: Archive, wanted: Selection, measure: str, budget: float, smallest: float, drawn: bool) -> Survey:
    """The survey, from what is remembered while nothing is new; with all values of its histories when it is drawn."""
    from sonde.store.history import series_in
    from sonde.trends.history import watched
    from sonde.trends.recent import with_doubts

    catalog = open_catalog(archive.root)
    memory, settings = Memory(catalog.beside("trend")), (wanted, measure, budget, smallest)
    stamps = catalog.stamps()
    if stamps is not None and not drawn and (known := memory.recall(of_index(stamps, *settings))) is not None:
        return known
    stored = series_in(catalog, wanted)
    if not stored:
        raise UserError(f"The archive {archive.root} holds no series like that; `sonde list` shows its runs.")
    histories = watched(stored, "capability" if measure == "capability" else "delivered")
    key = of_histories(histories, measure, budget, smallest)
    found = memory.recall(key, histories)
    if found is None:
        found = _surveyed(memory, histories, wanted, measure, budget, smallest)
        memory.keep(key, found)
    # what speaks against runs does not follow from their values
    found = with_doubts(found, archive.root)
    # the files of the index may have been replaced while they were read
    if stamps is not None and catalog.stamps() == stamps:
        memory.keep(of_index(stamps, *settings), found)
    return found


def _surveyed(
    memory: Memory, histories: Sequence[Series], wanted: Selection, measure: str, budget: float, smallest: float
) -> Survey:
    """A new survey, which takes over what an earlier one of that question found out; so does who is interrupted."""
    # since when does not matter: what is known is known of numbers
    question = of_question(replace(wanted, since_s=None, until_s=None), measure, budget, smallest)
    known = memory.recall_known(question)
    finished = False
    try:
        with steps("watching histories") as step:
            found = survey(histories, budget, smallest, step, known)
        finished = True
    finally:
        memory.keep_known(question, known, finished)
    return found


def _report(survey: Survey, measure: str, output: Path, quiet: bool) -> Path:
    from sonde.charts.study import write_study
    from sonde.cli.present import write_with
    from sonde.trends.history_page import history_study

    return write_with(lambda: write_study(history_study(survey, measure), output), output, quiet)


def _print(survey: Survey, measure: str) -> None:
    console = results()
    runs = sum(len(one.series) for one in survey.standings)
    console.print(verdict(survey), style="bold red" if any(one.slower for one in survey.standings) else "bold")
    if not survey.standings:
        return
    console.print(
        f"{len(survey.standings)} series, {counted(runs, 'probe')} ({measure}). {promise(survey)}", style="dim"
    )
    console.print()
    for joint in survey.joint:
        _print_joint(console, survey, joint)
    if not survey.joint:
        console.print("No change was noticed.")
    console.print()
    table = plain_table()
    titles = ["series", "runs", "level", "last three", "noise", "visible", "last change"]
    doubted = any(one.doubts for one in survey.standings)
    for title in [*titles, *["doubtful"] * doubted]:
        table.add_column(title, justify="left" if title in ("series", "last change") else "right")
    for one in survey.standings:
        cells = _standing_cells(one, survey)
        table.add_row(*cells, *[doubted_share(one)] * doubted, style="bold red" if one.slower else None)
    console.print(table)
    if doubted:
        console.print("doubtful: so many of its last runs, for the reason above.", style="dim")
    console.print("visible: a drop of this size shows in ten runs, four times of five.", style="dim")


def _print_joint(console: Console, survey: Survey, joint: JointChange) -> None:
    soonest = min(change.runs_to_notice for change in joint.changes)
    console.print(f"{moment(joint.time):%Y-%m-%d %H:%M}, noticed after {soonest} runs", style="bold")
    for part, sentence in zip(joint.parts, joint_sentences(survey, joint), strict=True):
        console.print(f"  {sentence}", highlight=False)
        shown = part.changes[:_NAMED] if len(part.changes) > 1 else ()
        for change in shown:
            name = name_of(survey.series[change.series], survey.telling)
            console.print(f"    {name}  {change_size(change)}", highlight=False, style="dim")
        if len(part.changes) > _NAMED:
            console.print(f"    and {len(part.changes) - _NAMED} more", style="dim")


def _standing_cells(one: Standing, survey: Survey) -> tuple[str, ...]:
    last = one.changes[-1] if one.changes else None
    return (
        name_of(one.series, survey.telling),
        f"{len(one.series):,}",
        value_of(one.level, one.series),
        value_of(one.now, one.series),
        f"{100 * one.noise:.1f} %",
        f"{100 * one.visible:.0f} %" if one.visible is not None else "-",
        f"{moment(last.first_after):%Y-%m-%d} {change_size(last)}" if last else "",
    )


def _document(survey: Survey, measure: str) -> dict[str, Any]:
    return {
        "measure": measure,
        "budget": asdict(survey.budget),
        "calibration": asdict(survey.calibration),
        "short_series": survey.short,
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
                "doubts": [doubt.as_json() for doubt in one.doubts],
                "stretches": [asdict(part) for part in one.stretches],
                "changes": [_change(change) for change in one.changes],
            }
            for one in survey.standings
        ],
        "verdict": verdict(survey),
        "joint_changes": [
            {
                "time": moment(joint.time).isoformat(),
                "noticed": moment(joint.noticed).isoformat(),
                "parts": [
                    _part(survey, part, sentence)
                    for part, sentence in zip(joint.parts, joint_sentences(survey, joint), strict=True)
                ],
            }
            for joint in survey.joint
        ],
    }


def _part(survey: Survey, part: Part, sentence: str) -> dict[str, Any]:
    return {
        "sentence": sentence,
        **asdict(part.explanation),
        "changes": [
            {"series": survey.series[one.series].labels.get("series", ""), **_change(one)} for one in part.changes
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
