# SPDX-License-Identifier: Apache-2.0
"""Declarations of the members of an event file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sonde.model.schema_problems import format_json_value
from sonde.model.tables.members import (
    declare_choice,
    declare_plain_number,
    declare_raw_value,
    declare_tables,
    declare_text,
    declare_texts,
)

EVENT_FORMAT = "sonde-event/1"
EVENT_KINDS = (
    "upgrade", "reconfiguration", "maintenance", "failure", "repair", "rebuild", "failover", "reboot", "change",
    "dedicated", "incident", "other",
)  # fmt: skip
_ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.:-]*"
_TIMESTAMP_PATTERN = (
    r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?)?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
TIME_PATTERN = rf"{_TIMESTAMP_PATTERN}(/{_TIMESTAMP_PATTERN})?"
_CHANGES_SCHEMA = {
    "type": "object",
    "additionalProperties": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["string", "number"]}},
}


def find_changes_problem(changes_member: object) -> str | None:
    """Returns the problem of a table of changes, or None."""
    if not isinstance(changes_member, Mapping):
        return f'is {format_json_value(changes_member)}; it must be a table, like {{ lustre = ["2.3.0", "2.4.0"] }}.'
    for name, pair in changes_member.items():
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(isinstance(entry, str | int | float) for entry in pair)
        ):
            return (
                f'has {format_json_value(pair)} for {name}; write what was before and what is now, like ["2.3.0", '
                '"2.4.0"].'
            )
    return None


@dataclass(frozen=True, kw_only=True)
class EventDeclaration:
    """Something that happened outside of our measurements: an upgrade, a failed disk, a maintenance."""

    schema: str = declare_choice(
        "version of this format; needed where every line stands alone (NDJSON)", (EVENT_FORMAT,)
    )
    id: str = declare_text("name of the event, used once in a file", required=True, pattern=_ID_PATTERN)
    when: str = declare_text(
        "a time or an interval: 2013-12-06, 2014-03-17T09:30Z, or 2014-03-17T09:30Z/2014-03-17T17:00Z; a day without a "
        "time means: some time on that day",
        required=True, pattern=TIME_PATTERN,
    )  # fmt: skip
    precision: float | None = declare_plain_number(
        "duration", "how far the times may be off; if absent, as far as they are written"
    )
    kind: str = declare_choice("what it was", EVENT_KINDS, required=True)
    title: str = declare_text("one line for people", required=True)
    details: str = declare_text("all that is known")
    system: str = declare_text("the system file whose ids are meant")
    parts: tuple[str, ...] = declare_texts(
        "ids of the parts it happened to, ranges or groups of the system file; absent: all of it"
    )
    scope: str = declare_choice(
        "the named parts only, or all that depends on them too", ("parts", "dependents"), default_word="dependents"
    )
    changes: Mapping[str, list[str | float]] | None = declare_raw_value(
        "what changed: name = [before, after]", _CHANGES_SCHEMA, find_changes_problem
    )
    who: str = declare_text("who says so")
    source: str = declare_text("where it is written: a ticket, a talk, a log")
    tags: tuple[str, ...] = declare_texts("words to select events by")


@dataclass(frozen=True, kw_only=True)
class EventsFile:
    """A file of events in TOML or JSON. Members at the top are defaults for events that do not state them."""

    schema: str = declare_choice("version of this format", (EVENT_FORMAT,), required=True)
    system: str = declare_text("the system file whose ids are meant")
    zone: str = declare_text("time zone of times that have none: UTC, +01:00 or America/Los_Angeles; if absent, UTC")
    who: str = declare_text("who says so")
    source: str = declare_text("where it is written")
    events: tuple[EventDeclaration, ...] = declare_tables("the events", EventDeclaration, required=True)
