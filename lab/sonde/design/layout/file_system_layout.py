# SPDX-License-Identifier: Apache-2.0
"""Computes the layout of a file system: what is below it, and the parameters to create it with, each with its
arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sonde.design.layout import xfs
from sonde.design.layout.bandwidth import BandwidthEstimate, estimate_bandwidth, list_data_targets
from sonde.design.layout.block_devices import BlockDevice, resolve_block_device
from sonde.design.layout.derivations import Derivation, format_stripe_in_three_units
from sonde.design.layout.geometry import MIB, compute_slice_alignment
from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.service import SYSTEM_PURPOSES, FileSystem
from sonde.model.system.storage import Slice
from sonde.model.units import format_bytes, format_rate

BLOCK = 4096
# Largest journal of ext4; mke2fs chooses it from 128 GiB on.
_EXT4_JOURNAL = 1 << 30


@dataclass(frozen=True)
class FileSystemLayout:
    """The layout of one file system. Sizes in bytes; 0 is "none" for unit and width, None is unknown.

    `devices` holds the device below it, or one per target of data; `metadata_devices` those of the other targets.
    `unit` and `width` apply to allocations (sunit, swidth; stride, stripe width); slices start at multiples of
    `alignment`.
    """

    id: str
    table: FileSystem
    devices: tuple[BlockDevice, ...]
    targets: tuple[str, ...]
    log: BlockDevice | None
    capacity: int | None
    unit: int
    width: int
    alignment: int
    groups: xfs.AllocationGroups | None
    log_size: int | None
    rates: BandwidthEstimate
    derivations: tuple[Derivation, ...]
    metadata_devices: tuple[BlockDevice, ...] = ()

    @property
    def all_devices(self) -> tuple[BlockDevice, ...]:
        """The devices of data and of metadata."""
        return self.devices + self.metadata_devices

    @property
    def block_bytes(self) -> int:
        return int(self.table.block) if self.table.block is not None else BLOCK

    @property
    def first_device(self) -> BlockDevice:
        """The device below the file system; with several targets the first."""
        return self.devices[0]


def compute_layout(system: System, file_system_id: str, failed_parts: tuple[str, ...] = ()) -> FileSystemLayout | None:
    """The layout of the file system of that id; None when the system file states neither device nor targets."""
    table = system.get_part(file_system_id).table
    assert isinstance(table, FileSystem)
    targets = tuple(list_data_targets(system, file_system_id))
    below = [file_system_id for target in targets for file_system_id in system.find_references(target, "on")] or list(
        system.find_references(file_system_id, "device")
    )
    if not below and not targets:
        return None
    devices = tuple(resolve_block_device(system, file_system_id) for file_system_id in below)
    log_id = system.find_first_reference(file_system_id, "log") or _find_log_of_volume(system, below)
    log = resolve_block_device(system, log_id) if log_id else None
    rates = estimate_bandwidth(system, file_system_id, devices, failed_parts)
    return _LayoutComputation(system, file_system_id, table, devices, targets, log, rates).compute_layout()


def _find_log_of_volume(system: System, device_ids: Sequence[str]) -> str | None:
    """The log device of the volume below a file system."""
    volumes = [each for each in device_ids if system.get_part(each).kind == "volumes"]
    return system.find_first_reference(volumes[0], "log") if len(volumes) == 1 else None


def compute_all_layouts(system: System, failed_parts: tuple[str, ...] = ()) -> Iterator[FileSystemLayout]:
    """The layouts of all file systems whose device or targets the system file states."""
    for item in system.list_parts("file_systems"):
        layout = compute_layout(system, item.id, failed_parts)
        if layout is not None:
            yield layout


class _LayoutComputation:
    """Computes the parameters of one file system and records the arithmetic."""

    def __init__(
        self,
        system: System,
        file_system_id: str,
        file_system_table: FileSystem,
        devices: tuple[BlockDevice, ...],
        targets: tuple[str, ...],
        log_block_device: BlockDevice | None,
        bandwidth_estimate: BandwidthEstimate,
    ) -> None:
        self.system, self.id, self.table, self.devices, self.targets = (
            system,
            file_system_id,
            file_system_table,
            devices,
            targets,
        )
        self.log, self.rates = log_block_device, bandwidth_estimate
        self.derivations: list[Derivation] = []

    @property
    def _is_cray_x1(self) -> bool:
        return any(device.is_cray_x1 for device in self.devices)

    @property
    def _block_bytes(self) -> int:
        return int(self.table.block) if self.table.block is not None else BLOCK

    def record_derivation(
        self, quantity: str, value: float, value_text: str, arithmetic: str, part_id: str = ""
    ) -> None:
        self.derivations.append(Derivation(part_id or self.id, quantity, value, value_text, arithmetic))

    def compute_layout(self) -> FileSystemLayout:
        alignment = self._record_stripes()
        unit, width = self._record_unit_and_width()
        capacity = self._record_capacity()
        groups = self._record_allocation_groups(capacity, unit, width)
        size = self._record_log(capacity, groups)
        self._record_bandwidth_stages()
        return FileSystemLayout(
            self.id, self.table, self.devices, self.targets, self.log, capacity, unit, width, alignment, groups, size,
            self.rates, tuple(self.derivations), self._list_metadata_devices(),
        )  # fmt: skip

    def _list_metadata_devices(self) -> tuple[BlockDevice, ...]:
        return tuple(
            resolve_block_device(self.system, device_id)
            for kind in ("mgt", "mdt")
            for target in self.system.find_targets(self.id, kind)
            for device_id in self.system.find_references(target, "on")
            if target not in self.targets
        )

    def _record_stripes(self) -> int:
        """Records the stripes of the groups below. Returns the alignment of slices."""
        step = MIB
        counted: set[tuple[object, ...]] = set()
        for group in (group for device in self.devices for group in device.list_raid_groups()):
            geometry, segment, stripe = group.raid_geometry, group.stripe_unit_bytes, group.full_stripe_bytes
            key = (str(geometry), segment)
            if geometry is None or segment is None or stripe is None or key in counted or geometry.data < 2:
                continue
            counted.add(key)
            self.record_derivation(
                "full stripe", stripe, format_stripe_in_three_units(stripe),
                f"{geometry}: {geometry.data} data drives x segment {format_bytes(segment)}", group.id,
            )  # fmt: skip
            step = compute_slice_alignment(stripe, step)
            self.record_derivation(
                "alignment of slices", step, format_bytes(step),
                f"least common multiple of 1 MiB and the full stripe, {format_bytes(stripe)}", group.id,
            )  # fmt: skip
        return step

    def _record_unit_and_width(self) -> tuple[int, int]:
        device = self.devices[0] if self.devices else None
        if device is None:
            return 0, 0
        unit, width, how = _choose_allocation_unit_and_width(device)
        told_unit, told_width = self.table.stripe_unit, self.table.stripe_width
        if told_unit is not None and told_width is not None:
            if (int(told_unit), int(told_width)) != (unit, width):
                how = f"as the system file says; computed is {format_bytes(unit)} and {format_bytes(width)} ({how})"
            unit, width = int(told_unit), int(told_width)
        if unit:
            self.record_derivation("unit of allocation", unit, f"{format_stripe_in_three_units(unit)} (sunit)", how)
            self.record_derivation(
                "width of allocation",
                width,
                f"{format_stripe_in_three_units(width)} (swidth)",
                f"unit x {width // unit}",
            )
        return unit, width

    def _record_capacity(self) -> int | None:
        sizes = [device.capacity for device in self.devices]
        if not sizes or None in sizes:
            return int(self.table.capacity) if self.table.capacity is not None else None
        total = sum(size for size in sizes if size is not None)
        for device in self.devices[:1]:
            self._record_members(device)
        count = f"{len(sizes)} targets: " if len(sizes) > 1 else ""
        self.record_derivation("capacity", total, f"{total} B = {format_bytes(total)} = {total / 1e9:.4g} GB",
                  f"{count}{_format_sum([size for size in sizes if size is not None])}")  # fmt: skip
        return total

    def _record_members(self, block_device: BlockDevice) -> None:
        if block_device.kind == "volumes" and len(block_device.members) > 1:
            sizes = [member.capacity for member in block_device.members if member.capacity is not None]
            if len(sizes) == len(block_device.members) and getattr(block_device.table, "kind", "") == "stripe":
                self.record_derivation(
                    "striped volume", len(sizes) * min(sizes), format_bytes(len(sizes) * min(sizes)),
                    f"{len(sizes)} members x the smallest, {min(sizes)} B", block_device.id,
                )  # fmt: skip
        for device in block_device.iterate_top_down():
            if isinstance(device.table, Slice) and device.start is not None and device.capacity is not None:
                self.record_derivation(
                    "slice", device.start,
                    f"begins at {format_bytes(device.start)}, {format_bytes(device.capacity)} long",
                    f"begin {device.start} B = {device.start / MIB:g} MiB", device.id,
                )  # fmt: skip

    def _record_allocation_groups(
        self, capacity: int | None, stripe_unit_bytes: int, stripe_width_bytes: int
    ) -> xfs.AllocationGroups | None:
        if self.table.kind != "xfs" or capacity is None:
            return None
        block = self._block_bytes
        described_count = self.table.allocation_groups
        if self._is_cray_x1:
            groups = xfs.compute_allocation_groups_of_2004(
                capacity // block, stripe_unit_bytes // block, stripe_width_bytes // block
            )
        else:
            groups = xfs.compute_allocation_groups(
                capacity // block,
                stripe_unit_bytes // block,
                stripe_width_bytes // block,
                block,
                choose_group_count(self.table.purpose, capacity),
            )
        how = groups.how
        if described_count is not None and int(described_count) != groups.count:
            how = f"as the system file says: {int(described_count)}; computed is {how}"
        self.record_derivation("allocation groups", groups.count, f"{groups.count} of {groups.size} blocks", how)
        return groups

    def _record_log(self, capacity: int | None, groups: xfs.AllocationGroups | None) -> int | None:
        if capacity is None or self.table.kind not in ("xfs", "ext4"):
            return None
        if self.table.log_size is not None:
            self._require_possible_log(int(self.table.log_size))
            return int(self.table.log_size)
        if self.table.kind == "ext4":
            size = min(_EXT4_JOURNAL, max(128 * MIB, capacity // 128 // MIB * MIB))
            size = min(size, capacity // 8 // MIB * MIB)
            self.record_derivation(
                "journal", size, format_bytes(size), "1/128 of the file system, from 128 MiB to 1 GiB"
            )
            return size
        if self.log is not None and self.log.capacity is not None:
            size, how = self.log.capacity, f"all of {self.log.id}"
            largest = xfs.compute_largest_log(self._block_bytes)
            if size > largest and not self._is_cray_x1:
                size, how = largest, f"the largest that XFS allows; the rest of {self.log.id} is not used"
            self.record_derivation("log", size, format_bytes(size), how)
            return size
        assert groups is not None
        if self._is_cray_x1:
            fast = self.rates.write is None or self.rates.write > xfs.LEGACY_LOG_RATE
            size = xfs.LEGACY_LARGEST_LOG if fast else xfs.LEGACY_LOG
            how = "the largest that can be used, for more than 300 MB/s" if fast else "the default, up to 300 MB/s"
        else:
            size, how = xfs.compute_log_size_and_reason(capacity, groups.size * BLOCK, self.rates.write)
        self.record_derivation("log", size, f"{format_bytes(size)} = {size // BLOCK} blocks", how)
        return size

    def _require_possible_log(self, log_bytes: int) -> None:
        largest = xfs.compute_largest_log(self._block_bytes)
        if self.table.kind == "xfs" and not self._is_cray_x1 and log_bytes > largest:
            raise UserError(
                f"{self.id} has a log_size of {format_bytes(log_bytes)}, and XFS allows {largest // MIB} MiB; reduce"
                " its log_size."
            )

    def _record_bandwidth_stages(self) -> None:
        for direction in ("read", "write"):
            value = getattr(self.rates, direction)
            if value is not None:
                limit = self.rates.limits[direction]
                how = next((stage.how for stage in self.rates.stages if stage.name == limit), limit)
                self.record_derivation(f"{direction} bandwidth", value, format_rate(value), f"limit {limit}: {how}")


def choose_group_count(purpose: str, capacity: int) -> int | None:
    """The number of allocation groups to request; None for the default of mkfs.xfs.

    Many small concurrent transactions benefit from more groups than the default of four; groups below 1 GiB are too
    small.
    """
    if purpose not in SYSTEM_PURPOSES:
        return None
    return min(16, capacity >> 30) if capacity >= 8 << 30 else None


def _choose_allocation_unit_and_width(block_device: BlockDevice) -> tuple[int, int, str]:
    """Unit and width of allocations, and the reason."""
    stripe, geometry = block_device.full_stripe_bytes, block_device.raid_geometry
    striped = block_device.kind == "volumes" and getattr(block_device.table, "kind", "") == "stripe"
    if striped and block_device.stripe_unit_bytes is not None:
        return (
            block_device.stripe_unit_bytes,
            block_device.stripe_unit_bytes * len(block_device.members),
            f"the unit of the volume, over {len(block_device.members)} members",
        )
    if stripe is None or geometry is None or geometry.data < 2:
        return 0, 0, "no stripe below"
    host_raid = (
        not any(device.kind == "luns" for device in block_device.iterate_top_down())
        and block_device.stripe_unit_bytes is not None
    )
    if host_raid and block_device.stripe_unit_bytes is not None:
        return (
            block_device.stripe_unit_bytes,
            stripe,
            "the segment of the RAID group, as its driver tells mkfs, over its data drives",
        )
    return stripe, stripe, "the full stripe of the LUN: what its controller writes without reading first"


def _format_sum(byte_counts: list[int]) -> str:
    return (
        f"{len(byte_counts)} x {byte_counts[0]} B"
        if len(set(byte_counts)) == 1
        else " + ".join(f"{size} B" for size in byte_counts[:8])
    )
