# SPDX-License-Identifier: Apache-2.0
"""The resolved form of a system: one object a part, numbers in base units, references as ids. C++ reads it as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sonde.model.system.addressing import addresses_of
from sonde.model.system.description import KINDS, RESOLVED_SCHEMA
from sonde.model.system.index import Index, Item
from sonde.model.system.network import Host, Network
from sonde.model.tables.members import NUMBERS, Member, members
from sonde.model.tables.quantity import Quantity, Rates

if TYPE_CHECKING:
    from sonde.model.system.system import System

# What only people need stays in the file.
LEFT_OUT = frozenset({"id", "source", "status", "notes", "failover", "interfaces", "blocks"})
WHOLE = frozenset({"size", "count"})


def resolved(system: System) -> dict[str, Any]:
    """The system as one object of lists, in the order of description.KINDS; every list is there, maybe empty."""
    head = {"schema": RESOLVED_SCHEMA, "id": system.id, "title": system.title}
    return head | {kind: [_part(system, item) for item in system.items(kind)] for kind in KINDS}


def _part(system: System, item: Item) -> dict[str, Any]:
    index = system.index
    found: dict[str, Any] = {"id": item.id}
    found |= _same_for_all(item.table, item.position)
    for name, member in members(type(item.table)).items():
        if member.kind == "ids" and name not in LEFT_OUT:
            names = index.share(item, name)
            if names:
                found[name] = list(names) if member.many else names[0]
    if isinstance(item.table, Host):
        found["interfaces"] = [_interface(index, item, position) for position in range(len(item.table.interfaces))]
    return found | _derived(system, item)


def _same_for_all(table: Any, position: int) -> dict[str, Any]:
    found = {}
    for name, member in members(type(table)).items():
        if name in LEFT_OUT or member.kind == "ids":
            continue
        value = _value(member, getattr(table, name))
        if value not in (None, "", [], {}):
            found[name] = value + position if name in ("index", "number") else value
    return found


def plain(quantity: Quantity, kind: str) -> float | int:
    """The number in base units: a whole number for sizes and counts."""
    return int(quantity.value) if kind in WHOLE else float(quantity.value)


def _value(member: Member, value: Any) -> Any:
    if value is None or value == "":
        return None
    if member.kind in NUMBERS:
        return plain(value, member.kind)
    if isinstance(value, Rates):
        ways = {"read": value.read, "write": value.write}
        return {way: float(one.value) for way, one in ways.items() if one is not None}
    if member.kind == "parameters":
        known = member.parameters or {}
        return {name: plain(one, known.get(name, ("number",))[0]) for name, one in value.items()}
    if member.kind == "table":
        return _same_for_all(value, 0)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _interface(index: Index, item: Item, position: int) -> dict[str, Any]:
    assert isinstance(item.table, Host)
    told = item.table.interfaces[position]
    address = list(addresses_of(index, item))[position]
    network = index.item(address.network).table
    assert isinstance(network, Network)
    found: dict[str, Any] = {"network": address.network}
    for name in ("device", "address", "prefix", "nid"):
        if getattr(address, name) not in (None, ""):
            found[name] = getattr(address, name)
    kinds = members(type(told))
    for name in ("rate", "mtu"):
        value = _value(kinds[name], getattr(told, name) or getattr(network, name))
        if value is not None:
            found[name] = value
    found["count"] = int(told.count) if told.count is not None else 1
    return found


def _derived(system: System, item: Item) -> dict[str, Any]:
    """What the file leaves to arithmetic: capacities, stripes, who takes over, clients of pools."""
    found: dict[str, Any] = {}
    if item.kind in ("raid_groups", "luns", "slices", "volumes", "targets", "file_systems"):
        found["capacity"] = system.capacity_of(item.id)
    if item.kind == "raid_groups":
        found["stripe"] = system.stripe_of(item.id)
    if item.kind == "servers":
        found["partner"] = system.partner_of(item.id)
    if item.kind == "targets":
        found["failover"] = system.failover_of(item.id)
    if item.kind == "pools":
        found |= {"targets": list(system.targets_of(item.id)), "clients": system.pool_clients(item.id)}
    return {name: value for name, value in found.items() if value is not None}
