# SPDX-License-Identifier: Apache-2.0
"""All parts of a system by id, and the references between them.

A table whose id is a range describes several parts in order. Its references are distributed in order too: one name for
all, one for each, or one for each equal block (``server = "oss[001-024]"`` on 96 targets: four targets each). Members
with several names (the drives of RAID groups) give each part an equal run of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sonde.model.errors import SystemFileError, suggest_close_name
from sonde.model.ranges import RangeError, expand_name_range, fold_names_into_ranges
from sonde.model.system.description import PART_KINDS
from sonde.model.system.network import SystemPart
from sonde.model.tables.members import get_members

# Texts that may be a range of names, one for each part of the table.
RANGED_MEMBERS = ("device", "bitmap")


class PartItem(NamedTuple):
    """One part: the table that describes it and its position among the parts of that table."""

    kind: str  # as in description.KINDS
    id: str
    table: SystemPart
    position: int
    total: int

    def read_ranged_text(self, member_name: str) -> str:
        """A text of the table that may be a range of names, as `device`: the names belong to its parts in turn."""
        text = getattr(self.table, member_name, "")
        if not isinstance(text, str):
            return ""
        names = expand_name_range(text)
        return names[self.position] if len(names) == self.total else text


@dataclass(frozen=True)
class PartSource:
    """A table of parts and the file it was read from."""

    kind: str
    table: SystemPart
    origin: str

    def make_error(self, member_name: str, problem_clause: str) -> SystemFileError:
        """Returns an error about one member of the table."""
        member_path = f".{member_name}" if member_name else ""
        return SystemFileError(f"{self.origin}: {self.kind}.{self.table.id}{member_path} {problem_clause}")


class PartIndex:
    """Parts by id, groups by name, references in order. Raises SystemFileError when ids or references are wrong."""

    def __init__(self, sources: Sequence[PartSource]) -> None:
        self.sources = tuple(sources)
        self._items: dict[str, PartItem] = {}
        self._by_kind: dict[str, list[PartItem]] = {kind: [] for kind in PART_KINDS}
        self._groups: dict[str, list[str]] = {}
        self._ids: dict[int, tuple[str, ...]] = {}
        self._source: dict[int, PartSource] = {}
        self._references: dict[tuple[int, str], tuple[str, ...]] = {}
        for source in self.sources:
            self._add_source(source)
        for source in self.sources:
            group = source.table.group
            if group in self._items and self._groups[group] != [group]:
                raise source.make_error(
                    "group", f'is "{group}", which is the id of a part; a group needs a name of its own.'
                )

    def _add_source(self, source: PartSource) -> None:
        try:
            names = expand_name_range(source.table.id)
        except RangeError as error:
            raise source.make_error("id", f"is not a range: {error}") from None
        self._ids[id(source.table)] = names
        self._source[id(source.table)] = source
        items_of_kind, items, total = self._by_kind[source.kind], self._items, len(names)
        for position, name in enumerate(names):
            item = PartItem(source.kind, name, source.table, position, total)
            if items.setdefault(name, item) is not item:
                other_source = self._source[id(items[name].table)]
                raise source.make_error(
                    "id", f'names "{name}", which {other_source.kind}.{other_source.table.id} in'
                          f' {other_source.origin} names too; '
                    "every id is used once in a system."
                )  # fmt: skip
            items_of_kind.append(item)
        if source.table.group:
            self._groups.setdefault(source.table.group, []).extend(names)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def get_part(self, part_id: str) -> PartItem:
        """Returns the part with that id. Raises SystemFileError with the nearest id."""
        try:
            return self._items[part_id]
        except KeyError:
            raise SystemFileError(
                "The system has no part "
                f'"{part_id}".{suggest_close_name(part_id, self._iterate_similar_names(part_id))}'
            ) from None

    def list_parts(self, part_kind: str) -> Sequence[PartItem]:
        """Returns all parts of a kind, in the order of the files."""
        return self._by_kind[part_kind]

    def get_ids(self, table: SystemPart) -> tuple[str, ...]:
        """Returns the ids of the parts that a table describes."""
        return self._ids[id(table)]

    def get_source(self, table: SystemPart) -> PartSource:
        """Returns the source of a table."""
        return self._source[id(table)]

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        """Ids by name of their group."""
        return self._groups

    def resolve_names(self, names_text: str) -> tuple[str, ...]:
        """Returns the ids of a group, an id or a range. Raises SystemFileError, RangeError."""
        if names_text in self._groups:
            return tuple(self._groups[names_text])
        if names_text in self._items:
            return (names_text,)
        names = expand_name_range(names_text)
        missing_ids = [name for name in names if name not in self._items]
        if missing_ids:
            hint = suggest_close_name(missing_ids[0], self._iterate_similar_names(missing_ids[0]))
            description = (
                f'"{missing_ids[0]}"'
                if len(names) == 1
                else f"{fold_names_into_ranges(missing_ids[:1000])} of {names_text}"
            )
            raise SystemFileError(f"names {description}, which nothing in the system has as its id or group.{hint}")
        return names

    def _iterate_similar_names(self, unknown_name: str) -> Iterator[str]:
        # a site has too many ids to compare them all: group names, then ids with the same first letters
        yield from self._groups
        prefix = unknown_name[:2].lower()
        similar_ids = (part_id for part_id in self._items if part_id[:2].lower() == prefix)
        for _, part_id in zip(range(2000), similar_ids, strict=False):
            yield part_id

    def find_table_references(self, table: SystemPart, member_name: str) -> tuple[str, ...]:
        """Returns every id that a member of a table names, in order. Raises SystemFileError."""
        key = (id(table), member_name)
        if key not in self._references:
            source = self.get_source(table)
            self._references[key] = self.resolve_references(
                source, member_name, getattr(table, member_name), get_members(type(table))[member_name].target_kinds
            )
        return self._references[key]

    def resolve_references(
        self, part_source: PartSource, member_name: str, name_texts: Sequence[str], allowed_kinds: Sequence[str]
    ) -> tuple[str, ...]:
        """Returns the ids of `name_texts`, which must be of one of `allowed_kinds` (empty: any kind). Raises
        SystemFileError."""
        ids: list[str] = []
        for text in name_texts:
            try:
                ids += self.resolve_names(text)
            except RangeError as error:
                raise part_source.make_error(member_name, f"is not a range: {error}") from None
            except SystemFileError as error:
                raise part_source.make_error(member_name, str(error)) from None
        if allowed_kinds:
            for name in ids:
                kind = self._items[name].kind
                if kind not in allowed_kinds:
                    raise part_source.make_error(
                        member_name,
                        f'names "{name}", which is one of {kind}; it must be one of {" or ".join(allowed_kinds)}.',
                    )
        return tuple(ids)

    def find_part_references(self, part: PartItem, member_name: str) -> tuple[str, ...]:
        """Returns the ids that one part refers to by `member_name`.

        Raises SystemFileError when the names cannot be distributed equally.
        """
        names = self.find_table_references(part.table, member_name)
        if not names:
            return ()
        if member_name == "spares":
            return self._find_spares_of_block(part, names)
        declaration = get_members(type(part.table))[member_name]
        if declaration.is_shared:
            return names
        return (
            self._select_names_of_part(part, member_name, names)
            if declaration.allows_several
            else (self._select_name_by_position(part, member_name, names),)
        )

    def _select_name_by_position(self, part: PartItem, member_name: str, part_names: tuple[str, ...]) -> str:
        if len(part_names) == 1:
            return part_names[0]
        if part.total % len(part_names):
            raise self.get_source(part.table).make_error(
                member_name,
                f"names {len(part_names)} parts for {part.total}; name one for all, one for each, or as many as "
                f"divide {part.total} equally."
            )  # fmt: skip
        return part_names[part.position // (part.total // len(part_names))]

    def _select_names_of_part(self, part: PartItem, member_name: str, part_names: tuple[str, ...]) -> tuple[str, ...]:
        if len(part_names) % part.total:
            raise self.get_source(part.table).make_error(
                member_name, f"names {len(part_names)} parts for {part.total}, which is no equal share for each; "
                f"name a multiple of {part.total}."
            )  # fmt: skip
        count_per_part = len(part_names) // part.total
        return part_names[part.position * count_per_part : (part.position + 1) * count_per_part]

    def _find_spares_of_block(self, part: PartItem, spare_ids: tuple[str, ...]) -> tuple[str, ...]:
        blocks_quantity = getattr(part.table, "blocks", None)
        blocks = int(blocks_quantity) if blocks_quantity is not None else 1
        if part.total % blocks or len(spare_ids) % blocks:
            raise self.get_source(part.table).make_error(
                "blocks", f"is {blocks}, which divides {part.total} groups and {len(spare_ids)} spares not equally."
            )
        spares_per_block = len(spare_ids) // blocks
        block = part.position // (part.total // blocks)
        return spare_ids[block * spares_per_block : (block + 1) * spares_per_block]
