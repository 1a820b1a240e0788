# SPDX-License-Identifier: Apache-2.0
"""``sonde trend``: every history of the archive, what changed in it and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from sonde.cli.options import OutputFile, add_existing_archive_option, add_json_option
from sonde.cli.run_selection import add_selection_options, open_catalog_with_progress, open_progress_bar
from sonde.model.errors import EXIT_FAILED, EXIT_NOTHING_COMPARED
from sonde.model.event import Event
from sonde.model.units import format_count_with_noun
from sonde.store.archive import Archive
from sonde.store.events import read_archive_events
from sonde.store.selection import Selection
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json
from sonde.trends.changes import Change, JointChange, JointChangePart
from sonde.trends.comparison_text import format_change_interval
from sonde.trends.detectors import DetectorSettings
from sonde.trends.history import convert_run_time_to_utc
from sonde.trends.nearby_events import find_nearby_events
from sonde.trends.survey import HistoryAnalysis, Survey
from sonde.trends.survey_text import (
    describe_alarm_budget,
    describe_joint_change,
    format_caveat_share,
    format_change,
    format_dated_change,
    format_history_value,
    format_joint_dates,
    make_history_name,
    summarize_survey,
)

# Maximum histories of a joint change that are printed by name.
_MAX_NAMED_HISTORIES = 6


@click.command("trend")
@add_selection_options
@click.option(
    "--measure",
    type=click.Choice(["delivered", "capability"]),
    default="delivered",
    show_default=True,
    help="Of several repeats of one probe, take the median, as users see it, or the best, as the system can reach.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0.01, 50),
    default=1.0,
    show_default=True,
    metavar="N",
    help="False alarms that one history may raise in a year.",
)
@click.option(
    "--smallest-change",
    type=click.FloatRange(0.0, 0.99),
    default=DetectorSettings.smallest_change,
    show_default=True,
    metavar="FRACTION",
    help="Changes smaller than this fraction count as no change.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Exit code 1 when a history became slower within its last ten runs, 6 when no history is long enough to tell.",
)
@click.option("-o", "--output", type=OutputFile(), metavar="FILE", help="Write a report.")
@add_existing_archive_option
@add_json_option
def command(
    wanted: Selection,
    measure: str,
    budget: float,
    smallest_change: float,
    check: bool,
    output: Path | None,
    archive: Archive,
    as_json: bool,
) -> int:
    """Watch every history of the archive run by run, and report what changed, by how much and since when.

    A drop by 15 % or more far outside the noise is reported with its third run, a smaller lasting change when
    ranks show it. How often that may be wrong is the budget; with 60 runs of history the settings that keep it are
    learned from the noise of the site itself. What changes at the same time is one joint
    change, and what it has in common is said.

    \b
    Examples:
      sonde trend
      sonde trend --plan quick --on /scratch --since 365d -o year.html
      sonde trend --check --budget 0.2

    More: sonde help concepts/histories
    """
    archive.recover_unfinished_runs()
    survey_result = _read_survey(archive, wanted, measure, budget, smallest_change, needs_values=output is not None)
    # Written before anything is printed, so that a closed pipe does not prevent it.
    events = [*read_archive_events(archive.root), *survey_result.environment_events]
    page = _write_survey_page(survey_result, measure, events, output, as_json) if output is not None else None
    if as_json:
        print_json(_convert_survey_to_json(survey_result, measure, events))
    else:
        _print_survey(survey_result, measure, events)
    if page is not None:
        (get_messages_console() if as_json else get_results_console()).print(f"Report  {page}", soft_wrap=True)
    if not check:
        return 0
    return (
        EXIT_NOTHING_COMPARED
        if not survey_result.analyses
        else EXIT_FAILED
        if any(standing.is_newly_slower for standing in survey_result.analyses)
        else 0
    )


def _read_survey(
    archive: Archive, selection: Selection, probe_value: str, budget: float, smallest_change: float, needs_values: bool
) -> Survey:
    # The import of pyarrow takes longer than most commands.
    from sonde.trends.archive_survey import SurveyRequest, read_measured_survey

    request = SurveyRequest(
        selection, "capability" if probe_value == "capability" else "delivered", budget, smallest_change
    )
    catalog = open_catalog_with_progress(archive.root)
    return read_measured_survey(catalog, request, lambda: open_progress_bar("watching histories"), needs_values)


def _write_survey_page(survey: Survey, probe_value: str, events: Sequence[Event], page_file: Path, quiet: bool) -> Path:
    from sonde.charts.study import write_study_page
    from sonde.cli.report_writing import write_page_with_status
    from sonde.trends.survey_page import build_survey_page

    return write_page_with_status(
        lambda: write_study_page(build_survey_page(survey, probe_value, events), page_file), page_file, quiet
    )


def _print_survey(survey: Survey, probe_value: str, events: Sequence[Event]) -> None:
    console = get_results_console()
    runs = sum(len(standing.history) for standing in survey.analyses)
    console.print(
        summarize_survey(survey),
        style="bold red" if any(standing.is_newly_slower for standing in survey.analyses) else "bold",
    )
    if not survey.analyses:
        return
    watched = (
        f"{format_count_with_noun(len(survey.analyses), 'history')}, {format_count_with_noun(runs, 'probe')} "
        f"({probe_value})"
    )
    console.print(f"{watched}. {describe_alarm_budget(survey)}", style="dim")
    console.print()
    for joint in survey.joint:
        _print_joint(console, survey, joint, events)
    if not survey.joint:
        console.print("No change was noticed.")
    console.print()
    table = make_plain_table()
    titles = ["history", "runs", "level", "last three", "noise", "detectable", "last change"]
    doubted = any(standing.caveats for standing in survey.analyses)
    for title in [*titles, *["doubtful"] * doubted]:
        table.add_column(title, justify="left" if title in ("history", "last change") else "right")
    for standing in survey.analyses:
        cells = _make_history_cells(standing, survey)
        table.add_row(
            *cells, *[format_caveat_share(standing)] * doubted, style="bold red" if standing.is_newly_slower else None
        )
    console.print(table)
    if doubted:
        console.print("doubtful: how many of its last runs have a caveat; the reasons are above.", style="dim")
    console.print("detectable: the smallest drop that ten runs show with a probability of 80 %.", style="dim")


def _print_joint(console: Console, survey: Survey, joint_change: JointChange, events: Sequence[Event]) -> None:
    min_runs = min(change.runs_to_notice for change in joint_change.changes)
    console.print(f"{format_joint_dates(joint_change)}, noticed after {min_runs} runs", style="bold")
    for part, sentence in zip(joint_change.parts, describe_joint_change(survey, joint_change), strict=True):
        console.print(f"  {sentence}", highlight=False)
        named_changes = part.changes[:_MAX_NAMED_HISTORIES] if len(part.changes) > 1 else ()
        for change in named_changes:
            name = make_history_name(survey.histories[change.history], survey.distinguishing_labels)
            console.print(
                f"    {name}  {format_dated_change(change)}",
                highlight=False,
                style="dim",
            )
        if len(part.changes) > _MAX_NAMED_HISTORIES:
            console.print(f"    and {len(part.changes) - _MAX_NAMED_HISTORIES} more", style="dim")
    for nearby in find_nearby_events(joint_change, events):
        console.print(f"  {nearby.describe_in_sentence()}", highlight=False)


def _make_history_cells(history_analysis: HistoryAnalysis, survey: Survey) -> tuple[str, ...]:
    last_change = history_analysis.changes[-1] if history_analysis.changes else None
    return (
        make_history_name(history_analysis.history, survey.distinguishing_labels),
        f"{len(history_analysis.history):,}",
        format_history_value(history_analysis.current_level, history_analysis.history),
        format_history_value(history_analysis.now, history_analysis.history),
        f"{100 * history_analysis.noise:.1f} %",
        f"{100 * history_analysis.visible:.0f} %" if history_analysis.visible is not None else "-",
        f"{convert_run_time_to_utc(last_change.first_after):%Y-%m-%d} {format_change(last_change)}"
        if last_change
        else "",
    )


def _convert_survey_to_json(survey: Survey, probe_value: str, events: Sequence[Event]) -> dict[str, Any]:
    return {
        "measure": probe_value,
        "budget": asdict(survey.budget),
        "calibration": asdict(survey.calibration),
        "short_histories": survey.short,
        "simulated_histories": survey.simulated,
        "histories": [
            {
                "labels": dict(standing.history.labels),
                "unit": standing.history.unit,
                "runs": len(standing.history),
                "level": standing.current_level,
                "now": standing.now,
                "noise": standing.noise,
                "visible_drop": standing.visible,
                "slower": standing.is_newly_slower,
                "still_slower": standing.is_still_slower,
                "caveats": [caveat.to_json() for caveat in standing.caveats],
                "segments": [asdict(part) for part in standing.segments],
                "changes": [_convert_change_to_json(change) for change in standing.changes],
            }
            for standing in survey.analyses
        ],
        "summary": summarize_survey(survey),
        "joint_changes": [
            {
                "time": convert_run_time_to_utc(joint.begin_time).isoformat(),
                "noticed": convert_run_time_to_utc(joint.notice_time).isoformat(),
                "events": [
                    {
                        "id": nearby.event.id,
                        "title": nearby.event.title,
                        "distance_s": nearby.distance.total_seconds(),
                        "sentence": nearby.describe_in_sentence(),
                    }
                    for nearby in find_nearby_events(joint, events)
                ],
                "parts": [
                    _convert_part_to_json(survey, part, sentence)
                    for part, sentence in zip(joint.parts, describe_joint_change(survey, joint), strict=True)
                ],
            }
            for joint in survey.joint
        ],
    }


def _convert_part_to_json(survey: Survey, part: JointChangePart, part_sentence: str) -> dict[str, Any]:
    return {
        "sentence": part_sentence,
        **asdict(part.explanation),
        "changes": [
            {"history": survey.histories[change.history].labels.get("history", ""), **_convert_change_to_json(change)}
            for change in part.changes
        ],
    }


def _convert_change_to_json(change: Change) -> dict[str, Any]:
    return {
        "detector": change.detector,
        "last_before": convert_run_time_to_utc(change.last_before).isoformat(),
        "first_after": convert_run_time_to_utc(change.first_after).isoformat(),
        "noticed": convert_run_time_to_utc(change.noticed).isoformat(),
        "runs_to_notice": change.runs_to_notice,
        "ratio": asdict(change.size),
        "change": format_change_interval(change.size),
        "temporary": change.is_temporary,
    }
