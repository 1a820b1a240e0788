# SPDX-License-Identifier: Apache-2.0
"""Compares an observed file system with the planned one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_planned_controllers import find_planned_controller_faults
from sonde.design.layout.check_planned_xlv import find_xlv_member_faults
from sonde.design.layout.commands import list_device_settings, list_mount_options
from sonde.design.layout.faults import MAKE_AS_PLANNED, LayoutFault
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage
from sonde.design.layout.observe_written import list_disks_below
from sonde.design.layout.planned_roles import split_by_role
from sonde.design.layout.xfs import AllocationGroups
from sonde.model.system.storage import Drive
from sonde.model.units import format_bytes

# A device may be larger than planned by this fraction: the plan reserves more than md and LVM use.
_SIZE_SHARE = 0.02
# Names of schedulers before Linux 5.0.
_SCHEDULER_NAMES = {"deadline": "mq-deadline", "noop": "none"}
_OPTION_COSTS = {
    "logbsize": "the log is written in smaller pieces than planned",
    "largeio": "programs that ask for the preferred size write one block instead of a full width",
    "swalloc": "large files are not allocated from the begin of a full width",
    "stripe": "allocations are not aligned to the planned stripe",
}
_OTHER_COST = "programs ask for other sizes"
# Settings of which a value this many times the planned one also costs.
_MUCH_LARGER = 4
_LARGER_COSTS = {
    "read_ahead_kb": "readers that stop or jump have read for nothing, and memory is taken from other data",
    "nr_requests": "a small request waits behind all of those in the queue",
    "stripe_cache_size": "it takes memory of the server for each drive of the array",
}
_SETTING_COSTS = {
    "group_thread_cnt": "one thread computes all parity: it limits an array of many or fast drives",
    "stripe_cache_size": "full stripes are not gathered",
    "read_ahead_kb": "one task that reads does not keep all drives busy",
    "max_sectors_kb": "large requests are split",
    "scheduler": "requests of several tasks are sorted in another way, or by nobody",
    "nr_requests": "the scheduler sorts and merges fewer requests",
}


def find_plan_faults(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout
) -> Iterator[LayoutFault | CheckedItem]:
    """Every value that differs from the plan; a value that was not observed is no fault."""
    for file_system in observed_storage.file_systems:
        yield CheckedItem("the planned kind", file_system.location)
        if file_system.kind != planned_layout.table.kind:
            yield LayoutFault(
                "not as planned", file_system.location,
                f"it is {file_system.kind}; planned is {planned_layout.table.kind}",
                "other rules apply to it", MAKE_AS_PLANNED,
            )  # fmt: skip
            continue
        if file_system.kind != "lustre":  # the stripe of its files is that of no device
            yield from _check_numbers(file_system, planned_layout)
        yield from _check_log_against_plan(file_system, planned_layout)
        realtime = file_system.facts.get("realtime", "")
        if realtime:
            yield CheckedItem("a realtime device", file_system.location)
        if realtime not in ("", "none"):
            yield LayoutFault(
                "not as planned", file_system.location, f"it has a realtime device, {realtime}; the plan has none",
                "files on it have another rate, and the file system is lost with that device", MAKE_AS_PLANNED,
            )  # fmt: skip
        yield from _check_mount_options(file_system, planned_layout)
    for part, part_plan in split_by_role(observed_storage, planned_layout):
        yield from _check_settings(part, part_plan)
        yield from _check_drives(part, part_plan)
        yield from _check_volume_members(part, part_plan)
    yield from find_xlv_member_faults(observed_storage, planned_layout)
    yield from find_planned_controller_faults(observed_storage, planned_layout)


def _check_numbers(
    file_system: ObservedFileSystem, planned_layout: FileSystemLayout
) -> Iterator[LayoutFault | CheckedItem]:
    groups = planned_layout.groups if file_system.kind == "xfs" else None
    rows: list[tuple[str, int | None, int | None, bool, str]] = [
        ("sunit", file_system.unit, planned_layout.unit, True, "allocations begin at other places of a stripe"),
        ("swidth", file_system.width, planned_layout.width, True, "programs ask for other sizes than a full width"),
        ("agcount", file_system.group_count, groups.count if groups else None, False, "other parallelism of "
        "allocations"),
        ("agsize in blocks", file_system.group_blocks, groups.size if groups else None, False,
         "large files are cut at the ends of groups of another size"),
        ("block", file_system.block, planned_layout.block_bytes, True, "metadata take another amount of space"),
    ]  # fmt: skip
    for name, observed, planned, size, cost in rows:
        if observed is None or planned is None:
            continue
        yield CheckedItem(f"the planned {name}", file_system.location)
        if observed != planned and not (groups is not None and name == "agcount" and _follows_count(
                file_system, groups, planned_layout.capacity)):  # fmt: skip
            texts = (format_bytes(observed), format_bytes(planned)) if size else (f"{observed:,}", f"{planned:,}")
            yield LayoutFault(
                "not as planned", file_system.location, f"{name} is {texts[0]}; planned is {texts[1]}", cost,
                MAKE_AS_PLANNED, (name,), planned=texts[1],
            )  # fmt: skip
    if file_system.size_bytes is not None and planned_layout.capacity is not None:
        yield CheckedItem("the planned capacity", file_system.location)
    if (
        file_system.size_bytes is not None
        and planned_layout.capacity is not None
        and not _is_as_large(file_system.size_bytes, planned_layout.capacity)
    ):
        yield LayoutFault(
            "not as planned", file_system.location,
            f"it has {format_bytes(file_system.size_bytes)}; planned are {format_bytes(planned_layout.capacity)}",
            "it is on a smaller device, or part of the device is unused"
            if file_system.size_bytes < planned_layout.capacity
            else "it is on another device than planned, which is larger", MAKE_AS_PLANNED, ("capacity",),
            planned=format_bytes(planned_layout.capacity),
        )  # fmt: skip


def _follows_count(
    file_system: ObservedFileSystem, planned_groups: AllocationGroups, planned_capacity: int | None
) -> bool:
    """Whether the number of groups follows from their planned size, on a device about as large as planned: the script
    gives mkfs.xfs the size of a group alone, and drives of 1 TB have some sectors more."""
    if not file_system.blocks or not file_system.size_bytes or file_system.group_blocks != planned_groups.size:
        return False
    count = -(-file_system.blocks // planned_groups.size)
    return file_system.group_count == count and _is_as_large(file_system.size_bytes, planned_capacity)


def _is_as_large(size_bytes: int, planned_capacity: int | None) -> bool:
    return planned_capacity is None or abs(size_bytes - planned_capacity) <= _SIZE_SHARE * planned_capacity


def _check_log_against_plan(
    file_system: ObservedFileSystem, planned_layout: FileSystemLayout
) -> Iterator[LayoutFault | CheckedItem]:
    if file_system.log is not None and planned_layout.log_size is not None:
        yield CheckedItem("the planned size of the log", file_system.location)
    if (
        file_system.log is not None
        and planned_layout.log_size is not None
        and file_system.log != planned_layout.log_size
    ):
        yield LayoutFault(
            "not as planned", file_system.location,
            f"its log has {format_bytes(file_system.log)}; planned are {format_bytes(planned_layout.log_size)}",
            "it limits creates and writes more than planned" if file_system.log < planned_layout.log_size
            else "it takes more space, and recovery after a crash takes longer", MAKE_AS_PLANNED, ("log",),
            planned=format_bytes(planned_layout.log_size),
        )  # fmt: skip
    if file_system.log_device is not None:
        yield CheckedItem("the planned position of the log", file_system.location)
    external = file_system.log_device not in (None, "internal")
    if file_system.log_device is not None and external != (planned_layout.log is not None):
        position = "outside" if external else "inside"
        yield LayoutFault(
            "not as planned", file_system.location,
            f"its log is {position}; planned is {'outside' if planned_layout.log is not None else 'inside'}",
            "the mount needs the other disk, and the file system is lost with it" if external
            else "commits and data share drives", MAKE_AS_PLANNED,
        )  # fmt: skip


def _check_mount_options(
    file_system: ObservedFileSystem, planned_layout: FileSystemLayout
) -> Iterator[LayoutFault | CheckedItem]:
    """Planned mount options that are missing or have another value; relatime is as good as noatime."""
    observed_texts, absent = [], []
    for option in list_mount_options(planned_layout) if file_system.options else ():
        name = option.partition("=")[0]
        if name == "noatime":
            continue
        yield CheckedItem(f"the planned {name}", file_system.location)
        if option not in file_system.options:
            other = next((each for each in file_system.options if each.startswith(f"{name}=")), f"without {name}")
            observed_texts.append(other)
            absent.append(option)
    if absent:
        costs = dict.fromkeys(_OPTION_COSTS.get(option.partition("=")[0], _OTHER_COST) for option in absent)
        yield LayoutFault(
            "not as planned", file_system.location,
            f"it is mounted {', '.join(observed_texts)}; planned {'is' if len(absent) == 1 else 'are'}"
            f" {', '.join(absent)}", "; ".join(costs), f"mount it with {', '.join(absent)}, also by fstab",
            ("mount option",), planned=", ".join(absent),
        )  # fmt: skip


def _check_settings(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout
) -> Iterator[LayoutFault | CheckedItem]:
    """Settings of queues and arrays that are smaller than the planned ones, other schedulers and queue depths."""
    planned: dict[tuple[str, str], dict[bool, set[str]]] = {}
    for base in planned_layout.all_devices:
        for device, settings in list_device_settings(planned_layout, base):
            is_flash = isinstance(device.table, Drive) and device.table.kind in ("nvme", "ssd")
            for name, value in settings.items():
                planned.setdefault((device.kind, name), {}).setdefault(is_flash, set()).add(value)
    for (kind, name), values in planned.items():
        for disk in _list_disks_of_kind(observed_storage, kind, name.partition("/")[0]):
            # flash, as below metadata targets, is set in another way than rotating drives
            if kind == "drives" and disk.flash is not None:
                chosen = values.get(disk.flash, set())
            else:
                chosen = set().union(*values.values())
            if len(chosen) == 1:  # else which of the planned parts the disk stands for is not known
                yield from _compare_setting(disk, name, *chosen)


def _list_disks_of_kind(observed_storage: ObservedStorage, part_kind: str, folder: str) -> list[ObservedDisk]:
    """The disks that stand for planned parts: of a LUN with several paths its map has a queue, each path a depth."""
    disks = list_disks_below(observed_storage, observed_storage.file_systems)
    if part_kind == "luns":
        maps = [disk for disk in disks if disk.paths or disk.kind == "multipath"]
        paths = {path.name for disk in maps for path in disk.paths}
        single = [disk for disk in disks if disk.kind in ("disk", "lun")]
        others = [disk for disk in observed_storage.disks.values() if disk.name in paths and disk not in single]
        if folder == "device":
            return [*single, *others]
        return maps or single
    if part_kind == "raid_groups":
        return [disk for disk in disks if disk.kind == "md" and disk.level != "raid0"]
    if part_kind == "volumes":
        return [disk for disk in disks if disk.level == "raid0"]
    # the script sets the queue of the map that the plan names, not those of its paths
    paths = set() if folder == "device" else {path.name for disk in disks for path in disk.paths}
    kinds = ("disk", "multipath") if paths else ("disk",)
    return [disk for disk in disks if disk.kind in kinds and disk.name not in paths] if part_kind == "drives" else []


def _compare_setting(disk: ObservedDisk, setting_name: str, planned_value: str) -> Iterator[LayoutFault | CheckedItem]:
    folder, _, name = setting_name.rpartition("/")
    is_larger = False
    observed = (disk.queue if folder == "queue" else disk.settings).get(name, "")
    if name == "scheduler":
        active = re.search(r"\[([\w-]+)\]", observed)
        observed = _SCHEDULER_NAMES.get(text := active[1] if active else observed, text)
        is_wrong = observed != planned_value
    elif name == "queue_depth":
        observed = "" if disk.queue_depth is None else str(disk.queue_depth)
        is_wrong = observed != planned_value
    else:
        observed = observed if observed.isdigit() else ""
        largest = int(disk.queue.get("max_hw_sectors_kb", 0) or 0) if name == "max_sectors_kb" else 0
        is_wrong = bool(observed) and int(observed) < min(int(planned_value), largest or int(planned_value))
        is_larger = bool(observed) and name in _LARGER_COSTS and int(observed) > _MUCH_LARGER * int(planned_value)
    if not observed:
        return
    yield CheckedItem(f"the planned {name}", disk.name)
    cost = _SETTING_COSTS.get(name, "it is slower than the plan says")
    if name == "queue_depth":
        is_smaller = observed.isdigit() and int(observed) < int(planned_value)
        cost = (
            "drives are idle between commands" if is_smaller else "the controller may refuse commands when it is full"
        )
    cost = _LARGER_COSTS[name] if is_larger else cost
    if is_wrong or is_larger:
        yield LayoutFault(
            "not as planned", disk.name, f"{name} is {observed}; planned is {planned_value}", cost,
            f"echo {planned_value} > {setting_name}", (name,), planned=str(planned_value),
        )  # fmt: skip


@dataclass(frozen=True)
class _PlannedDrives:
    """The technology, sizes and sectors of the drives of a plan, or the sizes of its LUNs; empty where they are not
    known."""

    flash: frozenset[bool]
    sizes: tuple[int, ...]
    sectors: frozenset[int]
    are_disks: bool  # the host sees the drives, not LUNs on them


def _list_planned_drives(planned_layout: FileSystemLayout) -> _PlannedDrives | None:
    devices = [device for base in planned_layout.all_devices for device in base.iterate_top_down()]
    tables = [device.table for device in devices if isinstance(device.table, Drive)]
    logs = list(planned_layout.log.iterate_top_down()) if planned_layout.log is not None else []
    luns = [device for device in [*devices, *logs] if device.kind == "luns"]
    sizes = [device.capacity for device in luns] if luns else [table.capacity for table in tables]
    is_known = all(table.kind in ("nvme", "ssd", "hdd") for table in tables)
    return _PlannedDrives(
        frozenset(table.kind != "hdd" for table in tables) if is_known else frozenset(),
        tuple(int(size) for size in sizes if size is not None) if None not in sizes else (),
        frozenset(int(table.block) for table in tables if table.block is not None),
        not luns,
    ) if tables else None  # fmt: skip


def _check_drives(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout
) -> Iterator[LayoutFault | CheckedItem]:
    """The technology, size and sectors of the drives below; where the plan has several kinds, any of them is right."""
    planned = _list_planned_drives(planned_layout)
    drives = [disk for disk in list_disks_below(observed_storage, observed_storage.file_systems) if disk.kind == "disk"]
    is_mixed = len({disk.flash for disk in drives if disk.flash is not None}) > 1  # a fault of the array
    if planned is None:
        return
    for disk in drives:
        yield CheckedItem("the planned drives", disk.name)
        for name, attribute, observed, expected, cost in _compare_drive(disk, planned, is_mixed=is_mixed):
            yield LayoutFault(
                "not as planned", disk.name,
                f"{name} of the {'drive' if planned.are_disks else 'LUN'}: {observed}; planned is {expected}", cost,
                "replace it by a drive as planned, or correct the plan" if planned.are_disks
                else "map the planned LUN, or correct the plan", (attribute,), planned=expected,
            )  # fmt: skip


def _compare_drive(
    disk: ObservedDisk, planned: _PlannedDrives, *, is_mixed: bool
) -> Iterator[tuple[str, str, str, str, str]]:
    """Differences from the planned drives: title, attribute, observed and planned value, and cost."""
    # a LUN shows the sectors that its controller emulates, and its rotational flag says nothing of the drives behind
    if planned.are_disks and not is_mixed and disk.flash is not None and planned.flash == {not disk.flash}:
        observed, expected = ("flash", "a rotating drive") if disk.flash else ("a rotating drive", "flash")
        cost = "its rate, its latency and its wear are others than those of the plan"
        yield "technology", "flash", observed, expected, cost
    if disk.size is not None and planned.sizes:
        least, most = min(planned.sizes), max(planned.sizes)
        if disk.size < (1 - _SIZE_SHARE) * least:
            cost = "the array or volume has the size of its smallest member"
            yield "size", "size", format_bytes(disk.size), format_bytes(least), cost
        elif planned.are_disks and disk.size > (1 + _SIZE_SHARE) * most:
            cost = "it is another model with another rate, or part of it is unused"
            yield "size", "size", format_bytes(disk.size), format_bytes(most), cost
    physical = disk.queue.get("physical_block_size", "")
    if planned.are_disks and physical.isdigit() and len(planned.sectors) == 1 and int(physical) not in planned.sectors:
        (sector,) = planned.sectors
        cost = "writes that suit the planned sectors may read a sector first"
        yield "physical sector", "physical_block_size", physical, str(sector), cost


def _check_volume_members(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout
) -> Iterator[LayoutFault | CheckedItem]:
    """Checks members of the volume, geometry of arrays, and the alignment of slices."""
    member_counts = {len(device.members) for device in planned_layout.devices if device.kind == "volumes"}
    # a partition that is a member of an array need not begin at a stripe of that array
    array_members = {name for disk in observed_storage.disks.values() if disk.kind == "md" for name in disk.members}
    # a management target and metadata targets of one server are on arrays of different geometry
    groups = [group for device in planned_layout.devices for group in device.list_raid_groups()]
    planned = {str(group.raid_geometry) for group in groups if group.raid_geometry is not None}
    units = {group.stripe_unit_bytes for group in groups if group.stripe_unit_bytes}
    devices_below = list_disks_below(observed_storage, observed_storage.file_systems)
    for disk in devices_below if planned_layout.devices else ():
        count = len(disk.members)
        if disk.level == "raid0" and count > 1 and member_counts and count not in member_counts:
            counts_text = " or ".join(map(str, sorted(member_counts)))
            yield LayoutFault(
                "not as planned", disk.name, f"it has {count} members; planned are {counts_text}",
                "other capacity and bandwidth", MAKE_AS_PLANNED, ("members",), planned=counts_text,
            )  # fmt: skip
        if disk.kind == "md" and disk.geometry and disk.level != "raid0" and planned and disk.geometry not in planned:
            yield LayoutFault(
                "not as planned", disk.name, f"it is {disk.geometry}; planned is {', '.join(sorted(planned))}",
                "another stripe, and other drives may fail", MAKE_AS_PLANNED, ("geometry",),
                planned=", ".join(sorted(planned)),
            )  # fmt: skip
        if disk.kind == "md" and disk.unit and disk.level != "raid0" and units and disk.unit not in units:
            yield LayoutFault(
                "not as planned", disk.name,
                f"one member holds {format_bytes(disk.unit)} before the next (chunk); planned is"
                f" {', '.join(map(format_bytes, sorted(units)))}",
                "another stripe than planned: requests and alignment of the plan do not fit it", MAKE_AS_PLANNED,
                ("unit",), planned=", ".join(map(format_bytes, sorted(units))),
            )  # fmt: skip
        if disk.kind in ("md", "part") or disk.level == "raid0":
            yield CheckedItem("the planned layout", disk.name)
        if disk.kind == "md" and disk.geometry and disk.level != "raid0" and planned:
            yield CheckedItem("the planned geometry", disk.name)
        if disk.kind == "md" and disk.unit and disk.level != "raid0" and units:
            yield CheckedItem("the planned chunk", disk.name)
        if (
            disk.kind == "part"
            and disk.name not in array_members
            and disk.start is not None
            and planned_layout.alignment
            and disk.start % planned_layout.alignment
        ):
            yield LayoutFault(
                "slice is not aligned", disk.name,
                f"it begins at {disk.start} B, no multiple of the planned {format_bytes(planned_layout.alignment)}",
                "a request of one full stripe touches two", "cut it with the script of sonde layout plan",
            )  # fmt: skip
