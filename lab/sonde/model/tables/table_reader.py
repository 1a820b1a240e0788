# SPDX-License-Identifier: Apache-2.0
"""Reads tables into the dataclasses that declare them. A problem becomes one sentence with file and member."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from sonde.model.errors import UnitError, UserError, suggest_close_name
from sonde.model.schema_problems import format_json_value
from sonde.model.tables.members import NUMBER_KINDS, TableMember, get_members, list_required_members
from sonde.model.tables.quantity import NUMBER_PARSERS, SOURCE_STATUSES, Quantity, ReadWriteRates

TableClass = TypeVar("TableClass")
_QUANTITY_MEMBERS = ("value", "source", "status", "note")
_SCALAR_TYPES = (str, int, float, bool)


class ReadContext(NamedTuple):
    """The current file and member path, and the default source of numbers.

    One is created for every member of a file, so it is a tuple, and the path is formatted only for errors.
    """

    error: type[UserError]
    origin: str
    path: tuple[str, ...] = ()
    source: str = ""
    status: str = ""

    @property
    def location(self) -> str:
        """The member path, joined by dots."""
        return ".".join(self.path)

    def make_nested_context(self, member_name: str) -> ReadContext:
        """Returns the context of a nested member."""
        return ReadContext(self.error, self.origin, (*self.path, member_name), self.source, self.status)

    def make_error(self, problem_clause: str) -> UserError:
        """Returns an error: file, member path, problem."""
        return self.error(f"{self.origin}: {self.location}{' ' if self.location else ''}{problem_clause}")

    def wrap_error(self, error: UserError) -> UserError:
        """Returns an error about a value: file, member path, reason."""
        return self.error(f"{self.origin}: {self.location}{': ' if self.location else ''}{error}")


def read_table(cls: type[TableClass], table_document: object, context: ReadContext) -> TableClass:
    """Reads a table as `cls`. Raises the context's error."""
    if not isinstance(table_document, Mapping):
        raise context.make_error(f"is {format_json_value(table_document)}; it must be a table of members.")
    members_by_name = get_members(cls)
    for name in table_document:
        if name not in members_by_name:
            hint = suggest_close_name(str(name), members_by_name)
            advice = hint.strip() if hint else f"Allowed are {', '.join(members_by_name)}."
            raise context.error(f'{context.origin}: {context.location or "the file"} has no member "{name}". {advice}')
    for name in list_required_members(cls):
        if name not in table_document:
            raise context.make_error(_describe_missing_member(name, members_by_name[name]))
    inner_context = context
    if "source" in table_document or "status" in table_document:
        source, status = (
            _get_text_or_fallback(table_document, name, getattr(context, name), members_by_name)
            for name in ("source", "status")
        )
        inner_context = context._replace(source=source, status=status)
    return cls(
        **{
            name: _read_member_value(members_by_name[name], value, inner_context.make_nested_context(name))
            for name, value in table_document.items()
        }
    )


def _describe_missing_member(member_name: str, member: TableMember) -> str:
    choices = f", one of {', '.join(member.choices)}" if member.choices else ""
    return f'lacks "{member_name}": {member.meaning}{choices}.'


def find_table_problems(cls: type[Any], table_document: object, context: ReadContext) -> Iterator[UserError]:
    """Yields every problem of a table and of the tables inside, where `read_table` raises the first."""
    if not isinstance(table_document, Mapping):
        yield context.make_error(f"is {format_json_value(table_document)}; it must be a table of members.")
        return
    members_by_name = get_members(cls)
    for name, value in table_document.items():
        inner_context = context.make_nested_context(str(name))
        member = members_by_name.get(name)
        if member is None:
            hint = suggest_close_name(str(name), members_by_name)
            advice = hint.strip() if hint else f"Allowed are {', '.join(members_by_name)}."
            yield context.error(f'{context.origin}: {context.location or "the file"} has no member "{name}". {advice}')
        elif member.kind == "tables" and isinstance(value, list) and member.table is not None:
            for number, entry in enumerate(value):
                yield from find_table_problems(
                    member.table, entry, inner_context.make_nested_context(_make_entry_name(entry, number))
                )
        elif member.kind == "table" and member.table is not None:
            yield from find_table_problems(member.table, value, inner_context)
        else:
            try:
                _read_member_value(member, value, inner_context)
            except UserError as problem:
                yield problem
    for name in list_required_members(cls):
        if name not in table_document:
            yield context.make_error(_describe_missing_member(name, members_by_name[name]))


