# SPDX-License-Identifier: Apache-2.0
"""Observed values of attributes that the scripts of a plan write: arrays, slices, volumes and local file systems."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from sonde.design.layout.check_planned_arrays import PlannedArray, list_absent_spares, list_planned_arrays, pair_arrays
from sonde.design.layout.geometry import KIB, MIB
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage
from sonde.design.layout.written_attributes import WrittenAttribute, group_by_command
from sonde.model.units import format_bytes

Key = tuple[str, str]
# mke2fs -T largefile makes an inode for each MiB, rounded to blocks of inodes; the default is one for each 16 KiB.
_INODE_FACTOR = 2
_SIZE_SHARE = 0.02
_NO_LOG_UNIT = 4 * KIB
_INHERITED_PROPERTIES = ("atime", "xattr", "compression")
_UNITS = {"": 1, "b": 1, "k": KIB, "m": MIB, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class Observation:
    """An observed value next to the written one."""

    location: str
    observed: str
    planned: str
    agrees: bool
    cost: str = ""  # of this value; empty is that of the attribute


@dataclass(frozen=True)
class PlanView:
    """The observed storage, the file systems that the plan is for, and all attributes that its scripts write."""

    storage: ObservedStorage
    file_systems: tuple[ObservedFileSystem, ...]
    written: tuple[WrittenAttribute, ...]

    def list_values(self, key: Key) -> list[str]:
        """The written values of an option, each once."""
        return list(dict.fromkeys(attribute.value for attribute in self.written if attribute.key == key))

    def list_data_disks(self) -> list[ObservedDisk]:
        """Disks below the file systems; all disks where no file system has one."""
        return list_disks_below(self.storage, self.file_systems)

    @cached_property
    def _array_pairs(self) -> dict[str, PlannedArray]:
        return pair_arrays(self.storage, list_planned_arrays(group_by_command(self.written).values()))

    def list_array_values(self, key: Key, array: ObservedDisk) -> list[str]:
        """The written values of an option for one array; those for all arrays where the planned one is not known."""
        planned = self._array_pairs.get(array.name)
        if planned is None:
            return self.list_values(key)
        return [planned.options[key]] if key in planned.options else []

    def list_arrays(self) -> list[ObservedDisk]:
        """Arrays of md below the file systems."""
        return [disk for disk in self.list_data_disks() if disk.kind == "md"]


Observer = Callable[[PlanView, Key], Iterator[Observation]]


def list_disks_below(
    observed_storage: ObservedStorage, file_systems: tuple[ObservedFileSystem, ...]
) -> list[ObservedDisk]:
    """Disks below file systems, without those of their logs; all disks if no file system was observed."""
    names = {disk.settings.get("name", disk.name): disk.name for disk in observed_storage.disks.values()}
    tops = [name for file_system in file_systems for name in _list_top_names(observed_storage, file_system)]
    data_disks = {disk.name: disk for top in tops for disk in observed_storage.iterate_disks_below(names.get(top, top))}
    return list(data_disks.values()) if data_disks or file_systems else list(observed_storage.disks.values())


def _list_top_names(observed_storage: ObservedStorage, file_system: ObservedFileSystem) -> list[str]:
    """The disks that hold a file system: its device, the drives of a pool, or the disk with the label of a target."""
    if file_system.device:
        return [file_system.device.rsplit("/", 1)[-1]]
    if file_system.kind == "zfs":
        names = [vdev.name for vdev in file_system.vdevs if not vdev.use]
        drives = {re.sub(r"-part\d+$", "", name).removeprefix("wwn-") for name in names}
        return [name for name, disk in observed_storage.disks.items() if drives & {name, disk.settings.get("wwn", "")}
                or any(link.rpartition("/")[2] in drives for link in disk.settings.get("links", "").split())
                ]  # fmt: skip
    if file_system.kind in ("lustre", "ldiskfs"):
        # before its first start a target has a colon in its label, and an equals sign after writeconf
        return [name for name, disk in observed_storage.disks.items()
                if re.sub(r"[:=]", "-", disk.settings.get("fs_label", "")) == file_system.location]  # fmt: skip
    return []


def parse_written_size(size_text: str) -> int | None:
    """Bytes of 2048k, 1M or 512; None for other texts."""
    match = re.fullmatch(r"(\d+)([kmgtb]?)", size_text.lower())
    return int(match[1]) * _UNITS[match[2]] if match else None


def _compare_texts(location: str, observed_text: str, planned_values: list[str]) -> Observation:
    return Observation(location, observed_text, " or ".join(planned_values), observed_text in planned_values)


def observe_array_levels(view: PlanView, key: Key) -> Iterator[Observation]:
    for array in view.list_arrays():
        values = view.list_array_values(key, array)
        levels = [value if value == "linear" else f"raid{value}" for value in values]
        if array.level and levels:
            yield _compare_texts(array.name, array.level, levels)


def observe_array_drives(view: PlanView, key: Key) -> Iterator[Observation]:
    for array in view.list_arrays():
        if (count := array.settings.get("devices", "")) and (values := view.list_array_values(key, array)):
            yield _compare_texts(array.name, count, values)


def observe_array_versions(view: PlanView, key: Key) -> Iterator[Observation]:
    for array in view.list_arrays():
        if (version := array.settings.get("metadata", "")) and (values := view.list_array_values(key, array)):
            yield _compare_texts(array.name, version, values)


def observe_bitmaps(view: PlanView, key: Key) -> Iterator[Observation]:
    """Where write-intent bitmaps are: inside of the array or in a file."""
    for array in view.list_arrays():
        policy, values = array.settings.get("bitmap", ""), view.list_array_values(key, array)
        if not values:
            continue
        if policy not in ("", "none", "internal"):  # journal or ppl
            yield _compare_texts(array.name, policy, values)
        elif position := array.settings.get("bitmap_position", ""):
            cost = "each first write also writes the bitmap on the drives of the data" * (position == "internal")
            yield replace(_compare_texts(array.name, position, values), cost=cost)


def observe_array_layouts(view: PlanView, key: Key) -> Iterator[Observation]:
    """The copies of RAID 10, and the order of parity of RAID 5 and 6."""
    for array in view.list_arrays():
        values = view.list_array_values(key, array)
        copies = [f"near={value[1:]}" for value in values if re.fullmatch(r"n\d+", value)]
        orders = [value for value in values if not re.fullmatch(r"n\d+", value)]
        planned = copies if array.level == "raid10" else orders if array.level in ("raid5", "raid6") else []
        if planned and (layout := array.settings.get("layout", "")):
            yield _compare_texts(array.name, layout, planned)


def observe_array_spares(view: PlanView, key: Key) -> Iterator[Observation]:
    """Arrays may share spares, so all are counted together; a spare that took over is used in its array. Where no array
    has a spare of another one, those that lack spares are named."""
    commands = group_by_command(view.written)
    planned_arrays = list_planned_arrays(commands.values())
    arrays = [array for array in view.list_arrays() if array.settings.get("spares", "").isdigit()]
    local, pairs = planned_arrays, pair_arrays(view.storage, planned_arrays)
    if len(arrays) < len(planned_arrays):
        # the plan has further arrays on other servers
        arrays = [array for array in arrays if array.name in pairs]
        local = [pairs[array.name] for array in arrays]
    surplus = {array.name: int(array.settings["spares"]) - int(pairs[array.name].options.get(key, "0"))
               for array in arrays if array.name in pairs}  # fmt: skip
    if len(surplus) == len(arrays) and min(surplus.values(), default=0) < 0 and max(surplus.values()) <= 0:
        arrays = [array for array in arrays if surplus[array.name] < 0]
        local = [pairs[array.name] for array in arrays]
    count = sum(int(array.settings["spares"]) for array in arrays)
    planned = sum(int(each.options.get(key, "0")) for each in local)
    if arrays:
        absent = list_absent_spares(view.storage, local) if count < planned else []
        absent_text = f" (without {', '.join(absent)})" if absent else ""
        names = ", ".join(array.name for array in arrays)
        yield Observation(names, f"{count}{absent_text}", str(planned), count >= planned)


def observe_partitions(view: PlanView, key: Key) -> Iterator[Observation]:
    """Partitions by their number; slices of several disks may have one number."""
    planned: dict[str, list[tuple[int, int]]] = {}
    for value in view.list_values(key):
        number, start, size = value.split(":")
        if start_and_size := _parse_slice(start, size):
            planned.setdefault(number, []).append(start_and_size)
    for disk in view.list_data_disks():
        match = re.search(r"(\d+)$", disk.settings.get("name", "") or disk.name)
        slices = planned.get(match[1], []) if match else []
        if disk.kind != "part" or disk.start is None or disk.size is None or not slices:
            continue
        texts = [f"{format_bytes(size)} from {format_bytes(start)}" for start, size in slices]
        agrees = any(disk.start == start and abs(disk.size - size) <= _SIZE_SHARE * size for start, size in slices)
        observed = f"{format_bytes(disk.size)} from {format_bytes(disk.start)}"
        yield Observation(disk.name, observed, " or ".join(dict.fromkeys(texts)), agrees)


def observe_partition_names(view: PlanView, key: Key) -> Iterator[Observation]:
    """Names of partitions by their number; partitions of several disks may have one number."""
    planned: dict[str, list[str]] = {}
    for value in view.list_values(key):
        number, _, name = value.partition(":")
        planned.setdefault(number, []).append(name)
    for disk in view.list_data_disks():
        match = re.search(r"(\d+)$", disk.settings.get("name", "") or disk.name)
        name = disk.settings.get("partlabel", "")
        if disk.kind == "part" and match is not None and match[1] in planned and name:
            yield _compare_texts(disk.name, name, planned[match[1]])


def _parse_slice(start_text: str, size_text: str) -> tuple[int, int] | None:
    start, size = parse_written_size(start_text), parse_written_size(size_text.removeprefix("+"))
    return None if start is None or size is None else (start, size)


def _observe_physical_volumes(view: PlanView, key: Key, setting_name: str) -> Iterator[tuple[str, int, int]]:
    for disk in view.list_data_disks():
        text = disk.settings.get(setting_name, "")
        for value in view.list_values(key)[:1] if text.isdigit() else ():
            if (planned := parse_written_size(value)) is not None:
                yield disk.name, int(text), planned


def observe_physical_starts(view: PlanView, key: Key) -> Iterator[Observation]:
    for name, observed, step in _observe_physical_volumes(view, key, "data_start"):
        planned = f"a multiple of {format_bytes(step)}"
        yield Observation(name, format_bytes(observed), planned, observed % step == 0)


def observe_extent_sizes(view: PlanView, key: Key) -> Iterator[Observation]:
    for name, observed, planned in _observe_physical_volumes(view, key, "extent_bytes"):
        yield Observation(name, format_bytes(observed), format_bytes(planned), observed == planned)


def observe_stripe_counts(view: PlanView, key: Key) -> Iterator[Observation]:
    for disk in view.list_data_disks():
        if disk.kind == "lvm" and disk.level:
            yield _compare_texts(disk.name, str(disk.data or 1), view.list_values(key))


def observe_stripe_sizes(view: PlanView, key: Key) -> Iterator[Observation]:
    sizes = [size for value in view.list_values(key) if (size := parse_written_size(value)) is not None]
    for disk in view.list_data_disks():
        if disk.kind == "lvm" and disk.unit:
            yield _compare_texts(disk.name, format_bytes(disk.unit), [format_bytes(size) for size in sizes])


def observe_labels(view: PlanView, key: Key) -> Iterator[Observation]:
    for file_system in view.file_systems:
        top = next(iter(list_disks_below(view.storage, (file_system,))), None) if file_system.device else None
        label = file_system.facts.get("label", "") or (top.settings.get("fs_label", "") if top is not None else "")
        if label:
            yield _compare_texts(file_system.location, label, view.list_values(key))


def observe_log_units(view: PlanView, key: Key) -> Iterator[Observation]:
    for file_system in view.file_systems:
        unit = file_system.facts.get("log_unit", "")
        for value in view.list_values(key) if unit.isdigit() else ():
            # without su= a log is padded to sectors: the superblock holds 1, and xfs_info prints 0 or 1 blocks
            observed, planned = (size if size > _NO_LOG_UNIT else 0 for size in (int(unit), int(value)))
            text = format_bytes(observed) if observed else "none"
            yield Observation(file_system.location, text, format_bytes(int(value)), observed == planned)


def observe_bytes_per_inode(view: PlanView, key: Key) -> Iterator[Observation]:
    for file_system in view.file_systems:
        inodes = file_system.facts.get("inodes", "")
        disks = list_disks_below(view.storage, (file_system,)) if file_system.device else []
        size = file_system.size_bytes or (disks[0].size if disks else None)
        if not inodes.isdigit() or not int(inodes) or size is None:
            continue
        observed = size // int(inodes)
        planned = f"1 MiB (-T {view.list_values(key)[0]})"
        agrees = MIB // _INODE_FACTOR <= observed <= MIB * _INODE_FACTOR
        cost = "creates fail while there is space for files of 1 MiB" if observed > MIB else ""
        yield Observation(file_system.location, format_bytes(observed), planned, agrees, cost)


def observe_reserved_space(view: PlanView, key: Key) -> Iterator[Observation]:
    """The percentage of blocks that only root may use."""
    for file_system in view.file_systems:
        reserved = file_system.facts.get("reserved", "")
        for value in view.list_values(key)[:1] if reserved.isdigit() and file_system.blocks else ():
            percent = 100 * int(reserved) / (file_system.blocks or 1)
            yield Observation(file_system.location, f"{percent:.1f} %", f"{value} %", abs(percent - int(value)) < 0.1)


def observe_pool_properties(view: PlanView, key: Key) -> Iterator[Observation]:
    """Properties as zpool get and zfs get print them; sizes may have another unit."""
    name = key[1].split()[-1]
    for file_system in view.file_systems:
        if observed := file_system.facts.get(name, ""):
            planned = view.list_values(key)[0]
            yield Observation(file_system.location, observed, planned, _are_equal_properties(observed, planned))
            yield from _observe_datasets(file_system, name, planned)


def _are_equal_properties(observed_value: str, planned_value: str) -> bool:
    size = parse_written_size(planned_value)
    return observed_value == planned_value or (size is not None and parse_written_size(observed_value) == size)


def _observe_datasets(pool: ObservedFileSystem, property_name: str, planned_value: str) -> Iterator[Observation]:
    """Datasets that do not inherit a planned property. Their record size is chosen for what is in them."""
    for fact, observed in pool.facts.items():
        stem, _, dataset = fact.partition("@")
        if stem == property_name and dataset and property_name in _INHERITED_PROPERTIES:
            yield Observation(
                dataset, observed, f"{planned_value} for all of {pool.location}", observed == planned_value
            )


def observe_vdevs(view: PlanView, key: Key) -> Iterator[Observation]:
    """The kind of each vdev and its drives."""
    planned = _parse_vdevs(view.list_values(key)[0].split()[2:])
    for file_system in view.file_systems:
        data = [vdev for vdev in file_system.vdevs if not vdev.use and not vdev.parent]
        if not data:
            continue
        observed = [(vdev.kind, len(file_system.list_vdev_members(vdev.name)) or 1) for vdev in data]
        texts = [", ".join(f"{kind} of {count}" for kind, count in sorted(vdevs)) for vdevs in (observed, planned)]
        yield Observation(file_system.location, texts[0], texts[1], texts[0] == texts[1])


def _parse_vdevs(zpool_arguments: list[str]) -> list[tuple[str, int]]:
    vdevs: list[tuple[str, int]] = []
    is_group = False
    for argument in zpool_arguments:
        if argument in ("log", "spare"):
            break  # the drives after it hold no data
        if re.fullmatch(r"mirror|raidz\d?|draid\d?(:\S+)?", argument):
            vdevs.append((argument, 0))
            is_group = True
        elif is_group:
            vdevs[-1] = (vdevs[-1][0], vdevs[-1][1] + 1)
        else:
            vdevs.append(("drive", 1))
    return vdevs
