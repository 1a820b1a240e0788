# SPDX-License-Identifier: Apache-2.0
"""All histories as a page: the verdict, joint changes, then each series with its levels and changes."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from sonde.charts.dates import day, span
from sonde.charts.history_chart import History, Mark, Stretch, history_chart
from sonde.charts.plot import table
from sonde.charts.strip_chart import strip_chart
from sonde.charts.study import Section, Study
from sonde.model.units import counted
from sonde.trends.changes import JointChange
from sonde.trends.comparison_words import percent
from sonde.trends.series import moment
from sonde.trends.survey import Standing, Survey
from sonde.trends.words import change_size, doubted_share, joint_sentences, name_of, promise, value_of, verdict

# Series with a picture; of more than these, those without a change are only in the table.
_MOST_PICTURES = 60
# Series whose spread by date is drawn.
_MOST_SPREADS = 12
# Series that a joint change must have moved to be marked in the pictures of the others.
_MANY = 3
# Joint changes in the first table.
_LATEST = 12


def history_study(survey: Survey, measure: str) -> Study:
    """The page of a survey."""
    begin = min((float(one.series.times[0]) for one in survey.standings), default=0.0)
    end = max((float(one.series.times[-1]) for one in survey.standings), default=1.0)
    probes = counted(sum(len(one.series) for one in survey.standings), "probe")
    facts = [
        (
            "Series",
            f"{len(survey.standings)}, {probes} ({measure})",
        ),
        ("Time", span(day(begin), day(end))),
        ("False alarms", promise(survey).removeprefix("False alarms: ")),
    ]
    return Study(
        title="Histories",
        lead=verdict(survey),
        facts=facts,
        alarms=[verdict(survey)] if any(one.slower for one in survey.standings) else [],
        sections=[_joint_changes(survey), _pictures(survey, begin, end), *_by_date(survey), _standings(survey)],
    )


def _name(one: Standing, survey: Survey) -> str:
    return name_of(one.series, survey.telling)


def _joint_changes(survey: Survey) -> Section:
    if not survey.joint:
        nothing = "No change was noticed." if survey.standings else "No series is long enough to be watched."
        return Section("Joint changes", [nothing], [])
    rows = [
        (
            f"{moment(joint.time):%Y-%m-%d %H:%M}",
            f"{min(change.runs_to_notice for change in joint.changes)} runs",
            " ".join(joint_sentences(survey, joint)),
            _members(survey, joint),
        )
        for joint in sorted(survey.joint, key=lambda one: one.time, reverse=True)
    ]
    columns = ["First run after", "Noticed with", "What changed", "Series"]
    words = ["Changes of several series at the same time are one joint change. A change that has passed was a spell."]
    parts = [table(columns, rows[:_LATEST], "Joint changes, the latest first", text_columns=4)]
    if rows[_LATEST:]:
        parts.append(table(columns, rows[_LATEST:], "Older joint changes", text_columns=4))
    return Section("Joint changes", words, parts)


def _members(survey: Survey, joint: JointChange) -> str:
    names = [f"{name_of(survey.series[one.series], survey.telling)} {change_size(one)}" for one in joint.changes[:8]]
    return "; ".join(names) + (f"; and {len(joint.changes) - 8} more" if len(joint.changes) > 8 else "")


def _pictures(survey: Survey, begin: float, end: float) -> Section:
    ordered = sorted(survey.standings, key=lambda one: (not one.slower, -len(one.changes)))
    charts = [history_chart(_history(one, survey), begin, end).render() for one in ordered[:_MOST_PICTURES]]
    legend = Markup(
        '<p class="note keys"><span class="ki"><span class="key dots"></span>run</span>'
        '<span class="ki"><span class="key median"></span>level</span>'
        '<span class="ki"><span class="key all"></span>eight of ten runs on that level</span>'
        '<span class="ki"><span class="key change"></span>change of this series</span>'
        '<span class="ki"><span class="key elsewhere"></span>joint change of other series</span></p>'
    )
    left = len(ordered) - len(charts)
    words = [f"{left} more series without a change are in the table below."] if left else []
    return Section("Series", words, [legend, *charts])


def _history(one: Standing, survey: Survey) -> History:
    values, times = one.series.values, one.series.times
    stretches = [
        Stretch(
            float(times[part.first]),
            float(times[part.end - 1]),
            part.level,
            float(np.quantile(values[part.first : part.end], 0.1)),
            float(np.quantile(values[part.first : part.end], 0.9)),
        )
        for part in one.stretches
    ]
    own = [Mark(change.first_after, change_size(change), True, change.down) for change in one.changes]
    mine = {change.first_after for change in one.changes}
    others = [
        Mark(joint.time, "", own=False)
        for joint in survey.joint
        if len(joint.changes) >= _MANY and not mine & {change.first_after for change in joint.changes}
    ]
    return History(
        _name(one, survey), _words(one), _unit(one), times.tolist(), values.tolist(), stretches, [*own, *others]
    )


def _words(one: Standing) -> str:
    words = [f"{value_of(one.now, one.series)} in the last three runs; noise {100 * one.noise:.1f} %."]
    if one.changes:
        last = one.changes[-1]
        words.append(
            f"Latest change {moment(last.first_after):%Y-%m-%d}: {change_size(last)},"
            f" noticed with run {last.runs_to_notice}."
        )
    elif one.visible is not None:
        words.append(f"No change; a drop of {100 * one.visible:.0f} % would show in ten runs, four times of five.")
    else:
        words.append("No change; too few runs to say what would show.")
    words += [
        f"Doubtful in {doubt.runs} of the last {doubt.of} runs: {doubt.text.rstrip('.') or doubt.id}."
        for doubt in one.doubts
    ]
    return " ".join(words)


def _by_date(survey: Survey) -> list[Section]:
    """How the runs of each month (week, day) were spread, for the series that people will ask about first."""
    ordered = sorted(survey.standings, key=lambda one: (not one.slower, -len(one.changes), -one.noise))
    charts = [
        chart.render()
        for one in ordered[:_MOST_SPREADS]
        if (chart := strip_chart(_name(one, survey), _unit(one), one.series.times, one.series.values)) is not None
    ]
    left = len(survey.standings) - len(charts)
    words = ["Two shapes one above the other are two kinds of days; a long tail downwards is other people's work."]
    return (
        [Section("Spread by date", [*words, *([f"{left} more series are not drawn."] * (left > 0))], charts)]
        if charts
        else []
    )


def _unit(one: Standing) -> str:
    return "op/s" if one.series.unit == "op/s" else "B/s"


def _standings(survey: Survey) -> Section:
    doubted = any(one.doubts for one in survey.standings)
    rows = [
        (
            _name(one, survey),
            f"{len(one.series):,}",
            value_of(one.level, one.series),
            value_of(one.now, one.series),
            f"{100 * one.noise:.1f} %",
            f"{100 * one.visible:.0f} %" if one.visible is not None else "-",
            f"{moment(one.changes[-1].first_after):%Y-%m-%d}" if one.changes else "",
            percent(one.changes[-1].size.value - 1) if one.changes else "",
            *[doubted_share(one)] * doubted,
        )
        for one in survey.standings
    ]
    columns = ["Series", "Runs", "Level", "Last three", "Noise", "Visible", "Changed", "By", *["Doubtful"] * doubted]
    words = ["Visible: a drop of this size shows in ten runs, four times of five."]
    words += ["Doubtful: so many of its last runs, for the reason that stands with its picture."] * doubted
    return Section("All series", words, [table(columns, rows, "Where each series stands")])