def _get_text_or_fallback(
    table_document: Mapping[str, Any], member_name: str, fallback_text: str, members_by_name: Mapping[str, TableMember]
) -> str:
    value = table_document.get(member_name) if member_name in members_by_name else None
    return value if isinstance(value, str) else fallback_text


def read_member(member: TableMember, raw_value: Any, read_context: ReadContext) -> Any:
    """Reads one member of a table from its value in a file. Raises the context's error."""
    return _read_member_value(member, raw_value, read_context)


def _read_member_value(member: TableMember, raw_value: Any, read_context: ReadContext) -> Any:
    if member.kind in NUMBER_KINDS and member.is_plain:
        return _read_number(member, raw_value, read_context)
    if member.kind in NUMBER_KINDS:
        return read_quantity(member.kind, raw_value, read_context, member.least)
    return _READERS_BY_MEMBER_KIND[member.kind](member, raw_value, read_context)


def read_quantity(
    number_kind: str, raw_value: Any, read_context: ReadContext, min_value: int | None = None
) -> Quantity:
    """Reads a number, given plainly or as a table {value, source, status, note}."""
    source, status, note, written = read_context.source, read_context.status, "", raw_value
    if isinstance(raw_value, Mapping):
        for name, attribute in raw_value.items():
            if name not in _QUANTITY_MEMBERS:
                raise read_context.make_error(
                    f'has no member "{name}"; a number is written plainly or as {{value, source, status, note}}.'
                    + suggest_close_name(str(name), _QUANTITY_MEMBERS)
                )
            if name != "value" and not isinstance(attribute, str):
                raise read_context.make_nested_context(str(name)).make_error(
                    f"is {format_json_value(attribute)}; it must be a text."
                )
        if "value" not in raw_value:
            raise read_context.make_error('lacks "value"; a number with a source is {value = …, source = "…"}.')
        written, note = raw_value["value"], raw_value.get("note", "")
        source, status = raw_value.get("source", source), raw_value.get("status", status)
        if status and status not in SOURCE_STATUSES:
            raise read_context.make_nested_context("status").make_error(
                f'is "{status}"; allowed is {", ".join(SOURCE_STATUSES)}.{suggest_close_name(status, SOURCE_STATUSES)}'
            )
    try:
        if isinstance(written, str) and written != written.strip():
            raise UnitError(f"{format_json_value(written)} has spaces around it; remove them.")
        if isinstance(written, list | Mapping):
            raise UnitError(f"{format_json_value(written)} is not one number.")
        parsed = NUMBER_PARSERS[number_kind](written)
    except UnitError as error:
        raise read_context.wrap_error(error) from None
    if min_value is not None and parsed < min_value:
        raise read_context.make_error(f"is {format_json_value(written)}; it must be at least {min_value}.")
    return Quantity(parsed, str(written), source, status, note)


def _read_number(member: TableMember, raw_value: Any, read_context: ReadContext) -> float:
    if isinstance(raw_value, Mapping):
        raise read_context.make_error(f"is {format_json_value(raw_value)}; it must be one number: {member.meaning}.")
    return read_quantity(member.kind, raw_value, read_context, member.least).value


def _read_raw_value(member: TableMember, raw_value: Any, read_context: ReadContext) -> Any:
    problem = member.find_problem(raw_value) if member.find_problem is not None else None
    if problem:
        raise read_context.make_error(problem)
    return raw_value


def _read_text(member: TableMember, raw_value: Any, read_context: ReadContext) -> str:
    if not isinstance(raw_value, str):
        raise read_context.make_error(f"is {format_json_value(raw_value)}; it must be a text: {member.meaning}.")
    if member.required and not raw_value:
        raise read_context.make_error(f"is empty; write {member.meaning}.")
    if member.pattern and not re.fullmatch(member.pattern, raw_value):
        raise read_context.make_error(f"is {format_json_value(raw_value)}; write {member.meaning}.")
    return raw_value


def _read_texts(member: TableMember, raw_value: Any, read_context: ReadContext) -> tuple[str, ...]:
    texts = [raw_value] if isinstance(raw_value, str) else raw_value
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise read_context.make_error(
            f"is {format_json_value(raw_value)}; it must be a text or a list of texts: {member.meaning}."
        )
    if member.required and not any(texts):
        raise read_context.make_error(f"is empty; write {member.meaning}.")
    return tuple(texts)


