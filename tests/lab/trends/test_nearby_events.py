# SPDX-License-Identifier: Apache-2.0
"""Events near a change: which are named, in which order, and with which distance."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sonde.model.event import Event
from sonde.model.event.times import parse_time_interval
from sonde.stats.ratio import RateRatio
from sonde.trends.changes import Change, JointChange, JointChangePart
from sonde.trends.nearby_events import find_nearby_events
from sonde.trends.scope import UNEXPLAINED

HALVED_RATE = RateRatio(0.5, 0.45, 0.55, 0.001, 20, 20, 0.95)


def get_midnight_of_day(day: int) -> float:
    return datetime(2026, 3, day, tzinfo=UTC).timestamp()


def make_event(when: str, event_id: str = "e") -> Event:
    return Event(id=event_id, kind="upgrade", title=f"Title {event_id}", when=parse_time_interval(when))


# A drop between the runs of 10 and 11 March, at midnight.
DROP = JointChange(
    (
        JointChangePart(
            (
                Change(
                    0,
                    "collapse",
                    get_midnight_of_day(10),
                    get_midnight_of_day(11),
                    get_midnight_of_day(13),
                    3,
                    HALVED_RATE,
                    HALVED_RATE,
                ),
            ),
            UNEXPLAINED,
        ),
    )
)


@pytest.mark.parametrize(
    ("when", "ending"),
    [
        ("2026-03-10T12:00Z", "2026-03-10: between the last run before and the first run after the change."),
        ("2026-03-10T00:00Z/2026-03-12T00:00Z", "between the last run before and the first run after the change."),
        ("2026-03-09T21:30Z", "2026-03-09: 2.5 hours before the last run before the change."),
        ("2026-03-03T00:00Z", "2026-03-03: 7 days before the last run before the change."),
        ("2026-03-11T14:00Z", "2026-03-11: 14.0 hours after the first run after the change."),
    ],
)
def test_sentence_states_the_distance_from_the_change(when: str, ending: str) -> None:
    (nearby,) = find_nearby_events(DROP, [make_event(when)])
    assert nearby.describe_in_sentence().startswith('Event "Title e" (upgrade), ')
    assert nearby.describe_in_sentence().endswith(ending)


@pytest.mark.parametrize("when", ["2026-02-23T00:00Z", "2026-03-12T01:00Z", "2026-03"])
def test_distant_events_are_excluded(when: str) -> None:
    nearby = find_nearby_events(DROP, [make_event(when)])
    assert bool(nearby) == (when == "2026-03")  # some time in March may have been between the two runs


def test_nearest_three_events_are_returned_nearest_first() -> None:
    events = [make_event(f"2026-03-{day:02d}T00:00Z", f"d{day}") for day in (1, 4, 6, 8, 10)]
    assert [entry.event.id for entry in find_nearby_events(DROP, events)] == ["d10", "d8", "d6"]


def test_parts_of_an_event_are_in_its_sentence() -> None:
    event = Event(
        id="e", kind="repair", title="T", when=parse_time_interval("2026-03-10T12:00Z"), parts=("fs1-OST0003",)
    )
    (nearby,) = find_nearby_events(DROP, [event])
    assert "(repair on fs1-OST0003)" in nearby.describe_in_sentence()
