# SPDX-License-Identifier: Apache-2.0
"""A checked system: its tables as written, every part by id, and derived values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sonde.model.system.addressing import InterfaceAddress, iterate_host_addresses
from sonde.model.system.capacity import CapacityCalculator
from sonde.model.system.index import PartIndex, PartItem
from sonde.model.system.network import Link, Network, Node, Router, Server, StoragePath
from sonde.model.system.resolution import resolve_system
from sonde.model.system.service import FileSystem, Log, Mount, Pool, Target, Telemetry, Unit
from sonde.model.system.storage import Controller, Drive, Enclosure, Lun, RaidGroup, Slice, Volume


@dataclass(frozen=True, kw_only=True, eq=False)
class System:
    """A checked system. Create one with `read_system` or `make_system`.

    The lists hold tables as written; one table may describe many parts (`list_parts` returns each).
    """

    id: str
    title: str
    notes: tuple[str, ...]
    files: tuple[str, ...]  # every file it was read from
    index: PartIndex
    networks: tuple[Network, ...] = ()
    nodes: tuple[Node, ...] = ()
    routers: tuple[Router, ...] = ()
    servers: tuple[Server, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    controllers: tuple[Controller, ...] = ()
    links: tuple[Link, ...] = ()
    paths: tuple[StoragePath, ...] = ()
    drives: tuple[Drive, ...] = ()
    raid_groups: tuple[RaidGroup, ...] = ()
    luns: tuple[Lun, ...] = ()
    slices: tuple[Slice, ...] = ()
    volumes: tuple[Volume, ...] = ()
    targets: tuple[Target, ...] = ()
    file_systems: tuple[FileSystem, ...] = ()
    units: tuple[Unit, ...] = ()
    pools: tuple[Pool, ...] = ()
    mounts: tuple[Mount, ...] = ()
    telemetry: tuple[Telemetry, ...] = ()
    logs: tuple[Log, ...] = ()

    def get_part(self, part_id: str) -> PartItem:
        """Returns the part with that id. Raises SystemFileError with the nearest id."""
        return self.index.get_part(part_id)

    def list_parts(self, part_kind: str) -> Sequence[PartItem]:
        """Returns every part of a kind ("targets"), in the order of the files."""
        return self.index.list_parts(part_kind)

    def list_part_ids(self, part_kind: str) -> tuple[str, ...]:
        """Returns the ids of all parts of a kind."""
        return tuple(item.id for item in self.index.list_parts(part_kind))

    def resolve_names(self, names_text: str) -> tuple[str, ...]:
        """Returns the ids of an id, a range or a group."""
        return self.index.resolve_names(names_text)

    def find_references(self, part_id: str, member_name: str) -> tuple[str, ...]:
        """Returns the ids that a part names in `member_name`: ``find_references("ost000", "server")`` is
        ``("oss01",)``."""
        return self.index.find_part_references(self.get_part(part_id), member_name)

    def find_first_reference(self, part_id: str, member_name: str) -> str | None:
        """Returns the first id that the part names in `member_name`, or None."""
        ids = self.find_references(part_id, member_name)
        return ids[0] if ids else None

    @cached_property
    def _targets_by_file_system(self) -> dict[str, list[str]]:
        targets: dict[str, list[str]] = {}
        for item in self.list_parts("targets"):
            for file_system in self.index.find_part_references(item, "file_system"):
                targets.setdefault(file_system, []).append(item.id)
        return targets

    def find_targets(self, part_id: str, target_kind: str = "") -> tuple[str, ...]:
        """Returns the targets of a file system, pool, unit or server, of one kind ("ost") or all, in order."""
        part = self.get_part(part_id)
        if part.kind == "file_systems":
            target_ids: Sequence[str] = self._targets_by_file_system.get(part_id, [])
        elif part.kind == "pools":
            units = self.index.find_part_references(part, "units")
            target_ids = [
                *self.index.find_part_references(part, "targets"),
                *(target_id for unit in units for target_id in self.find_targets(unit)),
            ]
        elif part.kind == "units":
            target_ids = self.index.find_part_references(part, "targets")
        else:
            target_ids = [
                target_id.id
                for target_id in self.list_parts("targets")
                if part_id in self.index.find_part_references(target_id, "server")
            ]
        return tuple(
            target_id for target_id in target_ids if not target_kind or self._get_target(target_id).kind == target_kind
        )

    def _get_target(self, target_id: str) -> Target:
        table = self.get_part(target_id).table
        assert isinstance(table, Target)
        return table

    def find_servers(self, part_id: str, server_role: str = "") -> tuple[str, ...]:
        """Returns the distinct servers of a file system, pool, unit or target, of one role ("oss") or all, in order."""
        part = self.get_part(part_id)
        if part.kind == "targets":
            server_ids = self.index.find_part_references(part, "server")
        elif isinstance(part.table, Unit) and part.table.servers:
            server_ids = self.index.find_part_references(part, "servers")
        else:
            server_ids = tuple(
                dict.fromkeys(
                    server_id for target in self.find_targets(part_id) for server_id in self.find_servers(target)
                )
            )
        return tuple(
            server_id
            for server_id in server_ids
            if not server_role or server_role in getattr(self.get_part(server_id).table, "roles", ())
        )

    def find_units(self, part_id: str) -> tuple[str, ...]:
        """Returns the units of a file system, pool, target or server."""
        part = self.get_part(part_id)
        if isinstance(part.table, Pool) and part.table.units:
            return self.index.find_part_references(part, "units")
        if part.kind == "servers":
            return self._list_units_with_member("servers", {part_id})
        target_ids = {part_id} if part.kind == "targets" else set(self.find_targets(part_id))
        return self._list_units_with_member("targets", target_ids)

    def _list_units_with_member(self, member_name: str, member_ids: set[str]) -> tuple[str, ...]:
        return tuple(
            unit.id
            for unit in self.list_parts("units")
            if member_ids.intersection(self.index.find_part_references(unit, member_name))
        )

    def find_failover_server(self, target_id: str) -> str | None:
        """Returns the failover server of a target: its own, otherwise the partner of its server."""
        failover = self.find_first_reference(target_id, "failover")
        server = self.find_first_reference(target_id, "server")
        return failover or (self.find_partner(server) if server else None)

    def find_partner(self, server: str) -> str | None:
        """Returns the server that takes over for `server`: its `partner`, or the other server of its pair."""
        item = self.get_part(server)
        if item.kind == "servers" and (partners := self.index.find_part_references(item, "partner")):
            return partners[0]
        if not isinstance(item.table, Server) or item.table.failover != "pairs":
            return None
        return self.index.get_ids(item.table)[item.position ^ 1]

    def count_pool_clients(self, pool_id: str) -> int | None:
        """Returns the clients of a pool: `clients`, or clients per target times targets; None when neither is given."""
        table = self.get_part(pool_id).table
        assert isinstance(table, Pool)
        if table.clients is not None:
            return int(table.clients)
        clients_per_target = table.clients_per_target
        return None if clients_per_target is None else int(clients_per_target) * len(self.find_targets(pool_id))

    def find_addresses(self, host_id: str, network: str = "") -> tuple[InterfaceAddress, ...]:
        """Returns device, address and LNet id of each interface of a node, router or server."""
        return tuple(
            address
            for address in iterate_host_addresses(self.index, self.get_part(host_id))
            if not network or address.network == network
        )

    @cached_property
    def capacities(self) -> CapacityCalculator:
        """Capacities of drives, RAID groups, LUNs, slices, volumes and targets."""
        return CapacityCalculator(self.index)

    def compute_capacity(self, part_id: str) -> int | None:
        """Returns the bytes that a part offers, or None when the file does not give enough."""
        return self.capacities.compute_capacity(part_id)

    def compute_full_stripe(self, raid_group: str) -> int | None:
        """Returns the bytes of one full data stripe of a RAID group: segment size times data drives."""
        return self.capacities.compute_full_stripe_bytes(self.get_part(raid_group).table)

    def resolve(self) -> dict[str, Any]:
        """Returns the resolved form (schema/system/resolved.schema.json): ranges expanded, numbers in base units
        (bytes,
        seconds, bytes per second, operations per second). Unknown values are absent."""
        return resolve_system(self)

    def to_json(self) -> str:
        """Returns the resolved form as JSON text, for the simulator."""
        return json.dumps(self.resolve(), ensure_ascii=False, separators=(",", ":")) + "\n"
