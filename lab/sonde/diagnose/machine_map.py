# SPDX-License-Identifier: Apache-2.0
"""The parts of a machine that a diagnosis can suspect, in groups of symmetric parts.

Parts are symmetric when their descriptions are equal except for names and addresses, those of the parts that they refer
to are, and as many storage targets depend on them. One part of a group is simulated for all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sonde.diagnose.description import LOCAL, WITH_TARGETS
from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.parents import list_recorded_target_names

# Members that name or locate a part and do not say how it behaves.
_IDENTITY_MEMBERS = frozenset(
    (
        "id",
        "label",
        "device",
        "bitmap",
        "index",
        "number",
        "title",
        "notes",
        "source",
        "status",
        "group",
        "nid",
        "nids",
        "address",
        "addresses",
    )
)
_MAX_REFERENCE_DEPTH = 3
# Parts that can be below a target, and RAID levels without redundancy, which rebuild no drive.
_STORE_KINDS = ("raid_groups", "luns", "slices", "volumes", "drives")
_LEVELS_WITHOUT_REDUNDANCY = ("0", "none")
# File systems that store copies or parity themselves: their targets usually are single devices.
_REDUNDANT_KINDS = ("ceph", "gluster", "daos")
_FEW_NODES, _CORES = 4, 12
_PART_KINDS = ("nodes", "routers", "servers", "controllers", "links", "drives", "raid_groups", "targets", "enclosures")


@dataclass(frozen=True)
class PartGroup:
    """Symmetric parts. `targets` and `nodes` say for each part which of the machine's it slows."""

    kind: str  # target, node, router or server, as faults name their parts
    members: tuple[str, ...]
    targets: tuple[frozenset[str], ...]
    nodes: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class DiagnosedMachine:
    """One mount of a system: storage targets, the nodes that take part, and the form that the simulator reads."""

    document: Mapping[str, Any]  # resolved, only with parts that the mount needs
    mount: str
    file_system: str
    targets: tuple[str, ...]
    nodes: tuple[str, ...]
    node_count: int  # all nodes of the mount
    target_count: int  # all storage targets of the file system
    target_servers: Mapping[str, str] = field(default_factory=dict)
    recorded_targets: Mapping[str, str] = field(default_factory=dict)  # ids of targets by their names in records

    @property
    def machine_kind(self) -> str:
        """Which causes and experiments are for it, as their files name it."""
        return WITH_TARGETS if self.targets else LOCAL

    @cached_property
    def file_system_kind(self) -> str:
        """The kind of its file system, as its system file states it; empty for a directory without one."""
        kinds = {item["id"]: str(item.get("kind", "")) for item in self.document["file_systems"]}
        return kinds[self.file_system]

    @cached_property
    def simulator_input_text(self) -> str:
        """The system file that the simulator reads, as JSON text."""
        return json.dumps(self.document, ensure_ascii=False, separators=(",", ":")) + "\n"

    @cached_property
    def rebuildable_targets(self) -> frozenset[str]:
        """Targets that can rebuild a drive: those on a described RAID group with redundancy, and those on storage that
        is not described, unless the file system stores copies or parity itself."""
        stores = {part["id"]: (kind, part) for kind in _STORE_KINDS for part in self.document.get(kind, ())}
        tables = {part["id"]: part for part in self.document.get("targets", ())}
        rebuildable = set()
        for target in self.targets:
            below = _find_stores_below(tables[target], stores)
            has_group = any(
                kind == "raid_groups" and str(part.get("level", "")) not in _LEVELS_WITHOUT_REDUNDANCY
                for kind, part in below
            )
            if has_group or (not below and self.file_system_kind not in _REDUNDANT_KINDS):
                rebuildable.add(target)
        return frozenset(rebuildable)

    def count_nodes(self, client_range: str) -> int:
        """Nodes that take part in an experiment for one, few or many clients."""
        return {"one": 1, "few": min(_FEW_NODES, len(self.nodes))}.get(client_range, len(self.nodes))

    @cached_property
    def part_groups(self) -> tuple[PartGroup, ...]:
        """All groups of parts that a fault can name."""
        parts = {kind: {part["id"]: part for part in self.document.get(kind, ())} for kind in _PART_KINDS}
        signatures = _PartSignatures(parts)
        everything = frozenset(self.targets)
        nothing: frozenset[str] = frozenset()
        groups = _group_symmetric_parts(
            "target", self.targets, signatures, [frozenset({name}) for name in self.targets], [nothing] * 10**6
        )
        groups += _group_symmetric_parts(
            "node", self.nodes, signatures, [nothing] * 10**6, [frozenset({name}) for name in self.nodes]
        )
        servers = list(dict.fromkeys(self.target_servers.values()))
        served = [
            frozenset(target for target, server in self.target_servers.items() if server == name) for name in servers
        ]
        groups += _group_symmetric_parts("server", servers, signatures, served, [nothing] * 10**6)
        routers = list(parts["routers"])
        groups += _group_symmetric_parts(
            "router", routers, signatures, [everything] * len(routers), [nothing] * len(routers)
        )
        return tuple(groups)


