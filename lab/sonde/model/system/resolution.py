# SPDX-License-Identifier: Apache-2.0
"""Resolves a system for C++: one object per part, numbers in base units, references as ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sonde.model.system.addressing import iterate_host_addresses
from sonde.model.system.description import PART_KINDS, RESOLVED_SYSTEM_FORMAT
from sonde.model.system.index import RANGED_MEMBERS, PartIndex, PartItem
from sonde.model.system.network import Host, Network
from sonde.model.tables.members import NUMBER_KINDS, TableMember, get_members
from sonde.model.tables.quantity import Quantity, ReadWriteRates


class ResolvableSystem(Protocol):
    """Facts about a system that the resolved form needs. Capacities and stripes are in bytes."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def index(self) -> PartIndex: ...
    def list_parts(self, part_kind: str) -> Sequence[PartItem]: ...
    def compute_capacity(self, part_id: str) -> int | None: ...
    def compute_full_stripe(self, raid_group: str) -> int | None: ...
    def find_partner(self, server: str) -> str | None: ...
    def find_failover_server(self, target_id: str) -> str | None: ...
    def find_targets(self, pool_id: str) -> Sequence[str]: ...
    def count_pool_clients(self, pool_id: str) -> int | None: ...


# Members that are not copied into the resolved form: they are for people, or are resolved in another way.
FILE_ONLY_MEMBERS = frozenset({"id", "source", "status", "notes", "failover", "interfaces", "blocks"})
INTEGER_KINDS = frozenset({"size", "count"})


def resolve_system(system: ResolvableSystem) -> dict[str, Any]:
    """Returns the system as one object of lists, in the order of PART_KINDS; lists may be empty."""
    head = {"schema": RESOLVED_SYSTEM_FORMAT, "id": system.id, "title": system.title}
    return head | {kind: [_resolve_part(system, item) for item in system.list_parts(kind)] for kind in PART_KINDS}


def _resolve_part(system: ResolvableSystem, part: PartItem) -> dict[str, Any]:
    index = system.index
    members_by_name: dict[str, Any] = {"id": part.id}
    members_by_name |= _resolve_table_members(part.table, part.position)
    for name, member in get_members(type(part.table)).items():
        if member.kind == "ids" and name not in FILE_ONLY_MEMBERS:
            names = index.find_part_references(part, name)
            if names:
                members_by_name[name] = list(names) if member.allows_several else names[0]
    for name in RANGED_MEMBERS:  # of some kinds of parts they are references instead
        if isinstance(getattr(part.table, name, None), str) and name in members_by_name:
            members_by_name[name] = part.read_ranged_text(name)
    if isinstance(part.table, Host):
        members_by_name["interfaces"] = [
            _resolve_interface(index, part, position) for position in range(len(part.table.interfaces))
        ]
    return members_by_name | _compute_derived_members(system, part)


def _resolve_table_members(part_table: Any, position: int) -> dict[str, Any]:
    values = {}
    for name, member in get_members(type(part_table)).items():
        if name in FILE_ONLY_MEMBERS or member.kind == "ids":
            continue
        value = _resolve_member_value(member, getattr(part_table, name))
        if value not in (None, "", [], {}):
            values[name] = value + position if name in ("index", "number") else value
    return values


def convert_to_base_number(quantity: Quantity, number_kind: str) -> float | int:
    """Returns the number in base units: an integer for sizes and counts."""
    return int(quantity.value) if number_kind in INTEGER_KINDS else float(quantity.value)


def _resolve_member_value(member: TableMember, member_value: Any) -> Any:
    if member_value is None or member_value == "":
        return None
    if member.kind in NUMBER_KINDS:
        return convert_to_base_number(member_value, member.kind)
    if isinstance(member_value, ReadWriteRates):
        rates_by_direction = {"read": member_value.read, "write": member_value.write}
        return {
            direction: float(quantity.value)
            for direction, quantity in rates_by_direction.items()
            if quantity is not None
        }
    if member.kind == "parameters":
        known_parameters = member.parameters or {}
        return {
            name: convert_to_base_number(quantity, known_parameters.get(name, ("number",))[0])
            for name, quantity in member_value.items()
        }
    if member.kind == "table":
        return _resolve_table_members(member_value, 0)
    if isinstance(member_value, tuple):
        return list(member_value)
    return dict(member_value) if isinstance(member_value, Mapping) else member_value


def _resolve_interface(part_index: PartIndex, part: PartItem, interface_position: int) -> dict[str, Any]:
    assert isinstance(part.table, Host)
    interface = part.table.interfaces[interface_position]
    address = list(iterate_host_addresses(part_index, part))[interface_position]
    network = part_index.get_part(address.network).table
    assert isinstance(network, Network)
    values: dict[str, Any] = {"network": address.network}
    for name in ("device", "address", "prefix", "nid"):
        if getattr(address, name) not in (None, ""):
            values[name] = getattr(address, name)
    declarations = get_members(type(interface))
    for name in ("rate", "mtu"):
        value = _resolve_member_value(declarations[name], getattr(interface, name) or getattr(network, name))
        if value is not None:
            values[name] = value
    values["count"] = int(interface.count) if interface.count is not None else 1
    return values


def _compute_derived_members(system: ResolvableSystem, part: PartItem) -> dict[str, Any]:
    """Computes capacities, stripes, failover servers and clients of pools."""
    values: dict[str, Any] = {}
    if part.kind in ("raid_groups", "luns", "slices", "volumes", "targets", "file_systems"):
        values["capacity"] = system.compute_capacity(part.id)
    if part.kind == "raid_groups":
        values["stripe"] = system.compute_full_stripe(part.id)
    if part.kind == "servers":
        values["partner"] = system.find_partner(part.id)
    if part.kind == "targets":
        values["failover"] = system.find_failover_server(part.id)
    if part.kind == "pools":
        values |= {"targets": list(system.find_targets(part.id)), "clients": system.count_pool_clients(part.id)}
    return {name: value for name, value in values.items() if value is not None}
