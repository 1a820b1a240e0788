# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of the resolved form of a system, from the declarations of its parts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from sonde.model.system.description import KINDS, RESOLVED_SCHEMA, SystemFile
from sonde.model.system.network import Host
from sonde.model.system.resolving import LEFT_OUT, WHOLE
from sonde.model.tables.as_schema import DRAFT
from sonde.model.tables.members import NUMBERS, Member, members
from sonde.model.tables.quantity import UNIT_OF

_ID = {"type": "string", "minLength": 1}
# What the file leaves to arithmetic, by kind of part.
_BYTES = {"type": "integer", "description": "bytes that it offers", "minimum": 0}
_DERIVED: Mapping[str, Mapping[str, Any]] = {
    **{kind: {"capacity": _BYTES} for kind in ("luns", "slices", "volumes", "targets", "file_systems")},
    "raid_groups": {
        "capacity": _BYTES,
        "stripe": {"type": "integer", "description": "bytes of data in one full stripe"},
    },
    "servers": {"partner": _ID | {"description": "the server that takes over"}},
    "pools": {
        "targets": {"type": "array", "items": _ID, "description": "all its targets"},
        "clients": {"type": "integer", "description": "clients to use with it"},
    },
}


def resolved_schema() -> dict[str, Any]:
    """schema/system/resolved.schema.json."""
    meanings = {name: member.meaning for name, member in members(SystemFile).items()}
    lists = {kind: {"type": "array", "description": meanings[kind], "items": _part(kind)} for kind in KINDS}
    head = {"schema": {"const": RESOLVED_SCHEMA}, "id": _ID, "title": {"type": "string"}}
    return {
        "$schema": DRAFT,
        "title": "Sonde resolved-system, version 1",
        "description": "A system with every range written out: one object a part, references as ids, numbers in bytes, "
        "seconds, bytes per second, operations per second. What nobody said is absent.",
        "type": "object",
        "properties": head | lists,
        "required": [*head, *lists],
        "additionalProperties": False,
    }


def _part(kind: str) -> dict[str, Any]:
    cls = KINDS[kind]
    properties: dict[str, Any] = {"id": _ID}
    properties |= {
        name: one for name, member in members(cls).items() if name not in LEFT_OUT and (one := _kind(member))
    }
    properties |= _DERIVED.get(kind, {})
    if kind == "targets":
        properties["failover"] = _ID | {"description": "who serves it when its server fails"}
    required = ["id"]
    if issubclass(cls, Host):
        properties["interfaces"] = {"type": "array", "description": "where it joins networks", "items": _interface()}
        required.append("interfaces")
    return {
        "type": "object",
        "description": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _number(kind: str, meaning: str) -> dict[str, Any]:
    return {"type": "integer" if kind in WHOLE else "number", "description": f"{meaning}; {UNIT_OF[kind]}"}


def _rates(meaning: str) -> dict[str, Any]:
    one = {"type": "number", "description": UNIT_OF["rate"]}
    return {
        "type": "object",
        "description": meaning,
        "properties": {"read": one, "write": one},
        "additionalProperties": False,
    }


def _kind(member: Member) -> dict[str, Any]:
    if member.kind in NUMBERS:
        return _number(member.kind, member.meaning)
    if member.kind == "rates":
        return _rates(member.meaning)
    if member.kind == "ids":
        told = {"description": member.meaning}
        return {"type": "array", "items": _ID} | told if member.many else _ID | told
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
        known = (member.parameters or {}).items()
        return {
            "type": "object",
            "description": member.meaning,
            "properties": {name: _number(kind, meaning) for name, (kind, meaning) in known},
            "patternProperties": {"^x-": {"type": "number"}},
            "additionalProperties": False,
        }
    assert member.table is not None
    inner = {name: _kind(one) for name, one in members(member.table).items()}
    return {"type": "object", "description": member.meaning, "properties": inner, "additionalProperties": False}


def _interface() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "network": _ID,
            "device": {"type": "string", "description": "name on the host"},
            "address": {"type": "string", "description": "IPv4 or IPv6 address of this host"},
            "prefix": {"type": "integer", "description": "bits of the prefix of its network"},
            "nid": {"type": "string", "description": "LNet id of this host"},
            "rate": _rates("its own, else that of the network"),
            "mtu": {"type": "integer", "description": "largest packet; bytes"},
            "count": {"type": "integer", "description": "how many of them"},
        },
        "required": ["network", "count"],
        "additionalProperties": False,
    }
