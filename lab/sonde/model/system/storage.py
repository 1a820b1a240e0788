# SPDX-License-Identifier: Apache-2.0
"""Enclosures, controllers, drives, RAID groups, LUNs, slices and volumes: where bytes are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sonde.model.system import parameters
from sonde.model.system.network import SystemPart
from sonde.model.tables.members import choice, flag, ids, quantity, rates, text
from sonde.model.tables.members import parameters as model
from sonde.model.tables.quantity import Quantity, Rates

RAID_LEVELS = ("0", "1", "4", "5", "6", "7", "10", "50", "60", "declustered", "none")


@dataclass(frozen=True, kw_only=True)
class Enclosure(SystemPart):
    """A box that holds drives, controllers or servers: S-brick, C-brick, SSU, JBOD, I/O cabinet."""

    kind: str = text("what it is: S-brick SB201, JBOD 2U24")
    inside: tuple[str, ...] = ids("the box that holds it", "enclosures")
    chassis: Quantity | None = quantity("count", "number of the chassis")
    slot: Quantity | None = quantity("count", "number of the slot in it")
    slots: Quantity | None = quantity("count", "places for drives")
    layout: str = text("name of its RAID layout, like RG128")
    rate: Rates | None = rates("between the box and what it is connected to")
    model: Mapping[str, Quantity] | None = model("parameters of performance models", parameters.CONTROLLER)


@dataclass(frozen=True, kw_only=True)
class Controller(SystemPart):
    """A RAID controller or host adapter."""

    kind: str = text("what it is: RC200")
    enclosure: tuple[str, ...] = ids("where it sits", "enclosures")
    partner: tuple[str, ...] = ids("the one that takes over", "controllers")
    drives: tuple[str, ...] = ids("the boxes or drives that it reaches", "enclosures", "drives", allows_several=True)
    rate: Rates | None = rates("through one controller")
    ports: Quantity | None = quantity("count", "host ports")
    port_rate: Rates | None = rates("of one host port")
    cache: Quantity | None = quantity("size", "memory for data")
    write_cache: bool | None = flag("true when writes are answered from memory")
    address: str = text("address of its management port")
    max_transfer: Quantity | None = quantity("size", "largest request")
    model: Mapping[str, Quantity] | None = model("parameters of performance models", parameters.CONTROLLER)


@dataclass(frozen=True, kw_only=True)
class Drive(SystemPart):
    """Drives alike."""

    kind: str = choice("technology", ("hdd", "ssd", "nvme", "tape", "loop", "other"))
    enclosure: tuple[str, ...] = ids("where they sit: one box for all, or one for each equal share", "enclosures")
    server: tuple[str, ...] = ids("the server or node that holds them, where there is no enclosure", "servers", "nodes")
    capacity: Quantity | None = quantity("size", "of one drive")
    block: Quantity | None = quantity("size", "smallest unit that it reads or writes")
    rate: Rates | None = rates("of one drive, streaming")
    operations: Quantity | None = quantity("op_rate", "random operations per second of one drive")
    latency: Quantity | None = quantity("duration", "of one small request")
    rpm: Quantity | None = quantity("count", "turns per minute")
    ports: Quantity | None = quantity("count", "ports")
    interface: str = text("how it is connected: NL-SAS, FC, PCIe 4 x4")
    device: str = text("name on the host, or a range of names")
    model: Mapping[str, Quantity] | None = model("parameters of performance models", parameters.DRIVE)


@dataclass(frozen=True, kw_only=True)
class RaidGroup(SystemPart):
    """RAID groups alike: `data` + `parity` drives each, `segment` bytes on one drive before the next."""

    level: str = choice("RAID level", RAID_LEVELS, required=True)
    data: Quantity | None = quantity("count", "drives' worth of data in one stripe", least=1)
    parity: Quantity | None = quantity("count", "drives' worth of parity in one stripe; copies count here for mirrors")
    segment: Quantity | None = quantity("size", "on one drive before the next: chunk, strip, stripe element")
    drives: tuple[str, ...] = ids("the drives, an equal share for each group in order", "drives", allows_several=True)
    spares: tuple[str, ...] = ids(
        "hot spares: all for every group, or an equal share for each block", "drives", allows_several=True
    )
    blocks: Quantity | None = quantity(
        "count", "equal blocks of these groups that share spares, one for each box", least=1
    )
    spare_share: Quantity | None = quantity("share", "spare space spread over the drives of a declustered group")
    controller: tuple[str, ...] = ids("the controller that runs them", "controllers")
    usable: Quantity | None = quantity("size", "what one group offers; if absent, data times the smallest drive")
    block: Quantity | None = quantity("size", "unit of addressing")
    layout: str = text("order of copies or parity: near2, far2, left-symmetric")
    device: str = text("name on the host, like /dev/md5")
    state: str = choice("when described", ("optimal", "degraded", "rebuilding", "failed"))
    model: Mapping[str, Quantity] | None = model("parameters of performance models", parameters.RAID)


@dataclass(frozen=True, kw_only=True)
class Lun(SystemPart):
    """Pieces of a RAID group that a host sees as disks."""

    raid_group: tuple[str, ...] = ids("what it is cut from", "raid_groups")
    number: Quantity | None = quantity("count", "logical unit number; of the first one when there are several")
    size: Quantity | None = quantity("size", "bytes; absent is what is left of the group")
    controller: tuple[str, ...] = ids("the controller that owns it", "controllers")
    queue_depth: Quantity | None = quantity("count", "commands that may be under way", least=1)
    purpose: str = choice("what it is tuned for", ("transaction", "bandwidth", "capacity"))
    label: str = text("name in the site's tools, like 01d02_A0_L02")
    device: str = text("name on the host, like pm1d1L10")
    model: Mapping[str, Quantity] | None = model("parameters of performance models", parameters.RAID)


@dataclass(frozen=True, kw_only=True)
class Slice(SystemPart):
    """Partitions of a LUN, drive, RAID group or volume."""

    on: tuple[str, ...] = ids("what is divided", "luns", "drives", "raid_groups", "volumes", required=True)
    start: Quantity | None = quantity("size", "where it begins; absent is after the one before")
    size: Quantity | None = quantity("size", "bytes")
    share: Quantity | None = quantity("share", "of the whole, instead of a size")
    alignment: Quantity | None = quantity("size", "its beginning is a multiple of this")
    number: Quantity | None = quantity("count", "number of the slice")
    use: str = text("what it is for: root, swap, log, data")
    device: str = text("name on the host")


@dataclass(frozen=True, kw_only=True)
class Volume(SystemPart):
    """Several slices, LUNs, drives or RAID groups as one: XLV, md, LVM, ZFS pool."""

    kind: str = choice("how they are combined", ("stripe", "concat", "mirror", "zfs", "lvm", "other"), required=True)
    software: str = text("what combines them: XLV, md, LVM")
    members: tuple[str, ...] = ids(
        "what it is made of, an equal share for each volume", "slices", "luns", "drives", "raid_groups", "volumes",
        allows_several=True, required=True,
    )  # fmt: skip
    stripe_unit: Quantity | None = quantity("size", "on one member before the next")
    usable: Quantity | None = quantity("size", "what it offers; if absent, what its members do")
    log: tuple[str, ...] = ids("what holds the journal", "slices", "luns", "drives", "raid_groups", "volumes")
    device: str = text("name on the host, like /dev/md0")
    model: Mapping[str, Quantity] | None = model("parameters of performance models", parameters.RAID)
