# SPDX-License-Identifier: Apache-2.0
"""Generates the JSON Schema (draft 2020-12) of a dataclass with declared members.

``tools/schemas`` writes the files below ``schema/``; a test compares them with the declarations.
"""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

from sonde.model.tables.members import NUMBER_KINDS, TableMember, get_default_of_member, get_members
from sonde.model.tables.quantity import SOURCE_STATUSES

SCHEMA_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_NUMBER_PATTERN = r"[0-9]+(\.[0-9]+)? *"
_BYTE_UNIT_PATTERN = r"([kMGTP]B|[KMGTP]iB|B)"
# Schema of each kind of number; the patterns mean the same in ECMA 262 and in Python.
_NUMBER_SCHEMAS: dict[str, dict[str, Any]] = {
    "size": {
        "type": "string",
        "pattern": f"^{_NUMBER_PATTERN}{_BYTE_UNIT_PATTERN}$",
        "description": 'a size, like "4 KiB" or "64 GB"',
    },
    "duration": {
        "type": "string",
        "pattern": f"^{_NUMBER_PATTERN}(ns|us|µs|ms|s|min|h)$",
        "description": 'a duration, like "2 us" or "10 s"',
    },
    "rate": {
        "type": "string",
        "pattern": f"^{_NUMBER_PATTERN}({_BYTE_UNIT_PATTERN}|[kMGT]?bit)/s$",
        "description": 'bytes or bits per second, like "2.4 GB/s" or "200 Gbit/s"',
    },
    "op_rate": {
        "type": "string",
        "pattern": f"^{_NUMBER_PATTERN}[kM]?op/s$",
        "description": 'operations per second, like "5500 op/s"',
    },
    "share": {
        "anyOf": [
            {"type": "number", "minimum": 0, "maximum": 1},
            {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? *%$"},
        ],
        "description": 'a share, like 0.4 or "40 %"',
    },
    "count": {"type": "integer", "minimum": 0, "description": "a count"},
    "number": {"type": "number", "description": "a number"},
}
_TEXTS_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


def _build_sourced_number_schema(number_kind: str) -> dict[str, Any]:
    """Returns the schema of a number, or of a table with the number and its source."""
    plain = {key: value for key, value in _NUMBER_SCHEMAS[number_kind].items() if key != "description"}
    return {
        "description": _NUMBER_SCHEMAS[number_kind]["description"],
        "anyOf": [
            plain,
            {
                "type": "object",
                "properties": {
                    "value": plain,
                    "source": {"type": "string"},
                    "status": {"enum": list(SOURCE_STATUSES)},
                    "note": {"type": "string"},
                },
                "required": ["value"],
                "additionalProperties": False,
            },
        ],
    }


def build_file_schema(cls: type[Any], title: str) -> dict[str, Any]:
    """Returns the schema of a file whose top level is `cls`, with the definitions that it uses."""
    schema = {"$schema": SCHEMA_DRAFT, "title": title} | build_table_schema(cls)
    all_definitions, used_names = build_definitions(), set[str]()
    pending = [json.dumps(schema)]
    while pending:
        for name in re.findall(r'"#/\$defs/([a-z_]+)"', pending.pop()):
            if name not in used_names:
                used_names.add(name)
                pending.append(json.dumps(all_definitions[name]))
    return schema | (
        {"$defs": {name: definition for name, definition in all_definitions.items() if name in used_names}}
        if used_names
        else {}
    )


def build_definitions() -> dict[str, Any]:
    """Returns all ``$defs``: each kind of number, rates, part ids, settings."""
    rate = {"$ref": "#/$defs/rate"}
    return {
        **{kind: _build_sourced_number_schema(kind) for kind in _NUMBER_SCHEMAS},
        "rates": {
            "description": "one rate for both directions, or one each",
            "anyOf": [
                rate,
                {"type": "object", "properties": {"read": rate, "write": rate}, "additionalProperties": False},
            ],
        },
        "ids": {"description": "ids, ranges of ids, names of groups", **_TEXTS_SCHEMA},
        "settings": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
    }


def build_table_schema(cls: type[Any]) -> dict[str, Any]:
    """Returns the schema of one table."""
    members_by_name = get_members(cls)
    schema: dict[str, Any] = {
        "type": "object",
        "description": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
        "properties": {name: _build_property_schema(cls, name, member) for name, member in members_by_name.items()},
        "additionalProperties": False,
    }
    required = [name for name, member in members_by_name.items() if member.required]
    return schema | ({"required": required} if required else {})


def _build_property_schema(cls: type[Any], member_name: str, member: TableMember) -> dict[str, Any]:
    schema = {**_build_member_schema(member), "description": _describe_member(member)}
    default = get_default_of_member(cls, member_name)
    has_default = default not in (None, "", ()) and member.kind in ("choice", "flag", "count", "share", "number")
    return schema | ({"default": default} if has_default else {})


def _describe_member(member: TableMember) -> str:
    if member.kind == "ids" and member.target_kinds:
        return f"{member.meaning} (of {', '.join(member.target_kinds)})"
    return member.meaning


def _build_member_schema(member: TableMember) -> dict[str, Any]:
    if member.kind == "raw":
        return dict(member.form or {})
    if member.kind in NUMBER_KINDS and member.is_plain:
        number_schema = {key: value for key, value in _NUMBER_SCHEMAS[member.kind].items() if key != "description"}
        return number_schema | ({"minimum": member.least} if member.least is not None else {})
    if member.kind in NUMBER_KINDS:
        if member.least:
            number = _build_sourced_number_schema(member.kind)
            limited = number["anyOf"][0] | {"minimum": member.least}
            number["anyOf"] = [limited, number["anyOf"][1]]
            number["anyOf"][1]["properties"]["value"] = limited
            return number
        return {"$ref": f"#/$defs/{member.kind}"}
    if member.kind == "ids" and member.required:
        texts = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
        return {"anyOf": [{"type": "string", "minLength": 1}, texts]}
    if member.kind in ("rates", "ids", "settings"):
        return {"$ref": f"#/$defs/{member.kind}"}
    if member.kind == "text":
        plain: dict[str, Any] = {"type": "string"}
        if member.required:
            plain["minLength"] = 1
        return plain | ({"pattern": f"^(?:{member.pattern})$"} if member.pattern else {})
    if member.kind == "texts":
        return dict(_TEXTS_SCHEMA)
    if member.kind == "flag":
        return {"type": "boolean"}
    if member.kind == "choice":
        return {"enum": list(member.choices)}
    if member.kind == "choices":
        choice_schema = {"enum": list(member.choices)}
        return {"anyOf": [choice_schema, {"type": "array", "items": choice_schema}]}
    if member.kind == "parameters":
        parameters = (member.parameters or {}).items()
        return {
            "type": "object",
            "properties": {
                name: {"$ref": f"#/$defs/{kind}", "description": meaning} for name, (kind, meaning) in parameters
            },
            "patternProperties": {"^x-": {"$ref": "#/$defs/number"}},
            "additionalProperties": False,
        }
    assert member.table is not None
    nested = build_table_schema(member.table)
    return nested if member.kind == "table" else {"type": "array", "items": nested}
