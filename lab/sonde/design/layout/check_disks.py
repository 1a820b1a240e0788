# SPDX-License-Identifier: Apache-2.0
"""What is wrong with disks, slices, arrays, volumes and paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sonde.design.layout.faults import Fault
from sonde.design.layout.geometry import CSM_SEGMENTS, MIB, modulo, parse_geometry
from sonde.design.layout.live.seen import Seen, SeenDisk, SeenPath, Slices
from sonde.model.errors import UserError
from sonde.model.units import format_bytes

# Active paths may differ by this share of the larger one; the talk's two differ by half a percent.
_UNBALANCED = 0.05
_FEW_BLOCKS = 1000  # what moved less says nothing about balance
_LEAST_CACHE = 1024  # md's stripe_cache_size in pages; 256 is its default, made for small machines
_LEAST_DEPTH = 8
_FINE_STATES = frozenset({"", "optimal", "active", "running", "live", "clean", "optimal active", "active sync"})


def disk_faults(seen: Seen, disk: SeenDisk) -> Iterator[Fault]:
    """Everything that is wrong with one disk."""
    yield from _state(disk)
    if disk.kind == "part":
        yield from _alignment(seen, disk)
    if disk.members:
        yield from _members(seen, disk)
    if disk.level in ("raid4", "raid5", "raid6"):
        yield from _parity(disk)
    if disk.paths:
        yield from _paths(disk)
    if disk.kind == "lun":
        yield from _lun(disk)
    yield from _queue(seen, disk)


def _state(disk: SeenDisk) -> Iterator[Fault]:
    state = disk.state.lower().strip()
    words = {word.strip(",") for word in state.split()}
    if disk.settings.get("degraded", "0") not in ("0", "") or "degraded" in words:
        yield Fault(
            "degraded", disk.name, f"{disk.level or disk.kind} {disk.name} runs with a drive missing",
            "reads of what it held are computed from all others; one more may lose everything",
            "replace the drive (mdadm --manage --add)",
        )  # fmt: skip
    elif state not in _FINE_STATES and not words <= _FINE_STATES:
        yield Fault(
            "not optimal", disk.name, f"its state is {disk.state}", "paths, spares or data are missing",
            "ask the log of the RAID controller or of md",
        )  # fmt: skip
    action = disk.settings.get("sync_action", "idle")
    if action not in ("idle", "", "frozen"):
        yield Fault(
            "rebuilding", disk.name, f"md is busy: {action}", "the rebuild takes its share of every drive's rate",
            "measure after it has ended (cat /proc/mdstat)",
        )  # fmt: skip


def _stripe_of(seen: Seen, name: str) -> int | None:
    """The full stripe of the disk of that name, or what it offers as the best size."""
    for disk in seen.beneath(name):
        if disk.stripe:
            return disk.stripe
        best = int(disk.queue.get("optimal_io_size", 0) or 0)
        if best >= 64 * 1024 and best % 4096 == 0:
            return best
    return None


def _alignment(seen: Seen, disk: SeenDisk) -> Iterator[Fault]:
    stripe = _stripe_of(seen, disk.on) if disk.on else None
    if disk.start is None:
        return
    if stripe and disk.start % stripe:
        step = modulo(stripe)
        yield Fault(
            "slice is not aligned", disk.name,
            f"it begins at {disk.start} B, {format_bytes(disk.start % stripe)} into a stripe of {format_bytes(stripe)}",
            "a request of one full stripe touches two: half the rate was measured (271 against 136 MB/s)",
            f"begin it at a multiple of {format_bytes(step)}",
        )  # fmt: skip
    physical = int(disk.queue.get("physical_block_size", 0) or 0) or next(
        (int(one.queue.get("physical_block_size", 0) or 0) for one in seen.beneath(disk.on)), 0
    )
    if physical and disk.start % physical:
        yield Fault(
            "slice is not aligned", disk.name, f"it begins at {disk.start} B, within a sector of {physical} B",
            "every write reads a sector first", "begin it at a multiple of 1 MiB",
        )  # fmt: skip


def _members(seen: Seen, disk: SeenDisk) -> Iterator[Fault]:
    sizes = disk.member_sizes
    striped = disk.level in ("raid0", "stripe") or bool(disk.unit)
    if striped and sizes and max(sizes) != min(sizes):
        lost = sum(sizes) - len(sizes) * min(sizes)
        yield Fault(
            "unequal members of a stripe", disk.name,
            f"members have {format_bytes(min(sizes))} to {format_bytes(max(sizes))}",
            f"{format_bytes(lost)} cannot be striped over all, or are lost", "give every member the same size",
        )  # fmt: skip
    known = [seen.disks[one] for one in disk.members if one in seen.disks]
    inner = [next((one for one in seen.beneath(each.name) if one.stripe or one.geometry), each) for each in known]
    kinds = {(one.geometry, one.unit) for one in inner if one.geometry or one.unit}
    if striped and len(kinds) > 1:
        words = " and ".join(sorted(f"{geometry or '?'} of {format_bytes(unit or 0)}" for geometry, unit in kinds))
        yield Fault(
            "unequal members of a stripe", disk.name, f"members are {words}",
            "the volume is as fast as its slowest member",
            "stripe over members of one geometry and segment",
        )  # fmt: skip
    wholes = [one.on or one.name for one in known]
    shared = {one for one in wholes if wholes.count(one) > 1}
    if striped and shared:
        yield Fault(
            "one disk twice in a stripe", disk.name, f"several members lie on {', '.join(sorted(shared))}",
            "its heads go back and forth between them", "take each member from another disk",
        )  # fmt: skip
    stripes = {one.stripe for one in inner if one.stripe}
    for stripe in stripes if disk.unit else ():
        if disk.unit and disk.unit % stripe and stripe != disk.unit and disk.level == "raid0":
            yield Fault(
                "unit does not fit the stripe", disk.name,
                f"{format_bytes(disk.unit)} lie on a member before the next, whose full stripe is "
                f"{format_bytes(stripe)}",
                "parts of stripes are written, and RAID 5 and 6 read before that",
                f"stripe with a unit of {format_bytes(stripe)}",
            )  # fmt: skip
    places = {match[1] for one in disk.members if (match := re.search(r"/(pm\d+d\d+)L", one))}
    if striped and len(disk.members) > 2 and len(places) == 1:
        yield Fault(
            "one controller for all members", disk.name, f"all members are behind {next(iter(places))}",
            "its channel limits the volume", "take members in turn from several controllers and I/O cabinets",
        )  # fmt: skip
    if disk.level == "raid0" and sizes and disk.size is not None and sum(sizes) < disk.size:
        yield Fault(
            "larger than its members", disk.name,
            f"it ends at {disk.size // 512:,} blocks; its members have {sum(sizes) // 512:,} together",
            "the listing contradicts itself", "show the volume again",
        )  # fmt: skip


def _parity(disk: SeenDisk) -> Iterator[Fault]:
    cache = disk.settings.get("stripe_cache_size", "")
    if cache.isdigit() and int(cache) < _LEAST_CACHE:
        yield Fault(
            "stripe cache too small", disk.name, f"stripe_cache_size is {cache} pages",
            "full stripes are not gathered: md reads before it writes", "echo 8192 > md/stripe_cache_size",
        )  # fmt: skip


def _paths(disk: SeenDisk) -> Iterator[Fault]:
    active = [path for path in disk.paths if path.active]
    preferred = [path for path in disk.paths if path.preferred]
    if not active:
        yield Fault(
            "no active path", disk.name, "none of its paths is active", "it cannot be reached", "look at the cables"
        )
    elif len(active) == 1 and len(disk.paths) > 1 and len(preferred or active) != 1:
        yield Fault(
            "one path for all", disk.name, f"of {len(disk.paths)} paths only {active[0].name} is active",
            "half the bandwidth, and nothing left when it fails", "look at cables, zoning and path priorities",
        )  # fmt: skip
    if active and preferred and not any(path.active for path in preferred):
        yield Fault(
            "on alternate paths", disk.name, "all preferred paths are down", "it runs over the other controller",
            "repair the preferred paths and fail back",
        )  # fmt: skip
    for path in disk.paths:
        if path.errors:
            yield Fault(
                "path errors", f"{disk.name} {path.name}", f"{path.errors} errors on this path",
                "requests are repeated, and paths change", "look at cable and port of this path",
            )  # fmt: skip
        if path.state.startswith("fail"):
            yield Fault(
                "path failed", f"{disk.name} {path.name}", "this path has failed", "its share goes to the others",
                "look at cable and port of this path",
            )  # fmt: skip
        if path.active is False and not path.state.startswith("fail") and _moved(path) > _FEW_BLOCKS:
            yield Fault(
                "standby path was used", f"{disk.name} {path.name}",
                f"a standby path has moved {_moved(path):,} blocks",
                "the disk has been on its other controller", "look for path changes in the log",
            )  # fmt: skip
    for way in ("blocks_read", "blocks_written"):
        yield from _balance(disk, active, way)
    if disk.queue_depth is not None and 0 < disk.queue_depth < _LEAST_DEPTH:
        yield Fault(
            "queue too short", disk.name, f"{disk.queue_depth} commands at a time", "RAID drives wait for requests",
            f"set a queue depth of {_LEAST_DEPTH} or more",
        )  # fmt: skip


def _moved(path: SeenPath) -> int:
    return (path.blocks_read or 0) + (path.blocks_written or 0)


def _balance(disk: SeenDisk, active: Sequence[SeenPath], way: str) -> Iterator[Fault]:
    counts = [getattr(path, way) for path in active if getattr(path, way) is not None]
    if len(counts) > 1 and max(counts) > _FEW_BLOCKS and max(counts) - min(counts) > _UNBALANCED * max(counts):
        yield Fault(
            "unbalanced paths", disk.name,
            f"active paths have {way.replace('_', ' ')} of {min(counts):,} to {max(counts):,}",
            "the busiest path limits the disk while others are idle", "spread requests over all active paths",
        )  # fmt: skip


def _lun(disk: SeenDisk) -> Iterator[Fault]:
    segments = [kinds[disk.geometry] for kinds in CSM_SEGMENTS.values() if disk.geometry in kinds]
    if segments and disk.unit not in segments:
        yield Fault(
            "unusual segment", disk.name,
            f"{disk.geometry} has segments of {format_bytes(disk.unit or 0)}; made are "
            f"{', '.join(map(format_bytes, segments))}",
            "it was never tuned so", "make the LUN again with csmadd",
        )  # fmt: skip


def _queue(seen: Seen, disk: SeenDisk) -> Iterator[Fault]:
    queue = disk.queue
    most, allowed = (int(queue.get(one, 0) or 0) for one in ("max_sectors_kb", "max_hw_sectors_kb"))
    # a volume cuts requests at its members, so that they need one unit only
    stripe = disk.unit if disk.level == "raid0" else _stripe_of(seen, disk.name)
    whole = disk.kind not in ("part", "slice")
    if whole and most and allowed and stripe and most * 1024 < min(stripe, 16 * MIB) and allowed > most:
        yield Fault(
            "requests are cut", disk.name,
            f"max_sectors_kb is {most}, but a full stripe has {format_bytes(stripe)}",
            "one stripe takes several requests, and a controller may write parts of it",
            f"echo {min(stripe // 1024, allowed, 16384)} > queue/max_sectors_kb",
        )  # fmt: skip
    scheduler = re.search(r"\[(\w[\w-]*)\]", queue.get("scheduler", ""))
    name = scheduler[1] if scheduler else queue.get("scheduler", "")
    if disk.flash and disk.kind == "disk" and name in ("bfq", "cfq", "kyber") and disk.name.startswith("nvme"):
        yield Fault(
            "scheduler", disk.name, f"the scheduler of a flash drive is {name}",
            "every request takes locks and processor time", "echo none > queue/scheduler",
        )  # fmt: skip
    elif disk.flash is False and name in ("bfq", "cfq") and disk.kind == "disk":
        yield Fault(
            "scheduler", disk.name, f"the scheduler is {name}",
            "streams of many tasks get slices of time, one after another",
            "echo mq-deadline > queue/scheduler, or none for a LUN",
        )  # fmt: skip
    ahead = queue.get("read_ahead_kb", "")
    if disk.stripe and ahead.isdigit() and int(ahead) * 1024 < disk.stripe:
        yield Fault(
            "read-ahead too short", disk.name,
            f"read_ahead_kb is {ahead}, less than one stripe of {format_bytes(disk.stripe)}",
            "one task that reads keeps some of the drives busy only",
            f"echo {2 * disk.stripe // 1024} > queue/read_ahead_kb",
        )  # fmt: skip


def slice_faults(seen: Seen, table: Slices) -> Iterator[Fault]:
    """A table of slices before it is written: shares, doubles, alignment for its disk's geometry."""
    shares = sum(share for _, share, _, _ in table.rows if share is not None)
    numbers = [number for number, *_ in table.rows]
    if shares > 1.0001:
        yield Fault(
            "more than the whole", table.origin, f"its slices want {100 * shares:.0f} % of the disk",
            "it cannot be written",
            "make them 100 % together",
        )  # fmt: skip
    if len(set(numbers)) < len(numbers):
        yield Fault(
            "slice named twice", table.origin, f"slices are {', '.join(map(str, numbers))}",
            "the later one replaces the other",
            "give every slice its own number",
        )  # fmt: skip
    geometry = _layout_geometry(table.origin) or next(
        (
            one.geometry
            for one in seen.disks.values()
            if table.disk and table.disk in (one.name, one.settings.get("device"))
        ),
        "",
    )
    if geometry:
        segment = next((kinds[geometry] for kinds in CSM_SEGMENTS.values() if geometry in kinds), None)
        stripe = parse_geometry(geometry).stripe(segment) if segment else None
        step = table.modulo or MIB
        if stripe and step % stripe:
            yield Fault(
                "slice is not aligned", table.origin,
                f"slices begin at multiples of {format_bytes(step)}, the stripe of {geometry} is "
                f"{format_bytes(stripe)}",
                "a request of one full stripe touches two", f"write modulo {modulo(stripe) // MIB}M",
            )  # fmt: skip


def _layout_geometry(origin: str) -> str:
    """The geometry that a file's name tells, like option-RG11D.cf: of a layout with one group."""
    match = re.search(r"RG\d1([0-9A-F])", origin)
    if match is None:
        return ""
    try:
        return str(parse_geometry(f"{int(match[1], 16)}+1"))
    except UserError:
        return ""
