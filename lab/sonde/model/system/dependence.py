# SPDX-License-Identifier: Apache-2.0
"""What a part needs to work: the way from what a user sees down to drives, and sideways to networks and servers."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from sonde.model.system.index import Index, Item
from sonde.model.system.network import Host
from sonde.model.system.system import System
from sonde.model.tables.members import members

# Members that name what lies on a part or what it serves.
_LOOKS_DOWN = frozenset({("controllers", "drives"), ("mounts", "on"), ("routers", "between")})
# Members that name what stands by, what looks on, or whom a part is for: a part works without them.
_NOT_NEEDED = frozenset({"failover", "partner", "spares", "of", "near", "far", "file_system"})


def depends_on(system: System, part: str) -> frozenset[str]:
    """Ids of everything that `part` needs, by any number of steps; without itself. Raises SystemFileError.

    A file system needs its targets, a target its server and its RAID group, these their drives, controllers and boxes;
    a mount its file system; a host the networks that it joins, these their routers. Standbys (failover servers, spares,
    alternate paths) are not needed.
    """
    known = _KNOWN.setdefault(system.index, {})
    if part not in known:
        known[part] = _closure(system.index, part)
    return known[part]


_KNOWN: WeakKeyDictionary[Index, dict[str, frozenset[str]]] = WeakKeyDictionary()
_FOUND_IN: WeakKeyDictionary[Index, dict[str, set[str]]] = WeakKeyDictionary()


def _closure(index: Index, part: str) -> frozenset[str]:
    found: set[str] = set()
    left = [part]
    while left:
        for name in _direct(index, index.item(left.pop())):
            if name not in found:
                found.add(name)
                left.append(name)
    return frozenset(found - {part})


def _direct(index: Index, item: Item) -> set[str]:
    found: set[str] = set()
    for name, member in members(type(item.table)).items():
        if member.kind == "ids" and (item.kind, name) not in _LOOKS_DOWN and _needed(item, name):
            found.update(index.share(item, name))
    if isinstance(item.table, Host):
        found.update(_joined(index, item))
    if item.kind in ("file_systems", "networks"):
        if index not in _FOUND_IN:
            _FOUND_IN[index] = _found_in(index)
        found.update(_FOUND_IN[index].get(item.id, ()))
    return found


def _needed(item: Item, member: str) -> bool:
    return member not in _NOT_NEEDED or (member == "file_system" and item.kind == "mounts")


def _joined(index: Index, item: Item) -> set[str]:
    assert isinstance(item.table, Host)
    source = index.source_of(item.table)
    listed = (index.resolve(source, "interfaces.network", one.network, ("networks",)) for one in item.table.interfaces)
    return {name for names in listed for name in names}


def _found_in(index: Index) -> dict[str, set[str]]:
    """Targets by the file system that they are part of, routers by the network that they join."""
    found: dict[str, set[str]] = {}
    for item in index.items("targets"):
        for name in index.share(item, "file_system"):
            found.setdefault(name, set()).add(item.id)
    for item in index.items("routers"):
        for name in _joined(index, item):
            found.setdefault(name, set()).add(item.id)
    return found
