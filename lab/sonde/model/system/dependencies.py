# SPDX-License-Identifier: Apache-2.0
"""Dependencies of a part: everything it needs to work, down to drives and across networks and servers."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from sonde.model.system.index import PartIndex, PartItem
from sonde.model.system.network import Host
from sonde.model.system.system import System
from sonde.model.tables.members import get_members

# Members that name parts above: what lies on a part or what it serves.
_DOWNWARD_MEMBERS = frozenset({("controllers", "drives"), ("mounts", "on"), ("routers", "between")})
# Members that name standby, monitoring or served parts: a part works without them.
_OPTIONAL_MEMBERS = frozenset({"failover", "partner", "spares", "of", "near", "far", "file_system"})


def find_dependencies(system: System, part: str) -> frozenset[str]:
    """Returns the ids of all direct and indirect dependencies of `part`. Raises SystemFileError.

    A file system needs its targets; a target its server and RAID group; these their drives, controllers and enclosures;
    a mount its file system; a host its networks; networks their routers. Standby parts (failover servers, spares,
    alternate paths) are not dependencies.
    """
    dependencies_by_part = _CACHE.setdefault(system.index, {})
    if part not in dependencies_by_part:
        dependencies_by_part[part] = _find_closure(system.index, part)
    return dependencies_by_part[part]


_CACHE: WeakKeyDictionary[PartIndex, dict[str, frozenset[str]]] = WeakKeyDictionary()
_CONTAINER_CACHE: WeakKeyDictionary[PartIndex, dict[str, set[str]]] = WeakKeyDictionary()


def _find_closure(index: PartIndex, part: str) -> frozenset[str]:
    reached: set[str] = set()
    pending = [part]
    while pending:
        for name in _find_direct(index, index.item(pending.pop())):
            if name not in reached:
                reached.add(name)
                pending.append(name)
    return frozenset(reached - {part})


def _find_direct(index: PartIndex, item: PartItem) -> set[str]:
    dependencies: set[str] = set()
    for name, member in get_members(type(item.table)).items():
        if member.kind == "ids" and (item.kind, name) not in _DOWNWARD_MEMBERS and _is_needed(item, name):
            dependencies.update(index.find_part_references(item, name))
    if isinstance(item.table, Host):
        dependencies.update(_list_joined_networks(index, item))
    if item.kind in ("file_systems", "networks"):
        if index not in _CONTAINER_CACHE:
            _CONTAINER_CACHE[index] = _map_members_by_container(index)
        dependencies.update(_CONTAINER_CACHE[index].get(item.id, ()))
    return dependencies


def _is_needed(item: PartItem, member: str) -> bool:
    return member not in _OPTIONAL_MEMBERS or (member == "file_system" and item.kind == "mounts")


def _list_joined_networks(index: PartIndex, item: PartItem) -> set[str]:
    assert isinstance(item.table, Host)
    source = index.get_source(item.table)
    networks = (
        index.resolve(source, "interfaces.network", interface.network, ("networks",))
        for interface in item.table.interfaces
    )
    return {name for names in networks for name in names}


def _map_members_by_container(index: PartIndex) -> dict[str, set[str]]:
    """Returns targets by file system and routers by network."""
    ids_by_container: dict[str, set[str]] = {}
    for item in index.items("targets"):
        for name in index.find_part_references(item, "file_system"):
            ids_by_container.setdefault(name, set()).add(item.id)
    for item in index.items("routers"):
        for name in _list_joined_networks(index, item):
            ids_by_container.setdefault(name, set()).add(item.id)
    return ids_by_container
