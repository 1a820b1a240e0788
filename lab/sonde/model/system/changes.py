# SPDX-License-Identifier: Apache-2.0
"""Applies changes to a system: a slow target, a narrow network, a RAID group without parity.

A change is KIND.ID.MEMBER and a value as in a system file: ``targets.fs1-ost017.model.slowdown`` = 5. ID is a part, a
range or a group. A table that describes more parts than are changed is split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sonde.model.errors import SystemFileError, UserError, suggest_close_name
from sonde.model.ranges import cut_name_range, expand_name_range, fold_names_into_ranges
from sonde.model.system.addressing import expand_interface_addresses, expand_interface_nids
from sonde.model.system.checks import check_system
from sonde.model.system.description import PART_KINDS
from sonde.model.system.index import RANGED_MEMBERS, PartIndex, PartItem, PartSource
from sonde.model.system.network import Host, Interface, Server, SystemPart
from sonde.model.system.storage import RaidGroup
from sonde.model.system.system import System
from sonde.model.tables.members import get_members
from sonde.model.tables.quantity import Quantity, ReadWriteRates
from sonde.model.tables.table_reader import ReadContext, read_member

# Members that give the number of the first part of a table.
_NUMBERED_MEMBERS = ("index", "number")


def apply_changes(system: System, value_by_path: Mapping[str, Any]) -> System:
    """Returns the system with all changes applied and checked again. Raises SystemFileError with one sentence."""
    for path, value in value_by_path.items():
        system = _apply_change(system, path, value)
    check_system(system.index)
    return system


def split_change_path(part_index: PartIndex, change_path: str) -> tuple[str, str, list[str]]:
    """Splits a path into kind, part name and member path. Ids may contain dots: the longest known name wins."""
    kind, _, remaining_path = change_path.partition(".")
    if kind not in PART_KINDS:
        raise SystemFileError(
            f'{change_path}: there is no kind of part "{kind}".{suggest_close_name(kind, PART_KINDS)}'
        )
    steps = remaining_path.split(".")
    for count in range(len(steps) - 1, 0, -1):
        name = ".".join(steps[:count])
        try:
            names = part_index.resolve_names(name)
        except UserError:
            continue
        if all(part_index.get_part(part_id).kind == kind for part_id in names):
            return kind, name, steps[count:]
    candidates = [item.id for _, item in zip(range(2000), part_index.list_parts(kind), strict=False)]
    raise SystemFileError(
        f"{change_path}: write KIND.ID.MEMBER; {steps[0]} is none of the {kind.replace('_', ' ')}."
        + suggest_close_name(steps[0], [*candidates, *part_index.groups])
    )


def _apply_change(system: System, change_path: str, new_value: Any) -> System:
    index = system.index
    kind, name, steps = split_change_path(index, change_path)
    changed_ids = frozenset(index.resolve_names(name))
    sources: list[PartSource] = []
    for source in index.sources:
        for table in (
            _split_table_at_changed_parts(index, source, changed_ids) if source.kind == kind else (source.table,)
        ):
            is_changed = source.kind == kind and expand_name_range(table.id)[0] in changed_ids
            sources.append(
                replace(source, table=_replace_member(table, steps, new_value, change_path) if is_changed else table)
            )
    return _build_system(system, sources)


def remove_parts(system: System, part_ids: frozenset[str]) -> System:
    """Returns the system without some parts. Telemetry of removed parts ends with them; any other part that still names
    a removed one raises SystemFileError."""
    index = system.index
    sources = []
    for source in index.sources:
        for table in _split_table_at_changed_parts(index, source, part_ids):
            kept_table = _remove_parts_from_telemetry(index, source, table, part_ids)
            if kept_table is not None and expand_name_range(table.id)[0] not in part_ids:
                sources.append(replace(source, table=kept_table))
    smaller = _build_system(system, sources)
    check_system(smaller.index)
    return smaller


def _remove_parts_from_telemetry(
    part_index: PartIndex, part_source: PartSource, table: SystemPart, removed_ids: frozenset[str]
) -> SystemPart | None:
    """Returns telemetry without the removed parts that it observes; None if it observed only these."""
    observed: tuple[str, ...] = getattr(table, "of", ()) if part_source.kind == "telemetry" else ()
    remaining = tuple(name for text in observed for name in part_index.resolve_names(text) if name not in removed_ids)
    if not observed or not removed_ids.intersection(
        name for text in observed for name in part_index.resolve_names(text)
    ):
        return table
    changed: Any = table
    return replace(changed, of=remaining) if remaining else None


def _build_system(system: System, sources: list[PartSource]) -> System:
    new_index = PartIndex(sources)
    tables_by_kind: dict[str, Any] = {
        part_kind: tuple(source.table for source in sources if source.kind == part_kind) for part_kind in PART_KINDS
    }
    return System(
        id=system.id, title=system.title, notes=system.notes, files=system.files, index=new_index, **tables_by_kind
    )  # fmt: skip


def _replace_member(part_or_nested_table: Any, path_steps: list[str], new_value: Any, change_path: str) -> Any:
    """Returns `part_or_nested_table` with one member read from `new_value`; None removes the member."""
    known_members = {name: member for name, member in get_members(type(part_or_nested_table)).items() if name != "id"}
    name, *remaining_steps = path_steps
    if name not in known_members:
        raise SystemFileError(
            f'{change_path}: there is no member "{name}" to change.{suggest_close_name(name, known_members)}'
        )
    context = ReadContext(SystemFileError, change_path)
    member, current = known_members[name], getattr(part_or_nested_table, name)
    if not remaining_steps:
        if new_value is None:
            default = type(part_or_nested_table).__dataclass_fields__[name].default
            return replace(part_or_nested_table, **{name: default})
        return replace(part_or_nested_table, **{name: read_member(member, new_value, context)})
    if member.kind == "parameters":
        return replace(
            part_or_nested_table,
            **{name: {**(current or {}), **read_member(member, {".".join(remaining_steps): new_value}, context)}},
        )
    if member.kind == "settings":
        return replace(part_or_nested_table, **{name: {**(current or {}), ".".join(remaining_steps): new_value}})
    if member.kind == "rates" and len(remaining_steps) == 1:
        new_rates: ReadWriteRates = read_member(member, {remaining_steps[0]: new_value}, context)
        old_rates = current or ReadWriteRates()
        return replace(
            part_or_nested_table,
            **{name: ReadWriteRates(new_rates.read or old_rates.read, new_rates.write or old_rates.write)},
        )
    if member.kind == "table" and member.table is not None:
        return replace(
            part_or_nested_table,
            **{
                name: _replace_member(
                    current if current is not None else member.table(), remaining_steps, new_value, change_path
                )
            },
        )
    raise SystemFileError(f"{change_path}: {name} has no members; give it a value as a whole.")


def _split_table_at_changed_parts(
    part_index: PartIndex, part_source: PartSource, changed_ids: frozenset[str]
) -> Iterator[SystemPart]:
    """Yields the table itself if all or none of its parts changed; else tables of neighboring parts that all changed
    or all did not, which end at blocks of RAID groups and where names do not form one range."""
    names = part_index.get_ids(part_source.table)
    changed_flags = [name in changed_ids for name in names]
    if all(changed_flags) or not any(changed_flags):
        yield part_source.table
        return
    begin = 0
    for end in range(1, len(names) + 1):
        if (
            end == len(names)
            or changed_flags[end] != changed_flags[begin]
            or _find_block_of_group(part_source.table, end, names)
            != _find_block_of_group(part_source.table, begin, names)
        ):
            yield from _build_tables_of_part_range(part_index, part_source, begin, end)
            begin = end


def _find_block_of_group(table: SystemPart, group_position: int, part_names: tuple[str, ...]) -> int:
    """Returns the block of a RAID group: groups of one block share spares, so tables are split between blocks."""
    blocks = int(table.blocks) if isinstance(table, RaidGroup) and table.blocks is not None else 1
    return group_position * blocks // len(part_names)


def _build_tables_of_part_range(
    part_index: PartIndex, part_source: PartSource, begin_position: int, end_position: int
) -> Iterator[SystemPart]:
    """Yields parts begin … end of a table, in as few tables as their names allow."""
    names = part_index.get_ids(part_source.table)
    for text in fold_names_into_ranges(names[begin_position:end_position]).split(", "):
        count = len(expand_name_range(text))
        yield _build_table_of_part_range(part_index, part_source, begin_position, begin_position + count, text)
        begin_position += count


def _build_table_of_part_range(
    part_index: PartIndex, part_source: PartSource, begin_position: int, end_position: int, id_text: str
) -> SystemPart:
    """Returns one table for parts begin … end with explicit references of each part."""
    table, names = part_source.table, part_index.get_ids(part_source.table)
    items = [
        PartItem(part_source.kind, names[position], table, position, len(names))
        for position in range(begin_position, end_position)
    ]
    members_to_set: dict[str, Any] = {"id": id_text}
    for name, member in get_members(type(table)).items():
        if member.kind != "ids" or not getattr(table, name) or member.is_shared:
            continue
        references = [part_index.find_part_references(item, name) for item in items]
        members_to_set[name] = (
            references[0]
            if name == "spares"
            else tuple(position for names_of_part in references for position in names_of_part)
        )
    for name in _NUMBERED_MEMBERS:
        first_number = getattr(table, name, None)
        if isinstance(first_number, Quantity):
            members_to_set[name] = replace(
                first_number,
                value=first_number.value + begin_position,
                text=str(int(first_number.value) + begin_position),
            )
    for name in RANGED_MEMBERS:
        text = getattr(table, name, "")
        if isinstance(text, str) and len(expand_name_range(text)) == len(names) > 1:
            members_to_set[name] = cut_name_range(text, begin_position, end_position)
    if isinstance(table, RaidGroup) and table.blocks is not None:
        members_to_set["blocks"] = None
    if isinstance(table, Server) and table.failover == "pairs":
        members_to_set |= {
            "failover": "",
            "partner": tuple(names[position ^ 1] for position in range(begin_position, end_position)),
        }
    if isinstance(table, Host):
        members_to_set["interfaces"] = tuple(
            _slice_interface(part_source, position, begin_position, end_position) for position in table.interfaces
        )
    return replace(table, **members_to_set)


def _slice_interface(
    part_source: PartSource, interface: Interface, begin_position: int, end_position: int
) -> Interface:
    addresses, nids = expand_interface_addresses(part_source, interface), expand_interface_nids(part_source, interface)
    return replace(interface, addresses=addresses[begin_position:end_position], nids=nids[begin_position:end_position])
