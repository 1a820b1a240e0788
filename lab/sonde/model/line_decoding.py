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


@cache
def _list_type_hints(cls: Callable[..., Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(get_type_hints(cls).items())


def _build_dataclass(cls: Callable[..., Any], json_members: Mapping[str, Any], member_path: str) -> Any:
    # Some writers write null for an absent member.
    return cls(
        **{
            name: _convert_value(hint, json_members[name], f"{member_path}.{name}")
            for name, hint in _list_type_hints(cls)
            if json_members.get(name) is not None
        }
    )


def _convert_value(type_hint: Any, json_value: Any, member_path: str) -> Any:
    """Converts `json_value` to the type `type_hint`; raises RecordError when the types do not match."""
    if type_hint is Any:
        return json_value
    origin = get_origin(type_hint)
    if origin in (Union, types.UnionType):
        if json_value is None:
            return None
        return _convert_value(
            next(option for option in get_args(type_hint) if option is not type(None)), json_value, member_path
        )
    if origin is tuple:
        if not isinstance(json_value, list):
            raise RecordError(f"{member_path} is not a list")
        item_hint = get_args(type_hint)[0]
        return tuple(_convert_value(item_hint, item, member_path) for item in json_value)
    if origin is dict:
        if not isinstance(json_value, dict):
            raise RecordError(f"{member_path} is not a table")
        item_hint = get_args(type_hint)[1]
        return {str(key): _convert_value(item_hint, item, f"{member_path}.{key}") for key, item in json_value.items()}
    return _convert_scalar(type_hint, json_value, member_path)


def _convert_scalar(type_hint: Any, json_value: Any, member_path: str) -> Any:
    if is_dataclass(type_hint) and isinstance(type_hint, type):
        if not isinstance(json_value, dict):
            raise RecordError(f"{member_path} is not a table")
        return _build_dataclass(type_hint, json_value, member_path)
    if type_hint is float and isinstance(json_value, int | float) and not isinstance(json_value, bool):
        return float(json_value)
    if type_hint is int and isinstance(json_value, float) and json_value.is_integer():
        return int(json_value)
    if isinstance(json_value, type_hint) and not (type_hint is int and isinstance(json_value, bool)):
        return json_value
    raise RecordError(f"{member_path} is {json_value!r}, not {type_hint.__name__}")
