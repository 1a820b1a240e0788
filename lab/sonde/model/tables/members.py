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


def _declare_member(kind: str, meaning: str, *, required: bool = False, default: Any = None, **options: Any) -> Any:
    metadata = {"member": TableMember(kind, meaning, required=required, **options)}
    return field(metadata=metadata) if required else field(default=default, metadata=metadata)


def text(meaning: str, *, required: bool = False, pattern: str = "") -> Any:
    """A text, empty when absent. `pattern` is a regular expression for the whole text."""
    return _declare_member("text", meaning, required=required, default="", pattern=pattern)


def texts(meaning: str) -> Any:
    """A text or a list of texts, stored as a tuple."""
    return _declare_member("texts", meaning, default=())


def flag(meaning: str) -> Any:
    """true or false; None when absent."""
    return _declare_member("flag", meaning)


def choice(meaning: str, choices: tuple[str, ...], *, required: bool = False, default: str = "") -> Any:
    """One word of a list."""
    return _declare_member("choice", meaning, required=required, default=default, choices=choices)


def choices(meaning: str, allowed: tuple[str, ...]) -> Any:
    """Some words of a list, stored as a tuple."""
    return _declare_member("choices", meaning, default=(), choices=allowed)


def quantity(kind: str, meaning: str, *, required: bool = False, least: int | None = None) -> Any:
    """A Quantity of one kind of number."""
    return _declare_member(kind, meaning, required=required, least=least)


def plain_number(kind: str, meaning: str, *, default: float | None = None, least: int | None = None) -> Any:
    """A number without a source: float, or int for counts and sizes; `default` is in base units."""
    return _declare_member(kind, meaning, default=default, least=least, is_plain=True)


def raw(
    meaning: str, form: Mapping[str, Any], complaint: Callable[[Any], str | None], *, required: bool = False
) -> Any:
    """An unparsed value; `form` is its JSON Schema, `complaint` returns the problem of a value, or None."""
    return _declare_member("raw", meaning, required=required, form=form, find_problem=complaint)


def rates(meaning: str) -> Any:
    """Rates: one rate for both directions, or {read = …, write = …}."""
    return _declare_member("rates", meaning)


def ids(meaning: str, *refers: str, allows_several: bool = False, shared: bool = False, required: bool = False) -> Any:
    """Names of other parts: ids, ranges, groups. One per part; several with `many`; all for every part with
    `shared`."""
    return _declare_member(
        "ids",
        meaning,
        required=required,
        default=(),
        target_kinds=refers,
        allows_several=allows_several or shared,
        is_shared=shared,
    )


def table(meaning: str, cls: type[Any]) -> Any:
    """A nested table."""
    return _declare_member("table", meaning, table=cls)


def tables(meaning: str, cls: type[Any], *, required: bool = False) -> Any:
    """A list of tables."""
    return _declare_member("tables", meaning, required=required, default=(), table=cls)


def settings(meaning: str) -> Any:
    """Free names with texts, numbers or booleans: sysctls, mount options."""
    return _declare_member("settings", meaning, default=None)


def parameters(meaning: str, allowed: Mapping[str, tuple[str, str]]) -> Any:
    """Numbers by name, from a list that grows: name -> Quantity. Names that begin with "x-" are site-defined."""
    return _declare_member("parameters", meaning, default=None, parameters=allowed)


def get_members(cls: type[Any]) -> Mapping[str, TableMember]:
    """Returns the declared members by name, in the order of the class."""
    key: Any = cls
    return _get_declared(key)


@cache
def _get_declared(cls: Any) -> Mapping[str, TableMember]:
    return {
        member_field.name: member_field.metadata["member"]
        for member_field in fields(cls)
        if "member" in member_field.metadata
    }


def list_required_members(cls: type[Any]) -> tuple[str, ...]:
    """Returns the names of the required members."""
    key: Any = cls
    return _list_required(key)


@cache
def _list_required(cls: Any) -> tuple[str, ...]:
    return tuple(name for name, member in _get_declared(cls).items() if member.required)


def get_default(cls: type[Any], name: str) -> Any:
    """Returns the value of a member that is absent from the file."""
    field_found = next(candidate for candidate in fields(cls) if candidate.name == name)
    return None if field_found.default is MISSING else field_found.default
