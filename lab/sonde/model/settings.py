# SPDX-License-Identifier: Apache-2.0
"""``--set path=value``: changes one member of a plan from the command line.

A path names members by dots: ``data.access.transfer``. An entry of a list is named by its number, a phase also by its
id: ``phases.0.op``, ``phases.read.stop.time``. A value is JSON if it parses as JSON (numbers, true, false, lists,
tables), otherwise text, so that
``--set data.access.transfer=4KiB`` needs no quotation marks. ``null`` removes a member, except that
``data.backend=null`` selects the backend "null".
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from sonde.model.documents import DocumentError, parse_json, parse_toml
from sonde.model.errors import PlanError, suggest_name
from sonde.model.schema_problems import format_value

# Setting one of these removes the other, because a plan may have only one of them.
_EXCLUSIVE_MEMBERS = {"segments": "volume", "volume": "segments"}


def parse_setting(text: str) -> tuple[list[str], Any]:
    """Splits ``path=value``; raises PlanError when it is not of that form."""
    path, equals, value = text.partition("=")
    steps = path.strip().split(".")
    if not equals:
        raise PlanError(f'--set "{text}" has no "="; write it like --set data.access.transfer=4KiB.')
    if not all(steps):
        raise PlanError(f'--set "{text}" has an empty name before the "="; write it like data.access.transfer=4KiB.')
    return steps, _parse_value(value.strip())


def _parse_value(text: str) -> Any:
    try:
        return parse_json(text, parse_constant=lambda name: name)
    except DocumentError as error:
        raise PlanError(f"--set value {format_value(text[:40])}… cannot be used: {error}.") from None
    except ValueError:
        pass
    if text[:1] in ("{", "[", "'"):
        try:
            return parse_toml(f"value = {text}")["value"]
        except ValueError as error:
            raise PlanError(f"--set value {format_value(text)} is neither JSON nor TOML: {error}.") from None
    return text


def apply_settings(document: dict[str, Any], settings: Iterable[str]) -> None:
    """Applies settings to `document` in place, in order."""
    for setting in settings:
        steps, value = parse_setting(setting)
        if steps[-1] == "backend" and value is None:
            value = "null"  # removing the member would select the default backend instead of null
        _set_at_path(document, steps, value, setting)


def set_member(document: dict[str, Any], path: str, value: Any) -> None:
    """Sets one member of `document` in place, like ``--set path=value`` with a parsed value."""
    try:
        _set_at_path(document, path.split("."), copy.deepcopy(value), path)
    except PlanError as error:
        raise PlanError(str(error).removeprefix(f'--set "{path}": ')) from None


def _set_at_path(document: dict[str, Any], steps: list[str], value: Any, setting: str) -> None:
    container: Any = document
    for depth, step in enumerate(steps[:-1]):
        container = _descend_to_member(container, step, steps[: depth + 1], setting)
    member = steps[-1]
    if isinstance(container, list):
        position = _find_position(container, member, steps, setting)
        if value is None:
            del container[position]
        else:
            container[position] = value
        return
    if not isinstance(container, dict):
        raise PlanError(
            f'--set "{setting}": {".".join(steps[:-1])} is {format_value(container)}, which has no members.'
        )
    if value is None:
        container.pop(member, None)
        return
    container[member] = value
    if len(steps) > 1 and steps[-2] == "access":
        container.pop(_EXCLUSIVE_MEMBERS.get(member, ""), None)


def _descend_to_member(container: Any, step: str, path: list[str], setting: str) -> Any:
    if isinstance(container, dict):
        return container.setdefault(step, {})
    if isinstance(container, list):
        return container[_find_position(container, step, path, setting)]
    raise PlanError(f'--set "{setting}": {".".join(path[:-1])} is {format_value(container)}, which has no members.')


def _find_position(entries: list[Any], step: str, path: list[str], setting: str) -> int:
    ids = [entry.get("id") if isinstance(entry, dict) else None for entry in entries]
    if step in ids:
        return ids.index(step)
    name = ".".join(path[: path.index(step)]) or "the plan"
    if step.isdigit():
        if int(step) < len(entries):
            return int(step)
        count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
        raise PlanError(f'--set "{setting}": {name} has {count}, counted from 0; there is no {step}.')
    known_ids = [str(entry_id) for entry_id in ids if entry_id]
    raise PlanError(
        f'--set "{setting}": {name} has no entry "{step}"; it has'
        f" {', '.join(known_ids) or 'none'}.{suggest_name(step, known_ids)}"
    )
