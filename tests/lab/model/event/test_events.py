# SPDX-License-Identifier: Apache-2.0
"""Events: no more exact than they are written, matched to times and to parts; a slip gets one sentence."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.model.errors import EXIT_BAD_INPUT, EventError
from sonde.model.event import Event, TimeInterval, find_matching_events, read_events_file
from sonde.model.event.times import EventTimeError, parse_time_interval, parse_time_zone
from sonde.model.system import make_system

SYSTEM = make_system(
    {
        "schema": "sonde-system/2",
        "drives": [{"id": "d[1-4]", "group": "drives"}],
        "raid_groups": [{"id": "g[1-2]", "level": "1", "data": 1, "parity": 1, "drives": "drives"}],
        "targets": [{"id": "t[1-2]", "kind": "ost", "on": "g[1-2]", "file_system": "fs"}],
        "file_systems": [{"id": "fs", "kind": "lustre"}],
    },
    "system.toml",
)


def parse_utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def make_event(name: str, text: str, *parts: str, affects_dependents: bool = True) -> Event:
    return Event(name, "failure", name, parse_time_interval(text), parts, affects_dependents)


@pytest.mark.parametrize(
    ("text", "expected_first", "expected_length_s"),
    [
        ("2013", "2013-01-01", 365 * 86400),
        ("2012-02", "2012-02-01", 29 * 86400),
        ("2013-12", "2013-12-01", 31 * 86400),
        ("2013-12-06", "2013-12-06", 86400),
        ("2013-12-06T10:30", "2013-12-06T10:30", 60),
        ("2013-12-06 10:30:05", "2013-12-06T10:30:05", 1),
        ("2013-12-06T10:30:05.25", "2013-12-06T10:30:05.250000", 0.01),
        ("2013-12-06/2013-12-07", "2013-12-06", 2 * 86400),
        ("2013-12-06T01:00/2013-12-06T02:00", "2013-12-06T01:00", 3660),
    ],
)
def test_digits_of_a_time_determine_its_interval(text: str, expected_first: str, expected_length_s: float) -> None:
    interval = parse_time_interval(text)
    assert interval.first == parse_utc(expected_first)
    assert interval.last - interval.first == timedelta(seconds=expected_length_s) - timedelta(microseconds=1)


def test_precision_overrides_the_digits_of_a_time() -> None:
    interval = parse_time_interval("2014-03-17T09:30", precision_s=600)
    assert (interval.first, interval.last) == (parse_utc("2014-03-17T09:20"), parse_utc("2014-03-17T09:40"))


def test_zone_is_from_the_time_or_else_from_the_file() -> None:
    assert parse_time_interval("2014-03-17T09:30Z", parse_time_zone("+05:00")).first == parse_utc("2014-03-17T09:30")
    assert parse_time_interval("2014-03-17T09:30+02:00").first == parse_utc("2014-03-17T07:30")
    assert parse_time_interval("2014-03-17", parse_time_zone("America/Los_Angeles")).first == parse_utc(
        "2014-03-17T07:00"
    )
    assert parse_time_zone("-03:30").utcoffset(None) == timedelta(hours=-3, minutes=-30)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2014-13-01",
        "2014-02-30",
        "2014-3-1",
        "2014-03-17T25:00",
        "2014-03-18/2014-03-17",
        "a/b/c",
        "2014/2015/2016",
        "2014-03-17T09:30+99:99",
        "0000",
    ],
)
def test_invalid_time_is_rejected(text: str) -> None:
    with pytest.raises(EventTimeError):
        parse_time_interval(text)


@given(st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)), st.integers(-12, 14))
def test_interval_covers_the_written_day_minute_or_second(moment: datetime, hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    here = moment.replace(tzinfo=zone)
    for form in ("%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f"):
        interval = parse_time_interval(here.strftime(form), zone)
        assert interval.first <= here <= interval.last
        assert interval.compute_distance_to(here) == timedelta(0)


def test_the_distance_is_to_the_nearer_end() -> None:
    day = parse_time_interval("2014-03-17")
    assert day.compute_distance_to(parse_utc("2014-03-16T23:00")) == timedelta(hours=1)
    assert day.compute_distance_to(parse_utc("2014-03-18T01:00")) == timedelta(hours=1, microseconds=1)


def test_certain_events_precede_possible_events() -> None:
    during = TimeInterval(parse_utc("2014-03-17T06:00"), parse_utc("2014-03-17T18:00"))
    inside, day = make_event("inside", "2014-03-17T09:30"), make_event("day", "2014-03-17")
    before, after = make_event("before", "2014-03-16"), make_event("after", "2014-03-18T01:00")
    everything = [after, day, before, inside]
    assert [make_event.id for make_event in find_matching_events(everything, during)] == ["inside", "day"]
    near = find_matching_events(everything, during, tolerance=timedelta(hours=7))
    assert [make_event.id for make_event in near] == ["inside", "before", "day", "after"]


@pytest.mark.parametrize(
    ("part", "dependents", "is_affected"),
    [
        ("d2", True, True),
        ("g1", True, True),
        ("t1", True, True),
        ("fs", True, True),
        ("t2", True, False),
        ("g1", False, False),
        ("d2", False, True),
    ],
)
def test_failed_drive_affects_its_dependents(part: str, dependents: bool, is_affected: bool) -> None:
    failed = make_event("failed", "2014-03-17", "d2", affects_dependents=dependents)
    assert failed.affects_part(part, SYSTEM) is is_affected
    events = find_matching_events([failed], parse_time_interval("2014-03"), [part], SYSTEM)
    assert bool(events) is is_affected


def test_event_without_parts_affects_every_part() -> None:
    assert make_event("all", "2014").affects_part("anything")
    named_event = make_event("named", "2014", "n[1-3]")
    assert named_event.affects_part("n2")
    assert not named_event.affects_part("n4")
    assert make_event("group", "2014", "drives").affects_part("d3", SYSTEM)


def write_event_file(folder: Path, **members: Any) -> Path:
    path = folder / "events.json"
    path.write_text(json.dumps({"schema": "sonde-event/1", "events": [], **members}), encoding="utf-8")
    return path


EVENT_DOCUMENT = {"id": "e", "when": "2014-03-17", "kind": "failure", "title": "a disk"}


def test_defaults_at_the_top_of_a_file_apply_to_its_events(tmp_path: Path) -> None:
    events = [
        {**EVENT_DOCUMENT, "when": "2014-03-18"},
        {**EVENT_DOCUMENT, "id": "own", "who": "B", "changes": {"osts": [72, 96]}},
    ]
    own_event, other = read_events_file(
        write_event_file(tmp_path, zone="+01:00", who="A", source="S", system="edison", events=events)
    )
    assert (own_event.id, own_event.who, own_event.source, own_event.system) == ("own", "B", "S", "edison")
    assert own_event.changes == {"osts": (72, 96)}
    assert (other.who, other.when.first) == ("A", parse_utc("2014-03-17T23:00"))
    assert own_event.time_uncertainty == timedelta(days=1) - timedelta(microseconds=1)


def test_times_without_quotation_marks_in_toml_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "events.toml"
    path.write_text(
        'schema = "sonde-event/1"\n[[events]]\nid = "a"\nwhen = 2014-03-17\nkind = "other"\ntitle = "t"\n',
        encoding="utf-8",
    )
    assert read_events_file(path)[0].when == parse_time_interval("2014-03-17")


@pytest.mark.parametrize(
    ("members", "expected_text"),
    [
        ({"schema": "sonde-event/2"}, "schema"),
        ({"events": None}, "events"),
        ({"event": []}, 'Did you mean "events"?'),
        ({"zone": "Mars"}, "zone"),
        ({"events": [{**EVENT_DOCUMENT, "when": "soon"}]}, "events.e.when"),
        ({"events": [{**EVENT_DOCUMENT, "when": "2014-02-30"}]}, "events.e.when"),
        ({"events": [{**EVENT_DOCUMENT, "kind": "failur"}]}, 'Did you mean "failure"?'),
        ({"events": [{**EVENT_DOCUMENT, "titel": "x"}]}, 'Did you mean "title"?'),
        ({"events": [{"id": "e"}]}, 'lacks "when"'),
        ({"events": [EVENT_DOCUMENT, EVENT_DOCUMENT]}, "used once"),
        ({"events": [{**EVENT_DOCUMENT, "parts": ["d[4-1]"]}]}, "events.e.parts"),
        ({"events": [{**EVENT_DOCUMENT, "parts": ["d9"]}]}, "d9"),
        ({"events": [{**EVENT_DOCUMENT, "precision": 5}]}, '"5 s"'),
        ({"events": [{**EVENT_DOCUMENT, "scope": "all"}]}, "dependents"),
        ({"events": [{**EVENT_DOCUMENT, "changes": {"osts": 96}}]}, "before"),
        ({"events": [{**EVENT_DOCUMENT, "id": "a b"}]}, "events.a b.id"),
    ],
)
def test_mistake_in_an_event_file_gets_a_one_sentence_error(
    members: dict[str, Any], expected_text: str, tmp_path: Path
) -> None:
    path = write_event_file(tmp_path, **members)
    with pytest.raises(EventError) as caught:
        read_events_file(path, SYSTEM)
    message = str(caught.value)
    assert caught.value.exit_code == EXIT_BAD_INPUT
    assert message.startswith(str(path))
    assert expected_text in message
    assert "\n" not in message
    assert message[-1] in ".?"


@pytest.mark.parametrize(
    ("line", "expected_text"),
    [("{", "line 2 is not JSON"), ("{}", "line 2: schema is missing"), ("[]", "line 2: schema is missing")],
)
def test_invalid_line_is_reported_with_its_number(line: str, expected_text: str, tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text(json.dumps({"schema": "sonde-event/1", **EVENT_DOCUMENT}) + f"\n{line}\n", encoding="utf-8")
    with pytest.raises(EventError, match=expected_text):
        read_events_file(path)


def test_a_file_that_cannot_be_read_gets_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(EventError, match="no file of events"):
        read_events_file(tmp_path / "none.toml")
    with pytest.raises(EventError, match="is a directory"):
        read_events_file(tmp_path)
    (tmp_path / "x.toml").write_bytes(b"\xff")
    with pytest.raises(EventError, match="not UTF-8"):
        read_events_file(tmp_path / "x.toml")
    (tmp_path / "y.toml").write_text("= 3", encoding="utf-8")
    with pytest.raises(EventError, match="not valid TOML"):
        read_events_file(tmp_path / "y.toml")


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("2013-12", "2013-12-31T23:59:59.999999"),
        ("2013-02", "2013-02-28T23:59:59.999999"),
        ("2013-12-06T10:30:05.1", "2013-12-06T10:30:05.199999"),
        ("2013-12-06T10:30:05.12345", "2013-12-06T10:30:05.123459"),
        ("2013-12-06T10:30:05.123456", "2013-12-06T10:30:05.123456"),
        ("2013-12-06T10:30:05.1234567", "2013-12-06T10:30:05.123456"),
        ("2013-12-06T10:30:00", "2013-12-06T10:30:00.999999"),
        ("2013 / 2014-01", "2014-01-31T23:59:59.999999"),
    ],
)
def test_last_moment_of_a_time_keeps_its_written_digits(text: str, last: str) -> None:
    assert parse_time_interval(text).last == parse_utc(last)


@pytest.mark.parametrize(
    ("text", "expected_sentence"),
    [
        ("soon", '"soon" is no time; write 2013-12-06, 2014-03-17T09:30Z, or FIRST/LAST.'),
        ("2014/soon", '"2014/soon" is no time; write 2013-12-06, 2014-03-17T09:30Z, or FIRST/LAST.'),
        ("2014/2015/2016", '"2014/2015/2016" has more than two times; an interval is written FIRST/LAST.'),
        ("2014-03-18/2014-03-17", '"2014-03-18/2014-03-17" ends before it begins; write the earlier time first.'),
        ("2014-13-01", '"2014-13-01" is no time: month '),
        (
            "2014-03-17T10:00+25:00",
            '"+25:00" is no time zone; write UTC, an offset like +01:00, or America/Los_Angeles.',
        ),
        (
            "2014-03-17T10:00+01:60",
            '"+01:60" is no time zone; write UTC, an offset like +01:00, or America/Los_Angeles.',
        ),
    ],
)
def test_invalid_time_has_an_exact_error_message(text: str, expected_sentence: str) -> None:
    with pytest.raises(EventTimeError) as caught:
        parse_time_interval(text)
    assert str(caught.value) == expected_sentence or (
        expected_sentence.endswith(" ") and str(caught.value).startswith(expected_sentence)
    )


def test_event_interval_may_be_a_day_and_zone_almost_24_hours() -> None:
    assert parse_time_interval("2014-03-17/2014-03-17") == parse_time_interval("2014-03-17")
    assert [parse_time_zone(text) for text in ("", "UTC", "Z")] == [UTC] * 3
    assert parse_time_zone("+23:59").utcoffset(None) == timedelta(hours=23, minutes=59)
    assert parse_time_interval("2014", precision_s=0.5) == TimeInterval(
        parse_utc("2013-12-31T23:59:59.500"), parse_utc("2014-01-01T00:00:00.500")
    )


def test_intervals_that_share_a_moment_overlap() -> None:
    first, second = (
        TimeInterval(parse_utc("2014-01-01"), parse_utc("2014-01-02")),
        TimeInterval(parse_utc("2014-01-02"), parse_utc("2014-01-03")),
    )
    third = TimeInterval(parse_utc("2014-01-03"), parse_utc("2014-01-04"))
    assert first.overlaps_interval(second)
    assert second.overlaps_interval(first)
    assert not first.overlaps_interval(third)
    assert not third.overlaps_interval(first)
    assert first.compute_distance_to(parse_utc("2014-01-02")) == timedelta(0)
    assert second.compute_distance_to(parse_utc("2014-01-01")) == timedelta(days=1)


def test_minimal_event_has_empty_optional_members() -> None:
    bare = Event("e", "failure", "t", parse_time_interval("2014"))
    assert (bare.parts, bare.affects_dependents, bare.details, bare.system, bare.changes) == ((), True, "", "", None)
    assert (bare.who, bare.source, bare.tags, bare.resolve_parts()) == ("", "", (), ())
    with pytest.raises(EventError) as caught:
        make_event("x", "2014", "d9").resolve_parts(SYSTEM)
    assert str(caught.value).startswith('event x: parts: names "d9", which nothing in the system has')
    with pytest.raises(EventError, match=r"^event x: parts: .*smaller number first"):
        make_event("x", "2014", "d[4-1]").resolve_parts()
    assert make_event("x", "2014", "d[1-2]", "fs").resolve_parts(SYSTEM) == ("d1", "d2", "fs")


def test_events_at_one_time_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    during = parse_time_interval("2014-03")
    both = [make_event("b", "2014-03-17"), make_event("a", "2014-03-17"), make_event("c", "2014-03-16")]
    assert [make_event.id for make_event in find_matching_events(both, during)] == ["c", "a", "b"]
    edge = TimeInterval(parse_utc("2014-03-18"), parse_utc("2014-03-19"))
    assert find_matching_events(both[:1], edge) == []
    assert find_matching_events(both[:1], edge, tolerance=timedelta(microseconds=1)) == both[:1]
    assert find_matching_events(both[:1], TimeInterval(parse_utc("2014-03-15"), parse_utc("2014-03-17"))) == both[:1]
    exact = [make_event("part", "2014-03-17/2014-03-19"), make_event("whole", "2014-03-18")]
    assert [make_event.id for make_event in find_matching_events(exact, parse_time_interval("2014-03-18"))] == [
        "whole",
        "part",
    ]
    events = [{**EVENT_DOCUMENT, "id": name} for name in ("z", "y")]
    assert [make_event.id for make_event in read_events_file(write_event_file(tmp_path, events=events))] == ["y", "z"]


def test_ndjson_line_is_parsed_as_an_event(tmp_path: Path) -> None:
    path = tmp_path / "e.JSONL"
    line = {"schema": "sonde-event/1", **EVENT_DOCUMENT, "parts": "d1", "tags": ["a"], "precision": "1 h",
            "details": "D",
            "system": "S", "who": "W", "source": "Q", "scope": "parts", "changes": {"x": [1, "2"]}}  # fmt: skip
    path.write_text(f"\n{json.dumps(line)}\n \n", encoding="utf-8")
    (make_event,) = read_events_file(path)
    assert make_event == Event(
        "e", "failure", "a disk", TimeInterval(parse_utc("2014-03-16T23:00"), parse_utc("2014-03-17T01:00")),
        ("d1",), False, "D", "S", {"x": (1, "2")}, "W", "Q", ("a",),
    )  # fmt: skip
    path.write_text(json.dumps({**line, "when": "2014-02-30"}), encoding="utf-8")
    with pytest.raises(EventError) as caught:
        read_events_file(path)
    assert str(caught.value).startswith(f'{path}, line 1: when: "2014-02-30" is no time: day ')


@pytest.mark.parametrize(
    ("members", "expected_sentence"),
    [
        ({"schema": None}, ': schema is missing; a file of events begins with schema = "sonde-event/1".'),
        ({"zone": "Mars"}, ': zone: "Mars" is no time zone; write UTC, an offset like +01:00, or America/Los_Angeles.'),
        ({"events": [EVENT_DOCUMENT, EVENT_DOCUMENT]}, ': two events have the id "e"; ids are used once.'),
        (
            {"events": [EVENT_DOCUMENT | {"changes": 3}]},
            ': events.e.changes is 3; it must be a table, like { lustre = ["2.3.0", "2.4.0"] }.',
        ),
        (
            {"events": [EVENT_DOCUMENT | {"changes": {"x": [1]}}]},
            ': events.e.changes has [1] for x; write what was before and what is now, like ["2.3.0", "2.4.0"].',
        ),
        (
            {"events": [EVENT_DOCUMENT | {"changes": {"x": [1, []]}}]},
            ': events.e.changes has [1, []] for x; write what was before and what is now, like ["2.3.0", "2.4.0"].',
        ),
        (
            {"events": [EVENT_DOCUMENT | {"when": "2014-02-30"}]},
            ': events.e.when: "2014-02-30" is no time: day is out of range for month.',
        ),
        (
            {"events": [EVENT_DOCUMENT | {"parts": "d[4-1]"}]},
            ': events.e.parts: "d[4-1]" runs from 4 down to 1; write the smaller number first.',
        ),
        (
            {"events": [EVENT_DOCUMENT | {"parts": "q"}]},
            ': event e: parts: names "q", which nothing in the system has as its id or group.',
        ),
    ],
)
def test_event_file_mistakes_have_exact_error_messages(
    members: dict[str, Any], expected_sentence: str, tmp_path: Path
) -> None:
    path = write_event_file(tmp_path, **members)
    if members.get("schema", "") is None:
        path.write_text('{"events": []}', encoding="utf-8")
    with pytest.raises(EventError) as caught:
        read_events_file(path, SYSTEM)
    message = str(caught.value)
    assert message == f"{path}{expected_sentence}" or (
        expected_sentence.endswith(" ") and message.startswith(f"{path}{expected_sentence}")
    )
