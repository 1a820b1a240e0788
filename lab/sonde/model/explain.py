# SPDX-License-Identifier: Apache-2.0
"""Turns what a JSON Schema validator says about a plan into one sentence for a person.

The sentence names the place, what was found, what is allowed, and, for a name that is nearly right, the one meant.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from sonde.model.errors import UnitError, suggestion
from sonde.model.units import parse_bytes, parse_duration, parse_rate

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_TYPE_WORDS = {
    "object": "a table of members",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}
_QUANTITIES = {"bytes": parse_bytes, "duration": parse_duration, "rate": parse_rate}


@cache
def _as_the_engine() -> Any:
    """The validator of plans. JSON Schema calls 2.0 an integer; the engine, and whoever writes 2.0 threads, means
    something else."""
    from jsonschema import Draft202012Validator, validators  # a fifth of the start of a command that checks no plan

    integer = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    return validators.extend(Draft202012Validator, type_checker=integer)  # type: ignore[no-untyped-call]


def place(path: Sequence[str | int], document: object) -> str:
    """``phases.read.io.direct``: as ``--set`` takes it, with the id of a phase instead of its number."""
    parts: list[str] = []
    here: object = document
    for step in path:
        name = str(step)
        if isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
            if isinstance(here, Mapping) and parts == ["phases"] and isinstance(here.get("id"), str) and here["id"]:
                name = here["id"]
        elif isinstance(here, Mapping):
            here = here.get(step)
        parts.append(name)
    return ".".join(parts)


def shown(value: object, limit: int = 60) -> str:
    """A value as JSON, shortened: what was found."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def problems(schema: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    """One sentence for each thing that is wrong with `document`, in the order of the document."""
    validator = _as_the_engine()(schema)
    errors = sorted(validator.iter_errors(document), key=lambda error: [str(step) for step in error.absolute_path])
    return [_sentence(error, schema, document) for error in errors]


def _sentence(error: ValidationError, schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    where = place(list(error.absolute_path), document)
    explain = {
        "additionalProperties": _unknown_members,
        "required": _missing_members,
        "enum": _not_in_list,
        "const": _not_in_list,
        "type": _wrong_type,
        "pattern": _wrong_form,
        "anyOf": _no_alternative,
        "minimum": _out_of_range,
        "maximum": _out_of_range,
        "exclusiveMinimum": _out_of_range,
        "minItems": _wrong_count,
        "maxItems": _wrong_count,
    }.get(str(error.validator))
    if explain is None:
        return f"{where or 'The plan'}: {error.message}."
    return explain(error, where, schema)


def _unknown_members(error: ValidationError, where: str, schema: Mapping[str, Any]) -> str:
    known = list(error.schema.get("properties", ())) if isinstance(error.schema, Mapping) else []
    found = [name for name in _members(error) if name not in known]
    near = suggestion(found[0], known)
    inside = f"{where} has" if where else "The plan has"
    return (
        f'{inside} no member "{found[0]}"{"." + near if near else "; allowed are " + _words(known) + "."}'
        + _elsewhere(found[0], where, schema)
    )


def _elsewhere(name: str, where: str, schema: Mapping[str, Any]) -> str:
    """Where a member of that exact name does live, if not here: the commonest slip is one level too high or low."""
    homes = [path for path in _homes(schema, name) if path != where and not path.startswith("phases")]
    return f' A member of that name is "{homes[0]}.{name}".' if homes else ""


def _homes(schema: Mapping[str, Any], name: str, path: str = "") -> Iterable[str]:
    for key, child in schema.get("properties", {}).items():
        if key == name and path:
            yield path
        yield from _homes(child, name, f"{path}.{key}" if path else key)


def _missing_members(error: ValidationError, where: str, _: Mapping[str, Any]) -> str:
    required = error.validator_value if isinstance(error.validator_value, list) else []
    missing = [name for name in required if name not in _members(error)]
    name = f"{where}.{missing[0]}" if where else missing[0]
    hint = {
        "target.path": '; name the directory to measure with --on DIR or path = "DIR" in [target]',
        "target": "; name the directory to measure with --on DIR",
        "phases": "; a plan needs at least one [[phases]] with an id and an op",
    }.get(name, "")
    return f'"{name}" is missing{hint}.'


def _members(error: ValidationError) -> list[str]:
    return list(error.instance) if isinstance(error.instance, Mapping) else []


def _not_in_list(error: ValidationError, where: str, _: Mapping[str, Any]) -> str:
    allowed = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    found = error.instance
    near = suggestion(found, [str(choice) for choice in allowed]) if isinstance(found, str) else ""
    return f"{where} is {shown(found)}; allowed is {_words([str(choice) for choice in allowed])}.{near}"


def _wrong_type(error: ValidationError, where: str, _: Mapping[str, Any]) -> str:
    wanted = error.validator_value if isinstance(error.validator_value, str) else "object"
    hint = ""
    if wanted in ("integer", "number") and isinstance(error.instance, str) and error.instance.strip().isdigit():
        hint = " Write it without quotation marks."
    if wanted == "boolean" and str(error.instance).lower() in ("true", "false", "yes", "no", "on", "off", "0", "1"):
        hint = " Write true or false without quotation marks."
    return f"{where or 'The plan'} is {shown(error.instance)}; it must be {_TYPE_WORDS.get(wanted, wanted)}.{hint}"


def _wrong_form(error: ValidationError, where: str, _: Mapping[str, Any]) -> str:
    return f"{where} is {shown(error.instance)}; only letters, digits, dot, dash and underscore are allowed."


def _no_alternative(error: ValidationError, where: str, schema: Mapping[str, Any]) -> str:
    for name, parse in _QUANTITIES.items():
        if error.schema == schema["$defs"][name]:
            return _not_a_quantity(name, parse, error.instance, where)
    if error.schema == schema["$defs"]["amount"]:
        if isinstance(error.instance, Mapping):
            # the other alternative is a plain size: what it says about a table is of no use
            inner = [one for one in error.context or [] if one.schema_path[0] == 1]
            if inner:
                return _sentence(inner[0], schema, {})
        return _not_a_quantity("bytes", parse_bytes, error.instance, where)
    return f"{where} is {shown(error.instance)}, which is not allowed here."


def _not_a_quantity(name: str, parse: Any, found: object, where: str) -> str:
    if isinstance(found, str | int | float) and not (name == "bytes" and isinstance(found, float)):
        try:
            parse(found)
        except UnitError as reason:
            return f"{where}: {reason}"
        if isinstance(found, str) and found != found.strip():
            return f"{where} is {shown(found)}; remove the spaces around it."
    example = {"bytes": '"4KiB", "10MB" or a whole number of bytes', "duration": '"10s" or "500ms"', "rate": '"1GB/s"'}
    return f"{where} is {shown(found)}; write {example[name]}."


def _out_of_range(error: ValidationError, where: str, _: Mapping[str, Any]) -> str:
    words = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "larger than"}[str(error.validator)]
    return f"{where} is {shown(error.instance)}; it must be {words} {error.validator_value}."


def _wrong_count(error: ValidationError, where: str, _: Mapping[str, Any]) -> str:
    words = "at least" if error.validator == "minItems" else "at most"
    count = len(error.instance) if isinstance(error.instance, list) else 0
    return f"{where} has {count} entries; it must have {words} {error.validator_value}."


def _words(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f'"{names[0]}"'
    return ", ".join(names[:-1]) + " or " + names[-1]
