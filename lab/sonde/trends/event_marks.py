# SPDX-License-Identifier: Apache-2.0
"""Selects the events that are drawn in charts of histories, and numbers them for the table next to the chart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sonde.charts.history_chart import EventLine
from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.charts.study import StudySection
from sonde.model.event import Event, TimeInterval
from sonde.model.units import format_count_with_noun

# More lines in one chart cannot be distinguished.
_MAX_EVENT_LINES = 30


@dataclass(frozen=True)
class EventMarks:
    """The events that are drawn, in order of time; the first has number 1. `omitted` more are in the time span."""

    events: tuple[Event, ...]
    omitted: int

    def make_chart_lines(self) -> list[EventLine]:
        """Their lines in a chart."""
        return [
            EventLine(_compute_middle_time(event.when).timestamp(), str(number), f"{number}: {event.title}")
            for number, event in enumerate(self.events, 1)
        ]

    def make_event_table(self) -> list[StudySection]:
        """The table of the numbered events in the charts; empty without events."""
        if not self.events:
            return []
        rows = [
            (str(number), f"{event.when.first:%Y-%m-%d %H:%M}", event.kind, event.title, ", ".join(event.parts))
            for number, event in enumerate(self.events, 1)
        ]
        text = (
            [f"{format_count_with_noun(self.omitted, 'more event')} in this time without a line."]
            if self.omitted
            else []
        )
        columns = ["Line", "When (UTC)", "Kind", "Event", "Parts"]
        return [
            StudySection(
                "Events", text, [render_html_table(columns, rows, "Events drawn in the charts", text_columns=5)]
            )
        ]


def select_event_marks(
    events: Iterable[Event], begin_time: float, end_time: float, change_times: Sequence[float] = ()
) -> EventMarks:
    """The events between `begin_time` and `end_time` (seconds since 1970) that are drawn: all, or the 30 that matter
    most.

    Events that people entered come before those from logs, errors before warnings; among equals the nearest to one of
    the times in `change_times`.
    """
    span = TimeInterval(datetime.fromtimestamp(begin_time, UTC), datetime.fromtimestamp(max(begin_time, end_time), UTC))
    inside = [event for event in events if event.when.overlaps_interval(span)]

    def rank_event(event: Event) -> tuple[bool, bool, float, str]:
        time = _compute_middle_time(event.when).timestamp()
        distance = min((abs(time - change) for change in change_times), default=0.0)
        return "log" in event.tags, "error" not in event.tags, distance, event.id

    chosen = sorted(inside, key=rank_event)[:_MAX_EVENT_LINES]
    chosen.sort(key=lambda event: (event.when.first, event.id))
    return EventMarks(tuple(chosen), len(inside) - len(chosen))


def _compute_middle_time(time_interval: TimeInterval) -> datetime:
    """The middle of the times that the text allows; an event is one line."""
    return time_interval.first + (time_interval.last - time_interval.first) / 2


EVENT_KEY = Markup('<span class="ki"><span class="key event"></span>event, by its number</span>')
