# SPDX-License-Identifier: Apache-2.0
"""The events of an archive: `events.ndjson` at its top, one event a line (``schema/event``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sonde.model.confined_files import open_file, open_file_to_append
from sonde.model.errors import EventError, MachineError
from sonde.model.event import Event
from sonde.model.event.event import MAX_EVENTS_BYTES, parse_event_lines, sort_events_by_time

EVENTS_FILE = "events.ndjson"
_MAX_ID_CHARACTERS = 60


def read_archive_events(archive_root: Path) -> list[Event]:
    """The events of an archive in order of time; none without the file. Raises EventError when the file is damaged."""
    path = archive_root / EVENTS_FILE
    try:
        with open_file(path) as file:
            content = file.read(MAX_EVENTS_BYTES + 1)
        if len(content) > MAX_EVENTS_BYTES:
            raise EventError(f"{path} is larger than {MAX_EVENTS_BYTES >> 20} MiB; that cannot be a file of events.")
        return sort_events_by_time(parse_event_lines(content.decode("utf-8"), path), path)
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as reason:
        raise EventError(f"{path} is not a text file: byte {reason.start} is not UTF-8.") from None
    except OSError as reason:
        raise EventError(f"{path} cannot be read: {reason.strerror}; move it away.") from None


def add_archive_events(archive_root: Path, event_documents: Iterable[Mapping[str, Any]]) -> list[Event]:
    """Appends events, after checking them and their ids. Raises EventError, and MachineError when it cannot write."""
    path = archive_root / EVENTS_FILE
    ids = {event.id for event in read_archive_events(archive_root)}
    lines = [json.dumps(document, ensure_ascii=False) + "\n" for document in event_documents]
    events = parse_event_lines("".join(lines), path)
    for event in events:
        if event.id in ids:
            raise EventError(f'{path} has an event with the id "{event.id}" already; give this one another with --id.')
        ids.add(event.id)
    try:
        with open_file_to_append(path) as file:
            file.write("".join(lines).encode())
    except OSError as error:
        raise MachineError(f"{path} cannot be written: {error.strerror}.") from None
    return events


def select_new_events(archive_root: Path, event_documents: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The events whose ids the archive does not have; of equal ids the first. Raises EventError."""
    ids = {event.id for event in read_archive_events(archive_root)}
    return list({document["id"]: document for document in event_documents if document["id"] not in ids}.values())


def make_event_id(title: str, day: str) -> str:
    """An id from the day and the title: 2026-03-02-upgraded-mds."""
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:_MAX_ID_CHARACTERS].strip("-")
    return f"{day}-{plain}" if plain else day
