# SPDX-License-Identifier: Apache-2.0
"""Converts errors of the JSON Schema validator into one sentence each.

The sentence names the member, its value, the allowed values and, for a misspelled name, the closest valid one.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sonde.model.errors import UnitError, suggest_close_name
from sonde.model.units import parse_bytes, parse_duration, parse_rate

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_TYPE_NAMES = {
    "object": "a table of members",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}
_QUANTITY_PARSERS = {"bytes": parse_bytes, "duration": parse_duration, "rate": parse_rate}
_ADDRESS_PARSER = "rfc3987_syntax"


@contextmanager
def _defer_address_parser() -> Iterator[None]:
    """While jsonschema is imported, replaces its optional parser of internationalized addresses by a module that
    imports the parser at the first call. The parser, which Jupyter and other packages install, compiles 38 grammars:
    1.5 s of processor time in each command, for a format that no schema of Sonde uses."""
    if _ADDRESS_PARSER in sys.modules or importlib.util.find_spec(_ADDRESS_PARSER) is None:
        yield
        return

    def is_valid_syntax(term: str, value: str) -> bool:
        return bool(importlib.import_module(_ADDRESS_PARSER).is_valid_syntax(term, value))

    deferred = ModuleType(_ADDRESS_PARSER)
    deferred.is_valid_syntax = is_valid_syntax  # type: ignore[attr-defined]
    sys.modules[_ADDRESS_PARSER] = deferred
    try:
        yield
    finally:
        del sys.modules[_ADDRESS_PARSER]


@cache
def _make_plan_validator() -> Any:
    """Returns the validator class for plans. Unlike JSON Schema, it does not accept 2.0 as an integer; nor does the
    engine."""
    with _defer_address_parser():
        from jsonschema import Draft202012Validator, validators  # lazy: importing it takes a fifth of the start-up time

    integer = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    return validators.extend(Draft202012Validator, type_checker=integer)  # type: ignore[no-untyped-call]


def format_member_path(member_steps: Sequence[str | int], document: object) -> str:
    """Returns a path like ``phases.read.io.direct``, as ``--set`` takes it, with phase ids instead of numbers."""
    names: list[str] = []
    node: object = document
    for step in member_steps:
        name = str(step)
        if isinstance(node, list) and isinstance(step, int) and step < len(node):
            node = node[step]
            if isinstance(node, Mapping) and names == ["phases"] and isinstance(node.get("id"), str) and node["id"]:
                name = node["id"]
        elif isinstance(node, Mapping):
            node = node.get(step)
        names.append(name)
    return ".".join(names)


def format_json_value(json_value: object, max_characters: int = 60) -> str:
    """Returns a value as JSON, shortened to `max_characters` characters."""
    text = json.dumps(json_value, ensure_ascii=False, default=str)
    return text if len(text) <= max_characters else text[: max_characters - 1] + "…"


def find_schema_problems(plan_schema: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    """Returns one sentence for each schema violation, in the order of the document."""
    validator = _make_plan_validator()(plan_schema)
    errors = sorted(validator.iter_errors(document), key=lambda error: [str(step) for step in error.absolute_path])
    return [_explain_error(error, plan_schema, document) for error in errors]


def _explain_error(error: ValidationError, plan_schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    location = format_member_path(list(error.absolute_path), document)
    explain = {
        "additionalProperties": _explain_unknown_member,
        "required": _explain_missing_member,
        "enum": _explain_enum_error,
        "const": _explain_enum_error,
        "type": _explain_type_error,
        "pattern": _explain_pattern_error,
        "anyOf": _explain_alternatives_error,
        "minimum": _explain_range_error,
        "maximum": _explain_range_error,
        "exclusiveMinimum": _explain_range_error,
        "minItems": _explain_count_error,
        "maxItems": _explain_count_error,
    }.get(str(error.validator))
    if explain is None:
        return f"{location or 'The plan'}: {error.message}."
    return explain(error, location, plan_schema)


def _explain_unknown_member(error: ValidationError, location: str, plan_schema: Mapping[str, Any]) -> str:
    allowed = list(error.schema.get("properties", ())) if isinstance(error.schema, Mapping) else []
    unknown = [name for name in _list_allowed_members(error) if name not in allowed]
    hint = suggest_close_name(unknown[0], allowed)
    inside = f"{location} has" if location else "The plan has"
    advice = f".{hint}" if hint else f"; allowed are {_format_alternatives(allowed)}."
    return f'{inside} no member "{unknown[0]}"{advice}' + _suggest_other_location(unknown[0], location, plan_schema)


def _suggest_other_location(member_name: str, location: str, plan_schema: Mapping[str, Any]) -> str:
    """Suggests the table in which the schema defines member `member_name`. Most users write it one level too high or
    low."""
    tables = [
        path
        for path in _find_member_tables(plan_schema, member_name)
        if path != location and not path.startswith("phases")
    ]
    return f' A member of that name is "{tables[0]}.{member_name}".' if tables else ""


def _find_member_tables(plan_schema: Mapping[str, Any], member_name: str, table_path: str = "") -> Iterable[str]:
    for key, child in plan_schema.get("properties", {}).items():
        if key == member_name and table_path:
            yield table_path
        yield from _find_member_tables(child, member_name, f"{table_path}.{key}" if table_path else key)


def _explain_missing_member(error: ValidationError, location: str, _: Mapping[str, Any]) -> str:
    required = error.validator_value if isinstance(error.validator_value, list) else []
    missing = [name for name in required if name not in _list_allowed_members(error)]
    name = f"{location}.{missing[0]}" if location else missing[0]
    hint = {
        "target.path": '; name the directory to measure with --on DIR or path = "DIR" in [target]',
        "target": "; name the directory to measure with --on DIR",
        "phases": "; a plan needs at least one [[phases]] with an id and an op",
    }.get(name, "")
    return f'"{name}" is missing{hint}.'


def _list_allowed_members(error: ValidationError) -> list[str]:
    return list(error.instance) if isinstance(error.instance, Mapping) else []


def _explain_enum_error(error: ValidationError, location: str, _: Mapping[str, Any]) -> str:
    allowed = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    value = error.instance
    hint = suggest_close_name(value, [str(choice) for choice in allowed]) if isinstance(value, str) else ""
    return (
        f"{location} is {format_json_value(value)}; allowed is "
        f"{_format_alternatives([str(choice) for choice in allowed])}.{hint}"
    )


def _explain_type_error(error: ValidationError, location: str, _: Mapping[str, Any]) -> str:
    expected = error.validator_value if isinstance(error.validator_value, str) else "object"
    hint = ""
    if expected in ("integer", "number") and isinstance(error.instance, str) and error.instance.strip().isdigit():
        hint = " Write it without quotation marks."
    if expected == "boolean" and str(error.instance).lower() in ("true", "false", "yes", "no", "on", "off", "0", "1"):
        hint = " Write true or false without quotation marks."
    return (
        f"{location or 'The plan'} is {format_json_value(error.instance)}; it must be"
        f" {_TYPE_NAMES.get(expected, expected)}.{hint}"
    )


def _explain_pattern_error(error: ValidationError, location: str, _: Mapping[str, Any]) -> str:
    return (
        f"{location} is {format_json_value(error.instance)}; only letters, digits, dot, dash and underscore are "
        "allowed."
    )


def _explain_alternatives_error(error: ValidationError, location: str, plan_schema: Mapping[str, Any]) -> str:
    for name, parse in _QUANTITY_PARSERS.items():
        if error.schema == plan_schema["$defs"][name]:
            return _explain_quantity_error(name, parse, error.instance, location)
    if error.schema == plan_schema["$defs"]["amount"]:
        if isinstance(error.instance, Mapping):
            # the other alternative is a plain size; its errors about a table are not helpful
            table_errors = [inner_error for inner_error in error.context or [] if inner_error.schema_path[0] == 1]
            if table_errors:
                return _explain_error(table_errors[0], plan_schema, {})
        return _explain_quantity_error("bytes", parse_bytes, error.instance, location)
    return f"{location} is {format_json_value(error.instance)}, which is not allowed here."


def _explain_quantity_error(quantity_name: str, parse_quantity: Any, json_value: object, location: str) -> str:
    if isinstance(json_value, str | int | float) and not (quantity_name == "bytes" and isinstance(json_value, float)):
        try:
            parse_quantity(json_value)
        except UnitError as error:
            return f"{location}: {error}"
        if isinstance(json_value, str) and json_value != json_value.strip():
            return f"{location} is {format_json_value(json_value)}; remove the spaces around it."
    example = {"bytes": '"4KiB", "10MB" or a whole number of bytes', "duration": '"10s" or "500ms"', "rate": '"1GB/s"'}
    return f"{location} is {format_json_value(json_value)}; write {example[quantity_name]}."


def _explain_range_error(error: ValidationError, location: str, _: Mapping[str, Any]) -> str:
    relation = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "larger than"}[str(error.validator)]
    return f"{location} is {format_json_value(error.instance)}; it must be {relation} {error.validator_value}."


def _explain_count_error(error: ValidationError, location: str, _: Mapping[str, Any]) -> str:
    relation = "at least" if error.validator == "minItems" else "at most"
    count = len(error.instance) if isinstance(error.instance, list) else 0
    return f"{location} has {count} entries; it must have {relation} {error.validator_value}."


def _format_alternatives(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f'"{names[0]}"'
    return ", ".join(names[:-1]) + " or " + names[-1]
