# SPDX-License-Identifier: Apache-2.0
"""Events as the lab uses them: read from TOML, JSON or NDJSON, and matched to times and parts."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import Any

from sonde.model.errors import EventError, SystemFileError
from sonde.model.event.description import SCHEMA, EventsFile, EventText
from sonde.model.event.times import Interval, WhenError, when, zone_named
from sonde.model.file_text import text_of
from sonde.model.ranges import RangeError, expand
from sonde.model.system.dependence import depends_on
from sonde.model.system.system import System
from sonde.model.tables.reading import Reading, read_table

_LARGEST_FILE = 256 << 20


@dataclass(frozen=True)
class Event:
    """Something that happened outside."""

    id: str
    kind: str
    title: str
    when: Interval  # as wide as the text leaves open
    parts: tuple[str, ...] = ()  # ids, ranges or groups as written; empty: all of the system
    dependents: bool = True  # it touches what depends on the parts too
    details: str = ""
    system: str = ""
    changes: Mapping[str, tuple[str | float, str | float]] | None = None  # name -> before, after
    who: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()

    @property
    def exact(self) -> timedelta:
        """How much time the text leaves open: a day for "2013-12-06"."""
        return self.when.last - self.when.first

    def named_parts(self, system: System | None = None) -> tuple[str, ...]:
        """Ids of its parts, ranges written out; with a system also groups. Raises EventError for an unknown part."""
        found: list[str] = []
        for text in self.parts:
            try:
                found += system.named(text) if system is not None else expand(text)
            except (RangeError, SystemFileError) as reason:
                raise EventError(f"event {self.id}: parts: {reason}") from None
        return tuple(found)

    def touches(self, part: str, system: System | None = None) -> bool:
        """True when it may have changed what `part` does: it names the part or, with a system, what the part needs."""
        if not self.parts:
            return True
        named = set(self.named_parts(system))
        if part in named:
            return True
        return self.dependents and system is not None and bool(named & depends_on(system, part))


def matching(
    events: Iterable[Event],
    during: Interval,
    parts: Collection[str] = (),
    system: System | None = None,
    within: timedelta = timedelta(0),
) -> list[Event]:
    """Events that may have happened in `during`, widened by `within` on both sides, to one of `parts` (empty: to any).

    Those that are certain to lie inside come first, then the others, each in order of time.
    """
    wide = Interval(during.first - within, during.last + within)
    found = [
        event
        for event in events
        if event.when.overlaps(wide) and (not parts or any(event.touches(part, system) for part in parts))
    ]
    return sorted(found, key=lambda event: (not _inside(event.when, during), event.when.first, event.id))


def _inside(one: Interval, other: Interval) -> bool:
    return other.first <= one.first and one.last <= other.last


def read_events(path: Path | str, system: System | None = None) -> list[Event]:
    """Events of a TOML, JSON or NDJSON file in order of time; with `system`, their parts must be in it.

    Raises EventError with one sentence.
    """
    path = Path(path)
    text = text_of(path, "file of events", _LARGEST_FILE, EventError)
    found = _from_lines(text, path) if path.suffix.lower() in (".ndjson", ".jsonl") else _from_whole(text, path)
    seen: dict[str, Event] = {}
    for event in found:
        if event.id in seen:
            raise EventError(f'{path}: two events have the id "{event.id}"; ids are used once.')
        seen[event.id] = event
        if system is not None:
            try:
                event.named_parts(system)
            except EventError as reason:
                raise EventError(f"{path}: {reason}") from None
    return sorted(found, key=lambda event: (event.when.first, event.id))


def _from_whole(text: str, path: Path) -> list[Event]:
    as_json = path.suffix.lower() == ".json"
    try:
        document = json.loads(text) if as_json else tomllib.loads(text)
    except (ValueError, RecursionError) as reason:
        raise EventError(f"{path} is not valid {'JSON' if as_json else 'TOML'}: {reason}.") from None
    at = Reading(EventError, str(path))
    if not isinstance(document, dict) or "schema" not in document:
        raise EventError(f'{path}: schema is missing; a file of events begins with schema = "{SCHEMA}".')
    file = read_table(EventsFile, _plain_times(document), at)
    try:
        zone = zone_named(file.zone)
    except WhenError as reason:
        raise EventError(f"{path}: zone: {reason}") from None
    return [_event(one, at.at(f"events.{one.id}"), zone, file) for one in file.events]


def _plain_times(document: Any) -> Any:
    """TOML may hold times without quotation marks: they are texts to us, because a text says how exact it is."""
    if isinstance(document, dict):
        return {name: _plain_times(one) for name, one in document.items()}
    if isinstance(document, list):
        return [_plain_times(one) for one in document]
    return document.isoformat() if hasattr(document, "isoformat") else document


def _from_lines(text: str, path: Path) -> list[Event]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        at = Reading(EventError, f"{path}, line {number}")
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as reason:
            raise EventError(f"{path}, line {number} is not JSON: {reason}.") from None
        if not isinstance(document, dict) or "schema" not in document:
            raise EventError(f'{path}, line {number}: schema is missing; each line has "schema": "{SCHEMA}".')
        found.append(_event(read_table(EventText, document, at), at, zone_named(""), None))
    return found


def _event(read: EventText, at: Reading, zone: tzinfo, file: EventsFile | None) -> Event:
    try:
        interval = when(read.when, zone, read.precision)
    except WhenError as reason:
        raise EventError(f"{at.origin}: {at.where}{'.' if at.where else ''}when: {reason}") from None
    for one in read.parts:
        try:
            expand(one)
        except RangeError as reason:
            raise EventError(f"{at.origin}: {at.where}{'.' if at.where else ''}parts: {reason}") from None
    changes = {name: (pair[0], pair[1]) for name, pair in (read.changes or {}).items()} or None
    above = file if file is not None else EventsFile(schema=SCHEMA, events=())
    return Event(
        id=read.id,
        kind=read.kind,
        title=read.title,
        when=interval,
        parts=read.parts,
        dependents=read.scope == "dependents",
        details=read.details,
        system=read.system or above.system,
        changes=changes,
        who=read.who or above.who,
        source=read.source or above.source,
        tags=read.tags,
    )
