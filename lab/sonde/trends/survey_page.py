# SPDX-License-Identifier: Apache-2.0
"""The survey as a page: summary, joint changes, then each history with its levels and changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sonde.charts.dates import format_date_span, format_utc_date
from sonde.charts.history_chart import ChangeMark, HistoryCurve, LevelSegment, build_history_chart
from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.charts.strip_chart import build_strip_chart
from sonde.charts.study import Study, StudySection
from sonde.model.event import Event
from sonde.model.units import format_count_with_noun
from sonde.trends.changes import JointChange
from sonde.trends.comparison_text import format_change_percent
from sonde.trends.event_marks import EVENT_KEY, EventMarks, select_event_marks
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

# Series with a picture; of more than these, those without a change are only in the table.
_MAX_HISTORY_CHARTS = 60
# Series whose spread by date is drawn.
_MAX_DATE_CHARTS = 12
# Joint changes in the first table.
_MAX_LATEST_JOINT_CHANGES = 12


def build_survey_page(survey: Survey, measure_name: str, events: Sequence[Event] = ()) -> Study:
    """The page of a survey; `events` are named next to the changes that they are near."""
    if not survey.analyses:
        # no chart, no table and no time: there is nothing that they could show
        lead = summarize_survey(survey)
        return Study(title="Histories", lead=lead, facts=[], alarms=[],
                     sections=[_make_joint_change_section(survey, events)])  # fmt: skip
    begin = min(float(analysis.history.times[0]) for analysis in survey.analyses)
    end = max(float(analysis.history.times[-1]) for analysis in survey.analyses)
    changes = [change.first_after for joint in survey.joint for change in joint.changes]
    marks = select_event_marks(events, begin, end, changes)
    probes = format_count_with_noun(sum(len(analysis.history) for analysis in survey.analyses), "probe")
    facts = [
        (
            "Histories",
            f"{len(survey.analyses)}, {probes} ({measure_name})",
        ),
        ("Time", format_date_span(format_utc_date(begin), format_utc_date(end))),
        ("False alarms", describe_alarm_budget(survey).removeprefix("False alarms: ")),
    ]
    return Study(
        title="Histories",
        lead=summarize_survey(survey),
        facts=facts,
        alarms=[summarize_survey(survey)] if any(analysis.is_newly_slower for analysis in survey.analyses) else [],
        sections=[
            _make_joint_change_section(survey, events),
            _make_charts_section(survey, begin, end, marks),
            *marks.make_event_table(),
            *_make_rate_by_date_section(survey),
            _make_analysis_table(survey),
        ],
    )


def _make_name_of_analyzed_history(analysis: HistoryAnalysis, survey: Survey) -> str:
    return make_history_name(analysis.history, survey.distinguishing_labels)


def _make_joint_change_section(survey: Survey, events: Sequence[Event]) -> StudySection:
    if not survey.joint:
        nothing = "No change was noticed." if survey.analyses else "No history is long enough to be watched."
        return StudySection("Joint changes", [nothing], [])
    rows = [
        (
            format_joint_dates(joint),
            f"{min(change.runs_to_notice for change in joint.changes)} runs",
            " ".join(
                (
                    *describe_joint_change(survey, joint),
                    *(nearby.describe_in_sentence() for nearby in find_nearby_events(joint, events)),
                )
            ),
            _list_joint_members(survey, joint),
        )
        for joint in sorted(survey.joint, key=lambda item: item.begin_time, reverse=True)
    ]
    columns = ["First run after", "Noticed with", "What changed", "History"]
    sentences = [
        "Changes of several histories at the same time are one joint change. Reversed changes are marked temporary."
    ]
    parts = [
        render_html_table(columns, rows[:_MAX_LATEST_JOINT_CHANGES], "Joint changes, the latest first", text_columns=4)
    ]
    if rows[_MAX_LATEST_JOINT_CHANGES:]:
        parts.append(
            render_html_table(columns, rows[_MAX_LATEST_JOINT_CHANGES:], "Older joint changes", text_columns=4)
        )
    return StudySection("Joint changes", sentences, parts)


def _list_joint_members(survey: Survey, joint_change: JointChange) -> str:
    names = [
        f"{make_history_name(survey.histories[change.history], survey.distinguishing_labels)} "
        f"{format_dated_change(change)}"
        for change in joint_change.changes[:8]
    ]
    return "; ".join(names) + (f"; and {len(joint_change.changes) - 8} more" if len(joint_change.changes) > 8 else "")


def _make_charts_section(survey: Survey, begin_time: float, end_time: float, event_marks: EventMarks) -> StudySection:
    ordered = sorted(survey.analyses, key=lambda analysis: (not analysis.is_newly_slower, -len(analysis.changes)))
    charts = [
        build_history_chart(
            build_history_curve(
                item, _make_name_of_analyzed_history(item, survey), survey.find_changes_elsewhere(item), event_marks
            ),
            begin_time,
            end_time,
        ).render()
        for item in ordered[:_MAX_HISTORY_CHARTS]
    ]
    remaining = len(ordered) - len(charts)
    text = [f"{remaining} more histories without a change are in the table below."] if remaining else []
    return StudySection("Histories", text, [make_chart_legend(event_marks), *charts])


def make_chart_legend(event_marks: EventMarks) -> Markup:
    """Legend of the charts of histories."""
    legend = Markup(
        '<p class="note keys"><span class="ki"><span class="key dots"></span>run</span>'
        '<span class="ki"><span class="key median"></span>level</span>'
        '<span class="ki"><span class="key all"></span>eight of ten runs on that level</span>'
        '<span class="ki"><span class="key change"></span>change of this history</span>'
        '<span class="ki"><span class="key elsewhere"></span>joint change of other histories</span>{}</p>'
    )
    return legend.format(EVENT_KEY if event_marks.events else "")


def build_history_curve(
    analysis: HistoryAnalysis, title: str, changes_elsewhere: Sequence[float], event_marks: EventMarks
) -> HistoryCurve:
    """Data of the chart of a history. `changes_elsewhere`: times of joint changes of other histories."""
    values, times = analysis.history.values, analysis.history.times
    segments = [
        LevelSegment(
            float(times[part.first]),
            float(times[part.end - 1]),
            part.level,
            float(np.quantile(values[part.first : part.end], 0.1)),
            float(np.quantile(values[part.first : part.end], 0.9)),
        )
        for part in analysis.segments
    ]
    marks = [ChangeMark(change.first_after, format_change(change), True, change.is_drop) for change in analysis.changes]
    others = [ChangeMark(time, "", is_own=False) for time in changes_elsewhere]
    return HistoryCurve(
        title,
        describe_analysis(analysis),
        _get_chart_unit(analysis),
        times.tolist(),
        values.tolist(),
        segments,
        [*marks, *others],
        event_marks.make_chart_lines(),
    )


def describe_analysis(analysis: HistoryAnalysis) -> str:
    """Sentences on a history: its rate now, its noise, its latest change, its caveats."""
    latest = format_history_value(analysis.now, analysis.history)
    sentences = [f"{latest} in the last three runs; noise {100 * analysis.noise:.1f} %."]
    if analysis.changes:
        last = analysis.changes[-1]
        sentences.append(
            f"Latest change {convert_run_time_to_utc(last.first_after):%Y-%m-%d}: {format_change(last)},"
            f" noticed with run {last.runs_to_notice}."
        )
    elif analysis.visible is not None:
        sentences.append(f"No change; smallest detectable drop: {100 * analysis.visible:.0f} %.")
    else:
        sentences.append("No change; too few runs to say what would show.")
    sentences += [
        f"Doubtful in {caveat.runs} of the last {caveat.of} runs: {caveat.text.rstrip('.') or caveat.id}."
        for caveat in analysis.caveats
    ]
    return " ".join(sentences)


def _make_rate_by_date_section(survey: Survey) -> list[StudySection]:
    """Section on the distribution of the runs of each month (week, day), first for the histories that became slower
    lately or changed most often."""
    ordered = sorted(
        survey.analyses, key=lambda analysis: (not analysis.is_newly_slower, -len(analysis.changes), -analysis.noise)
    )
    charts = [
        chart.render()
        for item in ordered[:_MAX_DATE_CHARTS]
        if (
            chart := build_strip_chart(
                _make_name_of_analyzed_history(item, survey),
                _get_chart_unit(item),
                item.history.times,
                item.history.values,
            )
        )
        is not None
    ]
    remaining = len(survey.analyses) - len(charts)
    sentences = ["Two shapes one above the other are two kinds of days; a long tail downwards is other people's work."]
    return (
        [
            StudySection(
                "Spread by date",
                [*sentences, *([f"{remaining} more histories are not drawn."] * (remaining > 0))],
                charts,
            )
        ]
        if charts
        else []
    )


def _get_chart_unit(analysis: HistoryAnalysis) -> str:
    return "op/s" if analysis.history.unit == "op/s" else "B/s"


def _make_analysis_table(survey: Survey) -> StudySection:
    doubted = any(analysis.caveats for analysis in survey.analyses)
    rows = [
        (
            _make_name_of_analyzed_history(analysis, survey),
            f"{len(analysis.history):,}",
            format_history_value(analysis.current_level, analysis.history),
            format_history_value(analysis.now, analysis.history),
            f"{100 * analysis.noise:.1f} %",
            f"{100 * analysis.visible:.0f} %" if analysis.visible is not None else "-",
            f"{convert_run_time_to_utc(analysis.changes[-1].first_after):%Y-%m-%d}" if analysis.changes else "",
            format_change_percent(analysis.changes[-1].size.value - 1) if analysis.changes else "",
            *[format_caveat_share(analysis)] * doubted,
        )
        for analysis in survey.analyses
    ]
    columns = [
        "Histories",
        "Runs",
        "Level",
        "Last three",
        "Noise",
        "Detectable",
        "Changed",
        "By",
        *["Doubtful"] * doubted,
    ]
    sentences = ["Detectable: the smallest drop that ten runs show with a probability of 80 %."]
    sentences += ["Doubtful: how many of its last runs have the caveat that is printed with its chart."] * doubted
    return StudySection(
        "All histories", sentences, [render_html_table(columns, rows, "Level, noise and latest change of each history")]
    )
