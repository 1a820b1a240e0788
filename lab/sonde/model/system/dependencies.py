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


def find_all_dependencies(system: System, part_id: str) -> frozenset[str]:
    """Returns the ids of all direct and indirect dependencies of `part_id`. Raises SystemFileError.

    A file system needs its targets; a target its server and RAID group; these their drives, controllers and enclosures;
    a mount its file system; a host its networks; networks their routers. Standby parts (failover servers, spares,
    alternate paths) are not dependencies.
    """
    dependencies_by_part = _DEPENDENCY_CACHE.setdefault(system.index, {})
    if part_id not in dependencies_by_part:
        dependencies_by_part[part_id] = _find_dependency_closure(system.index, part_id)
    return dependencies_by_part[part_id]


_DEPENDENCY_CACHE: WeakKeyDictionary[PartIndex, dict[str, frozenset[str]]] = WeakKeyDictionary()
_CONTAINER_CACHE: WeakKeyDictionary[PartIndex, dict[str, set[str]]] = WeakKeyDictionary()


def _find_dependency_closure(part_index: PartIndex, part_id: str) -> frozenset[str]:
    reached: set[str] = set()
    pending = [part_id]
    while pending:
        for name in _find_direct_dependencies(part_index, part_index.get_part(pending.pop())):
            if name not in reached:
                reached.add(name)
                pending.append(name)
    return frozenset(reached - {part_id})


def _find_direct_dependencies(part_index: PartIndex, part: PartItem) -> set[str]:
    dependencies: set[str] = set()
    for name, member in get_members(type(part.table)).items():
        if member.kind == "ids" and (part.kind, name) not in _DOWNWARD_MEMBERS and _is_dependency_member(part, name):
            dependencies.update(part_index.find_part_references(part, name))
    if isinstance(part.table, Host):
        dependencies.update(_list_joined_networks(part_index, part))
    if part.kind in ("file_systems", "networks"):
        if part_index not in _CONTAINER_CACHE:
            _CONTAINER_CACHE[part_index] = _map_members_by_container(part_index)
        dependencies.update(_CONTAINER_CACHE[part_index].get(part.id, ()))
    return dependencies


def _is_dependency_member(part: PartItem, member_name: str) -> bool:
    return member_name not in _OPTIONAL_MEMBERS or (member_name == "file_system" and part.kind == "mounts")


def _list_joined_networks(part_index: PartIndex, router: PartItem) -> set[str]:
    assert isinstance(router.table, Host)
    source = part_index.get_source(router.table)
    networks = (
        part_index.resolve_references(source, "interfaces.network", interface.network, ("networks",))
        for interface in router.table.interfaces
    )
    return {name for names in networks for name in names}


def _map_members_by_container(part_index: PartIndex) -> dict[str, set[str]]:
    """Returns targets by file system and routers by network."""
    ids_by_container: dict[str, set[str]] = {}
    for item in part_index.list_parts("targets"):
        for name in part_index.find_part_references(item, "file_system"):
            ids_by_container.setdefault(name, set()).add(item.id)
    for item in part_index.list_parts("routers"):
        for name in _list_joined_networks(part_index, item):
            ids_by_container.setdefault(name, set()).add(item.id)
    return ids_by_container
