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
from sonde.model.errors import PlanError, suggest_close_name
from sonde.model.schema_problems import format_json_value

# Setting one of these removes the other, because a plan may have only one of them.
_EXCLUSIVE_MEMBERS = {"segments": "volume", "volume": "segments"}


def parse_setting(path_and_value: str) -> tuple[list[str], Any]:
    """Splits ``path=value``; raises PlanError when it is not of that form."""
    path, equals, value = path_and_value.partition("=")
    steps = path.strip().split(".")
    if not equals:
        raise PlanError(f'--set "{path_and_value}" has no "="; write it like --set data.access.transfer=4KiB.')
    if not all(steps):
        raise PlanError(
            f'--set "{path_and_value}" has an empty name before the "="; write it like data.access.transfer=4KiB.'
        )
    return steps, _parse_setting_value(value.strip())


def _parse_setting_value(value_text: str) -> Any:
    try:
        return parse_json(value_text, parse_constant=lambda name: name)
    except DocumentError as error:
        raise PlanError(f"--set value {format_json_value(value_text[:40])}… cannot be used: {error}.") from None
    except ValueError:
        pass
    if value_text[:1] in ("{", "[", "'"):
        try:
            return parse_toml(f"value = {value_text}")["value"]
        except ValueError as error:
            raise PlanError(f"--set value {format_json_value(value_text)} is neither JSON nor TOML: {error}.") from None
    return value_text


def apply_settings(document: dict[str, Any], setting_texts: Iterable[str]) -> None:
    """Applies settings to `document` in place, in order."""
    for setting in setting_texts:
        steps, value = parse_setting(setting)
        if steps[-1] == "backend" and value is None:
            value = "null"  # removing the member would select the default backend instead of null
        _set_member_at_steps(document, steps, value, setting)


def set_member_at_path(document: dict[str, Any], member_path: str, member_value: Any) -> None:
    """Sets one member of `document` in place, like ``--set path=value`` with a parsed value."""
    try:
        _set_member_at_steps(document, member_path.split("."), copy.deepcopy(member_value), member_path)
    except PlanError as error:
        raise PlanError(str(error).removeprefix(f'--set "{member_path}": ')) from None


def _set_member_at_steps(document: dict[str, Any], path_steps: list[str], member_value: Any, setting_text: str) -> None:
    container: Any = document
    for depth, step in enumerate(path_steps[:-1]):
        container = _descend_to_member(container, step, path_steps[: depth + 1], setting_text)
    member = path_steps[-1]
    if isinstance(container, list):
        position = _find_list_position(container, member, path_steps, setting_text)
        if member_value is None:
            del container[position]
        else:
            container[position] = member_value
        return
    if not isinstance(container, dict):
        raise PlanError(
            f'--set "{setting_text}": {".".join(path_steps[:-1])} is {format_json_value(container)}, which has no '
            "members."
        )
    if member_value is None:
        container.pop(member, None)
        return
    container[member] = member_value
    if len(path_steps) > 1 and path_steps[-2] == "access":
        container.pop(_EXCLUSIVE_MEMBERS.get(member, ""), None)


def _descend_to_member(table_or_list: Any, path_step: str, path_so_far: list[str], setting_text: str) -> Any:
    if isinstance(table_or_list, dict):
        return table_or_list.setdefault(path_step, {})
    if isinstance(table_or_list, list):
        return table_or_list[_find_list_position(table_or_list, path_step, path_so_far, setting_text)]
    raise PlanError(
        f'--set "{setting_text}": {".".join(path_so_far[:-1])} is {format_json_value(table_or_list)},'
        " which has no members."
    )


def _find_list_position(list_entries: list[Any], path_step: str, path_so_far: list[str], setting_text: str) -> int:
    ids = [entry.get("id") if isinstance(entry, dict) else None for entry in list_entries]
    if path_step in ids:
        return ids.index(path_step)
    name = ".".join(path_so_far[: path_so_far.index(path_step)]) or "the plan"
    if path_step.isdigit():
        if int(path_step) < len(list_entries):
            return int(path_step)
        count = f"{len(list_entries)} {'entry' if len(list_entries) == 1 else 'entries'}"
        raise PlanError(f'--set "{setting_text}": {name} has {count}, counted from 0; there is no {path_step}.')
    known_ids = [str(entry_id) for entry_id in ids if entry_id]
    raise PlanError(
        f'--set "{setting_text}": {name} has no entry "{path_step}"; it has'
        f" {', '.join(known_ids) or 'none'}.{suggest_close_name(path_step, known_ids)}"
    )
