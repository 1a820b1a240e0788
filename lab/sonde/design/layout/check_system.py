# SPDX-License-Identifier: Apache-2.0
"""Reviews the storage that a system file describes: volumes, controllers, stripe units, slices, spares, failover."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem, join_first_names, split_faults_and_comparisons
from sonde.design.layout.block_devices import BlockDevice, resolve_block_device
from sonde.design.layout.faults import LayoutCheck, LayoutFault
from sonde.model.system import System
from sonde.model.system.service import FileSystem, Target
from sonde.model.system.storage import Lun, RaidGroup, Slice, Volume
from sonde.model.units import format_bytes


def check_described_storage(system: System) -> LayoutCheck:
    """Faults of the described storage, without any machine."""
    faults, checked_items = split_faults_and_comparisons(_check_all(system))
    return LayoutCheck(faults, (), checked_items)


def _check_all(system: System) -> Iterator[LayoutFault | CheckedItem]:
    for item in system.list_parts("volumes"):
        yield from _check_volume(system, resolve_block_device(system, item.id))
    for item in system.list_parts("slices"):
        yield from _check_slice(resolve_block_device(system, item.id))
    for item in system.list_parts("raid_groups"):
        yield from _check_group_has_spare(system, item.id, item.table)
    for item in system.list_parts("file_systems"):
        yield from _check_file_system(system, item.id, item.table)
    yield from _check_failover(system)


def _check_volume(system: System, volume: BlockDevice) -> Iterator[LayoutFault | CheckedItem]:
    table = volume.table
    if not isinstance(table, Volume) or table.kind != "stripe" or len(volume.members) < 2:
        return
    yield CheckedItem("members", volume.id)
    groups = [group.id for member in volume.members for group in member.list_raid_groups()]
    doubled = sorted({group for group in groups if groups.count(group) > 1})
    if doubled:
        yield LayoutFault(
            "two pieces of a group in a stripe", volume.id, f"several members are on {', '.join(doubled)}",
            "its heads go back and forth between them, and the group limits the volume",
            "take each member from another RAID group",
        )  # fmt: skip
    controllers = [_find_owning_controller(system, member) for member in volume.members]
    if len(set(controllers)) == 1 and controllers[0] and len(system.list_parts("controllers")) > 1:
        yield LayoutFault(
            "one controller for all members", volume.id, f"all members are behind {controllers[0]}",
            "its channel limits the volume, and its loss moves all of them",
            "take members in turn from all controllers",
        )  # fmt: skip
    shapes = {
        (str(member.raid_geometry), member.stripe_unit_bytes) for member in volume.members if member.raid_geometry
    }
    if len(shapes) > 1:
        text = " and ".join(sorted(f"{geometry} of {format_bytes(unit or 0)}" for geometry, unit in shapes))
        yield LayoutFault(
            "unequal members of a stripe", volume.id, f"members are {text}",
            "the volume is as fast as its slowest member", "stripe over members of one geometry and segment",
        )  # fmt: skip
    sizes = {member.capacity for member in volume.members if member.capacity}
    if len(sizes) > 1:
        yield LayoutFault(
            "unequal members of a stripe", volume.id,
            f"members have {format_bytes(min(sizes))} to {format_bytes(max(sizes))}",
            "what the larger ones have more is lost", "give every member the same size",
        )  # fmt: skip
    stripes = {member.full_stripe_bytes for member in volume.members if member.full_stripe_bytes}
    if table.stripe_unit is not None and stripes:
        yield CheckedItem("stripe unit", volume.id)
        unit = int(table.stripe_unit)
        for stripe in stripes:
            if unit % stripe:
                yield LayoutFault(
                    "unit does not fit the stripe", volume.id,
                    f"the stripe unit is {format_bytes(unit)}, but the full stripe of a member is"
                    f" {format_bytes(stripe)}",
                    "parts of stripes are written, and RAID 5 and 6 read before that",
                    f"stripe with a unit of {format_bytes(stripe)}",
                )  # fmt: skip


def _find_owning_controller(system: System, block_device: BlockDevice) -> str:
    """The controller that owns a member: that of its LUN, else that of its RAID group."""
    for device in block_device.iterate_top_down():
        if isinstance(device.table, Lun | RaidGroup):
            owner = system.find_first_reference(device.id, "controller")
            if owner:
                return owner
    return ""


def _check_slice(piece: BlockDevice) -> Iterator[LayoutFault | CheckedItem]:
    # a start that follows from the pieces before it is not stated
    if (
        not isinstance(piece.table, Slice)
        or piece.table.start is None
        or piece.start is None
        or not piece.full_stripe_bytes
    ):
        return
    yield CheckedItem("alignment", piece.id)
    if piece.start % piece.full_stripe_bytes:
        yield LayoutFault(
            "slice is not aligned", piece.id,
            f"it begins at {piece.start} B, {format_bytes(piece.start % piece.full_stripe_bytes)} into a stripe of"
            f" {format_bytes(piece.full_stripe_bytes)}",
            "a request of one full stripe touches two", "begin it at a multiple of "
            f"{format_bytes(piece.full_stripe_bytes)}",
        )  # fmt: skip


def _check_group_has_spare(system: System, group_id: str, part_table: object) -> Iterator[LayoutFault | CheckedItem]:
    """Groups with parity whose drives are described, but no spare."""
    if (
        not isinstance(part_table, RaidGroup)
        or part_table.level not in ("4", "5", "6", "7", "50", "60")
        or not part_table.drives
    ):
        return
    yield CheckedItem("spares", group_id)
    if not part_table.spares and part_table.spare_share is None:
        yield LayoutFault(
            "no spare", group_id, f"RAID {part_table.level} group {group_id} names no spare",
            "after the loss of a drive it stays degraded until somebody replaces it", "describe or add a spare drive",
        )  # fmt: skip
    if part_table.state in ("degraded", "failed"):
        yield LayoutFault(
            "degraded", group_id, f"the file describes it as {part_table.state}", "another loss may lose data",
            "replace the drive, and correct the file",
        )  # fmt: skip


def _check_file_system(system: System, file_system_id: str, part_table: object) -> Iterator[LayoutFault | CheckedItem]:
    if not isinstance(part_table, FileSystem):
        return
    stripe_size = part_table.stripe.size if part_table.stripe is not None else None
    below = {
        device.full_stripe_bytes
        for target in system.find_targets(file_system_id)
        for device_id in system.find_references(target, "on")
        if (device := resolve_block_device(system, device_id)).full_stripe_bytes
    }
    if stripe_size is not None and below:
        yield CheckedItem("stripe size", file_system_id)
        for stripe in sorted(size for size in below if size and int(stripe_size) % size):
            yield LayoutFault(
                "stripe does not fit the RAID stripe", file_system_id,
                f"its stripe size is {format_bytes(int(stripe_size))}, no multiple of the {format_bytes(stripe)} of one"
                " full stripe below its targets",
                "the last RAID stripe of every object piece is written in part", "choose a multiple of it",
            )  # fmt: skip
    device_name = system.find_first_reference(file_system_id, "device")
    if device_name is None:
        return
    device = resolve_block_device(system, device_name)
    unit, width = part_table.stripe_unit, part_table.stripe_width
    if unit is not None and device.stripe_unit_bytes and device.full_stripe_bytes:
        yield CheckedItem("stripe unit", file_system_id)
        if int(unit) % device.stripe_unit_bytes and int(unit) not in (
            device.stripe_unit_bytes,
            device.full_stripe_bytes,
        ):
            yield LayoutFault(
                "unit does not fit the stripe", file_system_id,
                f"its stripe unit is {format_bytes(int(unit))}; {format_bytes(device.stripe_unit_bytes)} are on one "
                "member before"
                " the next",
                "allocations drift through the stripe", f"use {format_bytes(device.stripe_unit_bytes)}",
            )  # fmt: skip
    if width is not None and device.stripe_width_bytes:
        yield CheckedItem("stripe width", file_system_id)
        if int(width) % device.stripe_width_bytes and device.stripe_width_bytes % int(width):
            yield LayoutFault(
                "width does not fit the stripe", file_system_id,
                f"its stripe width is {format_bytes(int(width))}; all members together hold"
                f" {format_bytes(device.stripe_width_bytes)}",
                "requests of the preferred size leave drives out", f"use {format_bytes(device.stripe_width_bytes)}",
            )  # fmt: skip
    if unit is not None and width is not None and int(unit) and int(width) % int(unit):
        yield LayoutFault(
            "width is no multiple of unit", file_system_id,
            f"its stripe width {format_bytes(int(width))} is no whole number of {format_bytes(int(unit))}",
            "preferred I/O sizes end within a stripe unit", "give a multiple of the unit",
        )  # fmt: skip


def _check_failover(system: System) -> Iterator[LayoutFault | CheckedItem]:
    """Targets of parallel file systems that no second server can take over, where others can."""
    with_failover, without = list[str](), list[str]()
    for item in system.list_parts("targets"):
        if isinstance(item.table, Target) and system.find_first_reference(item.id, "server"):
            (with_failover if system.find_failover_server(item.id) else without).append(item.id)
    if with_failover:
        yield CheckedItem("failover", "targets")
    if with_failover and without:
        yield LayoutFault(
            "no failover server", join_first_names(without, 3),
            f"{len(without)} targets have no second server, {len(with_failover)} have one",
            "their data is out of reach while their server is down", "give them failover or their server a partner",
        )  # fmt: skip
