# SPDX-License-Identifier: Apache-2.0
"""``--set path=value``: changes one member of a plan from the command line.

A path names members by dots: ``data.access.transfer``. An entry of a list is named by its number, a phase also by its
id: ``phases.0.op``, ``phases.read.stop.time``. A value is JSON where it can be read as such (numbers, true, false,
lists, tables) and a text otherwise, so that ``--set data.access.transfer=4KiB`` needs no quotation marks. ``null``
removes a member, but a backend: ``data.backend=null`` is the backend of that name.
"""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterable
from typing import Any

from sonde.model.errors import PlanError, suggestion
from sonde.model.explain import shown

# Setting one of these replaces the other, because a plan may hold only one of them.
_EITHER_OR = {"segments": "volume", "volume": "segments"}


def read_setting(text: str) -> tuple[list[str], Any]:
    """Splits ``path=value``; raises PlanError when it is not of that form."""
    path, equals, value = text.partition("=")
    steps = path.strip().split(".")
    if not equals:
        raise PlanError(f'--set "{text}" has no "="; write it like --set data.access.transfer=4KiB.')
    if not all(steps):
        raise PlanError(f'--set "{text}" has an empty name before the "="; write it like data.access.transfer=4KiB.')
    return steps, _value(value.strip())


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=lambda name: name)
    except ValueError:
        pass
    if text[:1] in ("{", "[", "'"):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError as reason:
            raise PlanError(f"--set value {shown(text)} is neither JSON nor TOML: {reason}.") from None
    return text


def apply_settings(document: dict[str, Any], settings: Iterable[str]) -> None:
    """Changes `document` in place, one setting after the other."""
    for text in settings:
        steps, value = read_setting(text)
        if steps[-1] == "backend" and value is None:
            value = "null"  # whoever asks for no storage must never get the default one
        _put(document, steps, value, text)


def set_member(document: dict[str, Any], path: str, value: Any) -> None:
    """Changes one member of `document` in place: what ``--set path=value`` does, with a value that is already read."""
    try:
        _put(document, path.split("."), copy.deepcopy(value), path)
    except PlanError as reason:
        raise PlanError(str(reason).removeprefix(f'--set "{path}": ')) from None


def _put(document: dict[str, Any], steps: list[str], value: Any, text: str) -> None:
    here: Any = document
    for depth, step in enumerate(steps[:-1]):
        here = _descend(here, step, steps[: depth + 1], text)
    last = steps[-1]
    if isinstance(here, list):
        position = _position(here, last, steps, text)
        if value is None:
            del here[position]
        else:
            here[position] = value
        return
    if not isinstance(here, dict):
        raise PlanError(f'--set "{text}": {".".join(steps[:-1])} is {shown(here)}, which has no members.')
    if value is None:
        here.pop(last, None)
        return
    here[last] = value
    if len(steps) > 1 and steps[-2] == "access":
        here.pop(_EITHER_OR.get(last, ""), None)


def _descend(here: Any, step: str, path: list[str], text: str) -> Any:
    if isinstance(here, dict):
        return here.setdefault(step, {})
    if isinstance(here, list):
        return here[_position(here, step, path, text)]
    raise PlanError(f'--set "{text}": {".".join(path[:-1])} is {shown(here)}, which has no members.')


def _position(entries: list[Any], step: str, path: list[str], text: str) -> int:
    ids = [entry.get("id") if isinstance(entry, dict) else None for entry in entries]
    if step in ids:
        return ids.index(step)
    name = ".".join(path[: path.index(step)]) or "the plan"
    if step.isdigit():
        if int(step) < len(entries):
            return int(step)
        count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
        raise PlanError(f'--set "{text}": {name} has {count}, counted from 0; there is no {step}.')
    known = [str(one) for one in ids if one]
    raise PlanError(
        f'--set "{text}": {name} has no entry "{step}"; it has {", ".join(known) or "none"}.{suggestion(step, known)}'
    )
