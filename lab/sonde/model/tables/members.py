# SPDX-License-Identifier: Apache-2.0
"""Declares the members of a table as dataclass fields: each with its kind and its meaning.

The reader, the JSON Schema and the resolved form all follow these declarations, so they always have the same members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any

from sonde.model.tables.quantity import BASE_UNITS

NUMBER_KINDS = frozenset(BASE_UNITS)


@dataclass(frozen=True)
class TableMember:
    """One member of a table."""

    # A kind of number, or text, texts, flag, choice, choices, ids, rates, table, tables, settings, parameters or raw.
    kind: str
    meaning: str
    required: bool = False
    choices: tuple[str, ...] = ()
    target_kinds: tuple[str, ...] = ()  # kinds of parts that an id may name; empty: any kind
    allows_several: bool = False  # id member: several ids per part
    is_shared: bool = False  # id member: every part of the table has all ids
    table: type[Any] | None = None
    least: int | None = None
    parameters: Mapping[str, tuple[str, str]] | None = None  # name -> (kind of number, meaning)
    pattern: str = ""
    is_plain: bool = False  # a plain float or int without a source, not a Quantity
    form: Mapping[str, Any] | None = None  # raw: the JSON Schema of the value
    find_problem: Callable[[Any], str | None] | None = None  # raw: returns the problem of a value, or None


def _declare_member(
    value_kind: str, description: str, *, required: bool = False, default_value: Any = None, **options: Any
) -> Any:
    metadata = {"member": TableMember(value_kind, description, required=required, **options)}
    return field(metadata=metadata) if required else field(default=default_value, metadata=metadata)


def declare_text(description: str, *, required: bool = False, pattern: str = "") -> Any:
    """A text, empty when absent. `pattern` is a regular expression for the whole text."""
    return _declare_member("text", description, required=required, default_value="", pattern=pattern)


def declare_texts(description: str) -> Any:
    """A text or a list of texts, stored as a tuple."""
    return _declare_member("texts", description, default_value=())


def declare_flag(description: str) -> Any:
    """true or false; None when absent."""
    return _declare_member("flag", description)


def declare_choice(
    description: str, allowed_words: tuple[str, ...], *, required: bool = False, default_word: str = ""
) -> Any:
    """One word of a list."""
    return _declare_member("choice", description, required=required, default_value=default_word, choices=allowed_words)


def declare_choices(description: str, allowed_words: tuple[str, ...]) -> Any:
    """Some words of a list, stored as a tuple."""
    return _declare_member("choices", description, default_value=(), choices=allowed_words)


def declare_quantity(
    number_kind: str, description: str, *, required: bool = False, min_value: int | None = None
) -> Any:
    """A Quantity of one kind of number."""
    return _declare_member(number_kind, description, required=required, least=min_value)


def declare_plain_number(
    number_kind: str, description: str, *, default_value: float | None = None, min_value: int | None = None
) -> Any:
    """A number without a source: float, or int for counts and sizes; `default_value` is in base units."""
    return _declare_member(number_kind, description, default_value=default_value, least=min_value, is_plain=True)


def declare_raw_value(
    description: str,
    json_schema: Mapping[str, Any],
    find_problem: Callable[[Any], str | None],
    *,
    required: bool = False,
) -> Any:
    """An unparsed value; `json_schema` is its JSON Schema, `find_problem` returns the problem of a value, or None."""
    return _declare_member("raw", description, required=required, form=json_schema, find_problem=find_problem)


def declare_rates(description: str) -> Any:
    """Rates: one rate for both directions, or {read = …, write = …}."""
    return _declare_member("rates", description)


def declare_references(
    description: str, *part_kinds: str, allows_several: bool = False, is_shared: bool = False, required: bool = False
) -> Any:
    """Names of other parts: ids, ranges, groups. One per part; several with `allows_several`; all for every part with
    `is_shared`."""
    return _declare_member(
        "ids",
        description,
        required=required,
        default_value=(),
        target_kinds=part_kinds,
        allows_several=allows_several or is_shared,
        is_shared=is_shared,
    )


def declare_table(description: str, cls: type[Any]) -> Any:
    """A nested table."""
    return _declare_member("table", description, table=cls)


def declare_tables(description: str, cls: type[Any], *, required: bool = False) -> Any:
    """A list of tables."""
    return _declare_member("tables", description, required=required, default_value=(), table=cls)


def declare_settings(description: str) -> Any:
    """Free names with texts, numbers or booleans: sysctls, mount options."""
    return _declare_member("settings", description, default_value=None)


def declare_parameters(description: str, quantity_by_name: Mapping[str, tuple[str, str]]) -> Any:
    """Numbers by name, from a list that grows: name -> Quantity. Names that begin with "x-" are site-defined."""
    return _declare_member("parameters", description, default_value=None, parameters=quantity_by_name)


def get_members(cls: type[Any]) -> Mapping[str, TableMember]:
    """Returns the declared members by name, in the order of the class."""
    key: Any = cls
    return _get_declared_members(key)


@cache
def _get_declared_members(cls: Any) -> Mapping[str, TableMember]:
    return {
        member_field.name: member_field.metadata["member"]
        for member_field in fields(cls)
        if "member" in member_field.metadata
    }


def list_required_members(cls: type[Any]) -> tuple[str, ...]:
    """Returns the names of the required members."""
    key: Any = cls
    return _list_names_of_required_members(key)


@cache
def _list_names_of_required_members(cls: Any) -> tuple[str, ...]:
    return tuple(name for name, member in _get_declared_members(cls).items() if member.required)


def get_default_of_member(cls: type[Any], member_name: str) -> Any:
    """Returns the value of a member that is absent from the file."""
    field_found = next(candidate for candidate in fields(cls) if candidate.name == member_name)
    return None if field_found.default is MISSING else field_found.default
