# SPDX-License-Identifier: Apache-2.0
"""The same system with some parts changed: a slow target, a narrow network, a parity group without parity.

A change is KIND.ID.MEMBER and a value as a system file has it: ``targets.fs1-ost017.model.slowdown`` = 5. An id is
that of one part, a range, or the name of a group. Where a table stands for more parts than are changed, it is divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sonde.model.errors import SystemFileError, UserError, suggestion
from sonde.model.ranges import expand, fold
from sonde.model.system.addressing import listed_addresses, listed_nids
from sonde.model.system.checks import check
from sonde.model.system.description import KINDS
from sonde.model.system.index import Index, Item, Source
from sonde.model.system.network import Host, Interface, Part, Server
from sonde.model.system.storage import RaidGroup
from sonde.model.system.system import System
from sonde.model.tables.members import members
from sonde.model.tables.quantity import Quantity, Rates
from sonde.model.tables.reading import Reading, read_member

# Members that number the parts of a table from its first one.
_COUNTED = ("index", "number")


def with_changes(system: System, changes: Mapping[str, Any]) -> System:
    """The system with all changes applied, then checked again. Raises SystemFileError with one sentence."""
    for path, value in changes.items():
        system = _changed(system, path, value)
    check(system.index)
    return system


def split_path(index: Index, path: str) -> tuple[str, str, list[str]]:
    """Kind, name of parts, and steps to the member. Ids may hold dots: the longest name that is known is taken."""
    kind, _, rest = path.partition(".")
    if kind not in KINDS:
        raise SystemFileError(f'{path}: there is no kind of part "{kind}".{suggestion(kind, KINDS)}')
    steps = rest.split(".")
    for count in range(len(steps) - 1, 0, -1):
        name = ".".join(steps[:count])
        try:
            names = index.named(name)
        except UserError:
            continue
        if all(index.item(one).kind == kind for one in names):
            return kind, name, steps[count:]
    near = [item.id for _, item in zip(range(2000), index.items(kind), strict=False)]
    raise SystemFileError(
        f"{path}: write KIND.ID.MEMBER; {steps[0]} is none of the {kind.replace('_', ' ')}."
        + suggestion(steps[0], [*near, *index.groups])
    )


def _changed(system: System, path: str, value: Any) -> System:
    index = system.index
    kind, name, steps = split_path(index, path)
    wanted = frozenset(index.named(name))
    sources: list[Source] = []
    for source in index.sources:
        for table in _divided(index, source, wanted) if source.kind == kind else (source.table,):
            hit = source.kind == kind and expand(table.id)[0] in wanted
            sources.append(replace(source, table=_with(table, steps, value, path) if hit else table))
    rebuilt = Index(sources)
    listed: dict[str, Any] = {one: tuple(source.table for source in sources if source.kind == one) for one in KINDS}
    return System(
        id=system.id, title=system.title, notes=system.notes, files=system.files, index=rebuilt, **listed
    )  # fmt: skip


def _with(table: Any, steps: list[str], value: Any, path: str) -> Any:
    """`table` with one member read from `value`; None takes it away."""
    known = {name: member for name, member in members(type(table)).items() if name != "id"}
    name, *more = steps
    if name not in known:
        raise SystemFileError(f'{path}: there is no member "{name}" to change.{suggestion(name, known)}')
    at = Reading(SystemFileError, path)
    member, here = known[name], getattr(table, name)
    if not more:
        if value is None:
            absent = type(table).__dataclass_fields__[name].default
            return replace(table, **{name: absent})
        return replace(table, **{name: read_member(member, value, at)})
    if member.kind == "parameters":
        return replace(table, **{name: {**(here or {}), **read_member(member, {".".join(more): value}, at)}})
    if member.kind == "settings":
        return replace(table, **{name: {**(here or {}), ".".join(more): value}})
    if member.kind == "rates" and len(more) == 1:
        read: Rates = read_member(member, {more[0]: value}, at)
        old = here or Rates()
        return replace(table, **{name: Rates(read.read or old.read, read.write or old.write)})
    if member.kind == "table" and member.table is not None:
        return replace(table, **{name: _with(here if here is not None else member.table(), more, value, path)})
    raise SystemFileError(f"{path}: {name} has no members; give it a value as a whole.")


def _divided(index: Index, source: Source, wanted: frozenset[str]) -> Iterator[Part]:
    """The table itself, or tables of its runs of parts that are wanted or not."""
    names = index.ids_of(source.table)
    hits = [name in wanted for name in names]
    if all(hits) or not any(hits):
        yield source.table
        return
    begin = 0
    for end in range(1, len(names) + 1):
        if (
            end == len(names)
            or hits[end] != hits[begin]
            or _block(source.table, end, names) != _block(source.table, begin, names)
        ):
            yield from _pieces(index, source, begin, end)
            begin = end


def _block(table: Part, position: int, names: tuple[str, ...]) -> int:
    """RAID groups of one block share spares: a table is divided between blocks."""
    blocks = int(table.blocks) if isinstance(table, RaidGroup) and table.blocks is not None else 1
    return position * blocks // len(names)


def _pieces(index: Index, source: Source, begin: int, end: int) -> Iterator[Part]:
    """Parts begin … end of a table, as few tables as their names allow."""
    names = index.ids_of(source.table)
    for text in fold(names[begin:end]).split(", "):
        count = len(expand(text))
        yield _run(index, source, begin, begin + count, text)
        begin += count


def _run(index: Index, source: Source, begin: int, end: int, text: str) -> Part:
    """One table for parts begin … end, naming what each of them refers to."""
    table, names = source.table, index.ids_of(source.table)
    items = [Item(source.kind, names[one], table, one, len(names)) for one in range(begin, end)]
    told: dict[str, Any] = {"id": text}
    for name, member in members(type(table)).items():
        if member.kind != "ids" or not getattr(table, name) or member.shared:
            continue
        dealt = [index.share(item, name) for item in items]
        told[name] = dealt[0] if name == "spares" else tuple(one for names_of_one in dealt for one in names_of_one)
    for name in _COUNTED:
        first = getattr(table, name, None)
        if isinstance(first, Quantity):
            told[name] = replace(first, value=first.value + begin, text=str(int(first.value) + begin))
    if isinstance(table, RaidGroup) and table.blocks is not None:
        told["blocks"] = None
    if isinstance(table, Server) and table.failover == "pairs":
        told |= {"failover": "", "partner": tuple(names[one ^ 1] for one in range(begin, end))}
    if isinstance(table, Host):
        told["interfaces"] = tuple(_interface(source, one, begin, end) for one in table.interfaces)
    return replace(table, **told)


def _interface(source: Source, interface: Interface, begin: int, end: int) -> Interface:
    addresses, nids = listed_addresses(source, interface), listed_nids(source, interface)
    return replace(interface, addresses=addresses[begin:end], nids=nids[begin:end])
