# SPDX-License-Identifier: Apache-2.0
"""Reads tables into the dataclasses that declare them. What is wrong becomes one sentence with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from sonde.model.errors import UnitError, UserError, suggestion
from sonde.model.explain import shown
from sonde.model.tables.members import NUMBERS, Member, members, required
from sonde.model.tables.quantity import PARSERS, STATUSES, Quantity, Rates

T = TypeVar("T")
_QUANTITY = ("value", "source", "status", "note")
_SCALAR = (str, int, float, bool)


class Reading(NamedTuple):
    """Where we are: the file, the place in it, and what holds for numbers that say no source of their own.

    One is made for every member of a file, so it is a plain tuple and the place is written out only for an error.
    """

    error: type[UserError]
    origin: str
    path: tuple[str, ...] = ()
    source: str = ""
    status: str = ""

    @property
    def where(self) -> str:
        """The place in the file, as names joined by dots."""
        return ".".join(self.path)

    def at(self, name: str) -> Reading:
        """One level deeper."""
        return Reading(self.error, self.origin, (*self.path, name), self.source, self.status)

    def wrong(self, what: str) -> UserError:
        """The error whose sentence is `what`, led by file and place."""
        return self.error(f"{self.origin}: {self.where}{' ' if self.where else ''}{what}")

    def unit(self, reason: UserError) -> UserError:
        """An error of a value, led by file and place."""
        return self.error(f"{self.origin}: {self.where}{': ' if self.where else ''}{reason}")


def read_table(cls: type[T], found: object, at: Reading) -> T:
    """The table as `cls`. Raises the reading's error."""
    if not isinstance(found, Mapping):
        raise at.wrong(f"is {shown(found)}; it must be a table of members.")
    known = members(cls)
    for name in found:
        if name not in known:
            near = suggestion(str(name), known)
            told = near.strip() if near else f"Allowed are {', '.join(known)}."
            raise at.error(f'{at.origin}: {at.where or "the file"} has no member "{name}". {told}')
    for name in required(cls):
        if name not in found:
            raise at.wrong(f'lacks "{name}": {known[name].meaning}.')
    inherits = at
    if "source" in found or "status" in found:
        source, status = (_word(found, name, getattr(at, name), known) for name in ("source", "status"))
        inherits = at._replace(source=source, status=status)
    return cls(**{name: _value(known[name], value, inherits.at(name)) for name, value in found.items()})


def _word(found: Mapping[str, Any], name: str, otherwise: str, known: Mapping[str, Member]) -> str:
    value = found.get(name) if name in known else None
    return value if isinstance(value, str) else otherwise


def read_member(member: Member, value: Any, at: Reading) -> Any:
    """One member of a table, read from what a file would say. Raises the reading's error."""
    return _value(member, value, at)


def _value(member: Member, value: Any, at: Reading) -> Any:
    if member.kind in NUMBERS and member.bare:
        return _bare(member, value, at)
    if member.kind in NUMBERS:
        return quantity(member.kind, value, at, member.least)
    return _OTHER[member.kind](member, value, at)


def quantity(kind: str, value: Any, at: Reading, least: int | None = None) -> Quantity:
    """A number as written, or a table {value, source, status, note}."""
    source, status, note, written = at.source, at.status, "", value
    if isinstance(value, Mapping):
        for name, one in value.items():
            if name not in _QUANTITY:
                raise at.wrong(
                    f'has no member "{name}"; a number is written plainly or as {{value, source, status, note}}.'
                    + suggestion(str(name), _QUANTITY)
                )
            if name != "value" and not isinstance(one, str):
                raise at.at(str(name)).wrong(f"is {shown(one)}; it must be a text.")
        if "value" not in value:
            raise at.wrong('lacks "value"; a number with a source is {value = …, source = "…"}.')
        written, note = value["value"], value.get("note", "")
        source, status = value.get("source", source), value.get("status", status)
        if status and status not in STATUSES:
            raise at.at("status").wrong(
                f'is "{status}"; allowed is {", ".join(STATUSES)}.{suggestion(status, STATUSES)}'
            )
    try:
        if isinstance(written, str) and written != written.strip():
            raise UnitError(f"{shown(written)} has spaces around it; remove them.")
        if isinstance(written, list | Mapping):
            raise UnitError(f"{shown(written)} is not one number.")
        parsed = PARSERS[kind](written)
    except UnitError as reason:
        raise at.unit(reason) from None
    if least is not None and parsed < least:
        raise at.wrong(f"is {shown(written)}; it must be at least {least}.")
    return Quantity(parsed, str(written), source, status, note)


