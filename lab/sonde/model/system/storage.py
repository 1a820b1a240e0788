# SPDX-License-Identifier: Apache-2.0
"""Enclosures, controllers, drives, RAID groups, LUNs, slices and volumes: the parts that store bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sonde.model.system import parameters
from sonde.model.system.network import SystemPart
from sonde.model.tables.members import (
    declare_choice,
    declare_flag,
    declare_parameters,
    declare_quantity,
    declare_rates,
    declare_references,
    declare_text,
)
from sonde.model.tables.quantity import Quantity, ReadWriteRates

RAID_LEVELS = ("0", "1", "4", "5", "6", "7", "10", "50", "60", "declustered", "none")


@dataclass(frozen=True, kw_only=True)
class Enclosure(SystemPart):
    """A box that holds drives, controllers or servers: S-brick, C-brick, SSU, JBOD, I/O cabinet."""

    kind: str = declare_text("what it is: S-brick SB201, JBOD 2U24")
    inside: tuple[str, ...] = declare_references("the box that holds it", "enclosures")
    chassis: Quantity | None = declare_quantity("count", "number of the chassis")
    slot: Quantity | None = declare_quantity("count", "number of the slot in it")
    slots: Quantity | None = declare_quantity("count", "places for drives")
    layout: str = declare_text("name of its RAID layout, like RG128")
    rate: ReadWriteRates | None = declare_rates("between the box and what it is connected to")
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.CONTROLLER_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class Controller(SystemPart):
    """A RAID controller or host adapter."""

    kind: str = declare_text("what it is: RC200")
    enclosure: tuple[str, ...] = declare_references("where it sits", "enclosures")
    partner: tuple[str, ...] = declare_references("the one that takes over", "controllers")
    drives: tuple[str, ...] = declare_references(
        "the boxes or drives that it reaches", "enclosures", "drives", allows_several=True
    )
    rate: ReadWriteRates | None = declare_rates("through one controller")
    ports: Quantity | None = declare_quantity("count", "host ports")
    port_rate: ReadWriteRates | None = declare_rates("of one host port")
    cache: Quantity | None = declare_quantity("size", "memory for data")
    write_cache: bool | None = declare_flag("true when writes are answered from memory")
    address: str = declare_text("address of its management port")
    max_transfer: Quantity | None = declare_quantity("size", "largest request")
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.CONTROLLER_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class Drive(SystemPart):
    """Drives alike."""

    kind: str = declare_choice("technology", ("hdd", "ssd", "nvme", "tape", "loop", "other"))
    enclosure: tuple[str, ...] = declare_references(
        "where they sit: one box for all, or one for each equal share", "enclosures"
    )
    server: tuple[str, ...] = declare_references(
        "the server or node that holds them, where there is no enclosure", "servers", "nodes"
    )
    capacity: Quantity | None = declare_quantity("size", "of one drive")
    block: Quantity | None = declare_quantity("size", "smallest unit that it reads or writes")
    rate: ReadWriteRates | None = declare_rates("of one drive, streaming")
    operations: Quantity | None = declare_quantity("op_rate", "random operations per second of one drive")
    latency: Quantity | None = declare_quantity("duration", "of one small request")
    rpm: Quantity | None = declare_quantity("count", "turns per minute")
    ports: Quantity | None = declare_quantity("count", "ports")
    interface: str = declare_text("how it is connected: NL-SAS, FC, PCIe 4 x4")
    device: str = declare_text("name on the host, or a range of names")
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.DRIVE_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class RaidGroup(SystemPart):
    """RAID groups alike: `data` + `parity` drives each, `segment` bytes on one drive before the next."""

    level: str = declare_choice("RAID level", RAID_LEVELS, required=True)
    data: Quantity | None = declare_quantity("count", "drives' worth of data in one stripe", min_value=1)
    parity: Quantity | None = declare_quantity(
        "count", "drives' worth of parity in one stripe; copies count here for mirrors"
    )
    segment: Quantity | None = declare_quantity("size", "on one drive before the next: chunk, strip, stripe element")
    drives: tuple[str, ...] = declare_references(
        "the drives, an equal share for each group in order", "drives", allows_several=True
    )
    spares: tuple[str, ...] = declare_references(
        "hot spares: all for every group, or an equal share for each block", "drives", allows_several=True
    )
    blocks: Quantity | None = declare_quantity(
        "count", "equal blocks of these groups that share spares, one for each box", min_value=1
    )
    spare_share: Quantity | None = declare_quantity(
        "share", "spare space spread over the drives of a declustered group"
    )
    controller: tuple[str, ...] = declare_references("the controller that runs them", "controllers")
    usable: Quantity | None = declare_quantity(
        "size", "what one group offers; if absent, data times the smallest drive"
    )
    block: Quantity | None = declare_quantity("size", "unit of addressing")
    layout: str = declare_text("order of copies or parity: near2, far2, left-symmetric")
    bitmap: str = declare_text("file of the write-intent bitmap on another device, like /bitmaps/md5")
    device: str = declare_text("name on the host, like /dev/md5")
    state: str = declare_choice("when described", ("optimal", "degraded", "rebuilding", "failed"))
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.RAID_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class Lun(SystemPart):
    """Pieces of a RAID group that a host sees as disks."""

    raid_group: tuple[str, ...] = declare_references("what it is cut from", "raid_groups")
    number: Quantity | None = declare_quantity("count", "logical unit number; of the first one when there are several")
    size: Quantity | None = declare_quantity("size", "bytes; absent is what is left of the group")
    controller: tuple[str, ...] = declare_references("the controller that owns it", "controllers")
    queue_depth: Quantity | None = declare_quantity("count", "commands that may be under way", min_value=1)
    purpose: str = declare_choice("what it is tuned for", ("transaction", "bandwidth", "capacity"))
    label: str = declare_text("name in the site's tools, like 01d02_A0_L02")
    device: str = declare_text("name on the host, like pm1d1L10")
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.RAID_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class Slice(SystemPart):
    """Partitions of a LUN, drive, RAID group or volume."""

    on: tuple[str, ...] = declare_references(
        "what is divided", "luns", "drives", "raid_groups", "volumes", required=True
    )
    start: Quantity | None = declare_quantity("size", "where it begins; absent is after the one before")
    size: Quantity | None = declare_quantity("size", "bytes")
    share: Quantity | None = declare_quantity("share", "of the whole, instead of a size")
    alignment: Quantity | None = declare_quantity("size", "its beginning is a multiple of this")
    number: Quantity | None = declare_quantity("count", "number of the slice")
    use: str = declare_text("what it is for: root, swap, log, data")
    device: str = declare_text("name on the host")


@dataclass(frozen=True, kw_only=True)
class Volume(SystemPart):
    """Several slices, LUNs, drives or RAID groups as one: XLV, md, LVM, ZFS pool."""

    kind: str = declare_choice(
        "how they are combined", ("stripe", "concat", "mirror", "zfs", "lvm", "other"), required=True
    )
    software: str = declare_text("what combines them: XLV, md, LVM")
    members: tuple[str, ...] = declare_references(
        "what it is made of, an equal share for each volume", "slices", "luns", "drives", "raid_groups", "volumes",
        allows_several=True, required=True,
    )  # fmt: skip
    stripe_unit: Quantity | None = declare_quantity("size", "on one member before the next")
    usable: Quantity | None = declare_quantity("size", "what it offers; if absent, what its members do")
    log: tuple[str, ...] = declare_references(
        "what holds the journal", "slices", "luns", "drives", "raid_groups", "volumes"
    )
    device: str = declare_text("name on the host, like /dev/md0")
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.RAID_PARAMETERS
    )
