# SPDX-License-Identifier: Apache-2.0
"""Turns the text of one record line into the type that ``lines`` has for it, guided by the annotations there."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from sonde.model import lines
from sonde.model.errors import RecordError
from sonde.model.lines import Line

LINE_TYPES: Mapping[str, type[Line]] = {
    "run": lines.RunLine,
    "node": lines.NodeLine,
    "treatment": lines.TreatmentLine,
    "phase_begin": lines.PhaseBegin,
    "progress": lines.Progress,
    "phase_end": lines.PhaseEnd,
    "series": lines.SeriesLine,
    "histogram": lines.HistogramLine,
    "nodes": lines.TableLine,
    "tasks": lines.TableLine,
    "targets": lines.TargetsLine,
    "layout": lines.LayoutLine,
    "finding": lines.Finding,
    "error": lines.ErrorLine,
    "end": lines.End,
}


def parse_line(text: str) -> tuple[str, Line]:
    """Type and value of one line. Raises RecordError when it is not a line of a record."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise RecordError("is not JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise RecordError("has no type")
    kind: str = found["type"]
    if kind not in LINE_TYPES:
        time = found.get("t")
        return kind, lines.Other(t=float(time) if isinstance(time, int | float) else 0.0, type=kind)
    try:
        return kind, _build(LINE_TYPES[kind], found, kind)
    except RecordError as reason:
        raise RecordError(f"of type {kind}: {reason}") from None


@cache
def _members(name: str) -> tuple[tuple[str, Any], ...]:
    return tuple(get_type_hints(getattr(lines, name)).items())


def _build(cls: type[Any], found: Mapping[str, Any], where: str) -> Any:
    # null is how some writers say absent
    return cls(
        **{
            name: _convert(hint, found[name], f"{where}.{name}")
            for name, hint in _members(cls.__name__)
            if found.get(name) is not None
        }
    )


def _convert(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type that `hint` names; raises RecordError when it is of another kind."""
    if hint is Any:
        return value
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return _convert(next(arm for arm in get_args(hint) if arm is not type(None)), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise RecordError(f"{where} is not a list")
        inner = get_args(hint)[0]
        return tuple(_convert(inner, one, where) for one in value)
    if origin is dict:
        if not isinstance(value, dict):
            raise RecordError(f"{where} is not a table")
        inner = get_args(hint)[1]
        return {str(key): _convert(inner, one, f"{where}.{key}") for key, one in value.items()}
    return _scalar(hint, value, where)


def _scalar(hint: Any, value: Any, where: str) -> Any:
    if is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, dict):
            raise RecordError(f"{where} is not a table")
        return _build(hint, value, where)
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    raise RecordError(f"{where} is {value!r}, not {hint.__name__}")
