# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema (draft 2020-12) of a dataclass that declares its members.

``tools/schemas`` writes the files below ``schema/`` with it, and a test holds the files to the declarations.
"""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

from sonde.model.tables.members import NUMBERS, Member, absent, members
from sonde.model.tables.quantity import STATUSES

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_AMOUNT = r"[0-9]+(\.[0-9]+)? *"
_BYTES = r"([kMGTP]B|[KMGTP]iB|B)"
# How each kind of number is written; the meaning of a pattern is the same in ECMA 262 and in Python.
_WRITTEN: dict[str, dict[str, Any]] = {
    "size": {"type": "string", "pattern": f"^{_AMOUNT}{_BYTES}$", "description": 'a size, like "4 KiB" or "64 GB"'},
    "duration": {
        "type": "string",
        "pattern": f"^{_AMOUNT}(ns|us|µs|ms|s|min|h)$",
        "description": 'a duration, like "2 us" or "10 s"',
    },
    "rate": {
        "type": "string",
        "pattern": f"^{_AMOUNT}({_BYTES}|[kMGT]?bit)/s$",
        "description": 'bytes or bits per second, like "2.4 GB/s" or "200 Gbit/s"',
    },
    "op_rate": {
        "type": "string",
        "pattern": f"^{_AMOUNT}[kM]?op/s$",
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
_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


def _with_source(kind: str) -> dict[str, Any]:
    """The number itself, or a table that says where it comes from."""
    plain = {key: value for key, value in _WRITTEN[kind].items() if key != "description"}
    return {
        "description": _WRITTEN[kind]["description"],
        "anyOf": [
            plain,
            {
                "type": "object",
                "properties": {
                    "value": plain,
                    "source": {"type": "string"},
                    "status": {"enum": list(STATUSES)},
                    "note": {"type": "string"},
                },
                "required": ["value"],
                "additionalProperties": False,
            },
        ],
    }


def whole_schema(cls: type[Any], title: str) -> dict[str, Any]:
    """The schema of a file whose top is `cls`, with the definitions that it uses."""
    schema = {"$schema": DRAFT, "title": title} | table_schema(cls)
    every, used = definitions(), set[str]()
    left = [json.dumps(schema)]
    while left:
        for name in re.findall(r'"#/\$defs/([a-z_]+)"', left.pop()):
            if name not in used:
                used.add(name)
                left.append(json.dumps(every[name]))
    return schema | ({"$defs": {name: one for name, one in every.items() if name in used}} if used else {})


def definitions() -> dict[str, Any]:
    """What ``$defs`` holds: each kind of number, rates, names of parts, settings."""
    rate = {"$ref": "#/$defs/rate"}
    return {
        **{kind: _with_source(kind) for kind in _WRITTEN},
        "rates": {
            "description": "one rate for both directions, or one each",
            "anyOf": [
                rate,
                {"type": "object", "properties": {"read": rate, "write": rate}, "additionalProperties": False},
            ],
        },
        "ids": {"description": "ids, ranges of ids, names of groups", **_TEXTS},
        "settings": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
    }


def table_schema(cls: type[Any]) -> dict[str, Any]:
    """The schema of one table."""
    known = members(cls)
    schema: dict[str, Any] = {
        "type": "object",
        "description": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
        "properties": {name: _property(cls, name, member) for name, member in known.items()},
        "additionalProperties": False,
    }
    required = [name for name, member in known.items() if member.required]
    return schema | ({"required": required} if required else {})


def _property(cls: type[Any], name: str, member: Member) -> dict[str, Any]:
    found = {**_kind(member), "description": _meaning(member)}
    default = absent(cls, name)
    told = default not in (None, "", ()) and member.kind in ("choice", "flag", "count", "share", "number")
    return found | ({"default": default} if told else {})


def _meaning(member: Member) -> str:
    if member.kind == "ids" and member.refers:
        return f"{member.meaning} (of {', '.join(member.refers)})"
    return member.meaning


def _kind(member: Member) -> dict[str, Any]:
    if member.kind == "raw":
        return dict(member.form or {})
    if member.kind in NUMBERS and member.bare:
        written = {key: value for key, value in _WRITTEN[member.kind].items() if key != "description"}
        return written | ({"minimum": member.least} if member.least is not None else {})
    if member.kind in NUMBERS:
        if member.least:
            number = _with_source(member.kind)
            least = number["anyOf"][0] | {"minimum": member.least}
            number["anyOf"] = [least, number["anyOf"][1]]
            number["anyOf"][1]["properties"]["value"] = least
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
        return dict(_TEXTS)
    if member.kind == "flag":
        return {"type": "boolean"}
    if member.kind == "choice":
        return {"enum": list(member.choices)}
    if member.kind == "choices":
        one = {"enum": list(member.choices)}
        return {"anyOf": [one, {"type": "array", "items": one}]}
    if member.kind == "parameters":
        known = (member.parameters or {}).items()
        return {
            "type": "object",
            "properties": {
                name: {"$ref": f"#/$defs/{kind}", "description": meaning} for name, (kind, meaning) in known
            },
            "patternProperties": {"^x-": {"$ref": "#/$defs/number"}},
            "additionalProperties": False,
        }
    assert member.table is not None
    inner = table_schema(member.table)
    return inner if member.kind == "table" else {"type": "array", "items": inner}
