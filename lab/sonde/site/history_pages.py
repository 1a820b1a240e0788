# SPDX-License-Identifier: Apache-2.0
"""A page for each history: its chart with event lines, its changes, its spread by date, and its runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from sonde.charts.dates import day, span
from sonde.charts.history_chart import HistoryCurve, build_history_chart
from sonde.charts.plot import table
from sonde.charts.strip_chart import build_strip_chart
from sonde.charts.study import StudySection
from sonde.model.event import Event
from sonde.site.site_page import SitePage, make_link, make_page, name_run_page
from sonde.trends.event_marks import select_event_marks
from sonde.trends.history import History, moment
from sonde.trends.nearby_events import find_events_between
from sonde.trends.survey import SHORTEST, HistoryAnalysis, Survey
from sonde.trends.survey_page import build_history_curve, make_legend
from sonde.trends.survey_text import format_change, format_history_value, name_history

# Runs in the table of a page; the others are in the lists of runs.
_LATEST_RUNS = 200
_LABELS = (
    ("System", "system"), ("File system", "file_system"), ("Test", "experiment"), ("Phase", "phase"),
    ("Operation", "operation"), ("Cache", "cache"), ("Nodes", "node_class"), ("Epoch", "epoch"),
)  # fmt: skip


def build_history_page(
    name: str,
    history: History,
    analysis: HistoryAnalysis | None,
    survey: Survey,
    events: Sequence[Event],
    run_links: dict[str, str],
    reports: Collection[str],
) -> SitePage:
    """The page of a history; `analysis` is None while it is too short for the survey.

    `run_links`: run -> its line in the lists of runs; `reports`: runs that have a page.
    """
    begin, end = float(history.times[0]), float(history.times[-1])
    changes = analysis.changes if analysis else ()
    marks = select_event_marks(events, begin, end, [change.first_after for change in changes])
    if analysis is not None:
        curve = build_history_curve(analysis, survey, marks)
    else:
        sentence = f"Fewer than {SHORTEST} runs: nothing can be said about changes."
        unit = "op/s" if history.unit == "op/s" else "B/s"
        times, values = history.times.tolist(), history.values.tolist()
        curve = HistoryCurve("", sentence, unit, times, values, (), (), marks.lines())
    chart = build_history_chart(curve, begin, end).render()
    facts = [(title, history.labels[label]) for title, label in _LABELS if history.labels.get(label)]
    facts.append(("Time", span(day(begin), day(end))))
    facts.append(("Id", history.labels.get("history", "")))
    sections = [StudySection("Runs over time", [], [make_legend(marks), chart])]
    if analysis is not None:
        sections += _changes(analysis, survey, events)
    sections += marks.describe()
    strip = build_strip_chart("", curve.unit, history.times, history.values)
    if strip is not None:
        sections.append(StudySection("Spread by date", [], [strip.render()]))
    sections.append(_runs(history, run_links, reports))
    alarms = [curve.summary] if analysis is not None and analysis.slower else []
    title = name_history(history, survey.distinguishing_labels)
    return make_page(name, title, facts=facts, sections=sections, alarms=alarms)


def _changes(analysis: HistoryAnalysis, survey: Survey, events: Sequence[Event]) -> list[StudySection]:
    if not analysis.changes:
        return []
    joints = {id(change): joint for joint in survey.joint for change in joint.changes}
    rows = []
    for change in reversed(analysis.changes):
        joint = joints.get(id(change)) or next((joint for joint in survey.joint if change in joint.changes), None)
        together = len(joint.changes) - 1 if joint else 0
        nearby = [entry.describe() for entry in find_events_between(change.last_before, change.first_after, events)]
        rows.append(
            (
                f"{moment(change.first_after):%Y-%m-%d %H:%M}",
                format_change(change),
                f"{change.runs_to_notice} runs",
                f"{together} others" if together else "",
                " ".join(nearby),
            )
        )
    columns = ["First run after", "Change", "Noticed with", "Changed together with", "Events near"]
    return [StudySection("Changes", [], [table(columns, rows, "Changes, the latest first", text_columns=5)])]


def _runs(history: History, run_links: dict[str, str], reports: Collection[str]) -> StudySection:
    count = len(history)
    first = max(0, count - _LATEST_RUNS)
    runs = list(history.runs[first:]) if len(history.runs) else [""] * (count - first)
    reference = float(np.median(history.values))
    rows = []
    for index in range(count - 1, first - 1, -1):
        run = runs[index - first]
        link = run_links.get(run, "")
        report = make_link(name_run_page(run), "report", "../") if run in reports else ""
        rows.append(
            (
                f"{moment(float(history.times[index])):%Y-%m-%d %H:%M}",
                make_link(link, run, "../") if link else run,
                report,
                format_history_value(float(history.values[index]), history),
                f"{history.values[index] / reference:.0%}".replace("%", " %"),
            )
        )
    sentences = [f"The latest {len(rows)} of {count:,}; the others are in the lists of runs."] if first else []
    columns = ["Started (UTC)", "Run", "", "Rate", "Of the median"]
    return StudySection("Runs", sentences, [table(columns, rows, "Runs, the latest first", text_columns=3)])
