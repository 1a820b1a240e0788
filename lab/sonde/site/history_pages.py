# SPDX-License-Identifier: Apache-2.0
"""A page for each history: its chart with event lines, its changes, its spread by date, and its runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sonde.charts.dates import format_date_span, format_utc_date
from sonde.charts.history_chart import HistoryCurve, build_history_chart
from sonde.charts.plot import render_html_table
from sonde.charts.strip_chart import build_strip_chart
from sonde.charts.study import StudySection
from sonde.model.event import Event
from sonde.site.site_page import SitePage, get_run_page_path, make_page_link, make_site_page
from sonde.trends.changes import Change
from sonde.trends.event_marks import EventMarks, select_event_marks
from sonde.trends.history import History, convert_run_time_to_utc
from sonde.trends.nearby_events import find_events_between
from sonde.trends.survey import MIN_HISTORY_RUNS, HistoryAnalysis, Survey
from sonde.trends.survey_page import build_history_curve, make_chart_legend
from sonde.trends.survey_text import format_change, format_history_value, make_history_name

# Runs in the table of a page; the others are in the lists of runs.
_MAX_LISTED_RUNS = 200
_LABEL_TITLES = (
    ("System", "system"), ("File system", "file_system"), ("Test", "experiment"), ("Phase", "phase"),
    ("Operation", "operation"), ("Cache", "cache"), ("Nodes", "node_class"), ("Epoch", "epoch"),
)  # fmt: skip


@dataclass(frozen=True)
class HistoryContent:
    """Everything that the page of a history shows. The page is rendered again only when this changes.

    `analysis` is None while the history is too short for the survey. `together`: how many other histories changed with
    each of its changes; `nearby`: the events near each; `elsewhere`: times of joint changes of other histories.
    `latest_runs`: for each run of the table its id, its line in the lists of runs, and whether it has a page.
    """

    name: str
    title: str
    history: History
    analysis: HistoryAnalysis | None
    together: tuple[int, ...]
    nearby: tuple[str, ...]
    elsewhere: tuple[float, ...]
    marks: EventMarks
    latest_runs: tuple[tuple[str, str, bool], ...]

    def list_parts(self) -> list[object]:
        """The content as values whose `repr` or bytes differ when the content differs."""
        history, analysis = self.history, self.analysis
        analysis_parts = analysis and (
            analysis.segments,
            analysis.now,
            analysis.noise,
            analysis.visible,
            analysis.is_newly_slower,
            # The index of a history changes when another one appears; no page shows it.
            [replace(change, history=0) for change in analysis.changes],
            analysis.caveats,
        )
        parts = (self.together, self.nearby, self.elsewhere, self.marks, self.latest_runs)
        values = history.times.tobytes() + history.values.tobytes()
        return [self.name, self.title, dict(history.labels), history.unit, values, analysis_parts, *parts]


def collect_history_content(
    history_name: str,
    history: History,
    analysis: HistoryAnalysis | None,
    survey: Survey,
    events: Sequence[Event],
    run_links: Mapping[str, str],
    runs_with_report: Collection[str],
) -> HistoryContent:
    """Data of the page of one history.

    `run_links`: run -> its line in the lists of runs; `runs_with_report`: runs that have a page.
    """
    begin, end = float(history.times[0]), float(history.times[-1])
    changes = analysis.changes if analysis else ()
    runs = history.runs[max(0, len(history) - _MAX_LISTED_RUNS) :]
    return HistoryContent(
        history_name,
        make_history_name(history, survey.distinguishing_labels),
        history,
        analysis,
        tuple(survey.count_histories_changed_together(change) for change in changes),
        tuple(_describe_nearby_events(change, events) for change in changes),
        tuple(survey.find_changes_elsewhere(analysis)) if analysis else (),
        select_event_marks(events, begin, end, [change.first_after for change in changes]),
        tuple((run, run_links.get(run, ""), run in runs_with_report) for run in runs),
    )


def _describe_nearby_events(change: Change, events: Sequence[Event]) -> str:
    nearby = find_events_between(change.last_before, change.first_after, events)
    return " ".join(entry.describe_in_sentence() for entry in nearby)


def build_history_page(content: HistoryContent) -> SitePage:
    """The page of a history."""
    history, analysis, marks = content.history, content.analysis, content.marks
    begin, end = float(history.times[0]), float(history.times[-1])
    if analysis is not None:
        curve = build_history_curve(analysis, content.title, content.elsewhere, marks)
    else:
        sentence = f"Fewer than {MIN_HISTORY_RUNS} runs: nothing can be said about changes."
        unit = "op/s" if history.unit == "op/s" else "B/s"
        times, values = history.times.tolist(), history.values.tolist()
        curve = HistoryCurve("", sentence, unit, times, values, (), (), marks.make_chart_lines())
    chart = build_history_chart(curve, begin, end).render()
    facts = [(title, history.labels[label]) for title, label in _LABEL_TITLES if history.labels.get(label)]
    facts.append(("Time", format_date_span(format_utc_date(begin), format_utc_date(end))))
    facts.append(("Id", history.labels.get("history", "")))
    sections = [StudySection("Runs over time", [], [make_chart_legend(marks), chart])]
    sections += _make_changes_section(content)
    sections += marks.make_event_table()
    strip = build_strip_chart("", curve.unit, history.times, history.values)
    if strip is not None:
        sections.append(StudySection("Spread by date", [], [strip.render()]))
    sections.append(_make_runs_section(content))
    alarms = [curve.summary] if analysis is not None and analysis.is_newly_slower else []
    return make_site_page(content.name, content.title, labels_with_values=facts, sections=sections, alarm_texts=alarms)


def _make_changes_section(content: HistoryContent) -> list[StudySection]:
    if content.analysis is None or not content.analysis.changes:
        return []
    rows = [
        (
            f"{convert_run_time_to_utc(change.first_after):%Y-%m-%d %H:%M}",
            format_change(change),
            f"{change.runs_to_notice} runs",
            f"{together} others" if together else "",
            nearby,
        )
        for change, together, nearby in zip(content.analysis.changes, content.together, content.nearby, strict=True)
    ]
    columns = ["First run after", "Change", "Noticed with", "Changed together with", "Events near"]
    return [
        StudySection(
            "Changes", [], [render_html_table(columns, rows[::-1], "Changes, the latest first", text_columns=5)]
        )
    ]


def _make_runs_section(content: HistoryContent) -> StudySection:
    history = content.history
    count = len(history)
    first = max(0, count - _MAX_LISTED_RUNS)
    runs = content.latest_runs or (("", "", False),) * (count - first)
    reference = float(np.median(history.values))
    rows = []
    for index in range(count - 1, first - 1, -1):
        run, link, has_report = runs[index - first]
        rows.append(
            (
                f"{convert_run_time_to_utc(float(history.times[index])):%Y-%m-%d %H:%M}",
                make_page_link(link, run, "../") if link else run,
                make_page_link(get_run_page_path(run), "report", "../") if has_report else "",
                format_history_value(float(history.values[index]), history),
                f"{history.values[index] / reference:.0%}".replace("%", " %"),
            )
        )
    sentences = [f"The latest {len(rows)} of {count:,}; the others are in the lists of runs."] if first else []
    columns = ["Started (UTC)", "Run", "", "Rate", "Of the median"]
    return StudySection("Runs", sentences, [render_html_table(columns, rows, "Runs, the latest first", text_columns=3)])
