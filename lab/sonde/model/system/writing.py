# SPDX-License-Identifier: Apache-2.0
"""A system written back as a file would say it: what a planner adds to, and what it hands to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sonde.model.system.description import KINDS, SCHEMA
from sonde.model.system.system import System
from sonde.model.tables.members import NUMBERS, Member, absent, members
from sonde.model.tables.quantity import Quantity, Rates

# Kinds of number that a file writes without a unit.
_PLAIN = ("count", "number", "share")


def document_of(system: System) -> dict[str, Any]:
    """The document of a system with everything that its files include; `system_from_document` reads it back equal."""
    head: dict[str, Any] = {"schema": SCHEMA, "id": system.id}
    head |= {name: value for name, value in (("title", system.title), ("notes", list(system.notes))) if value}
    for kind in KINDS:
        tables = getattr(system, kind)
        if tables:
            head[kind] = [_table(table) for table in tables]
    return head


def _table(table: Any, inherited: tuple[str, str] = ("", "")) -> dict[str, Any]:
    source = getattr(table, "source", "") or inherited[0]
    status = getattr(table, "status", "") or inherited[1]
    found = {}
    for name, member in members(type(table)).items():
        value = getattr(table, name)
        if value != absent(type(table), name) or member.required:
            found[name] = _value(member, value, (source, status))
    return found


def _value(member: Member, value: Any, inherited: tuple[str, str]) -> Any:
    if isinstance(value, Quantity):
        return _quantity(member.kind, value, inherited)
    if isinstance(value, Rates):
        ways = {"read": value.read, "write": value.write}
        told = {way: _quantity("rate", one, inherited) for way, one in ways.items() if one is not None}
        return told["read"] if len(told) == 2 and told["read"] == told["write"] else told
    if member.kind == "parameters":
        known = member.parameters or {}
        return {name: _quantity(known.get(name, ("number",))[0], one, inherited) for name, one in value.items()}
    if member.kind == "table":
        return _table(value, inherited)
    if member.kind == "tables":
        return [_table(one, inherited) for one in value]
    if member.kind in ("ids", "texts") and len(value) == 1:
        return value[0]
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _quantity(kind: str, value: Quantity, inherited: tuple[str, str]) -> Any:
    written: Any = value.text
    if kind in _PLAIN and kind in NUMBERS:
        written = int(value.value) if kind == "count" else value.value
    more = {"note": value.note}
    more["source"] = value.source if value.source != inherited[0] else ""
    more["status"] = value.status if value.status != inherited[1] else ""
    told = {name: text for name, text in more.items() if text}
    return {"value": written} | told if told else written
