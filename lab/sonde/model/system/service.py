# SPDX-License-Identifier: Apache-2.0
"""Targets, file systems, units, pools and mounts; where telemetry and logs come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sonde.model.system import parameters
from sonde.model.system.network import SystemPart
from sonde.model.tables.members import (
    declare_choice,
    declare_parameters,
    declare_quantity,
    declare_rates,
    declare_references,
    declare_settings,
    declare_table,
    declare_text,
)
from sonde.model.tables.quantity import Quantity, ReadWriteRates

FILE_SYSTEM_KINDS = (
    "lustre", "gpfs", "beegfs", "daos", "ceph", "gluster", "nfs", "xfs", "ext4", "btrfs", "zfs", "tmpfs", "swap",
    "other",
)  # fmt: skip
# What a local file system is for, from which follows where it goes and how it is made.
FILE_SYSTEM_PURPOSES = (
    "root", "var", "adm", "opt", "home", "spool", "swap", "tmp", "scratch", "checkpoint", "dump", "archive",
)  # fmt: skip
# Small file systems of the operating system: many small transactions, no bandwidth.
SYSTEM_PURPOSES = ("root", "var", "adm", "opt", "home", "spool", "swap", "tmp")
_STORE_KINDS = ("raid_groups", "luns", "slices", "volumes", "drives")


@dataclass(frozen=True, kw_only=True)
class Target(SystemPart):
    """Storage targets of a file system, each served by one server: OST, MDT, NSD, BeeGFS target."""

    kind: str = declare_choice("what it keeps", ("ost", "mdt", "mgt", "nsd", "target", "brick", "osd"), required=True)
    file_system: tuple[str, ...] = declare_references("the file system it is part of", "file_systems")
    index: Quantity | None = declare_quantity(
        "count", "number in the file system; of the first one when there are several"
    )
    on: tuple[str, ...] = declare_references(
        "what holds the bytes; several are divided equally", *_STORE_KINDS, allows_several=True
    )
    journal: tuple[str, ...] = declare_references("what holds the journal", *_STORE_KINDS)
    server: tuple[str, ...] = declare_references("who serves it", "servers", "nodes")
    failover: tuple[str, ...] = declare_references(
        "who serves it when that one fails; if absent, its partner", "servers", "nodes"
    )
    label: str = declare_text(
        "how its servers name it, when neither id nor index does: {server}:/bricks/{index} of Gluster; {id} is the id"
    )
    capacity: Quantity | None = declare_quantity("size", "of one target; if absent, what holds it offers")
    rate: ReadWriteRates | None = declare_rates("of one target")
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.TARGET_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class DefaultStripe:
    """Default stripe layout of files."""

    size: Quantity | None = declare_quantity("size", "on one target before the next")
    count: Quantity | None = declare_quantity("number", "targets of a file; -1 is all")
    layout: str = declare_text("composite layout, in the words of its tool")


@dataclass(frozen=True, kw_only=True)
class RatedPeak:
    """Rated values."""

    read: Quantity | None = declare_quantity("rate", "reading")
    write: Quantity | None = declare_quantity("rate", "writing")
    creates: Quantity | None = declare_quantity("op_rate", "creates")
    stats: Quantity | None = declare_quantity("op_rate", "stats")
    removes: Quantity | None = declare_quantity("op_rate", "removes")
    read_operations: Quantity | None = declare_quantity("op_rate", "small random reads")
    write_operations: Quantity | None = declare_quantity("op_rate", "small random writes")


@dataclass(frozen=True, kw_only=True)
class FileSystemRequirement:
    """Requirements on a file system that the planner lays out."""

    capacity: Quantity | None = declare_quantity("size", "that files can fill")
    read: Quantity | None = declare_quantity("rate", "reading")
    write: Quantity | None = declare_quantity("rate", "writing")


@dataclass(frozen=True, kw_only=True)
class FileSystem(SystemPart):
    """A file system: its targets name it, or it lies on a device."""

    kind: str = declare_choice("which one", FILE_SYSTEM_KINDS, required=True)
    version: str = declare_text("version of its software")
    device: tuple[str, ...] = declare_references("what a local one lies on", *_STORE_KINDS)
    networks: tuple[str, ...] = declare_references("the networks of its servers", "networks", is_shared=True)
    capacity: Quantity | None = declare_quantity("size", "what users are told")
    used: Quantity | None = declare_quantity("share", "how full it was when described")
    block: Quantity | None = declare_quantity("size", "unit of allocation")
    stripe: DefaultStripe | None = declare_table("how files are laid out unless told otherwise", DefaultStripe)
    stripe_unit: Quantity | None = declare_quantity("size", "alignment of allocations (XFS sunit)")
    stripe_width: Quantity | None = declare_quantity("size", "preferred size of an access (XFS swidth)")
    allocation_groups: Quantity | None = declare_quantity("count", "allocation groups (XFS agcount)", min_value=1)
    log: tuple[str, ...] = declare_references("what holds the journal, if not itself", *_STORE_KINDS)
    log_size: Quantity | None = declare_quantity("size", "of the journal")
    max_transfer: Quantity | None = declare_quantity("size", "largest request")
    peak: RatedPeak | None = declare_table("what is promised for all of it", RatedPeak)
    purpose: str = declare_choice("what it is for", FILE_SYSTEM_PURPOSES)
    requirement: FileSystemRequirement | None = declare_table(
        "what it should offer; without device and targets: it is to be laid out", FileSystemRequirement
    )
    settings: Mapping[str, str | int | float | bool] | None = declare_settings("tuning on servers and clients")
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.FILE_SYSTEM_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class Unit(SystemPart):
    """Building blocks of which a system has several: SSU, rack, cell."""

    kind: str = declare_text("what it is called: SSU")
    file_system: tuple[str, ...] = declare_references("the file system it serves", "file_systems")
    servers: tuple[str, ...] = declare_references(
        "its servers, an equal share for each", "servers", allows_several=True
    )
    targets: tuple[str, ...] = declare_references(
        "its targets, an equal share for each", "targets", allows_several=True
    )
    enclosures: tuple[str, ...] = declare_references(
        "its boxes, an equal share for each", "enclosures", allows_several=True
    )
    drives: tuple[str, ...] = declare_references("its drives, an equal share for each", "drives", allows_several=True)
    peak: RatedPeak | None = declare_table("what is promised for one", RatedPeak)


@dataclass(frozen=True, kw_only=True)
class Pool(SystemPart):
    """A subset of a file system's targets."""

    file_system: tuple[str, ...] = declare_references("the file system", "file_systems", required=True)
    targets: tuple[str, ...] = declare_references("its targets", "targets", allows_several=True)
    units: tuple[str, ...] = declare_references("all targets of these units", "units", allows_several=True)
    clients: Quantity | None = declare_quantity("count", "clients to use with it")
    clients_per_target: Quantity | None = declare_quantity("count", "clients to use for each target", min_value=1)
    peak: RatedPeak | None = declare_table("what is expected of it", RatedPeak)


