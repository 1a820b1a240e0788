# SPDX-License-Identifier: Apache-2.0
"""Events near a change, with their distance in time. Being near does not make an event the cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sonde.model.event import Event, TimeInterval
from sonde.trends.changes import JointChange

# Events further away are not named: what changed storage shows in the next runs.
_MAX_TIME_BEFORE = timedelta(days=14)
_MAX_TIME_AFTER = timedelta(days=1)
_MAX_NEARBY_EVENTS = 3


@dataclass(frozen=True)
class NearbyEvent:
    """An event and its distance from the time in which the change happened: zero inside, negative before it."""

    event: Event
    distance: timedelta

    def describe_in_sentence(self) -> str:
        """Describes the event and its distance from the change in one sentence."""
        event = self.event
        when = f"{event.when.first:%Y-%m-%d}"
        if not self.distance:
            relation = "between the last run before and the first run after the change"
        elif self.distance < timedelta(0):
            relation = f"{_format_distance(-self.distance)} before the last run before the change"
        else:
            relation = f"{_format_distance(self.distance)} after the first run after the change"
        parts = f" on {', '.join(event.parts)}" if event.parts else ""
        return f'Event "{event.title}" ({event.kind}{parts}), {when}: {relation}.'


def find_nearby_events(joint_change: JointChange, events: Iterable[Event]) -> list[NearbyEvent]:
    """The nearest events of a joint change, at most three, the nearest first."""
    return find_events_between(
        min(change.last_before for change in joint_change.changes), joint_change.end_time, events
    )


def find_events_between(last_before: float, first_after: float, events: Iterable[Event]) -> list[NearbyEvent]:
    """The events nearest to the time between two runs (seconds since 1970), at most three, the nearest first."""
    first, last = (datetime.fromtimestamp(time, UTC) for time in (last_before, first_after))
    during = TimeInterval(min(first, last), last)
    nearby = [
        NearbyEvent(event, distance)
        for event in events
        if -_MAX_TIME_BEFORE <= (distance := _compute_distance(event.when, during)) <= _MAX_TIME_AFTER
    ]
    return sorted(nearby, key=lambda entry: (abs(entry.distance), entry.event.when.first))[:_MAX_NEARBY_EVENTS]


def _format_distance(distance: timedelta) -> str:
    hours = distance.total_seconds() / 3600
    return f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.1f} hours"


def _compute_distance(event_interval: TimeInterval, change_interval: TimeInterval) -> timedelta:
    if event_interval.overlaps_interval(change_interval):
        return timedelta(0)
    return (
        event_interval.last - change_interval.first
        if event_interval.last < change_interval.first
        else event_interval.first - change_interval.last
    )
