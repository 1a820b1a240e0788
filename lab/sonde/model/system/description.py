# SPDX-License-Identifier: Apache-2.0
"""The top-level members of a system file and the kinds of parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sonde.model.system.network import Link, Network, Node, Router, Server, StoragePath, SystemPart
from sonde.model.system.service import FileSystem, Log, Mount, Pool, Target, Telemetry, Unit
from sonde.model.system.storage import Controller, Drive, Enclosure, Lun, RaidGroup, Slice, Volume
from sonde.model.tables.members import declare_choice, declare_tables, declare_text, declare_texts
from sonde.model.tables.quantity import SOURCE_STATUSES

SYSTEM_FORMAT = "sonde-system/2"
RESOLVED_SYSTEM_FORMAT = "sonde-system-resolved/2"

# Kind of part, as the file writes it -> the class of its tables. The order is the order of the resolved form.
PART_KINDS: Mapping[str, type[SystemPart]] = {
    "networks": Network,
    "nodes": Node,
    "routers": Router,
    "servers": Server,
    "enclosures": Enclosure,
    "controllers": Controller,
    "links": Link,
    "paths": StoragePath,
    "drives": Drive,
    "raid_groups": RaidGroup,
    "luns": Lun,
    "slices": Slice,
    "volumes": Volume,
    "targets": Target,
    "file_systems": FileSystem,
    "units": Unit,
    "pools": Pool,
    "mounts": Mount,
    "telemetry": Telemetry,
    "logs": Log,
}


@dataclass(frozen=True, kw_only=True)
class SystemFile:
    """A machine and its storage: the one map that every part of Sonde reads.

    Every part is optional. A table describes one part, or many alike when its id is a range.
    """

    schema: str = declare_choice("version of this format", (SYSTEM_FORMAT,), required=True)
    id: str = declare_text("name of the system; if absent, that of the file", pattern=r"[A-Za-z0-9][A-Za-z0-9_.-]*")
    title: str = declare_text("words for people")
    source: str = declare_text("where the numbers of this file come from, unless a table or a number says otherwise")
    status: str = declare_choice("how sure the numbers of this file are", SOURCE_STATUSES)
    notes: tuple[str, ...] = declare_texts("what a reader must know: contradictions, guesses, conventions")
    include: tuple[str, ...] = declare_texts(
        "other files of the same form whose parts belong here, relative to this file"
    )
    networks: tuple[Network, ...] = declare_tables("networks", Network)
    nodes: tuple[Node, ...] = declare_tables("compute, login and service nodes", Node)
    routers: tuple[Router, ...] = declare_tables("routers between networks", Router)
    servers: tuple[Server, ...] = declare_tables("servers of file systems, metadata servers among them", Server)
    enclosures: tuple[Enclosure, ...] = declare_tables("boxes", Enclosure)
    controllers: tuple[Controller, ...] = declare_tables("RAID controllers and host adapters", Controller)
    links: tuple[Link, ...] = declare_tables("connections between parts", Link)
    paths: tuple[StoragePath, ...] = declare_tables("ways from hosts to controllers, LUNs and targets", StoragePath)
    drives: tuple[Drive, ...] = declare_tables("drives", Drive)
    raid_groups: tuple[RaidGroup, ...] = declare_tables("RAID groups", RaidGroup)
    luns: tuple[Lun, ...] = declare_tables("LUNs", Lun)
    slices: tuple[Slice, ...] = declare_tables("partitions", Slice)
    volumes: tuple[Volume, ...] = declare_tables("volumes", Volume)
    targets: tuple[Target, ...] = declare_tables("targets of file systems", Target)
    file_systems: tuple[FileSystem, ...] = declare_tables("file systems", FileSystem)
    units: tuple[Unit, ...] = declare_tables("building blocks", Unit)
    pools: tuple[Pool, ...] = declare_tables("pools of targets", Pool)
    mounts: tuple[Mount, ...] = declare_tables("mounts", Mount)
    telemetry: tuple[Telemetry, ...] = declare_tables("where counters come from", Telemetry)
    logs: tuple[Log, ...] = declare_tables("where logs come from", Log)
