# SPDX-License-Identifier: Apache-2.0
"""Every part of a system by its id, and who refers to whom.

A table whose id is a range stands for several parts in order. What it refers to is dealt out in order too: one name
for all, one for each, or one for each equal block (``server = "oss[001-024]"`` on 96 targets: four targets each).
Where several may be named (the drives of RAID groups) each part gets an equal run of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sonde.model.errors import SystemFileError, suggestion
from sonde.model.ranges import RangeError, expand, fold
from sonde.model.system.description import KINDS
from sonde.model.system.network import Part
from sonde.model.tables.members import members


class Item(NamedTuple):
    """One part: the table that describes it and its place among the parts of that table."""

    kind: str  # as in description.KINDS
    id: str
    table: Part
    position: int
    total: int


@dataclass(frozen=True)
class Source:
    """A table and the file it was read from."""

    kind: str
    table: Part
    origin: str

    def wrong(self, member: str, what: str) -> SystemFileError:
        """A sentence about one member of the table."""
        dot = f".{member}" if member else ""
        return SystemFileError(f"{self.origin}: {self.kind}.{self.table.id}{dot} {what}")


class Index:
    """Parts by id, groups by name, references in order. Raises SystemFileError when ids or references are wrong."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)
        self._items: dict[str, Item] = {}
        self._by_kind: dict[str, list[Item]] = {kind: [] for kind in KINDS}
        self._groups: dict[str, list[str]] = {}
        self._ids: dict[int, tuple[str, ...]] = {}
        self._source: dict[int, Source] = {}
        self._references: dict[tuple[int, str], tuple[str, ...]] = {}
        for source in self.sources:
            self._add(source)
        for source in self.sources:
            group = source.table.group
            if group in self._items and self._groups[group] != [group]:
                raise source.wrong(
                    "group", f'is "{group}", which is the id of a part; a group needs a name of its own.'
                )

    def _add(self, source: Source) -> None:
        try:
            names = expand(source.table.id)
        except RangeError as reason:
            raise source.wrong("id", f"is not a range: {reason}") from None
        self._ids[id(source.table)] = names
        self._source[id(source.table)] = source
        listed, items, total = self._by_kind[source.kind], self._items, len(names)
        for position, name in enumerate(names):
            item = Item(source.kind, name, source.table, position, total)
            if items.setdefault(name, item) is not item:
                other = self._source[id(items[name].table)]
                raise source.wrong(
                    "id", f'names "{name}", which {other.kind}.{other.table.id} in {other.origin} names too; '
                    "every id is used once in a system."
                )  # fmt: skip
            listed.append(item)
        if source.table.group:
            self._groups.setdefault(source.table.group, []).extend(names)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def item(self, name: str) -> Item:
        """The part of that id. Raises SystemFileError with the nearest id."""
        try:
            return self._items[name]
        except KeyError:
            raise SystemFileError(f'The system has no part "{name}".{suggestion(name, self._near(name))}') from None

    def items(self, kind: str) -> Sequence[Item]:
        """All parts of a kind, in the order of the files."""
        return self._by_kind[kind]

    def ids_of(self, table: Part) -> tuple[str, ...]:
        """The ids that a table stands for."""
        return self._ids[id(table)]

    def source_of(self, table: Part) -> Source:
        """The file that a table was read from."""
        return self._source[id(table)]

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        """Ids by name of their group."""
        return self._groups

    def named(self, text: str) -> tuple[str, ...]:
        """The ids that a text means: a group, an id or a range. Raises SystemFileError, RangeError."""
        if text in self._groups:
            return tuple(self._groups[text])
        if text in self._items:
            return (text,)
        names = expand(text)
        lacking = [name for name in names if name not in self._items]
        if lacking:
            near = suggestion(lacking[0], self._near(lacking[0]))
            missing = f'"{lacking[0]}"' if len(names) == 1 else f"{fold(lacking[:1000])} of {text}"
            raise SystemFileError(f"names {missing}, which nothing in the system has as its id or group.{near}")
        return names

    def _near(self, name: str) -> Iterator[str]:
        # a site has more ids than are worth comparing: those that begin alike, then names of groups
        yield from self._groups
        head = name[:2].lower()
        alike = (one for one in self._items if one[:2].lower() == head)
        for _, one in zip(range(2000), alike, strict=False):
            yield one

    def references(self, table: Part, member: str) -> tuple[str, ...]:
        """Every id that a member of a table names, in order. Raises SystemFileError."""
        key = (id(table), member)
        if key not in self._references:
            source = self.source_of(table)
            self._references[key] = self.resolve(
                source, member, getattr(table, member), members(type(table))[member].refers
            )
        return self._references[key]

    def resolve(self, source: Source, member: str, texts: Sequence[str], kinds: Sequence[str]) -> tuple[str, ...]:
        """The ids that `texts` mean, which must be of one of `kinds` (empty: of any)."""
        found: list[str] = []
        for text in texts:
            try:
                found += self.named(text)
            except RangeError as reason:
                raise source.wrong(member, f"is not a range: {reason}") from None
            except SystemFileError as reason:
                raise source.wrong(member, str(reason)) from None
        if kinds:
            for name in found:
                kind = self._items[name].kind
                if kind not in kinds:
                    raise source.wrong(
                        member, f'names "{name}", which is one of {kind}; it must be one of {" or ".join(kinds)}.'
                    )
        return tuple(found)

    def share(self, item: Item, member: str) -> tuple[str, ...]:
        """What one part refers to by `member`. Raises SystemFileError when the names cannot be dealt out."""
        names = self.references(item.table, member)
        if not names:
            return ()
        if member == "spares":
            return self._spares(item, names)
        declared = members(type(item.table))[member]
        if declared.shared:
            return names
        return self._run(item, member, names) if declared.many else (self._one(item, member, names),)

    def _one(self, item: Item, member: str, names: tuple[str, ...]) -> str:
        if len(names) == 1:
            return names[0]
        if item.total % len(names):
            raise self.source_of(item.table).wrong(
                member, f"names {len(names)} parts for {item.total}; name one for all, one for each, or as many as "
                f"divide {item.total} equally."
            )  # fmt: skip
        return names[item.position // (item.total // len(names))]

    def _run(self, item: Item, member: str, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(names) % item.total:
            raise self.source_of(item.table).wrong(
                member, f"names {len(names)} parts for {item.total}, which is no equal share for each; "
                f"name a multiple of {item.total}."
            )  # fmt: skip
        each = len(names) // item.total
        return names[item.position * each : (item.position + 1) * each]

    def _spares(self, item: Item, names: tuple[str, ...]) -> tuple[str, ...]:
        told = getattr(item.table, "blocks", None)
        blocks = int(told) if told is not None else 1
        if item.total % blocks or len(names) % blocks:
            raise self.source_of(item.table).wrong(
                "blocks", f"is {blocks}, which divides {item.total} groups and {len(names)} spares not equally."
            )
        each = len(names) // blocks
        block = item.position // (item.total // blocks)
        return names[block * each : (block + 1) * each]
