# SPDX-License-Identifier: Apache-2.0
"""All histories as a page: events first, then each series with its levels and changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from sonde.charts.history_chart import History, Mark, Stretch, history_chart
from sonde.charts.plot import table
from sonde.charts.strip_chart import strip_chart
from sonde.charts.study import Section, Study
from sonde.trends.changes import Change, Event
from sonde.trends.comparison_words import percent
from sonde.trends.series import moment
from sonde.trends.survey import Standing, Survey
from sonde.trends.words import change_size, name_of, promise, told, value_of

# Series with a picture; of more than these, those without a change are only in the table.
_MOST_PICTURES = 60
# Series whose spread by date is drawn.
_MOST_SPREADS = 12
# Series that an event must have changed to be marked in the pictures of the others.
_MANY = 3
# Events that stand in the open.
_LATEST = 12


def history_study(found: Survey, measure: str) -> Study:
    """The page of a survey."""
    begin = min((float(one.series.times[0]) for one in found.standings), default=0.0)
    end = max((float(one.series.times[-1]) for one in found.standings), default=1.0)
    slower = [one for one in found.standings if one.slower]
    names = "; ".join(f"{_name(one, found)} {change_size(one.changes[-1])}" for one in slower[:6])
    more = f"; and {len(slower) - 6} more" if len(slower) > 6 else ""
    facts = [
        ("Series", f"{len(found.standings)}, {sum(len(one.series) for one in found.standings):,} probes ({measure})"),
        ("Time", f"{moment(begin):%Y-%m-%d} to {moment(end):%Y-%m-%d}"),
    ]
    return Study(
        title="Histories",
        lead=promise(found),
        facts=facts,
        alarms=[f"Slower within the last ten runs: {names}{more}."] if slower else [],
        sections=[_events(found), _pictures(found, begin, end), *_by_date(found), _standings(found)],
    )


def _name(one: Standing, found: Survey) -> str:
    return f"{name_of(one.series, found.series)} · {one.series.labels.get('operation', '')}".strip(" ·")


def _events(found: Survey) -> Section:
    if not found.events:
        return Section("Events", ["No change was noticed."], [])
    rows = [
        (
            f"{moment(event.time):%Y-%m-%d %H:%M}",
            f"{min(change.runs_to_notice for change in event.changes)} runs",
            str(len(event.changes)),
            _scope(event),
            _sizes(event.changes),
        )
        for event in sorted(found.events, key=lambda one: one.time, reverse=True)
    ]
    columns = ["First run after", "Noticed with", "Series", "What they share", "Changes"]
    words = ["Changes of several series at the same time are one event. A change that has passed was a spell."]
    parts = [table(columns, rows[:_LATEST], "Events, the latest first", text_columns=5)]
    if rows[_LATEST:]:
        older = table(columns, rows[_LATEST:], "Older events", text_columns=5)
        parts.append(
            Markup('<details class="values"><summary>{}</summary>{}</details>').format(
                f"{len(rows) - _LATEST} older events", older
            )
        )
    return Section("Events", words, parts)


def _scope(event: Event) -> str:
    shared = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in told(event.scope).items())
    if not shared:
        return "-"
    return shared if event.whole else f"{shared} (others with these did not change)"


def _sizes(found: Sequence[Change]) -> str:
    return ", ".join(change_size(one) for one in found[:8]) + (", …" if len(found) > 8 else "")


def _pictures(found: Survey, begin: float, end: float) -> Section:
    ordered = sorted(found.standings, key=lambda one: (not one.slower, -len(one.changes)))
    charts = [history_chart(_history(one, found), begin, end).render() for one in ordered[:_MOST_PICTURES]]
    legend = Markup(
        '<p class="note keys"><span class="ki"><span class="key dots"></span>run</span>'
        '<span class="ki"><span class="key median"></span>level</span>'
        '<span class="ki"><span class="key all"></span>eight of ten runs on that level</span>'
        '<span class="ki"><span class="key change"></span>change of this series</span>'
        '<span class="ki"><span class="key event"></span>event of other series</span></p>'
    )
    left = len(ordered) - len(charts)
    words = [f"{left} more series without a change are in the table below."] if left else []
    return Section("Series", words, [legend, *charts])


def _history(one: Standing, found: Survey) -> History:
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
        Mark(event.time, "", own=False)
        for event in found.events
        if len(event.changes) >= _MANY and not mine & {change.first_after for change in event.changes}
    ]
    return History(
        _name(one, found), _words(one), _unit(one), times.tolist(), values.tolist(), stretches, [*own, *others]
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
    return " ".join(words)


def _by_date(found: Survey) -> list[Section]:
    """How the runs of each month (week, day) were spread, for the series that people will ask about first."""
    ordered = sorted(found.standings, key=lambda one: (not one.slower, -len(one.changes), -one.noise))
    charts = [
        chart.render()
        for one in ordered[:_MOST_SPREADS]
        if (chart := strip_chart(_name(one, found), _unit(one), one.series.times, one.series.values)) is not None
    ]
    left = len(found.standings) - len(charts)
    words = ["Two shapes one above the other are two kinds of days; a long tail downwards is other people's work."]
    return (
        [Section("Spread by date", [*words, *([f"{left} more series are not drawn."] * (left > 0))], charts)]
        if charts
        else []
    )


def _unit(one: Standing) -> str:
    return "op/s" if one.series.unit == "op/s" else "B/s"


def _standings(found: Survey) -> Section:
    rows = [
        (
            _name(one, found),
            f"{len(one.series):,}",
            value_of(one.level, one.series),
            value_of(one.now, one.series),
            f"{100 * one.noise:.1f} %",
            f"{100 * one.visible:.0f} %" if one.visible is not None else "-",
            f"{moment(one.changes[-1].first_after):%Y-%m-%d}" if one.changes else "",
            percent(one.changes[-1].size.value - 1) if one.changes else "",
        )
        for one in found.standings
    ]
    columns = ["Series", "Runs", "Level", "Last three", "Noise", "Visible", "Changed", "By"]
    words = ["Visible: a drop of this size shows in ten runs, four times of five."]
    return Section("All series", words, [table(columns, rows, "Where each series stands")])
