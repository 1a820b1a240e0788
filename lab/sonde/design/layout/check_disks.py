# SPDX-License-Identifier: Apache-2.0
"""Checks disks, partitions, arrays, volumes and paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_member_sizes import find_size_faults, is_striped
from sonde.design.layout.check_redundancy import find_redundancy_faults
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import CSM_SEGMENTS, MIB, compute_slice_alignment
from sonde.design.layout.live.observations import ObservedDisk, ObservedPath, ObservedStorage
from sonde.model.units import format_bytes, format_count_with_noun

# Active paths may differ by this fraction of the larger count; the two of the published listing differ by 0.5 %.
_MAX_PATH_IMBALANCE = 0.05
_FEW_BLOCKS = 1000  # fewer blocks do not show a balance
_MIN_CACHE_PAGES = 1024  # md's stripe_cache_size in pages; 256 is its default, made for small machines
_MIN_QUEUE_DEPTH = 8
_MIN_QUEUE_REQUESTS = 16
# Devices that send requests to hardware. Arrays and volumes divide bios, and md gathers these in its stripe cache.
_REQUEST_KINDS = ("disk", "multipath", "lun")
_LEAST_TIMEOUT_S = 10
_MOST_TIMEOUT_S = 600
# What the path checker of multipathd reports of a path that does not work.
_BAD_CHECKS = ("faulty", "shaky", "delayed", "i/o timeout", "undef")
_MOST_AHEAD_KIB = 256 * 1024


def find_disk_faults(
    observed_storage: ObservedStorage, disk: ObservedDisk, *, is_used: bool = True
) -> Iterator[LayoutFault | CheckedItem]:
    """All faults of one disk. The settings of a drive that nothing uses are no faults."""
    yield from find_redundancy_faults(observed_storage, disk)
    if disk.kind == "part":
        yield from _check_alignment(observed_storage, disk)
    if disk.members:
        yield from _check_members(observed_storage, disk)
    if disk.level in ("raid4", "raid5", "raid6"):
        yield from _check_parity_settings(disk)
    if disk.paths:
        yield from _check_paths(disk)
    if disk.kind == "multipath" and not disk.paths and "features" in disk.settings:
        yield LayoutFault(
            "no active path", disk.name, f"multipath lists no path of {disk.settings.get('name') or disk.name}",
            "it cannot be reached", "look at cables and zoning, then rescan",
        )  # fmt: skip
    if disk.kind == "lun":
        yield from _check_lun(disk)
    if is_used:
        yield from _check_queue(observed_storage, disk)


def _find_full_stripe_bytes(observed_storage: ObservedStorage, disk_name: str) -> int | None:
    """The full stripe of the disk of that name, or the optimal I/O size that it reports."""
    for disk in observed_storage.iterate_disks_below(disk_name):
        if disk.full_stripe_bytes:
            return disk.full_stripe_bytes
        best = int(disk.queue.get("optimal_io_size", 0) or 0)
        if best >= 64 * 1024 and best % 4096 == 0:
            return best
    return None


def _check_alignment(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    stripe = _find_full_stripe_bytes(observed_storage, disk.on) if disk.on else None
    if disk.start is None:
        return
    yield CheckedItem("alignment", disk.name)
    levels = (
        {below.level for below in observed_storage.iterate_disks_below(disk.on) if below.level} if disk.on else set()
    )
    has_parity = not levels or bool(levels & {"raid4", "raid5", "raid6"})
    if stripe and disk.start % stripe:
        step = compute_slice_alignment(stripe)
        yield LayoutFault(
            "slice is not aligned", disk.name,
            f"it begins at {disk.start} B, {format_bytes(disk.start % stripe)} into a stripe of {format_bytes(stripe)}",
            "a request of one full stripe touches two" + (
                ": half the rate was measured (271 against 136 MB/s)" if has_parity
                else ", and more drives than needed"),
            f"begin it at a multiple of {format_bytes(step)}",
        )  # fmt: skip
    physical = int(disk.queue.get("physical_block_size", 0) or 0) or next(
        (
            int(parent.queue.get("physical_block_size", 0) or 0)
            for parent in observed_storage.iterate_disks_below(disk.on)
        ),
        0,
    )
    if physical and disk.start % physical:
        yield LayoutFault(
            "slice is not aligned", disk.name, f"it begins at {disk.start} B, within a sector of {physical} B",
            "every write reads a sector first", "begin it at a multiple of 1 MiB",
        )  # fmt: skip


def _find_striped_disk_below(observed_storage: ObservedStorage, disk: ObservedDisk) -> ObservedDisk:
    """The first disk below that has a stripe or a geometry; the disk itself if none has."""
    below = observed_storage.iterate_disks_below(disk.name)
    return next((each for each in below if each.full_stripe_bytes or each.geometry), disk)


def _check_members(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    yield from find_size_faults(observed_storage, disk)
    striped = is_striped(disk)
    members = [observed_storage.disks[member] for member in disk.members if member in observed_storage.disks]
    inner = [_find_striped_disk_below(observed_storage, member) for member in members]
    kinds = {(device.geometry, device.unit) for device in inner if device.geometry or device.unit}
    if striped and len(kinds) > 1:
        kinds_text = " and ".join(sorted(f"{geometry or '?'} of {format_bytes(unit or 0)}" for geometry, unit in kinds))
        yield LayoutFault(
            "unequal members of a stripe", disk.name, f"members are {kinds_text}",
            "the volume is as fast as its slowest member",
            "stripe over members of one geometry and segment", ("geometry",),
        )  # fmt: skip
    wholes = [device.on or device.name for device in members]
    shared = {disk_name for disk_name in wholes if wholes.count(disk_name) > 1} | set(
        disk.settings.get("twice", "").split()
    )
    is_redundant = disk.level in ("raid1", "raid4", "raid5", "raid6", "raid10")
    if (striped or is_redundant) and shared:
        yield LayoutFault(
            "one disk twice in a stripe" if striped else "one disk twice in a mirror", disk.name,
            f"several members are on {', '.join(sorted(shared))}",
            "with this disk several members are lost at once, and each write goes to it several times" if is_redundant
            else "its heads go back and forth between them", "take each member from another disk",
        )  # fmt: skip
    stripes = {device.full_stripe_bytes for device in inner if device.full_stripe_bytes}
    # check_volume_groups compares the stripe size of volumes of LVM
    for stripe in () if any(segment.kind == "striped" for segment in disk.segments) else stripes:
        if disk.unit and disk.unit % stripe and stripe != disk.unit and disk.level == "raid0":
            yield LayoutFault(
                "unit does not fit the stripe", disk.name,
                f"the stripe unit is {format_bytes(disk.unit)}, but the full stripe of a member is "
                f"{format_bytes(stripe)}",
                "parts of stripes are written, and RAID 5 and 6 read before that",
                f"stripe with a unit of {format_bytes(stripe)}", ("stripe_unit",),
            )  # fmt: skip
    places = {match[1] for member in disk.members if (match := re.search(r"/(pm\d+d\d+)L", member))}
    if striped and len(disk.members) > 2 and len(places) == 1:
        yield LayoutFault(
            "one controller for all members", disk.name, f"all members are behind {next(iter(places))}",
            "its channel limits the volume", "take members in turn from several controllers and I/O cabinets",
        )  # fmt: skip
    sizes = disk.member_sizes
    if disk.level == "raid0" and sizes and disk.size is not None and sum(sizes) < disk.size:
        yield LayoutFault(
            "larger than its members", disk.name,
            f"it ends at {disk.size // 512:,} blocks; its members have {sum(sizes) // 512:,} together",
            "the listing contradicts itself", "show the volume again",
        )  # fmt: skip


def _check_parity_settings(disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    cache = disk.settings.get("stripe_cache_size", "")
    if cache.isdigit():
        yield CheckedItem("stripe cache", disk.name)
    if cache.isdigit() and int(cache) < _MIN_CACHE_PAGES:
        yield LayoutFault(
            "stripe cache too small", disk.name, f"stripe_cache_size is {cache} pages",
            "full stripes are not gathered: md reads before it writes", "echo 8192 > md/stripe_cache_size",
            ("stripe_cache_size",),
        )  # fmt: skip


def _check_paths(disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    active = [path for path in disk.paths if path.active]
    preferred = [path for path in disk.paths if path.preferred]
    ready = [path for path in disk.paths if path.state == "active ready"]
    if not active and ready:
        yield LayoutFault(
            "no active path", disk.name, f"none of its path groups is active, although {len(ready)} paths are ready",
            "requests wait until a group is chosen; a map that nothing has used since it was loaded looks the same",
            "look at multipathd (systemctl status) and the log of the kernel",
        )  # fmt: skip
    elif not active:
        yield LayoutFault(
            "no active path", disk.name, "none of its paths is active", "it cannot be reached", "look at the cables"
        )
    elif len(active) == 1 and len(preferred or active) > 1 and not _has_equal_groups(disk):
        yield LayoutFault(
            "one path for all", disk.name, f"of {len(disk.paths)} paths only {active[0].name} is active",
            f"its bandwidth is that of one of {len(preferred or active)} paths",
            "look at cables, zoning and path priorities",
        )  # fmt: skip
    if active and preferred and not any(path.active for path in preferred):
        are_down = all(path.state.startswith("fail") or not path.state for path in preferred)
        yield LayoutFault(
            "on alternate paths", disk.name,
            "all preferred paths are down" if are_down else "its preferred paths are ready, but others are in use",
            "it runs over the other controller", "repair the preferred paths where they failed, then fail back",
        )  # fmt: skip
    for path in disk.paths:
        if path.errors:
            yield LayoutFault(
                "path errors", f"{disk.name} {path.name}", f"{path.errors} errors on this path",
                "requests are repeated, and paths change", "look at cable and port of this path",
            )  # fmt: skip
        if path.state.startswith("fail"):
            yield LayoutFault(
                "path failed", f"{disk.name} {path.name}", "this path has failed", "its share goes to the others",
                "look at cable and port of this path",
            )  # fmt: skip
        checker = path.state.partition(" ")[2]
        if path.state.startswith("active") and checker in _BAD_CHECKS:
            yield LayoutFault(
                "path failed", f"{disk.name} {path.name}", f"its checker reports {checker}, though it is still in use",
                "requests on it wait or fail, and are repeated on the other paths",
                "look at cable and port of this path",
            )  # fmt: skip
        if path.active is False and not path.state.startswith("fail") and _count_transferred_blocks(path) > _FEW_BLOCKS:
            yield LayoutFault(
                "standby path was used", f"{disk.name} {path.name}",
                f"a standby path has moved {_count_transferred_blocks(path):,} blocks",
                "the disk has been on its other controller", "look for path changes in the log",
            )  # fmt: skip
    for direction in ("blocks_read", "blocks_written"):
        yield from _check_balance_of_paths(disk, active, direction)


def _has_equal_groups(disk: ObservedDisk) -> bool:
    """Whether the idle paths are idle by policy: groups of equal priority, of which one is used."""
    groups = {path.group: path.priority for path in disk.paths if not path.state.startswith("fail")}
    best = [group for group, priority in groups.items() if priority == max(p or 0 for p in groups.values())]
    return None not in groups and len(best) > 1


def _count_transferred_blocks(observed_path: ObservedPath) -> int:
    return (observed_path.blocks_read or 0) + (observed_path.blocks_written or 0)


def _check_balance_of_paths(
    disk: ObservedDisk, active_paths: Sequence[ObservedPath], direction_name: str
) -> Iterator[LayoutFault | CheckedItem]:
    counts = [getattr(path, direction_name) for path in active_paths if getattr(path, direction_name) is not None]
    if len(counts) > 1 and max(counts) > _FEW_BLOCKS and max(counts) - min(counts) > _MAX_PATH_IMBALANCE * max(counts):
        yield LayoutFault(
            "unbalanced paths", disk.name,
            f"active paths have {direction_name.replace('_', ' ')} of {min(counts):,} to {max(counts):,}",
            "the busiest path limits the disk while others are idle", "spread requests over all active paths",
        )  # fmt: skip


def _check_lun(disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    if disk.unit:
        yield CheckedItem("segment", disk.name)
    segments = [kinds[disk.geometry] for kinds in CSM_SEGMENTS.values() if disk.geometry in kinds]
    if segments and disk.unit not in segments:
        yield LayoutFault(
            "unusual segment", disk.name,
            f"{disk.geometry} has segments of {format_bytes(disk.unit or 0)}; the usual ones are "
            f"{', '.join(map(format_bytes, segments))}",
            "it was never tuned for this", "create the LUN again with csmadd",
        )  # fmt: skip


def _check_queue(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    queue = disk.queue
    if queue:
        yield CheckedItem("queue settings", disk.name)
    yield from _check_device(disk)
    requests = queue.get("nr_requests", "")
    if requests.isdigit() and int(requests) < _MIN_QUEUE_REQUESTS and disk.kind in _REQUEST_KINDS:
        yield LayoutFault(
            "queue too short", disk.name, f"nr_requests is {requests}: so many requests are under way at most",
            "the scheduler cannot merge requests, and drives wait for the next one",
            f"echo 256 > queue/nr_requests (at least {_MIN_QUEUE_REQUESTS})", ("nr_requests",),
        )  # fmt: skip
    most, allowed = (int(queue.get(name, 0) or 0) for name in ("max_sectors_kb", "max_hw_sectors_kb"))
    stripe = _find_full_stripe_bytes(observed_storage, disk.name)
    is_short = bool(most and stripe) and most * 1024 < min(stripe or 0, 16 * MIB)
    if disk.kind in _REQUEST_KINDS and stripe and is_short and allowed > most:
        yield LayoutFault(
            "requests are cut", disk.name,
            f"max_sectors_kb is {most}, but a full stripe has {format_bytes(stripe)}",
            "one stripe takes several requests, and a controller may write parts of it",
            f"echo {min(stripe // 1024, allowed, 16384)} > queue/max_sectors_kb", ("max_sectors_kb",),
        )  # fmt: skip
    chunk = next(
        (array.unit for array in observed_storage.disks.values() if disk.name in array.members and array.kind == "md"),
        None,
    )
    if disk.kind == "disk" and most and chunk and most * 1024 < chunk and allowed > most:
        yield LayoutFault(
            "requests are cut", disk.name, f"max_sectors_kb is {most}, but md writes chunks of {format_bytes(chunk)}",
            "one chunk takes several requests", f"echo {min(chunk // 1024, allowed)} > queue/max_sectors_kb",
            ("max_sectors_kb",),
        )  # fmt: skip
    scheduler = re.search(r"\[(\w[\w-]*)\]", queue.get("scheduler", ""))
    name = scheduler[1] if scheduler else queue.get("scheduler", "")
    if disk.flash and disk.kind == "disk" and name in ("bfq", "cfq", "kyber") and disk.name.startswith("nvme"):
        yield LayoutFault(
            "scheduler", disk.name, f"the scheduler of a flash drive is {name}",
            "every request takes locks and processor time", "echo none > queue/scheduler", ("scheduler",),
        )  # fmt: skip
    elif disk.flash is False and name in ("bfq", "cfq") and disk.kind == "disk":
        yield LayoutFault(
            "scheduler", disk.name, f"the scheduler is {name}",
            "streams of many tasks get slices of time, one after another",
            "echo mq-deadline > queue/scheduler, or none for a LUN", ("scheduler",),
        )  # fmt: skip
    ahead = queue.get("read_ahead_kb", "")
    if disk.full_stripe_bytes and ahead.isdigit() and int(ahead) * 1024 < disk.full_stripe_bytes:
        yield LayoutFault(
            "read-ahead too short", disk.name,
            f"read_ahead_kb is {ahead}, less than one stripe of {format_bytes(disk.full_stripe_bytes)}",
            "one task that reads keeps some of the drives busy only",
            f"echo {2 * disk.full_stripe_bytes // 1024} > queue/read_ahead_kb", ("read_ahead_kb",),
        )  # fmt: skip


def _check_device(disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    if disk.queue_depth is not None and 0 < disk.queue_depth < _MIN_QUEUE_DEPTH:
        yield LayoutFault(
            "queue too short", disk.name,
            f"{format_count_with_noun(disk.queue_depth, 'command')} at a time (queue depth)",
            "drives wait for the next command, and cannot sort them",
            f"set a queue depth of {_MIN_QUEUE_DEPTH} or more",
            ("queue_depth",),
        )  # fmt: skip
    merges = disk.queue.get("nomerges", "0")
    if merges.isdigit() and int(merges):
        yield LayoutFault(
            "requests are not merged", disk.name, f"nomerges is {merges}",
            "adjacent small requests go to the drive one by one", "echo 0 > queue/nomerges", ("nomerges",),
        )  # fmt: skip
    timeout = disk.settings.get("timeout", "")
    if timeout.isdigit():
        yield CheckedItem("the timeout of commands", disk.name)
        if int(timeout) < _LEAST_TIMEOUT_S:
            yield LayoutFault(
                "timeout too short", disk.name, f"the timeout of commands is {timeout} s",
                "a drive that repeats a read, or a controller that fails over, is reset and may leave its array",
                "echo 30 > device/timeout, or what the vendor of the storage asks", ("timeout",),
            )  # fmt: skip
        if int(timeout) > _MOST_TIMEOUT_S:
            yield LayoutFault(
                "timeout too long", disk.name, f"the timeout of commands is {timeout} s",
                f"a drive or path that hangs holds its requests for {int(timeout) // 60} minutes",
                "echo 180 > device/timeout, or less where the drive limits its error recovery", ("timeout",),
            )  # fmt: skip
    ahead = disk.queue.get("read_ahead_kb", "")
    if ahead.isdigit() and int(ahead) > _MOST_AHEAD_KIB:
        yield LayoutFault(
            "read-ahead too long", disk.name, f"read_ahead_kb is {ahead}, {int(ahead) // 1024} MiB for each open file",
            "readers that stop or jump have read for nothing, and memory is taken from other data",
            "set it to two full stripes", ("read_ahead_kb",),
        )  # fmt: skip