def _find_stores_below(
    part_table: Mapping[str, Any], store_tables: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> list[tuple[str, Mapping[str, Any]]]:
    """Returns kinds and tables of all parts that a target stores its bytes on, directly or indirectly."""
    below: dict[str, tuple[str, Mapping[str, Any]]] = {}
    pending: list[Mapping[str, Any]] = [part_table]
    while pending:
        members = {key: value for key, value in pending.pop().items() if key != "id"}
        for name in _find_part_names(members, store_tables):
            if name not in below:
                below[name] = store_tables[name]
                pending.append(store_tables[name][1])
    return list(below.values())


class _PartSignatures:
    """Descriptions of parts without names."""

    def __init__(self, part_tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        self._parts = {name: (kind, part) for kind, items in part_tables.items() for name, part in items.items()}

    def make_signature(self, part_name: str, max_depth: int = 0) -> Any:
        kind, part = self._parts[part_name]
        if max_depth > _MAX_REFERENCE_DEPTH:
            return kind
        return [
            kind,
            {
                key: self._remove_identity_members(value, max_depth)
                for key, value in part.items()
                if key not in _IDENTITY_MEMBERS
            },
        ]

    def _remove_identity_members(self, json_value: Any, max_depth: int) -> Any:
        if isinstance(json_value, str):
            return self.make_signature(json_value, max_depth + 1) if json_value in self._parts else json_value
        if isinstance(json_value, Mapping):
            return {
                key: self._remove_identity_members(item, max_depth)
                for key, item in json_value.items()
                if key not in _IDENTITY_MEMBERS
            }
        if isinstance(json_value, Sequence):
            return [self._remove_identity_members(item, max_depth) for item in json_value]
        return json_value


def _group_symmetric_parts(
    part_kind: str,
    part_names: Sequence[str],
    signatures: _PartSignatures,
    targets_of_parts: Sequence[frozenset[str]],
    nodes_of_parts: Sequence[frozenset[str]],
) -> list[PartGroup]:
    """Groups the parts by signature and number of dependent targets, in order."""
    positions: dict[str, list[int]] = {}
    for position, name in enumerate(part_names):
        key = json.dumps(
            [signatures.make_signature(name), len(targets_of_parts[position])], sort_keys=True, default=str
        )
        positions.setdefault(key, []).append(position)
    return [
        PartGroup(
            part_kind,
            tuple(part_names[position] for position in group),
            tuple(targets_of_parts[position] for position in group),
            tuple(nodes_of_parts[position] for position in group),
        )
        for group in positions.values()
    ]


def read_machine(system: System, mount_name: str = "", most_targets: int = 0) -> DiagnosedMachine:
    """Returns the machine of a mount or file system; by default of the first mount with storage targets, else of the
    first local one.

    `most_targets` leaves a smaller machine of the same kind: its first targets with their servers, and with the rest of
    the units that they belong to. Raises UserError when the system has no such mount, the mount neither is local nor
    has storage targets, or it has fewer than requested.
    """
    document = system.resolve()
    mounts = document.get("mounts", [])
    owners = {target.get("file_system") for target in document.get("targets", ()) if target.get("kind") != "mdt"}
    usable = [item for item in mounts if item.get("file_system") in owners]
    usable += [item for item in mounts if item not in usable and item.get("through") == "local"]
    candidates = [item for item in usable if mount_name in ("", item["id"], item["file_system"])]
    if not candidates:
        offered = ", ".join(item["id"] for item in usable)
        raise UserError(
            f'System {system.id} has no mount "{mount_name}" with storage targets; it has {offered or "none"}.'
            if mount_name
            else f"System {system.id} has no local mount and none with storage targets; describe [[targets]] and"
            ' [[mounts]], or a mount with through = "local".'
        )
    chosen = candidates[0]
    file_system = chosen["file_system"]
    if file_system not in owners:
        return _make_local_machine(document, chosen, most_targets)
    targets = [item for item in document["targets"] if item.get("file_system") == file_system]
    storage = [item for item in targets if item.get("kind") != "mdt"]
    total = len(storage)
    if most_targets > total:
        raise UserError(
            f"{chosen['id']} has {total} storage targets; a machine of {most_targets} cannot be made of it."
        )
    if most_targets:
        storage = _select_targets_of_complete_units(document, storage, most_targets)
        targets = [item for item in targets if item in storage or item.get("kind") == "mdt"]
    all_nodes = list(chosen.get("on", ()))
    wanted = max(_FEW_NODES, -(-len(storage) // _CORES))
    nodes = tuple(all_nodes[: min(wanted, len(all_nodes))])
    return DiagnosedMachine(
        document=_reduce_system_document(document, chosen, targets, nodes, len(storage) / total),
        mount=chosen["id"],
        file_system=file_system,
        targets=tuple(item["id"] for item in storage),
        nodes=nodes,
        node_count=len(all_nodes),
        target_count=total,
        target_servers={item["id"]: item["server"] for item in storage if isinstance(item.get("server"), str)},
        recorded_targets=_find_targets_by_recorded_name(system, file_system),
    )


def _find_targets_by_recorded_name(system: System, file_system: str) -> dict[str, str]:
    targets = system.find_targets(file_system)
    return dict(zip(list_recorded_target_names(system, targets), targets, strict=True))


def _make_local_machine(
    system_document: Mapping[str, Any], mount_table: Mapping[str, Any], most_targets: int = 0
) -> DiagnosedMachine:
    """A file system of one node, whose storage is one part. Raises UserError when a number of targets is requested."""
    if most_targets:
        raise UserError(f"{mount_table['id']} is a local file system without storage targets; leave out --targets.")
    nodes = tuple(mount_table.get("on", ()))[:1]
    return DiagnosedMachine(
        document={
            "nodes": [item for item in system_document.get("nodes", ()) if item["id"] in nodes],
            "file_systems": [
                item for item in system_document["file_systems"] if item["id"] == mount_table["file_system"]
            ],
            "mounts": [{**mount_table, "on": list(nodes)}],
        },
        mount=mount_table["id"],
        file_system=mount_table["file_system"],
        targets=(),
        nodes=nodes,
        node_count=1,
        target_count=0,
    )


def make_directory_machine(target_directory: str) -> DiagnosedMachine:
    """The machine of a directory on this node, without a system file."""
    mount = {
        "id": target_directory,
        "file_system": target_directory,
        "path": target_directory,
        "through": "local",
        "on": ["localhost"],
    }
    return _make_local_machine({"nodes": [{"id": "localhost"}], "file_systems": [{"id": target_directory}]}, mount)


def _select_targets_of_complete_units(
    system_document: Mapping[str, Any], target_tables: Sequence[Mapping[str, Any]], min_count: int
) -> list[Mapping[str, Any]]:
    """Returns the first targets, with those that share a unit with them: rates of targets follow from their units."""
    chosen = {item["id"] for item in target_tables[:min_count]}
    for unit in system_document.get("units", ()):
        if chosen & set(unit.get("targets", ())):
            chosen |= set(unit["targets"])
    return [item for item in target_tables if item["id"] in chosen]


def _reduce_system_document(
    system_document: Mapping[str, Any],
    mount_table: Mapping[str, Any],
    target_tables: Sequence[Mapping[str, Any]],
    node_names: Sequence[str],
    kept_share: float,
) -> dict[str, Any]:
    """Leaves out other file systems, targets and nodes that do not take part, and what only people read.

    `kept_share` of the targets remain, so the same share of the file system's peak does.
    """
    kinds = {part["id"]: kind for kind, parts in system_document.items() if isinstance(parts, list) for part in parts}
    parts = {part["id"]: part for items in system_document.values() if isinstance(items, list) for part in items}
    needed: set[str] = {mount_table["id"], mount_table["file_system"], *node_names}
    pending = [*(target["id"] for target in target_tables), mount_table["file_system"], *node_names]
    pending += [
        name for key, value in mount_table.items() if key not in ("on",) for name in _find_part_names(value, parts)
    ]
    pending += [router["id"] for router in system_document.get("routers", ())]
    pending += [link["id"] for kind in ("links", "paths") for link in system_document.get(kind, ())]
    remaining = {target["id"] for target in target_tables}
    pending += [unit["id"] for unit in system_document.get("units", ()) if remaining & set(unit.get("targets", ()))]
    pending += [
        server["id"] for server in system_document.get("servers", ()) if {"mds", "mgs"} & set(server.get("roles", ()))
    ]
    while pending:
        name = pending.pop()
        needed.add(name)
        found_names = _find_part_names({key: value for key, value in parts[name].items() if key != "id"}, parts)
        pending += [other for other in found_names if other not in needed and kinds[other] not in ("nodes", "mounts")]
    reduced: dict[str, Any] = {}
    for kind, items in system_document.items():
        if not isinstance(items, list):
            reduced[kind] = items
        elif kind not in ("telemetry", "logs", "pools"):
            reduced[kind] = [item for item in items if item["id"] in needed or kind == "networks"]
    reduced["mounts"] = [{**mount_table, "on": list(node_names)}]
    reduced["file_systems"] = [
        {**item, "peak": {name: rate * kept_share for name, rate in item["peak"].items()}} if "peak" in item else item
        for item in reduced["file_systems"]
    ]
    return reduced


def _find_part_names(json_value: Any, part_tables: Mapping[str, Any]) -> list[str]:
    """Ids of parts anywhere in a value."""
    if isinstance(json_value, str):
        return [json_value] if json_value in part_tables else []
    if isinstance(json_value, Mapping):
        return [name for item in json_value.values() for name in _find_part_names(item, part_tables)]
    if isinstance(json_value, list):
        return [name for item in json_value for name in _find_part_names(item, part_tables)]
    return []
