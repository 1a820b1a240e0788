# SPDX-License-Identifier: Apache-2.0
"""Parses one record line into its type in ``lines``, following the type annotations there."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from sonde.model import lines
from sonde.model.errors import RecordError
from sonde.model.lines import RecordLine

LINE_TYPES: Mapping[str, type[RecordLine]] = {
    "run": lines.RunLine,
    "node": lines.NodeLine,
    "treatment": lines.TreatmentLine,
    "phase_begin": lines.PhaseBeginLine,
    "progress": lines.ProgressLine,
    "phase_end": lines.PhaseEndLine,
    "series": lines.SeriesLine,
    "histogram": lines.HistogramLine,
    "nodes": lines.TableLine,
    "tasks": lines.TableLine,
    "targets": lines.TargetsLine,
    "layout": lines.LayoutLine,
    "finding": lines.Finding,
    "error": lines.ErrorLine,
    "end": lines.EndLine,
}


def parse_record_line(line_text: str) -> tuple[str, RecordLine]:
    """Returns type name and value of one line. Raises RecordError when it is not a record line."""
    try:
        members = json.loads(line_text)
    except (ValueError, RecursionError):
        raise RecordError("is not JSON") from None
    if not isinstance(members, dict) or not isinstance(members.get("type"), str):
        raise RecordError("has no type")
    line_type: str = members["type"]
    try:
        if line_type not in LINE_TYPES:
            seconds = members.get("t")
            return line_type, lines.UnknownLine(
                t=float(seconds) if isinstance(seconds, int | float) else 0.0, type=line_type
            )
        return line_type, _build_dataclass(LINE_TYPES[line_type], members, line_type)
    except RecordError as reason:
        raise RecordError(f"of type {line_type}: {reason}") from None
    except OverflowError:
        raise RecordError(f"of type {line_type}: it holds a number of too many digits") from None


# Converts a JSON value to a type; raises RecordError, which names the path of the member, when the types do not match.
_Converter = Callable[[Any, str], Any]


@cache
def _list_member_converters(cls: Callable[..., Any]) -> tuple[tuple[str, _Converter], ...]:
    return tuple((name, _make_converter(hint)) for name, hint in get_type_hints(cls).items())


def _build_dataclass(cls: Callable[..., Any], json_members: Mapping[str, Any], member_path: str) -> Any:
    # Some writers write null for an absent member.
    return cls(
        **{
            name: convert(json_members[name], f"{member_path}.{name}")
            for name, convert in _list_member_converters(cls)
            if json_members.get(name) is not None
        }
    )


@cache
def _make_converter(type_hint: Any) -> _Converter:
    """Returns the converter to a type. Hints are looked at once: they are slower to inspect than a value to convert."""
    if type_hint is Any:
        return lambda json_value, member_path: json_value
    origin = get_origin(type_hint)
    if origin in (Union, types.UnionType):
        return _make_optional_converter(next(option for option in get_args(type_hint) if option is not type(None)))
    if origin is tuple:
        return _make_list_converter(get_args(type_hint)[0])
    if origin is dict:
        return _make_table_converter(get_args(type_hint)[1])
    if is_dataclass(type_hint) and isinstance(type_hint, type):
        return _make_dataclass_converter(type_hint)
    return _make_scalar_converter(type_hint)


def _make_optional_converter(type_hint: Any) -> _Converter:
    convert = _make_converter(type_hint)
    return lambda json_value, member_path: None if json_value is None else convert(json_value, member_path)


def _make_list_converter(item_hint: Any) -> _Converter:
    convert_item = _make_converter(item_hint)

    def convert_list(json_value: Any, member_path: str) -> tuple[Any, ...]:
        if not isinstance(json_value, list):
            raise RecordError(f"{member_path} is not a list")
        return tuple(convert_item(item, member_path) for item in json_value)

    return convert_list


def _make_table_converter(item_hint: Any) -> _Converter:
    convert_item = _make_converter(item_hint)

    def convert_table(json_value: Any, member_path: str) -> dict[str, Any]:
        if not isinstance(json_value, dict):
            raise RecordError(f"{member_path} is not a table")
        return {str(key): convert_item(item, f"{member_path}.{key}") for key, item in json_value.items()}

    return convert_table


def _make_dataclass_converter(cls: type) -> _Converter:
    def convert_members(json_value: Any, member_path: str) -> Any:
        if not isinstance(json_value, dict):
            raise RecordError(f"{member_path} is not a table")
        return _build_dataclass(cls, json_value, member_path)

    return convert_members


def _make_scalar_converter(type_hint: type) -> _Converter:
    def convert_scalar(json_value: Any, member_path: str) -> Any:
        if type(json_value) is type_hint:
            return json_value
        if type_hint is float and isinstance(json_value, int) and not isinstance(json_value, bool):
            return float(json_value)
        if type_hint is int and isinstance(json_value, float) and json_value.is_integer():
            return int(json_value)
        if isinstance(json_value, type_hint) and not (type_hint is int and isinstance(json_value, bool)):
            return json_value
        raise RecordError(f"{member_path} is {json_value!r}, not {type_hint.__name__}")

    return convert_scalar
