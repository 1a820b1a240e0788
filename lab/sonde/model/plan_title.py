# SPDX-License-Identifier: Apache-2.0
"""Titles of plans and experiments: members of the plan in braces, like {data.access.volume}, become their values.

A title that states its numbers in this way is true of every change of the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sonde.model.errors import UnitError
from sonde.model.units import format_bytes, parse_bytes

_PLACEHOLDER_PATTERN = re.compile(r"\{([a-z0-9_]+(?:\.[A-Za-z0-9_-]+)+)\}")
# Members that are sizes also where the plan states a number without a unit.
_SIZE_MEMBERS = ("volume", "transfer", "block", "size", "stride", "offset", "gap")
# So many values of a swept member are listed; of more the first and the last.
_MAX_LISTED_VALUES = 3


def list_title_members(title: str) -> list[str]:
    """The paths of the members that a title states."""
    return _PLACEHOLDER_PATTERN.findall(title)


def compose_title(title: str, resolved_plans: Sequence[Mapping[str, Any]]) -> str:
    """Replaces each member path in the title by the distinct values of that member in the plans; a path that no plan
    has stays unchanged."""

    def format_values(match: re.Match[str]) -> str:
        values = [value for plan in resolved_plans if (value := _find_member(plan, match[1])) is not None]
        texts = list(dict.fromkeys(_format_value(match[1], value) for value in values))
        if len(texts) > _MAX_LISTED_VALUES:
            return f"{texts[0]} to {texts[-1]}"
        return ", ".join(texts) or match[0]

    return _PLACEHOLDER_PATTERN.sub(format_values, title)


def _find_member(plan_document: Mapping[str, Any], member_path: str) -> Any:
    """The value of a member; a phase is named by its id."""
    value: Any = plan_document
    for name in member_path.split("."):
        value = next((item for item in _iterate_members(value, name)), None)
    return value


def _iterate_members(plan_part: Any, member_name: str) -> Iterator[Any]:
    if isinstance(plan_part, Mapping) and member_name in plan_part:
        yield plan_part[member_name]
    elif isinstance(plan_part, list):
        yield from (item for item in plan_part if isinstance(item, Mapping) and item.get("id") == member_name)


def _format_value(member_path: str, member_value: Any) -> str:
    is_number = isinstance(member_value, int) and not isinstance(member_value, bool)
    if isinstance(member_value, str) or (is_number and member_path.rpartition(".")[2] in _SIZE_MEMBERS):
        with suppress(UnitError):
            return _format_size(member_value)
    return f"{member_value:,}" if is_number else str(member_value)


def _format_size(planned_size: str | int) -> str:
    """A size as the plan states it: decimal prefixes stay decimal."""
    size = parse_bytes(planned_size)
    number = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", str(planned_size))
    return f"{number[1]} {number[2]}" if number is not None and number[2] else str(format_bytes(size))
