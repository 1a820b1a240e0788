# SPDX-License-Identifier: Apache-2.0
"""Converts a system back to the document of a system file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sonde.model.system.description import PART_KINDS, SYSTEM_FORMAT
from sonde.model.system.system import System
from sonde.model.tables.members import NUMBER_KINDS, TableMember, get_default_of_member, get_members
from sonde.model.tables.quantity import Quantity, ReadWriteRates

# Kinds of numbers without a unit.
_UNITLESS_KINDS = ("count", "number", "share")


def convert_system_to_document(system: System) -> dict[str, Any]:
    """Returns the document of a system, including its included files; `make_system` restores it."""
    head: dict[str, Any] = {"schema": SYSTEM_FORMAT, "id": system.id}
    head |= {name: value for name, value in (("title", system.title), ("notes", list(system.notes))) if value}
    for kind in PART_KINDS:
        tables = getattr(system, kind)
        if tables:
            head[kind] = [_convert_table_to_document(table) for table in tables]
    return head


def _convert_table_to_document(
    part_or_nested_table: Any, inherited_source: tuple[str, str] = ("", "")
) -> dict[str, Any]:
    source = getattr(part_or_nested_table, "source", "") or inherited_source[0]
    status = getattr(part_or_nested_table, "status", "") or inherited_source[1]
    members_by_name = {}
    for name, member in get_members(type(part_or_nested_table)).items():
        value = getattr(part_or_nested_table, name)
        if value != get_default_of_member(type(part_or_nested_table), name) or member.required:
            members_by_name[name] = _convert_member_value(member, value, (source, status))
    return members_by_name


def _convert_member_value(member: TableMember, member_value: Any, inherited_source: tuple[str, str]) -> Any:
    if isinstance(member_value, Quantity):
        return _convert_quantity(member.kind, member_value, inherited_source)
    if isinstance(member_value, ReadWriteRates):
        rates_by_direction = {"read": member_value.read, "write": member_value.write}
        written_rates = {
            direction: _convert_quantity("rate", item, inherited_source)
            for direction, item in rates_by_direction.items()
            if item is not None
        }
        return (
            written_rates["read"]
            if len(written_rates) == 2 and written_rates["read"] == written_rates["write"]
            else written_rates
        )
    if member.kind == "parameters":
        known_parameters = member.parameters or {}
        return {
            name: _convert_quantity(known_parameters.get(name, ("number",))[0], item, inherited_source)
            for name, item in member_value.items()
        }
    if member.kind == "table":
        return _convert_table_to_document(member_value, inherited_source)
    if member.kind == "tables":
        return [_convert_table_to_document(item, inherited_source) for item in member_value]
    if member.kind in ("ids", "texts") and len(member_value) == 1:
        return member_value[0]
    if isinstance(member_value, tuple):
        return list(member_value)
    return dict(member_value) if isinstance(member_value, Mapping) else member_value


def _convert_quantity(number_kind: str, quantity: Quantity, inherited_source: tuple[str, str]) -> Any:
    written: Any = quantity.text
    if number_kind in _UNITLESS_KINDS and number_kind in NUMBER_KINDS:
        written = int(quantity.value) if number_kind == "count" else quantity.value
    attributes = {"note": quantity.note}
    attributes["source"] = quantity.source if quantity.source != inherited_source[0] else ""
    attributes["status"] = quantity.status if quantity.status != inherited_source[1] else ""
    nonempty_attributes = {name: text for name, text in attributes.items() if text}
    return {"value": written} | nonempty_attributes if nonempty_attributes else written
