# SPDX-License-Identifier: Apache-2.0
"""Checks how volumes of LVM use their group: striped over equal physical volumes, aligned to the stripes below, and
within the space and metadata of their thin pool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import GIB, KIB
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.model.units import format_bytes

# Smaller volumes (root, swap) carry next to nothing.
_SMALL_VOLUME = 64 * GIB
_SMALL_UNIT = 64 * KIB
_FULL_PERCENT = 80
# Thin volumes are larger together than their pool for good reasons; more than this factor is no reserve but hope.
_MOST_OVERCOMMIT = 2
_SIZE_SHARE = 0.01
_MIRRORS = tuple("rRmM")  # types of volumes with copies, in the first letter of the attributes of lvs
_LEVELS_WITHOUT_PARITY = ("raid0", "raid1", "raid10", "linear")
_LUN_KINDS = ("md", "multipath", "lun", "disk")


def find_volume_group_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """All faults of volumes in their groups."""
    for disk in observed_storage.disks.values():
        if disk.segments and disk.kind in ("lvm", "other"):
            yield from _check_stripes(observed_storage, disk)
        if disk.settings.get("volume_type") == "t":
            yield from _check_thin_pool(observed_storage, disk)
        yield from _check_data_start(observed_storage, disk)
        percent = disk.settings.get("copy_percent", "")
        if re.fullmatch(r"[\d.]+", percent) and float(percent) < 100 and disk.settings.get("volume_type") in _MIRRORS:
            yield LayoutFault(
                "rebuilding", disk.name, f"its copies are synchronized: {percent} % are done (lvs)",
                "it takes its share of every drive's rate, and until the end a lost drive costs data",
                "measure after it has ended", ("copy_percent",),
            )  # fmt: skip


def _list_members(observed_storage: ObservedStorage, volume: ObservedDisk) -> list[ObservedDisk]:
    """The devices below all segments of a volume, each once."""
    names = dict.fromkeys(member for segment in volume.segments for member in segment.members)
    return [observed_storage.disks[name] for name in names if name in observed_storage.disks]


def _are_equal(devices: Sequence[ObservedDisk]) -> bool:
    """Whether devices are arrays, LUNs or drives of one kind, technology and size."""
    sizes = [disk.size for disk in devices if disk.size]
    return (
        len(sizes) == len(devices) > 1
        and max(sizes) - min(sizes) <= _SIZE_SHARE * max(sizes)
        and len({(disk.kind, disk.flash) for disk in devices}) == 1
        and devices[0].kind in _LUN_KINDS
    )


def _check_stripes(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """A volume over equal devices, one after another or in stripes over a part of them, and its stripe unit."""
    members = _list_members(observed_storage, disk)
    kinds = {segment.kind for segment in disk.segments}
    name = disk.settings.get("name") or disk.name
    if not disk.size or disk.size < _SMALL_VOLUME or not kinds <= {"linear", "striped"}:
        return
    yield CheckedItem("stripes over equal devices", disk.name)
    free = _list_free_peers(observed_storage, disk, members)
    if all((segment.stripes or 1) == 1 for segment in disk.segments) and _are_equal(members):
        yield LayoutFault(
            "volume not striped", disk.name,
            f"{name} uses {len(members)} equal devices one after another (linear): {_join_names(members)}",
            "a file has the bandwidth of one of them, and they are filled in turn",
            f"save the data, and make the volume again in stripes (lvcreate -i {len(members)} -I SIZE, with the full"
            " stripe of a device as SIZE)", ("stripes",),
        )  # fmt: skip
    elif all((segment.stripes or 1) > 1 for segment in disk.segments) and free:
        yield LayoutFault(
            "stripes over few devices", disk.name,
            f"{name} has stripes over {len(members)} of the {len(members) + len(free)} equal physical volumes of its"
            f" group; {_join_names(free)} hold no volume",
            "it lacks the bandwidth of the others",
            f"save the data, and make the volume again with lvcreate -i {len(members) + len(free)}", ("stripes",),
        )  # fmt: skip
    unit = disk.segments[0].unit
    if (disk.segments[0].stripes or 1) > 1 and unit:
        yield from _check_unit(disk, unit, members)


def _check_unit(disk: ObservedDisk, unit: int, members: Sequence[ObservedDisk]) -> Iterator[LayoutFault]:
    stripes = {stripe for each in members if (stripe := _find_stripe(each))}
    stripe = stripes.pop() if len(stripes) == 1 else None
    if unit < _SMALL_UNIT or (stripe and unit % stripe):
        problem = f"its stripe size is {format_bytes(unit)}"
        yield LayoutFault(
            "unit does not fit the stripe" if stripe and unit > stripe else "small stripes of a volume", disk.name,
            f"{problem}; a full stripe of each device below is {format_bytes(stripe)}" if stripe else problem,
            "each device gets parts of its stripes: parity is read before it is written"
            if stripe else "requests are cut into many short ones",
            "save the data, and make the volume again with lvcreate -I "
            + (f"{stripe // KIB}k" if stripe else "256k or more"), ("unit",),
        )  # fmt: skip


def _find_stripe(disk: ObservedDisk) -> int | None:
    """The full stripe of an array or LUN with parity, as md or the queue limits report it."""
    if disk.level in _LEVELS_WITHOUT_PARITY or (disk.kind == "disk" and disk.flash):
        return None  # flash has a favorite size of requests, but no stripe
    if disk.full_stripe_bytes:
        return disk.full_stripe_bytes
    least, best = (int(disk.queue.get(name, 0) or 0) for name in ("minimum_io_size", "optimal_io_size"))
    return best if best > least >= 4 * KIB and best % least == 0 else None


def _list_free_peers(
    observed_storage: ObservedStorage, volume: ObservedDisk, members: Sequence[ObservedDisk]
) -> list[ObservedDisk]:
    """Physical volumes of the group that are equal to the members of a volume and hold no volume at all."""
    groups = {disk.settings.get("group_of_pv", "") for disk in members}
    if len(groups) != 1 or "" in groups:
        return []
    used = {name for disk in observed_storage.disks.values()
            for name in (*disk.members, *(member for segment in disk.segments for member in segment.members))
            if disk.kind in ("lvm", "other")}  # fmt: skip
    return [disk for disk in observed_storage.disks.values()
            if disk.settings.get("group_of_pv", "") in groups and disk.name not in used
            and _are_equal([disk, *members])]  # fmt: skip


def _join_names(devices: Sequence[ObservedDisk]) -> str:
    return join_first_names([disk.settings.get("name") or disk.name for disk in devices])


def _check_data_start(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """A physical volume whose extents begin within a stripe of its array or LUN, or within a sector."""
    start = disk.settings.get("data_start", "")
    step, text = _find_alignment(observed_storage, disk)
    if not start.isdigit() or not step:
        return
    yield CheckedItem("start of data in a physical volume", disk.name)
    if int(start) % step:
        yield LayoutFault(
            "volumes between stripes", disk.name,
            f"extents begin at {_format_offset(int(start))} (pe_start), within {text} of {format_bytes(step)}",
            "full stripes of a file system are written as parts of two: RAID 5 and 6 read before they write"
            if text == "a stripe" else "each write of a sector becomes parts of two, which are read before",
            "save the data, and make the physical volume again with pvcreate --dataalignment "
            + (f"{step // KIB}k" if text == "a stripe" else "1m"), ("data_start",),
        )  # fmt: skip


def _format_offset(offset: int) -> str:
    """An offset in full: larger units would round its remainder away."""
    remainder = offset % KIB
    return f"{offset // KIB:,} KiB" + (f" + {remainder} B" if remainder else "")


def _find_alignment(observed_storage: ObservedStorage, volume: ObservedDisk) -> tuple[int, str]:
    """The stripe, or else the physical sector, at which the data of a physical volume should begin; 0 if it is unknown,
    or if a partition in between is not aligned, which is another fault. Members of an array do not count."""
    below = list(observed_storage.iterate_disks_below(
        volume.name, lambda each: bool(_find_stripe(each)) or len(each.members) > 1
    ))  # fmt: skip
    if not below:
        return 0, ""
    stripe = _find_stripe(below[-1])
    step = stripe or int(below[-1].queue.get("physical_block_size", 0) or 0)
    if not step or any((each.start or 0) % step for each in below):
        return 0, ""
    return step, "a stripe" if stripe else "a sector"


def _check_thin_pool(observed_storage: ObservedStorage, pool: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """The metadata of a thin pool, and the sum of its volumes."""
    percent = pool.settings.get("metadata_percent", "").partition(".")[0]
    if percent.isdigit():
        yield CheckedItem("metadata of a thin pool", pool.name)
        if int(percent) >= _FULL_PERCENT:
            yield LayoutFault(
                "thin pool metadata almost full", pool.name, f"{percent} % of the metadata of the thin pool are used",
                "when they are full all of its volumes become read-only, and a repair needs free space in the group",
                "lvextend --poolmetadatasize +SIZE, or remove snapshots", ("metadata_percent",),
            )  # fmt: skip
    group, name = pool.settings.get("volume_group", ""), (pool.settings.get("name") or pool.name)
    volumes = [disk for disk in observed_storage.disks.values()
               if disk.settings.get("volume_group") == group and disk.size
               and f"{_escape(group)}-{_escape(disk.settings.get('pool', ''))}" == name]  # fmt: skip
    sizes = [disk.size for disk in volumes if disk.size and disk.settings.get("volume_type") == "V"]
    if not sizes or not pool.size:
        return
    yield CheckedItem("sizes of thin volumes", pool.name)
    if max(sizes) > (1 + _SIZE_SHARE) * pool.size or sum(sizes) > _MOST_OVERCOMMIT * pool.size:
        yield LayoutFault(
            "thin pool overcommitted", pool.name,
            f"its {len(sizes)} volumes have {format_bytes(sum(sizes))} together, the largest"
            f" {format_bytes(max(sizes))}; the pool has {format_bytes(pool.size)}",
            "file systems report free space that does not exist: when the pool is full all of them stop writing",
            "lvextend the pool, or watch it and set thin_pool_autoextend_threshold below 100", ("pool",),
        )  # fmt: skip


def _escape(name: str) -> str:
    return name.replace("-", "--")