def _bare(member: Member, value: Any, at: Reading) -> float:
    if isinstance(value, Mapping):
        raise at.wrong(f"is {shown(value)}; it must be one number: {member.meaning}.")
    return quantity(member.kind, value, at, member.least).value


def _raw(member: Member, value: Any, at: Reading) -> Any:
    told = member.complaint(value) if member.complaint is not None else None
    if told:
        raise at.wrong(told)
    return value


def _text(member: Member, value: Any, at: Reading) -> str:
    if not isinstance(value, str):
        raise at.wrong(f"is {shown(value)}; it must be a text: {member.meaning}.")
    if member.required and not value:
        raise at.wrong(f"is empty; write {member.meaning}.")
    if member.pattern and not re.fullmatch(member.pattern, value):
        raise at.wrong(f"is {shown(value)}; write {member.meaning}.")
    return value


def _texts(member: Member, value: Any, at: Reading) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise at.wrong(f"is {shown(value)}; it must be a text or a list of texts: {member.meaning}.")
    if member.required and not any(listed):
        raise at.wrong(f"is empty; write {member.meaning}.")
    return tuple(listed)


def _flag(_: Member, value: Any, at: Reading) -> bool:
    if not isinstance(value, bool):
        raise at.wrong(f"is {shown(value)}; write true or false without quotation marks.")
    return value


def _choice(member: Member, value: Any, at: Reading) -> str:
    if value not in member.choices:
        near = suggestion(value, member.choices) if isinstance(value, str) else ""
        raise at.wrong(f"is {shown(value)}; allowed is {', '.join(member.choices)}.{near}")
    return cast(str, value)


def _choices(member: Member, value: Any, at: Reading) -> tuple[str, ...]:
    return tuple(_choice(member, one, at) for one in (value if isinstance(value, list) else [value]))


def _rates(_: Member, value: Any, at: Reading) -> Rates:
    if isinstance(value, Mapping) and not value.keys() & {"value", "source", "status", "note"}:
        for name in value:
            if name not in ("read", "write"):
                raise at.wrong(
                    f'has no member "{name}"; write one rate for both directions or {{read = "…", write = "…"}}.'
                    + suggestion(str(name), ("read", "write", "value"))
                )
        return Rates(**{name: quantity("rate", one, at.at(name)) for name, one in value.items()})
    both = quantity("rate", value, at)
    return Rates(both, both)


def _table(member: Member, value: Any, at: Reading) -> Any:
    assert member.table is not None
    return read_table(member.table, value, at)


def _tables(member: Member, value: Any, at: Reading) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise at.wrong(f"is {shown(value)}; it must be a list of tables, each written as [[{at.where}]].")
    assert member.table is not None
    return tuple(read_table(member.table, one, at.at(_name_of(one, number))) for number, one in enumerate(value))


def _name_of(found: object, number: int) -> str:
    name = found.get("id") if isinstance(found, Mapping) else None
    return name if isinstance(name, str) and name else str(number)


def _settings(_: Member, value: Any, at: Reading) -> dict[str, str | int | float | bool]:
    if not isinstance(value, Mapping):
        raise at.wrong(f"is {shown(value)}; it must be a table of names and values.")
    for name, one in value.items():
        if not isinstance(one, _SCALAR):
            raise at.at(str(name)).wrong(f"is {shown(one)}; it must be a text, a number, true or false.")
    return dict(value)


def _parameters(member: Member, value: Any, at: Reading) -> dict[str, Quantity]:
    if not isinstance(value, Mapping):
        raise at.wrong(f"is {shown(value)}; it must be a table of parameters.")
    known = member.parameters or {}
    read: dict[str, Quantity] = {}
    for name, one in value.items():
        if name.startswith("x-"):
            read[name] = quantity("number", one, at.at(name))
        elif name in known:
            read[name] = quantity(known[name][0], one, at.at(name))
        else:
            near = suggestion(name, known)
            told = near.strip() or f"Known are {', '.join(known)}; one of your own begins with x-."
            raise at.wrong(f'has no parameter "{name}". {told}')
    return read


_OTHER: Mapping[str, Callable[[Member, Any, Reading], Any]] = {
    "text": _text,
    "texts": _texts,
    "flag": _flag,
    "choice": _choice,
    "choices": _choices,
    "ids": _texts,
    "rates": _rates,
    "table": _table,
    "tables": _tables,
    "settings": _settings,
    "parameters": _parameters,
    "raw": _raw,
}
