# SPDX-License-Identifier: Apache-2.0
"""How a dataclass declares what a table of a file may hold: each member with its kind and its meaning.

The reader, the JSON Schema and the resolved form all follow these declarations, so that none of them can know a
member that another does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any

from sonde.model.tables.quantity import UNIT_OF

NUMBERS = frozenset(UNIT_OF)


@dataclass(frozen=True)
class Member:
    """One member of a table."""

    # A kind of number, or text, texts, flag, choice, choices, ids, rates, table, tables, settings, parameters or raw.
    kind: str
    meaning: str
    required: bool = False
    choices: tuple[str, ...] = ()
    refers: tuple[str, ...] = ()  # kinds of parts that an id may name; empty: every kind
    many: bool = False  # an id member: several per part, or one
    shared: bool = False  # an id member: all of them for every part of the table, not dealt out
    table: type[Any] | None = None
    least: int | None = None
    parameters: Mapping[str, tuple[str, str]] | None = None  # name -> (kind of number, meaning)
    pattern: str = ""
    bare: bool = False  # a number that is kept as a plain float or int: no source, no Quantity
    form: Mapping[str, Any] | None = None  # raw: the JSON Schema of the value
    complaint: Callable[[Any], str | None] | None = None  # raw: what is wrong with a value, or None


def _member(kind: str, meaning: str, *, required: bool = False, default: Any = None, **more: Any) -> Any:
    told = {"member": Member(kind, meaning, required=required, **more)}
    return field(metadata=told) if required else field(default=default, metadata=told)


def text(meaning: str, *, required: bool = False, pattern: str = "") -> Any:
    """A text; absent is the empty text. `pattern` is a regular expression for all of it."""
    return _member("text", meaning, required=required, default="", pattern=pattern)


def texts(meaning: str) -> Any:
    """A text or a list of texts; kept as a tuple."""
    return _member("texts", meaning, default=())


def flag(meaning: str) -> Any:
    """true or false; None when nobody said."""
    return _member("flag", meaning)


def choice(meaning: str, choices: tuple[str, ...], *, required: bool = False, default: str = "") -> Any:
    """One word of a list."""
    return _member("choice", meaning, required=required, default=default, choices=choices)


def choices(meaning: str, allowed: tuple[str, ...]) -> Any:
    """Some words of a list; kept as a tuple."""
    return _member("choices", meaning, default=(), choices=allowed)


def quantity(kind: str, meaning: str, *, required: bool = False, least: int | None = None) -> Any:
    """A Quantity of one of the kinds of number."""
    return _member(kind, meaning, required=required, least=least)


def bare(kind: str, meaning: str, *, default: float | None = None, least: int | None = None) -> Any:
    """A number that needs no source: float, or int for counts and sizes; `default` is in base units."""
    return _member(kind, meaning, default=default, least=least, bare=True)


def raw(
    meaning: str, form: Mapping[str, Any], complaint: Callable[[Any], str | None], *, required: bool = False
) -> Any:
    """A value that is kept as it stands; `form` is its JSON Schema, `complaint` says what is wrong with it."""
    return _member("raw", meaning, required=required, form=form, complaint=complaint)


def rates(meaning: str) -> Any:
    """Rates: one rate for both directions, or {read = …, write = …}."""
    return _member("rates", meaning)


def ids(meaning: str, *refers: str, many: bool = False, shared: bool = False, required: bool = False) -> Any:
    """Names of other parts: ids, ranges of ids, names of groups. One; or `many`, dealt out; or `shared` by all."""
    return _member("ids", meaning, required=required, default=(), refers=refers, many=many or shared, shared=shared)


def table(meaning: str, cls: type[Any]) -> Any:
    """One table inside this one."""
    return _member("table", meaning, table=cls)


def tables(meaning: str, cls: type[Any], *, required: bool = False) -> Any:
    """A list of tables."""
    return _member("tables", meaning, required=required, default=(), table=cls)


def settings(meaning: str) -> Any:
    """Names and texts, numbers or truth values that others define: sysctls, mount options."""
    return _member("settings", meaning, default=None)


def parameters(meaning: str, allowed: Mapping[str, tuple[str, str]]) -> Any:
    """Numbers by name, of a list that grows: name -> Quantity. Names that begin with "x-" are anyone's."""
    return _member("parameters", meaning, default=None, parameters=allowed)


def members(cls: type[Any]) -> Mapping[str, Member]:
    """Member by name, in the order of the class."""
    key: Any = cls
    return _declared(key)


@cache
def _declared(cls: Any) -> Mapping[str, Member]:
    return {one.name: one.metadata["member"] for one in fields(cls) if "member" in one.metadata}


def required(cls: type[Any]) -> tuple[str, ...]:
    """Names of the members that must be there."""
    key: Any = cls
    return _required(key)


@cache
def _required(cls: Any) -> tuple[str, ...]:
    return tuple(name for name, member in _declared(cls).items() if member.required)


def absent(cls: type[Any], name: str) -> Any:
    """What the dataclass holds for a member that the file does not have."""
    found = next(one for one in fields(cls) if one.name == name)
    return None if found.default is MISSING else found.default