@dataclass(frozen=True, kw_only=True)
class Mount(SystemPart):
    """Where nodes see a file system."""

    file_system: tuple[str, ...] = declare_references("the file system", "file_systems", required=True)
    path: str = declare_text("directory", required=True, pattern="/.*")
    on: tuple[str, ...] = declare_references("the nodes", "nodes", "servers", "routers", is_shared=True)
    through: str = declare_choice("how", ("native", "dvs", "nfs", "fuse", "local"), default_word="native")
    via: tuple[str, ...] = declare_references(
        "the servers or nodes that forward", "servers", "nodes", "routers", is_shared=True
    )
    options: str = declare_text("mount options")
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.MOUNT_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class Telemetry(SystemPart):
    """A counter that is read at intervals, and the parts it is about."""

    of: tuple[str, ...] = declare_references("the parts it counts for", is_shared=True)
    collector: str = declare_text("who collects it: LMT, LDMS, sar, Prometheus, pm")
    name: str = declare_text("name of the counter there", required=True)
    label: str = declare_text("how the part is named there: {id}, {index:04x}, {host}")
    counts: str = declare_choice(
        "what it counts", ("read_bytes", "write_bytes", "reads", "writes", "creates", "operations", "latency", "load",
                           "used", "errors", "queue", "other"), default_word="other",
    )  # fmt: skip
    kind: str = declare_choice("a counter only grows, a gauge goes up and down", ("counter", "gauge"))
    unit: str = declare_text("unit of the raw number: B, KiB, pages of 4 KiB")
    interval: Quantity | None = declare_quantity("duration", "time between two readings")
    where: str = declare_text("file, address or query that gives it")


@dataclass(frozen=True, kw_only=True)
class Log(SystemPart):
    """A text that something writes, and the parts it is about."""

    of: tuple[str, ...] = declare_references("the parts it is about", is_shared=True)
    where: str = declare_text("file, address or command that gives it", required=True)
    format: str = declare_text("its form: syslog, journal, SEC, console")
    clock: str = declare_text("time zone of its stamps, like UTC or America/Los_Angeles")
