# SPDX-License-Identifier: Apache-2.0
"""Block devices that hold the bytes of a file system: drives, RAID groups, LUNs, slices, volumes, with their
members."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sonde.design.layout.geometry import MIB, Geometry, compute_slice_alignment, read_geometry_of_group
from sonde.design.layout.slicing import TABLE_AT_END, TABLE_AT_START
from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.index import PartItem
from sonde.model.system.storage import Drive, Lun, RaidGroup, Slice, Volume

# Space on each drive before the data of md, at most: 128 MiB for reshapes, superblock and bitmap, up to a whole MiB
# (validate_geometry1 in super1.c of mdadm). Some versions of mdadm take 128 MiB.
MD_RESERVE = 129 * MIB
_LEGACY_PATTERN = re.compile(r"(/dev/dsk/|/hw/disk/)?pm\d")


@dataclass(frozen=True)
class BlockDevice:
    """A block device of a system with everything below it. Sizes in bytes; None is unknown."""

    id: str
    kind: str  # drives, raid_groups, luns, slices, volumes
    table: Drive | RaidGroup | Lun | Slice | Volume
    members: tuple[BlockDevice, ...]
    capacity: int | None
    start: int | None = None  # of a slice, on what it is cut from
    device_path: str = ""  # one of the names of its table, where those are a range
    controller: str = ""  # of a LUN or RAID group

    @property
    def stripe_unit_bytes(self) -> int | None:
        """Bytes on one member before the next: the segment of a RAID group, the stripe unit of a striped volume."""
        if isinstance(self.table, RaidGroup):
            return None if self.table.segment is None else int(self.table.segment)
        if isinstance(self.table, Volume) and self.table.kind == "stripe":
            return self.full_stripe_bytes if self.table.stripe_unit is None else int(self.table.stripe_unit)
        return self.members[0].stripe_unit_bytes if self.members and not isinstance(self.table, Drive) else None

    @property
    def full_stripe_bytes(self) -> int | None:
        """Bytes of data in one full stripe of the RAID group below; for a volume, that of its members."""
        if isinstance(self.table, RaidGroup):
            geometry = self.raid_geometry
            return (
                None
                if geometry is None or self.stripe_unit_bytes is None
                else geometry.compute_full_stripe_bytes(self.stripe_unit_bytes)
            )
        return self.members[0].full_stripe_bytes if self.members else None

    @property
    def stripe_width_bytes(self) -> int | None:
        """Bytes that use every data drive once: the unit of a volume times its members, else the full stripe."""
        if isinstance(self.table, Volume) and self.table.kind == "stripe":
            return None if self.stripe_unit_bytes is None else self.stripe_unit_bytes * len(self.members)
        return (
            self.members[0].stripe_width_bytes
            if isinstance(self.table, Slice | Lun | Volume) and self.members
            else self.full_stripe_bytes
        )

    @property
    def raid_geometry(self) -> Geometry | None:
        """The geometry of the RAID group itself, or of the first one below."""
        if isinstance(self.table, RaidGroup):
            return read_geometry_of_group(self.table)
        return self.members[0].raid_geometry if self.members else None

    @property
    def device_label(self) -> str:
        """The name that an administrator uses: its device, else its id."""
        return self.device_path or getattr(self.table, "device", "") or self.id

    @property
    def is_cray_x1(self) -> bool:
        """Whether it belongs to a Cray X1, whose LUNs are named like pm1d1L10 and whose volume manager was XLV."""
        return any(
            getattr(device.table, "software", "") == "XLV" or _LEGACY_PATTERN.match(device.device_label) is not None
            for device in self.iterate_top_down()
        )

    def iterate_top_down(self) -> Iterator[BlockDevice]:
        """This device and everything below it, top down."""
        yield self
        for member in self.members:
            yield from member.iterate_top_down()

    def list_raid_groups(self) -> tuple[BlockDevice, ...]:
        """The RAID groups below, else the drives, else the device whose members are not described."""
        if self.kind in ("raid_groups", "drives") or not self.members:
            return (self,)
        return tuple(group for member in self.members for group in member.list_raid_groups())


_BENEATH = {"raid_groups": "drives", "luns": "raid_group", "slices": "on", "volumes": "members", "drives": ""}


def resolve_block_device(system: System, device_id: str) -> BlockDevice:
    """The block device of that id with everything below it. Raises SystemFileError."""
    item = system.get_part(device_id)
    member = _BENEATH[item.kind]
    below = system.find_references(device_id, member) if member else ()
    table = item.table
    assert isinstance(table, Drive | RaidGroup | Lun | Slice | Volume)
    start = compute_slice_starts(system, below[0]).get(device_id) if item.kind == "slices" else None
    return BlockDevice(
        device_id,
        item.kind,
        table,
        tuple(resolve_block_device(system, device_id) for device_id in below),
        system.compute_capacity(device_id),
        start,
        item.read_ranged_text("device"),
        _find_controller(system, device_id),
    )


def _find_controller(system: System, device_id: str) -> str:
    """The controller that owns a LUN, its own or that of its RAID group; empty for other devices."""
    item = system.get_part(device_id)
    if item.kind not in ("luns", "raid_groups"):
        return ""
    below = system.find_references(device_id, "raid_group") if item.kind == "luns" else ()
    controller = system.find_first_reference(device_id, "controller")
    return controller or (system.find_first_reference(below[0], "controller") if below else None) or ""


def list_slices_of_disk(system: System, disk_id: str) -> list[PartItem]:
    """The slices of a disk in the order of the system file."""
    return [item for item in system.list_parts("slices") if disk_id in system.find_references(item.id, "on")]


def assign_partition_numbers(system: System, disk_id: str) -> dict[str, int]:
    """The GPT number of each slice of a disk: as described, else the first free one. Described numbers that begin at 0
    grow by one, because GPT counts from 1. Raises UserError for a number of two slices."""
    slices = list_slices_of_disk(system, disk_id)
    described = {
        item.id: int(item.table.number) + item.position
        for item in slices
        if isinstance(item.table, Slice) and item.table.number is not None
    }
    shift = 1 if 0 in described.values() else 0
    owners: dict[int, str] = {}
    for slice_id, number in described.items():
        other = owners.setdefault(number + shift, slice_id)
        if other != slice_id:
            raise UserError(f"{other} and {slice_id} are both slice {number} of {disk_id}; give each its own `number`.")
    free_numbers = (number for number in itertools.count(1) if number not in owners)
    return {item.id: described[item.id] + shift if item.id in described else next(free_numbers) for item in slices}


def compute_slice_starts(system: System, disk_id: str) -> dict[str, int]:
    """The start of each slice of a disk in bytes: as described, else after the previous one, aligned as described or
    to full stripes of whole MiB. The first MiB holds the partition table.

    Ends at the first slice without a size, because the following starts are unknown.
    """
    starts: dict[str, int] = {}
    position = TABLE_AT_START
    default_step = compute_slice_alignment(resolve_block_device(system, disk_id).full_stripe_bytes or MIB)
    for item in list_slices_of_disk(system, disk_id):
        table = item.table
        assert isinstance(table, Slice)
        step = int(table.alignment) if table.alignment is not None else default_step
        begin = int(table.start) if table.start is not None else -(-position // step) * step
        starts[item.id] = begin
        size = system.compute_capacity(item.id)
        if size is None:
            break
        position = begin + size
    return starts


def compute_partition_size(system: System, disk_id: str, slice_id: str) -> int | None:
    """The bytes of the partition of a slice, or None where its size or start is unknown. A slice without a described
    size ends before the backup of the partition table. Raises UserError where nothing is left for it."""
    size, start = system.compute_capacity(slice_id), compute_slice_starts(system, disk_id).get(slice_id)
    table, disk_size = system.get_part(slice_id).table, system.compute_capacity(disk_id)
    if size is None or start is None or disk_size is None or getattr(table, "size", None) is not None:
        return size if start is not None else None
    is_group = system.get_part(disk_id).kind == "raid_groups"
    reserved = TABLE_AT_END + (MD_RESERVE * len(system.find_references(disk_id, "drives")) if is_group else 0)
    size = min(size, disk_size - reserved - start) // MIB * MIB
    if size <= 0:
        raise UserError(f"{slice_id} begins at the end of {disk_id}; reduce the slices before it.")
    return size


def list_used_devices(system: System) -> frozenset[str]:
    """Ids that another device, a file system or a target uses already."""
    used: set[str] = set()
    for kind, members in (
        ("raid_groups", ("drives", "spares")), ("luns", ("raid_group",)), ("slices", ("on",)),
        ("volumes", ("members", "log")), ("targets", ("on", "journal")), ("file_systems", ("device", "log")),
    ):  # fmt: skip
        for item in system.list_parts(kind):
            for member in members:
                used.update(system.find_references(item.id, member))
    return frozenset(used)
