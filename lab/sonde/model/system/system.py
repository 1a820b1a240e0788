# SPDX-License-Identifier: Apache-2.0
"""A system as the lab uses it: its tables as written, every part by its id, and what follows from both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sonde.model.system.addressing import Address, addresses_of
from sonde.model.system.capacity import Capacities
from sonde.model.system.index import Index, Item
from sonde.model.system.network import Link, Network, Node, Path, Router, Server
from sonde.model.system.resolving import resolved
from sonde.model.system.service import FileSystem, Log, Mount, Pool, Target, Telemetry, Unit
from sonde.model.system.storage import Controller, Drive, Enclosure, Lun, RaidGroup, Slice, Volume


@dataclass(frozen=True, kw_only=True, eq=False)
class System:
    """A checked system. Make one with `read_system` or `system_from_document`.

    The lists hold tables as written; one table may stand for many parts (`items` gives each part).
    """

    id: str
    title: str
    notes: tuple[str, ...]
    files: tuple[str, ...]  # every file it was read from
    index: Index
    networks: tuple[Network, ...] = ()
    nodes: tuple[Node, ...] = ()
    routers: tuple[Router, ...] = ()
    servers: tuple[Server, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    controllers: tuple[Controller, ...] = ()
    links: tuple[Link, ...] = ()
    paths: tuple[Path, ...] = ()
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

    def item(self, name: str) -> Item:
        """The part of that id. Raises SystemFileError with the nearest id."""
        return self.index.item(name)

    def items(self, kind: str) -> Sequence[Item]:
        """Every part of a kind ("targets"), in the order of the files."""
        return self.index.items(kind)

    def ids(self, kind: str) -> tuple[str, ...]:
        """Ids of every part of a kind."""
        return tuple(item.id for item in self.index.items(kind))

    def named(self, text: str) -> tuple[str, ...]:
        """The ids that an id, a range or the name of a group means."""
        return self.index.named(text)

    def references(self, name: str, member: str) -> tuple[str, ...]:
        """What the part `name` refers to by `member`: ``references("ost000", "server")`` is ``("oss01",)``."""
        return self.index.share(self.item(name), member)

    def reference(self, name: str, member: str) -> str | None:
        """The one id that the part refers to, or None."""
        found = self.references(name, member)
        return found[0] if found else None

    @cached_property
    def _targets_by_file_system(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for item in self.items("targets"):
            for file_system in self.index.share(item, "file_system"):
                found.setdefault(file_system, []).append(item.id)
        return found

    def targets_of(self, name: str, kind: str = "") -> tuple[str, ...]:
        """Targets of a file system, pool, unit or server, of one kind ("ost") or of all, in order."""
        part = self.item(name)
        if part.kind == "file_systems":
            found: Sequence[str] = self._targets_by_file_system.get(name, [])
        elif part.kind == "pools":
            units = self.index.share(part, "units")
            found = [*self.index.share(part, "targets"), *(one for unit in units for one in self.targets_of(unit))]
        elif part.kind == "units":
            found = self.index.share(part, "targets")
        else:
            found = [one.id for one in self.items("targets") if name in self.index.share(one, "server")]
        return tuple(one for one in found if not kind or self._target(one).kind == kind)

    def _target(self, name: str) -> Target:
        table = self.item(name).table
        assert isinstance(table, Target)
        return table

    def servers_of(self, name: str, role: str = "") -> tuple[str, ...]:
        """Servers of a file system, pool, unit or target, of one role ("oss") or of all, each once, in order."""
        part = self.item(name)
        if part.kind == "targets":
            found = self.index.share(part, "server")
        elif isinstance(part.table, Unit) and part.table.servers:
            found = self.index.share(part, "servers")
        else:
            found = tuple(dict.fromkeys(one for target in self.targets_of(name) for one in self.servers_of(target)))
        return tuple(one for one in found if not role or role in getattr(self.item(one).table, "roles", ()))

    def units_of(self, name: str) -> tuple[str, ...]:
        """Units of a file system, pool, target or server."""
        part = self.item(name)
        if isinstance(part.table, Pool) and part.table.units:
            return self.index.share(part, "units")
        if part.kind == "servers":
            return self._units_with("servers", {name})
        wanted = {name} if part.kind == "targets" else set(self.targets_of(name))
        return self._units_with("targets", wanted)

    def _units_with(self, member: str, wanted: set[str]) -> tuple[str, ...]:
        return tuple(one.id for one in self.items("units") if wanted.intersection(self.index.share(one, member)))

    def failover_of(self, target: str) -> str | None:
        """Who serves a target when its server fails: named for the target, else the partner of its server."""
        told = self.reference(target, "failover")
        server = self.reference(target, "server")
        return told or (self.partner_of(server) if server else None)

    def partner_of(self, server: str) -> str | None:
        """The server that takes over: named, or the other of a pair where they are described as pairs."""
        item = self.item(server)
        if item.kind == "servers" and (told := self.index.share(item, "partner")):
            return told[0]
        if not isinstance(item.table, Server) or item.table.failover != "pairs":
            return None
        return self.index.ids_of(item.table)[item.position ^ 1]

    def pool_clients(self, pool: str) -> int | None:
        """Clients to use with a pool: said, or clients per target times its targets; None when nobody said."""
        table = self.item(pool).table
        assert isinstance(table, Pool)
        if table.clients is not None:
            return int(table.clients)
        each = table.clients_per_target
        return None if each is None else int(each) * len(self.targets_of(pool))

    def addresses_of(self, host: str, network: str = "") -> tuple[Address, ...]:
        """Where a node, router or server joins networks: device, address and LNet id of each interface."""
        return tuple(one for one in addresses_of(self.index, self.item(host)) if not network or one.network == network)

    @cached_property
    def capacities(self) -> Capacities:
        """Sizes of drives, RAID groups, LUNs, slices, volumes and targets."""
        return Capacities(self.index)

    def capacity_of(self, name: str) -> int | None:
        """Bytes that a part offers, or None when the file does not say enough."""
        return self.capacities.of(name)

    def stripe_of(self, raid_group: str) -> int | None:
        """Bytes of one full stripe of data of a RAID group: segment times data drives."""
        return self.capacities.stripe_of(self.item(raid_group).table)

    def resolved(self) -> dict[str, Any]:
        """The system with every range written out and every number in base units (schema/system/resolved.schema.json):
        bytes, seconds, bytes per second, operations per second. What nobody said is absent."""
        return resolved(self)

    def to_json(self) -> str:
        """The resolved form as text: what the simulator reads."""
        return json.dumps(self.resolved(), ensure_ascii=False, separators=(",", ":")) + "\n"
