# SPDX-License-Identifier: Apache-2.0
"""Builds the JSON Schema of the resolved form of a system from the declarations of its parts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from sonde.model.system.description import PART_KINDS, RESOLVED_SYSTEM_FORMAT, SystemFile
from sonde.model.system.network import Host
from sonde.model.system.resolution import FILE_ONLY_MEMBERS, INTEGER_KINDS
from sonde.model.tables.json_schema import SCHEMA_DRAFT
from sonde.model.tables.members import NUMBER_KINDS, TableMember, get_members
from sonde.model.tables.quantity import BASE_UNITS

_ID_SCHEMA = {"type": "string", "minLength": 1}
# Computed members, by kind of part.
_CAPACITY_SCHEMA = {"type": "integer", "description": "bytes that it offers", "minimum": 0}
_DERIVED_MEMBERS: Mapping[str, Mapping[str, Any]] = {
    **{kind: {"capacity": _CAPACITY_SCHEMA} for kind in ("luns", "slices", "volumes", "targets", "file_systems")},
    "raid_groups": {
        "capacity": _CAPACITY_SCHEMA,
        "stripe": {"type": "integer", "description": "bytes of data in one full stripe"},
    },
    "servers": {"partner": _ID_SCHEMA | {"description": "the server that takes over"}},
    "pools": {
        "targets": {"type": "array", "items": _ID_SCHEMA, "description": "all its targets"},
        "clients": {"type": "integer", "description": "clients to use with it"},
    },
}


def build_resolved_schema() -> dict[str, Any]:
    """Returns the content of schema/system/resolved.schema.json."""
    meanings = {name: member.meaning for name, member in get_members(SystemFile).items()}
    lists = {
        kind: {"type": "array", "description": meanings[kind], "items": _build_part_schema(kind)} for kind in PART_KINDS
    }
    head = {"schema": {"const": RESOLVED_SYSTEM_FORMAT}, "id": _ID_SCHEMA, "title": {"type": "string"}}
    return {
        "$schema": SCHEMA_DRAFT,
        "title": f"Sonde resolved system, version {RESOLVED_SYSTEM_FORMAT.rpartition('/')[2]}",
        "description": "A system with every range written out: one object a part, references as ids, numbers in bytes, "
        "seconds, bytes per second, operations per second. What nobody said is absent.",
        "type": "object",
        "properties": head | lists,
        "required": [*head, *lists],
        "additionalProperties": False,
    }


def _build_part_schema(part_kind: str) -> dict[str, Any]:
    cls = PART_KINDS[part_kind]
    properties: dict[str, Any] = {"id": _ID_SCHEMA}
    properties |= {
        name: member_schema
        for name, member in get_members(cls).items()
        if name not in FILE_ONLY_MEMBERS and (member_schema := _build_member_schema(member))
    }
    properties |= _DERIVED_MEMBERS.get(part_kind, {})
    if part_kind == "targets":
        properties["failover"] = _ID_SCHEMA | {"description": "who serves it when its server fails"}
    required = ["id"]
    if issubclass(cls, Host):
        properties["interfaces"] = {
            "type": "array",
            "description": "where it joins networks",
            "items": _build_interface_schema(),
        }
        required.append("interfaces")
    return {
        "type": "object",
        "description": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _build_number_schema(number_kind: str, description: str) -> dict[str, Any]:
    return {
        "type": "integer" if number_kind in INTEGER_KINDS else "number",
        "description": f"{description}; {BASE_UNITS[number_kind]}",
    }


def _build_rates_schema(description: str) -> dict[str, Any]:
    rate_schema = {"type": "number", "description": BASE_UNITS["rate"]}
    return {
        "type": "object",
        "description": description,
        "properties": {"read": rate_schema, "write": rate_schema},
        "additionalProperties": False,
    }


def _build_member_schema(member: TableMember) -> dict[str, Any]:
    if member.kind in NUMBER_KINDS:
        return _build_number_schema(member.kind, member.meaning)
    if member.kind == "rates":
        return _build_rates_schema(member.meaning)
    if member.kind == "ids":
        description = {"description": member.meaning}
        return (
            {"type": "array", "items": _ID_SCHEMA} | description if member.allows_several else _ID_SCHEMA | description
        )
    if member.kind in ("text", "choice"):
        return {"type": "string", "description": member.meaning}
    if member.kind in ("texts", "choices"):
        return {"type": "array", "items": {"type": "string"}, "description": member.meaning}
    if member.kind == "flag":
        return {"type": "boolean", "description": member.meaning}
    if member.kind == "settings":
        scalar = {"type": ["string", "number", "boolean"]}
        return {"type": "object", "description": member.meaning, "additionalProperties": scalar}
    if member.kind == "parameters":
        parameters = (member.parameters or {}).items()
        return {
            "type": "object",
            "description": member.meaning,
            "properties": {name: _build_number_schema(kind, meaning) for name, (kind, meaning) in parameters},
            "patternProperties": {"^x-": {"type": "number"}},
            "additionalProperties": False,
        }
    assert member.table is not None
    nested = {name: _build_member_schema(nested_member) for name, nested_member in get_members(member.table).items()}
    return {"type": "object", "description": member.meaning, "properties": nested, "additionalProperties": False}


def _build_interface_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "network": _ID_SCHEMA,
            "device": {"type": "string", "description": "name on the host"},
            "address": {"type": "string", "description": "IPv4 or IPv6 address of this host"},
            "prefix": {"type": "integer", "description": "bits of the prefix of its network"},
            "nid": {"type": "string", "description": "LNet id of this host"},
            "rate": _build_rates_schema("its own, else that of the network"),
            "mtu": {"type": "integer", "description": "largest packet; bytes"},
            "count": {"type": "integer", "description": "how many of them"},
        },
        "required": ["network", "count"],
        "additionalProperties": False,
    }
