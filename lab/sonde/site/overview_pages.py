# SPDX-License-Identifier: Apache-2.0
"""The overview (file systems by tests, colored by the ratio to the baseline) and the list of all histories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sonde.charts.dates import format_date_span, format_utc_date
from sonde.charts.markup import Markup
from sonde.charts.matrix import MatrixField, render_matrix
from sonde.charts.plot import render_html_table
from sonde.charts.study import StudySection
from sonde.model.event import Event
from sonde.model.units import format_count_with_noun
from sonde.site.baselines import BaselineRatio
from sonde.site.site_page import SitePage, get_history_page_path, make_page_link, make_site_page
from sonde.trends.comparison_text import format_change_percent
from sonde.trends.history import History, convert_run_time_to_utc
from sonde.trends.nearby_events import find_nearby_events
from sonde.trends.survey import HistoryAnalysis, Survey
from sonde.trends.survey_text import (
    describe_joint_change,
    format_change,
    format_history_value,
    format_joint_dates,
    make_history_name,
    summarize_survey,
)
from sonde.watch.watch_state import Incident

_MAX_JOINT_CHANGES = 10
_MAX_LISTED_INCIDENTS = 20
_MAX_LISTED_EVENTS = 12
# Columns of one matrix; more tests go into the next one, so that it fits on paper.
_MAX_MATRIX_COLUMNS = 9


@dataclass(frozen=True)
class HistoryEntry:
    """A history with what the overview says about it. `analysis` and `ratio` are None while it is too short."""

    history: History
    analysis: HistoryAnalysis | None
    ratio: BaselineRatio | None

    @property
    def page_path(self) -> str:
        """Its page in the site."""
        return get_history_page_path(self.history.labels.get("history", ""))


def build_overview(
    entries: Sequence[HistoryEntry],
    survey: Survey,
    events: Sequence[Event],
    incidents: Sequence[Incident],
    run_count: int,
) -> SitePage:
    """``index.html``."""
    times = [time for entry in entries for time in (entry.history.times[0], entry.history.times[-1])]
    facts = [("Runs", f"{run_count:,}"), ("Histories", f"{len(entries):,}"), ("Events", f"{len(events):,}")]
    if times:
        facts.append(("Time", format_date_span(format_utc_date(float(min(times))), format_utc_date(float(max(times))))))
    open_incidents = [incident for incident in incidents if incident.status == "open"]
    alarms = [f"{incident.summary} Open since {format_utc_date(incident.opened)}." for incident in open_incidents]
    if any(analysis.is_newly_slower for analysis in survey.analyses):
        alarms.append(summarize_survey(survey))
    sections = [
        *_make_matrices(entries),
        *_make_incidents_section(incidents),
        *_make_joint_changes_section(survey, events),
        *_make_latest_events_section(events),
    ]
    lead = "" if alarms and not open_incidents else summarize_survey(survey)
    return make_site_page("index.html", "Overview", lead, facts, sections, alarms)


def _make_matrices(entries: Sequence[HistoryEntry]) -> Iterator[StudySection]:
    """For each system, file systems by tests."""
    latest: dict[str, dict[tuple[str, tuple[str, str]], HistoryEntry]] = {}
    for entry in sorted(entries, key=lambda entry: float(entry.history.times[-1])):
        labels = entry.history.labels
        column = labels.get("experiment", ""), _make_number_name(labels)
        latest.setdefault(labels.get("system", ""), {})[labels.get("file_system", ""), column] = entry
    for system, chosen in sorted(latest.items()):
        rows = sorted({row for row, _ in chosen})
        fields = {key: _make_matrix_field(entry) for key, entry in chosen.items()}
        parts = [
            render_matrix(rows, columns, fields, f"Rate now as a fraction of the baseline on {system}")
            for columns in _split_matrix_columns(sorted({column for _, column in chosen}))
        ]
        yield StudySection(f"{system}: rate now by rate of the baseline", [_describe_baselines(chosen.values())], parts)


def _make_number_name(history_labels: Mapping[str, str]) -> str:
    phase, operation = history_labels.get("phase", ""), history_labels.get("operation", "")
    return phase if operation in phase else f"{phase} {operation}"


def _split_matrix_columns(test_and_operation_pairs: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """The columns of each matrix; the columns of one test stay together where they fit."""
    part: list[tuple[str, str]] = []
    for test in dict.fromkeys(test for test, _ in test_and_operation_pairs):
        test_columns = [column for column in test_and_operation_pairs if column[0] == test]
        if part and len(part) + len(test_columns) > _MAX_MATRIX_COLUMNS:
            yield part
            part = []
        part += test_columns
    if part:
        yield part


def _describe_baselines(entries: Iterable[HistoryEntry]) -> str:
    ratios = [entry.ratio for entry in entries if entry.ratio is not None]
    tagged = sum(ratio.is_tagged for ratio in ratios)
    first = "The baseline of a history is its first level, before any change."
    if not tagged:
        return first
    if tagged == len(ratios):
        return "The baseline of a history are its runs with a tag baseline:NAME."
    return f"{tagged} of {len(ratios)} histories are compared with their runs tagged baseline:NAME. Otherwise: {first}"


def _make_matrix_field(history_entry: HistoryEntry) -> MatrixField:
    if history_entry.ratio is None:
        return MatrixField(
            0.0, False, format_count_with_noun(len(history_entry.history), "run"), history_entry.page_path
        )
    ratio = history_entry.ratio.rate_ratio
    return MatrixField(
        ratio - 1, history_entry.ratio.is_sure, f"{ratio:.0%}".replace("%", " %"), history_entry.page_path
    )


def _make_incidents_section(incidents: Sequence[Incident]) -> Iterator[StudySection]:
    if not incidents:
        return
    rows = []
    for incident in sorted(incidents, key=lambda entry: entry.opened, reverse=True)[:_MAX_LISTED_INCIDENTS]:
        status = incident.status + (f", acknowledged by {incident.acknowledged}" if incident.acknowledged else "")
        closed = format_utc_date(incident.closed) if incident.closed else ""
        text = " ".join(filter(None, (incident.summary, incident.localization)))
        rows.append((format_utc_date(incident.opened), closed, status, text))
    parts = [render_html_table(["Opened", "Closed", "Status", "What became slower"], rows, "Incidents", text_columns=4)]
    yield StudySection("Incidents", ["Slowdowns that repeated probes of sonde watch confirmed."], parts)


def _make_joint_changes_section(survey: Survey, events: Sequence[Event]) -> Iterator[StudySection]:
    if not survey.joint:
        return
    rows = []
    for joint in sorted(survey.joint, key=lambda joint: joint.begin_time, reverse=True)[:_MAX_JOINT_CHANGES]:
        nearby = [entry.describe_in_sentence() for entry in find_nearby_events(joint, events)]
        links = Markup(", ").join(
            make_page_link(
                get_history_page_path(survey.histories[change.history].labels.get("history", "")),
                make_history_name(survey.histories[change.history], survey.distinguishing_labels),
            )
            for change in joint.changes[:3]
        )
        more = f" and {len(joint.changes) - 3} more" if len(joint.changes) > 3 else ""
        text = " ".join((*describe_joint_change(survey, joint), *nearby))
        rows.append((format_joint_dates(joint), text, Markup("{}{}").format(links, more)))
    columns = ["First run after", "What changed", "Histories"]
    omitted = len(survey.joint) - len(rows)
    sentences = [f"The latest of {len(survey.joint)}; the pages of the histories have all."] if omitted else []
    yield StudySection(
        "Changes", sentences, [render_html_table(columns, rows, "Joint changes, the latest first", text_columns=3)]
    )


def _make_latest_events_section(events: Sequence[Event]) -> Iterator[StudySection]:
    if not events:
        return
    latest = sorted(events, key=lambda event: event.when.first, reverse=True)[:_MAX_LISTED_EVENTS]
    rows = [
        (
            f"{event.when.first:%Y-%m-%d}",
            event.kind,
            make_page_link(f"events.html#{event.id}", event.title),
            ", ".join(event.parts),
        )
        for event in latest
    ]
    yield StudySection(
        "Latest events", [], [render_html_table(["When", "Kind", "Event", "Parts"], rows, "Events", text_columns=4)]
    )


def build_history_list(entries: Sequence[HistoryEntry], survey: Survey) -> SitePage:
    """``histories.html``: every history with its level, ratio and latest change."""
    rows = []
    for entry in entries:
        history, analysis = entry.history, entry.analysis
        last = analysis.changes[-1] if analysis and analysis.changes else None
        rows.append(
            (
                make_page_link(entry.page_path, make_history_name(history, survey.distinguishing_labels)),
                f"{len(history):,}",
                f"{convert_run_time_to_utc(float(history.times[-1])):%Y-%m-%d}",
                format_history_value(analysis.current_level, history) if analysis else "",
                format_change_percent(entry.ratio.rate_ratio - 1) if entry.ratio else "too few runs",
                f"{100 * analysis.noise:.1f} %" if analysis else "",
                f"{convert_run_time_to_utc(last.first_after):%Y-%m-%d} {format_change(last)}" if last else "",
            )
        )
    columns = ["History", "Runs", "Latest run", "Level", "To the baseline", "Noise", "Latest change"]
    section = StudySection("All histories", [], [render_html_table(columns, rows)])
    return make_site_page("histories.html", "Histories", f"{len(entries):,} histories.", sections=[section])
