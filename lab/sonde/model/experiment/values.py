# SPDX-License-Identifier: Apache-2.0
"""Schemas and checks of untyped members of an experiment: plans, sweep values, settings by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sonde.model.schema_problems import format_json_value

_PLAN_MEMBERS = ("id", "title", "source", "notes", "target", "tasks", "data", "meta", "phases", "observe", "limits",
                 "calibrated")  # fmt: skip
# The members of a plan are those of schema/plan itself; only `schema`, `id` and `target.path` may be left out here.
PLAN_SCHEMA_FORM: Mapping[str, Any] = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "properties": {
                "schema": {"const": "sonde-plan/2"},
                **{name: {"$ref": f"sonde-plan-2#/properties/{name}"} for name in _PLAN_MEMBERS if name != "target"},
                "target": {
                    "type": "object",
                    "properties": {
                        name: {"$ref": f"sonde-plan-2#/properties/target/properties/{name}"}
                        for name in ("path", "device", "directory", "keep", "use_existing", "min_free", "full_stripe",
                                     "keep_manifest", "striping", "s3")
                    },
                    "additionalProperties": False,
                },
            },
            "additionalProperties": False,
        },
    ]
}  # fmt: skip
_SCALAR_FORM: Mapping[str, Any] = {"type": ["string", "number", "boolean"]}
VALUE_FORM: Mapping[str, Any] = {"type": ["string", "number", "boolean", "array", "object"]}
VALUES_FORM: Mapping[str, Any] = {
    "anyOf": [
        {"type": "array", "minItems": 1, "items": VALUE_FORM},
        {
            "type": "object",
            "properties": {
                "from": {"type": ["string", "number"]},
                "to": {"type": ["string", "number"]},
                "factor": {"type": "number", "exclusiveMinimum": 1},
                "step": {"type": ["string", "number"]},
            },
            "required": ["from", "to"],
            "additionalProperties": False,
        },
    ]
}
NUMBER_FORM: Mapping[str, Any] = {"type": ["string", "number"]}
SETTINGS_FORM: Mapping[str, Any] = {"type": "object", "additionalProperties": VALUE_FORM}
TEXTS_FORM: Mapping[str, Any] = {"type": "object", "additionalProperties": _SCALAR_FORM}
PROFILES_FORM: Mapping[str, Any] = {"type": "object", "additionalProperties": SETTINGS_FORM}


def find_plan_problem(plan_member: object) -> str | None:
    """Returns the problem of a `plan` member before the plan itself is checked, or None."""
    if isinstance(plan_member, str):
        return None if plan_member else "is empty; write a plan, the name of a plan file, or of a shipped plan."
    if not isinstance(plan_member, Mapping):
        return f"is {format_json_value(plan_member)}; it must be a plan (a table), or the name of a plan file."
    return None


def find_values_problem(values_member: object) -> str | None:
    """Returns the problem of the values of a sweep, or None."""
    if isinstance(values_member, list):
        if not values_member:
            return "is empty; a sweep has at least one value."
        duplicates = [entry for number, entry in enumerate(values_member) if entry in values_member[:number]]
        if not duplicates:
            return None
        return (
            f"has {format_json_value(duplicates[0])} twice; every value is one cell, and repeats are set by [repeat]."
        )
    if isinstance(values_member, Mapping):
        unknown = [name for name in values_member if name not in ("from", "to", "factor", "step")]
        if unknown:
            return f'has no member "{unknown[0]}"; write a list, or {{from = …, to = …, factor = 2}}.'
        if not {"from", "to"} <= values_member.keys() or ("factor" in values_member) == ("step" in values_member):
            return 'needs from, to and one of factor and step, like {from = "4KiB", to = "16MiB", factor = 4}.'
        for name in ("from", "to", "step"):
            if name in values_member and not _is_range_end(values_member[name]):
                return (
                    f'has {format_json_value(values_member[name])} for {name}; write a number, or a size like "4KiB".'
                )
        factor = values_member.get("factor", 2)
        if isinstance(factor, bool) or not isinstance(factor, int | float) or factor <= 1:
            return f"has the factor {format_json_value(factor)}; a factor is larger than 1."
        return None
    return f"is {format_json_value(values_member)}; it must be a list of values, or {{from = …, to = …, factor = 2}}."


def _is_range_end(range_member: object) -> bool:
    if isinstance(range_member, str):
        return True
    return (
        isinstance(range_member, int | float)
        and not isinstance(range_member, bool)
        and abs(range_member) < float("inf")
    )


def find_settings_problem(settings_member: object) -> str | None:
    """Returns the problem of a table of settings by path, or None."""
    if not isinstance(settings_member, Mapping):
        return (
            f"is {format_json_value(settings_member)}; it must be a table of paths and values, like "
            '"data.access.transfer" = "4KiB".'
        )
    empty = next((name for name in settings_member if not all(name.split("."))), None)
    return (
        f'has the path "{empty}"; a path is names joined by dots, like data.access.transfer.'
        if empty is not None
        else None
    )


def find_texts_problem(texts_member: object) -> str | None:
    """Returns the problem of a table of names and texts, or None."""
    if not isinstance(texts_member, Mapping):
        return f"is {format_json_value(texts_member)}; it must be a table of names and texts."
    wrong_name = next(
        (name for name, entry in texts_member.items() if not isinstance(entry, str | int | float | bool)), None
    )
    return (
        f"has {format_json_value(texts_member[wrong_name])} for {wrong_name}; it must be a text or a number."
        if wrong_name is not None
        else None
    )


def find_profiles_problem(profiles_member: object) -> str | None:
    """Returns the problem of the profiles, or None."""
    if not isinstance(profiles_member, Mapping):
        return (
            f"is {format_json_value(profiles_member)}; it must be a table of profiles, each written as [profiles.ci]."
        )
    for name, settings in profiles_member.items():
        problem = find_settings_problem(settings)
        if problem:
            return f"{name} {problem}"
    return None


def find_published_number_problem(number_member: object) -> str | None:
    """Returns the problem of a published number before its unit is known, or None."""
    is_valid = (
        isinstance(number_member, int | float | str)
        and not isinstance(number_member, bool)
        and number_member == number_member
        and number_member != ""
    )
    return (
        None
        if is_valid
        else f'is {format_json_value(number_member)}; write it as it is printed, like "1.6 GB/s", or a plain number.'
    )