def _read_flag(_: TableMember, raw_value: Any, read_context: ReadContext) -> bool:
    if not isinstance(raw_value, bool):
        raise read_context.make_error(
            f"is {format_json_value(raw_value)}; write true or false without quotation marks."
        )
    return raw_value


def _read_choice(member: TableMember, raw_value: Any, read_context: ReadContext) -> str:
    if raw_value not in member.choices:
        hint = suggest_close_name(raw_value, member.choices) if isinstance(raw_value, str) else ""
        raise read_context.make_error(
            f"is {format_json_value(raw_value)}; allowed is {', '.join(member.choices)}.{hint}"
        )
    return cast(str, raw_value)


def _read_choices(member: TableMember, raw_value: Any, read_context: ReadContext) -> tuple[str, ...]:
    return tuple(
        _read_choice(member, item, read_context) for item in (raw_value if isinstance(raw_value, list) else [raw_value])
    )


def _read_rates(_: TableMember, raw_value: Any, read_context: ReadContext) -> ReadWriteRates:
    if isinstance(raw_value, Mapping) and not raw_value.keys() & {"value", "source", "status", "note"}:
        for name in raw_value:
            if name not in ("read", "write"):
                raise read_context.make_error(
                    f'has no member "{name}"; write one rate for both directions or {{read = "…", write = "…"}}.'
                    + suggest_close_name(str(name), ("read", "write", "value"))
                )
        return ReadWriteRates(
            **{
                name: read_quantity("rate", rate, read_context.make_nested_context(name))
                for name, rate in raw_value.items()
            }
        )
    rate_both_ways = read_quantity("rate", raw_value, read_context)
    return ReadWriteRates(rate_both_ways, rate_both_ways)


def _read_table(member: TableMember, raw_value: Any, read_context: ReadContext) -> Any:
    assert member.table is not None
    return read_table(member.table, raw_value, read_context)


def _read_tables(member: TableMember, raw_value: Any, read_context: ReadContext) -> tuple[Any, ...]:
    if not isinstance(raw_value, list):
        raise read_context.make_error(
            f"is {format_json_value(raw_value)}; it must be a list of tables, each written as "
            f"[[{read_context.location}]]."
        )
    assert member.table is not None
    return tuple(
        read_table(member.table, entry, read_context.make_nested_context(_make_entry_name(entry, number)))
        for number, entry in enumerate(raw_value)
    )


def _make_entry_name(table_entry: object, entry_number: int) -> str:
    name = table_entry.get("id") if isinstance(table_entry, Mapping) else None
    return name if isinstance(name, str) and name else str(entry_number)


def _read_settings(_: TableMember, raw_value: Any, read_context: ReadContext) -> dict[str, str | int | float | bool]:
    if not isinstance(raw_value, Mapping):
        raise read_context.make_error(f"is {format_json_value(raw_value)}; it must be a table of names and values.")
    for name, setting in raw_value.items():
        if not isinstance(setting, _SCALAR_TYPES):
            raise read_context.make_nested_context(str(name)).make_error(
                f"is {format_json_value(setting)}; it must be a text, a number, true or false."
            )
    return dict(raw_value)


def _read_parameters(member: TableMember, raw_value: Any, read_context: ReadContext) -> dict[str, Quantity]:
    if not isinstance(raw_value, Mapping):
        raise read_context.make_error(f"is {format_json_value(raw_value)}; it must be a table of parameters.")
    known_parameters = member.parameters or {}
    quantities: dict[str, Quantity] = {}
    for name, parameter in raw_value.items():
        if name.startswith("x-"):
            quantities[name] = read_quantity("number", parameter, read_context.make_nested_context(name))
        elif name in known_parameters:
            quantities[name] = read_quantity(
                known_parameters[name][0], parameter, read_context.make_nested_context(name)
            )
        else:
            hint = suggest_close_name(name, known_parameters)
            advice = hint.strip() or f"Known are {', '.join(known_parameters)}; one of your own begins with x-."
            raise read_context.make_error(f'has no parameter "{name}". {advice}')
    return quantities


_READERS_BY_MEMBER_KIND: Mapping[str, Callable[[TableMember, Any, ReadContext], Any]] = {
    "text": _read_text,
    "texts": _read_texts,
    "flag": _read_flag,
    "choice": _read_choice,
    "choices": _read_choices,
    "ids": _read_texts,
    "rates": _read_rates,
    "table": _read_table,
    "tables": _read_tables,
    "settings": _read_settings,
    "parameters": _read_parameters,
    "raw": _read_raw_value,
}
