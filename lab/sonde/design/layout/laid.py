# SPDX-License-Identifier: Apache-2.0
"""A file system with everything beneath it, and the numbers that it should be made with, each with its arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sonde.design.layout import xfs
from sonde.design.layout.bandwidth import RollUp, roll_up, targets_of_data
from sonde.design.layout.geometry import MIB, modulo
from sonde.design.layout.stores import Store, store_of
from sonde.design.layout.worked import Worked, stripe_words
from sonde.model.system import System
from sonde.model.system.service import FileSystem
from sonde.model.system.storage import Slice
from sonde.model.units import format_bytes, format_rate

BLOCK = 4096
# ext4 keeps at most this in its journal, which mke2fs makes by itself from 128 GiB on.
_EXT4_JOURNAL = 1 << 30


@dataclass(frozen=True)
class Laid:
    """One file system. Sizes in bytes; 0 is "none" for unit and width, None is unknown.

    `stores` is what it lies on: one, or one for each of its targets. `unit` and `width` are those of an allocation
    (sunit, swidth; stride, stripe width), `alignment` is where slices may begin.
    """

    id: str
    table: FileSystem
    stores: tuple[Store, ...]
    targets: tuple[str, ...]
    log: Store | None
    capacity: int | None
    unit: int
    width: int
    alignment: int
    groups: xfs.Groups | None
    log_size: int | None
    rates: RollUp
    worked: tuple[Worked, ...]

    @property
    def block(self) -> int:
        return int(self.table.block) if self.table.block is not None else BLOCK

    @property
    def store(self) -> Store:
        """What it lies on; of several targets the first."""
        return self.stores[0]


def laid(system: System, name: str, without: tuple[str, ...] = ()) -> Laid | None:
    """The file system of that id on its device or targets; None when the file does not say what it lies on."""
    table = system.item(name).table
    assert isinstance(table, FileSystem)
    targets = tuple(targets_of_data(system, name))
    beneath = [one for target in targets for one in system.references(target, "on")] or list(
        system.references(name, "device")
    )
    if not beneath and not targets:
        return None
    stores = tuple(store_of(system, one) for one in beneath)
    told_log = system.reference(name, "log")
    log = store_of(system, told_log) if told_log else None
    rates = roll_up(system, name, stores, without)
    return _Numbers(system, name, table, stores, targets, log, rates).laid()


def every_laid(system: System, without: tuple[str, ...] = ()) -> Iterator[Laid]:
    """Every file system whose place the system file says."""
    for item in system.items("file_systems"):
        found = laid(system, item.id, without)
        if found is not None:
            yield found


class _Numbers:
    """Works out the numbers of one file system, and keeps how."""

    def __init__(self, system: System, name: str, table: FileSystem, stores: tuple[Store, ...],
                 targets: tuple[str, ...], log: Store | None, rates: RollUp) -> None:  # fmt: skip
        self.system, self.id, self.table, self.stores, self.targets = system, name, table, stores, targets
        self.log, self.rates = log, rates
        self.worked: list[Worked] = []

    @property
    def _legacy(self) -> bool:
        return any(store.legacy for store in self.stores)

    def note(self, what: str, value: float, shown: str, how: str, of: str = "") -> None:
        self.worked.append(Worked(of or self.id, what, value, shown, how))

    def laid(self) -> Laid:
        alignment = self._stripes()
        unit, width = self._unit_and_width()
        capacity = self._capacity()
        groups = self._groups(capacity, unit, width)
        size = self._log(capacity, groups)
        self._rates()
        return Laid(
            self.id, self.table, self.stores, self.targets, self.log, capacity, unit, width, alignment, groups, size,
            self.rates, tuple(self.worked),
        )  # fmt: skip

    def _stripes(self) -> int:
        """Stripes of the groups beneath, and the alignment of slices that follows."""
        step = MIB
        seen: set[tuple[object, ...]] = set()
        for group in (one for store in self.stores for one in store.groups()):
            geometry, segment, stripe = group.geometry, group.unit, group.stripe
            key = (str(geometry), segment)
            if geometry is None or segment is None or stripe is None or key in seen or geometry.data < 2:
                continue
            seen.add(key)
            self.note(
                "full stripe", stripe, stripe_words(stripe),
                f"{geometry}: {geometry.data} data drives x segment {format_bytes(segment)}", group.id,
            )  # fmt: skip
            step = modulo(stripe, step)
            self.note(
                "alignment of slices", step, format_bytes(step),
                f"least common multiple of 1 MiB and the full stripe, {format_bytes(stripe)}", group.id,
            )  # fmt: skip
        return step

    def _unit_and_width(self) -> tuple[int, int]:
        store = self.stores[0] if self.stores else None
        if store is None:
            return 0, 0
        unit, width, how = _allocation(store)
        told_unit, told_width = self.table.stripe_unit, self.table.stripe_width
        if told_unit is not None and told_width is not None:
            if (int(told_unit), int(told_width)) != (unit, width):
                how = f"as the system file says; computed is {format_bytes(unit)} and {format_bytes(width)} ({how})"
            unit, width = int(told_unit), int(told_width)
        if unit:
            self.note("unit of allocation", unit, f"{stripe_words(unit)} (sunit)", how)
            self.note("width of allocation", width, f"{stripe_words(width)} (swidth)", f"unit x {width // unit}")
        return unit, width

    def _capacity(self) -> int | None:
        sizes = [store.capacity for store in self.stores]
        if not sizes or None in sizes:
            return int(self.table.capacity) if self.table.capacity is not None else None
        total = sum(one for one in sizes if one is not None)
        for store in self.stores[:1]:
            self._members(store)
        count = f"{len(sizes)} targets: " if len(sizes) > 1 else ""
        self.note("capacity", total, f"{total} B = {format_bytes(total)} = {total / 1e9:.4g} GB",
                  f"{count}{_sum_words([one for one in sizes if one is not None])}")  # fmt: skip
        return total

    def _members(self, store: Store) -> None:
        if store.kind == "volumes" and len(store.members) > 1:
            sizes = [one.capacity for one in store.members if one.capacity is not None]
            if len(sizes) == len(store.members) and getattr(store.table, "kind", "") == "stripe":
                self.note(
                    "striped volume", len(sizes) * min(sizes), format_bytes(len(sizes) * min(sizes)),
                    f"{len(sizes)} members x the smallest, {min(sizes)} B", store.id,
                )  # fmt: skip
        for one in store.walk():
            if isinstance(one.table, Slice) and one.start is not None and one.capacity is not None:
                self.note(
                    "slice", one.start, f"begins at {format_bytes(one.start)}, {format_bytes(one.capacity)} long",
                    f"begin {one.start} B = {one.start / MIB:g} MiB", one.id,
                )  # fmt: skip

    def _groups(self, capacity: int | None, unit: int, width: int) -> xfs.Groups | None:
        if self.table.kind != "xfs" or capacity is None:
            return None
        block = int(self.table.block) if self.table.block is not None else BLOCK
        told = self.table.allocation_groups
        if self._legacy:
            groups = xfs.legacy_groups(capacity // block, unit // block, width // block)
        else:
            groups = xfs.modern_groups(capacity // block, unit // block, width // block, block,
                                       wanted_groups(self.table.purpose, capacity))  # fmt: skip
        how = groups.how
        if told is not None and int(told) != groups.count:
            how = f"as the system file says: {int(told)}; computed is {how}"
        self.note("allocation groups", groups.count, f"{groups.count} of {groups.size} blocks", how)
        return groups

    def _log(self, capacity: int | None, groups: xfs.Groups | None) -> int | None:
        if capacity is None or self.table.kind not in ("xfs", "ext4"):
            return None
        if self.table.log_size is not None:
            return int(self.table.log_size)
        if self.table.kind == "ext4":
            size = min(_EXT4_JOURNAL, max(128 * MIB, capacity // 128 // MIB * MIB))
            size = min(size, capacity // 8 // MIB * MIB)
            self.note("journal", size, format_bytes(size), "1/128 of the file system, from 128 MiB to 1 GiB")
            return size
        if self.log is not None and self.log.capacity is not None:
            self.note("log", self.log.capacity, format_bytes(self.log.capacity), f"all of {self.log.id}")
            return self.log.capacity
        assert groups is not None
        if self._legacy:
            fast = self.rates.write is None or self.rates.write > xfs.LEGACY_LOG_RATE
            size = xfs.LEGACY_LARGEST_LOG if fast else xfs.LEGACY_LOG
            how = "the largest that can be used, for more than 300 MB/s" if fast else "the default, up to 300 MB/s"
        else:
            size, how = xfs.log_size(capacity, groups.size * BLOCK, self.rates.write)
        self.note("log", size, f"{format_bytes(size)} = {size // BLOCK} blocks", how)
        return size

    def _rates(self) -> None:
        for way in ("read", "write"):
            value = getattr(self.rates, way)
            if value is not None:
                limit = self.rates.limits[way]
                how = next((stage.how for stage in self.rates.stages if stage.name == limit), limit)
                self.note(f"{way} bandwidth", value, format_rate(value), f"limit {limit}: {how}")


def wanted_groups(purpose: str, capacity: int) -> int | None:
    """Allocation groups to ask for; None is what mkfs.xfs would take.

    Many small transactions at once want more groups than the four of a single disk; groups under 1 GiB are too small.
    """
    if purpose not in ("root", "home", "spool", "tmp"):
        return None
    return min(16, capacity >> 30) if capacity >= 8 << 30 else None


def _allocation(store: Store) -> tuple[int, int, str]:
    """Unit and width of allocations, and why."""
    stripe, geometry = store.stripe, store.geometry
    striped = store.kind == "volumes" and getattr(store.table, "kind", "") == "stripe"
    if striped and store.unit is not None:
        return store.unit, store.unit * len(store.members), f"the unit of the volume, over {len(store.members)} members"
    if stripe is None or geometry is None or geometry.data < 2:
        return 0, 0, "no stripe beneath"
    host_raid = not any(one.kind == "luns" for one in store.walk()) and store.unit is not None
    if host_raid and store.unit is not None:
        return store.unit, stripe, "the segment of the RAID group, as its driver tells mkfs, over its data drives"
    return stripe, stripe, "the full stripe of the LUN: what its controller writes without reading first"


def _sum_words(sizes: list[int]) -> str:
    return f"{len(sizes)} x {sizes[0]} B" if len(set(sizes)) == 1 else " + ".join(f"{one} B" for one in sizes[:8])
