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
from sonde.model.event.times import EventTimeError, Interval, parse_time_interval, parse_zone
from sonde.model.file_text import read_text_file
from sonde.model.ranges import RangeError, expand_names
from sonde.model.system.dependencies import find_dependencies
from sonde.model.system.system import System
from sonde.model.tables.table_reader import ReadContext, read_table

MAX_EVENTS_BYTES = 256 << 20


@dataclass(frozen=True)
class Event:
    """Something that happened outside of runs."""

    id: str
    kind: str
    title: str
    when: Interval  # all times that the text allows
    parts: tuple[str, ...] = ()  # ids, ranges or groups as written; empty: all of the system
    affects_dependents: bool = True  # it also affects parts that depend on these
    details: str = ""
    system: str = ""
    changes: Mapping[str, tuple[str | float, str | float]] | None = None  # name -> before, after
    who: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()

    @property
    def uncertainty(self) -> timedelta:
        """Length of the interval that the text allows: one day for "2013-12-06"."""
        return self.when.last - self.when.first

    def resolve_parts(self, system: System | None = None) -> tuple[str, ...]:
        """Returns the ids of its parts with ranges and (with a system) groups expanded. Raises EventError."""
        ids: list[str] = []
        for text in self.parts:
            try:
                ids += system.resolve_names(text) if system is not None else expand_names(text)
            except (RangeError, SystemFileError) as error:
                raise EventError(f"event {self.id}: parts: {error}") from None
        return tuple(ids)

    def affects(self, part: str, system: System | None = None) -> bool:
        """Returns whether it names `part` or, with a system, a part that `part` depends on."""
        if not self.parts:
            return True
        ids = set(self.resolve_parts(system))
        if part in ids:
            return True
        return self.affects_dependents and system is not None and bool(ids & find_dependencies(system, part))


def find_matching_events(
    events: Iterable[Event],
    during: Interval,
    parts: Collection[str] = (),
    system: System | None = None,
    within: timedelta = timedelta(0),
) -> list[Event]:
    """Returns events that may have happened in `during`, extended by `within` on both sides, to one of `parts`.

    Empty `parts` match every event. Events that are certainly inside come first; each group is in order of time.
    """
    widened = Interval(during.first - within, during.last + within)
    matches = [
        event
        for event in events
        if event.when.overlaps(widened) and (not parts or any(event.affects(part, system) for part in parts))
    ]
    return sorted(matches, key=lambda event: (not _is_inside(event.when, during), event.when.first, event.id))


def _is_inside(inner: Interval, outer: Interval) -> bool:
    return outer.first <= inner.first and inner.last <= outer.last


def read_events(path: Path | str, system: System | None = None) -> list[Event]:
    """Returns the events of a TOML, JSON or NDJSON file in order of time; `system` must contain their parts.

    Raises EventError with one sentence.
    """
    path = Path(path)
    text = read_text_file(path, "file of events", MAX_EVENTS_BYTES, EventError)
    is_ndjson = path.suffix.lower() in (".ndjson", ".jsonl")
    events = parse_event_lines(text, path) if is_ndjson else _read_document(text, path)
    if system is not None:
        for event in events:
            try:
                event.resolve_parts(system)
            except EventError as error:
                raise EventError(f"{path}: {error}") from None
    return sort_events(events, path)


def sort_events(events: Iterable[Event], path: Path) -> list[Event]:
    """The events in order of time. Raises EventError when two have one id; `path` is the file they come from."""
    events_by_id: dict[str, Event] = {}
    for event in events:
        if event.id in events_by_id:
            raise EventError(f'{path}: two events have the id "{event.id}"; ids are used once.')
        events_by_id[event.id] = event
    return sorted(events_by_id.values(), key=lambda event: (event.when.first, event.id))


def _read_document(text: str, path: Path) -> list[Event]:
    is_json = path.suffix.lower() == ".json"
    try:
        document = parse_json(text) if is_json else parse_toml(text)
    except ValueError as error:
        raise EventError(f"{path} is not valid {'JSON' if is_json else 'TOML'}: {error}.") from None
    context = ReadContext(EventError, str(path))
    if not isinstance(document, dict) or "schema" not in document:
        raise EventError(f'{path}: schema is missing; a file of events begins with schema = "{EVENT_FORMAT}".')
    file = read_table(EventsFile, _stringify_times(document), context)
    try:
        zone = parse_zone(file.zone)
    except EventTimeError as error:
        raise EventError(f"{path}: zone: {error}") from None
    return [
        _build_event(declaration, context.enter(f"events.{declaration.id}"), zone, file) for declaration in file.events
    ]


def _stringify_times(document: Any) -> Any:
    """Converts TOML times to text, because the text shows the precision of the time."""
    if isinstance(document, dict):
        return {name: _stringify_times(value) for name, value in document.items()}
    if isinstance(document, list):
        return [_stringify_times(value) for value in document]
    return document.isoformat() if hasattr(document, "isoformat") else document


def parse_event_lines(text: str, path: Path) -> list[Event]:
    events = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        context = ReadContext(EventError, f"{path}, line {number}")
        try:
            document = parse_json(line)
        except ValueError as error:
            raise EventError(f"{path}, line {number} is not JSON: {error}.") from None
        if not isinstance(document, dict) or "schema" not in document:
            raise EventError(f'{path}, line {number}: schema is missing; each line has "schema": "{EVENT_FORMAT}".')
        events.append(_build_event(read_table(EventDeclaration, document, context), context, parse_zone(""), None))
    return events


def _build_event(declaration: EventDeclaration, context: ReadContext, zone: tzinfo, file: EventsFile | None) -> Event:
    try:
        interval = parse_time_interval(declaration.when, zone, declaration.precision)
    except EventTimeError as error:
        raise EventError(
            f"{context.origin}: {context.location}{'.' if context.location else ''}when: {error}"
        ) from None
    for part in declaration.parts:
        try:
            expand_names(part)
        except RangeError as error:
            raise EventError(
                f"{context.origin}: {context.location}{'.' if context.location else ''}parts: {error}"
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
