# SPDX-License-Identifier: Apache-2.0
"""Reads events from TOML, JSON or NDJSON and matches them with times and parts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import Any

from sonde.model.documents import parse_json, parse_toml
from sonde.model.errors import EventError, SystemFileError
from sonde.model.event.description import EVENT_FORMAT, EventDeclaration, EventsFile
from sonde.model.event.times import EventTimeError, TimeInterval, parse_time_interval, parse_time_zone
from sonde.model.file_text import read_text_file
from sonde.model.ranges import RangeError, expand_name_range
from sonde.model.system.dependencies import find_all_dependencies
from sonde.model.system.system import System
from sonde.model.tables.table_reader import ReadContext, read_table

MAX_EVENTS_BYTES = 256 << 20


@dataclass(frozen=True)
class Event:
    """Something that happened outside of runs."""

    id: str
    kind: str
    title: str
    when: TimeInterval  # all times that the text allows
    parts: tuple[str, ...] = ()  # ids, ranges or groups as written; empty: all of the system
    affects_dependents: bool = True  # it also affects parts that depend on these
    details: str = ""
    system: str = ""
    changes: Mapping[str, tuple[str | float, str | float]] | None = None  # name -> before, after
    who: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()

    @property
    def time_uncertainty(self) -> timedelta:
        """Length of the interval that the text allows: one day for "2013-12-06"."""
        return self.when.last - self.when.first

    def resolve_parts(self, system: System | None = None) -> tuple[str, ...]:
        """Returns the ids of its parts with ranges and (with a system) groups expanded. Raises EventError."""
        ids: list[str] = []
        for text in self.parts:
            try:
                ids += system.resolve_names(text) if system is not None else expand_name_range(text)
            except (RangeError, SystemFileError) as error:
                raise EventError(f"event {self.id}: parts: {error}") from None
        return tuple(ids)

    def affects_part(self, part_id: str, system: System | None = None) -> bool:
        """Returns whether it names `part_id` or, with a system, a part that `part_id` depends on."""
        if not self.parts:
            return True
        ids = set(self.resolve_parts(system))
        if part_id in ids:
            return True
        return self.affects_dependents and system is not None and bool(ids & find_all_dependencies(system, part_id))


def find_matching_events(
    events: Iterable[Event],
    interval: TimeInterval,
    part_ids: Collection[str] = (),
    system: System | None = None,
    tolerance: timedelta = timedelta(0),
) -> list[Event]:
    """Returns events that may have happened in `interval`, extended by `tolerance` on both sides, to one of `part_ids`.

    Empty `part_ids` match every event. Events that are certainly inside come first; each group is in order of time.
    """
    widened = TimeInterval(interval.first - tolerance, interval.last + tolerance)
    matches = [
        event
        for event in events
        if event.when.overlaps_interval(widened)
        and (not part_ids or any(event.affects_part(part, system) for part in part_ids))
    ]
    return sorted(
        matches, key=lambda event: (not _is_interval_inside(event.when, interval), event.when.first, event.id)
    )


def _is_interval_inside(inner_interval: TimeInterval, outer_interval: TimeInterval) -> bool:
    return outer_interval.first <= inner_interval.first and inner_interval.last <= outer_interval.last


def read_events_file(events_file: Path | str, system: System | None = None) -> list[Event]:
    """Returns the events of a TOML, JSON or NDJSON file in order of time; `system` must contain their parts.

    Raises EventError with one sentence.
    """
    events_file = Path(events_file)
    text = read_text_file(events_file, "file of events", MAX_EVENTS_BYTES, EventError)
    is_ndjson = events_file.suffix.lower() in (".ndjson", ".jsonl")
    events = parse_event_lines(text, events_file) if is_ndjson else _read_events_document(text, events_file)
    if system is not None:
        for event in events:
            try:
                event.resolve_parts(system)
            except EventError as error:
                raise EventError(f"{events_file}: {error}") from None
    return sort_events_by_time(events, events_file)


def sort_events_by_time(events: Iterable[Event], events_file: Path) -> list[Event]:
    """The events in order of time. Raises EventError when two have one id; `events_file` is the file they come from."""
    events_by_id: dict[str, Event] = {}
    for event in events:
        if event.id in events_by_id:
            raise EventError(f'{events_file}: two events have the id "{event.id}"; ids are used once.')
        events_by_id[event.id] = event
    return sorted(events_by_id.values(), key=lambda event: (event.when.first, event.id))


def _read_events_document(file_text: str, events_file: Path) -> list[Event]:
    is_json = events_file.suffix.lower() == ".json"
    try:
        document = parse_json(file_text) if is_json else parse_toml(file_text)
    except ValueError as error:
        raise EventError(f"{events_file} is not valid {'JSON' if is_json else 'TOML'}: {error}.") from None
    context = ReadContext(EventError, str(events_file))
    if not isinstance(document, dict) or "schema" not in document:
        raise EventError(f'{events_file}: schema is missing; a file of events begins with schema = "{EVENT_FORMAT}".')
    file = read_table(EventsFile, _convert_toml_times_to_text(document), context)
    try:
        zone = parse_time_zone(file.zone)
    except EventTimeError as error:
        raise EventError(f"{events_file}: zone: {error}") from None
    return [
        _build_event(declaration, context.make_nested_context(f"events.{declaration.id}"), zone, file)
        for declaration in file.events
    ]


def _convert_toml_times_to_text(parsed_document: Any) -> Any:
    """Converts TOML times to text, because the text shows the precision of the time."""
    if isinstance(parsed_document, dict):
        return {name: _convert_toml_times_to_text(value) for name, value in parsed_document.items()}
    if isinstance(parsed_document, list):
        return [_convert_toml_times_to_text(value) for value in parsed_document]
    return parsed_document.isoformat() if hasattr(parsed_document, "isoformat") else parsed_document


def parse_event_lines(ndjson_text: str, events_file: Path) -> list[Event]:
    events = []
    for number, line in enumerate(ndjson_text.splitlines(), 1):
        if not line.strip():
            continue
        context = ReadContext(EventError, f"{events_file}, line {number}")
        try:
            document = parse_json(line)
        except ValueError as error:
            raise EventError(f"{events_file}, line {number} is not JSON: {error}.") from None
        if not isinstance(document, dict) or "schema" not in document:
            raise EventError(
                f'{events_file}, line {number}: schema is missing; each line has "schema": "{EVENT_FORMAT}".'
            )
        events.append(_build_event(read_table(EventDeclaration, document, context), context, parse_time_zone(""), None))
    return events


def _build_event(
    declaration: EventDeclaration, read_context: ReadContext, time_zone: tzinfo, file: EventsFile | None
) -> Event:
    try:
        interval = parse_time_interval(declaration.when, time_zone, declaration.precision)
    except EventTimeError as error:
        raise EventError(
            f"{read_context.origin}: {read_context.location}{'.' if read_context.location else ''}when: {error}"
        ) from None
    for part in declaration.parts:
        try:
            expand_name_range(part)
        except RangeError as error:
            raise EventError(
                f"{read_context.origin}: {read_context.location}{'.' if read_context.location else ''}parts: {error}"
            ) from None
    changes = {name: (pair[0], pair[1]) for name, pair in (declaration.changes or {}).items()} or None
    defaults = file if file is not None else EventsFile(schema=EVENT_FORMAT, events=())
    return Event(
        id=declaration.id,
        kind=declaration.kind,
        title=declaration.title,
        when=interval,
        parts=declaration.parts,
        affects_dependents=declaration.scope == "dependents",
        details=declaration.details,
        system=declaration.system or defaults.system,
        changes=changes,
        who=declaration.who or defaults.who,
        source=declaration.source or defaults.source,
        tags=declaration.tags,
    )
