# SPDX-License-Identifier: Apache-2.0
"""What is wrong with storage as it was seen, held against the rules of layout and, when there is one, against the plan.

Nothing here asks a machine: `check` judges what it is given, and says what it was not given.
"""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.layout.check_disks import disk_faults, slice_faults
from sonde.design.layout.check_plan import plan_faults
from sonde.design.layout.faults import Fault, Verdict
from sonde.design.layout.geometry import GIB, MIB
from sonde.design.layout.laid import Laid
from sonde.design.layout.live.seen import Extents, Seen, SeenDisk, SeenFileSystem
from sonde.design.layout.xfs import LEGACY_LARGEST_LOG, LEGACY_LOG_RATE, SMALLEST_LOG
from sonde.model.units import counted, format_bytes

# Fewer groups than this let creates wait for each other; with more than this many allocation costs processor time.
_FEW_GROUPS, _MANY_GROUPS = 4, 1024
_SMALL_GROUP = 256 * MIB
# Pieces of a file that are shorter than this many stripe widths on average make it slow to read.
_PIECE_WIDTHS = 4
_STRIPED = ("xfs", "ext4")
_USED_SHARE = 80


def check(seen: Seen, plan: Laid | None = None) -> Verdict:
    """Judges everything that was seen; `plan` is the planned file system that it should be."""
    faults: list[Fault] = []
    unknown = list(seen.unknown) + [f"a line that was not understood: {line}" for line in seen.unread]
    for one in seen.file_systems:
        faults += _file_system(seen, one, plan)
        unknown += _not_known(seen, one, plan)
    for disk in seen.disks.values():
        faults += disk_faults(seen, disk)
    for table in seen.slices:
        faults += slice_faults(seen, table)
    for file in seen.files:
        faults += _extents(seen, file)
    if plan is not None:
        faults += plan_faults(seen, plan)
    return Verdict(tuple(dict.fromkeys(faults)), tuple(dict.fromkeys(unknown)))


def top_disk(seen: Seen, one: SeenFileSystem) -> SeenDisk | None:
    """The disk that a file system lies on, by its name or by that of device mapper."""
    name = one.device.rsplit("/", 1)[-1]
    if name in seen.disks:
        return seen.disks[name]
    return next((disk for disk in seen.disks.values() if name and disk.settings.get("name") == name), None)


def stripe_beneath(seen: Seen, one: SeenFileSystem, plan: Laid | None) -> tuple[int | None, int | None]:
    """Unit and full width beneath a file system in bytes: of md, dm, what disks offer, or the plan; None is unknown."""
    disk = top_disk(seen, one)
    for inner in seen.beneath(disk.name) if disk is not None else ():
        if inner.stripe:
            return inner.unit, inner.stripe
        best = int(inner.queue.get("optimal_io_size", 0) or 0)
        least = int(inner.queue.get("minimum_io_size", 0) or 0)
        if best > least >= 4096 and best % least == 0 and inner.kind != "part":
            return least, best
    if plan is not None and plan.unit:
        return plan.unit, plan.width
    return None, None


def _not_known(seen: Seen, one: SeenFileSystem, plan: Laid | None) -> Iterator[str]:
    if one.kind in _STRIPED and one.unit is None:
        yield f"the stripe unit of {one.where}"
    if one.kind in _STRIPED and stripe_beneath(seen, one, plan) == (None, None):
        yield f"the RAID stripe beneath {one.where}: no disk offers it; give the system file with --plan"


def _file_system(seen: Seen, one: SeenFileSystem, plan: Laid | None) -> Iterator[Fault]:
    if one.kind in _STRIPED:
        yield from _stripes(seen, one, plan)
        yield from _log(seen, one)
    if one.kind == "xfs":
        yield from _groups(one)
        yield from _blocks(seen, one, plan)
    if one.kind == "lustre":
        yield from _lustre(one)
    if one.kind == "zfs":
        yield from _zfs(one)
    yield from _options(one)


def _stripes(seen: Seen, one: SeenFileSystem, plan: Laid | None) -> Iterator[Fault]:
    unit, stripe = stripe_beneath(seen, one, plan)
    if one.unit == 0 and stripe:
        yield Fault(
            "no stripe unit", one.where, f"sunit is 0, but beneath is a stripe of {format_bytes(stripe)}",
            "allocations begin anywhere in a stripe: RAID 5 and 6 read before they write (271 against 136 MB/s "
            "measured)",
            f"make it again with su={format_bytes(unit or stripe)}, or mount XFS with sunit= and swidth=",
        )  # fmt: skip
    if one.unit == 0 and stripe is None and one.width == 0 and not seen.disks and plan is None:
        yield Fault(
            "no stripe unit", one.where, "sunit and swidth are 0, as mkfs makes them without options",
            "on RAID 5 or 6 allocations begin anywhere in a stripe; on a single drive nothing",
            "if it lies on RAID, make it again with sunit and swidth of the full stripe",
        )  # fmt: skip
    if not one.unit:
        return
    if one.width and one.width % one.unit:
        yield Fault(
            "width is no multiple of unit", one.where,
            f"swidth {format_bytes(one.width)} is no whole number of sunit {format_bytes(one.unit)}",
            "preferred I/O sizes end within a stripe unit", "give swidth as sunit times the data drives or members",
        )  # fmt: skip
    if unit and stripe and one.unit % unit and unit % one.unit:
        yield Fault(
            "unit does not fit the stripe", one.where,
            f"sunit is {format_bytes(one.unit)}; one drive holds {format_bytes(unit)} before the next",
            "allocations drift through the stripe, and most writes touch part of one",
            f"use su={format_bytes(unit)} or the full stripe, {format_bytes(stripe)}",
        )  # fmt: skip
    elif stripe and one.width and one.width % stripe and stripe % one.width:
        yield Fault(
            "width does not fit the stripe", one.where,
            f"swidth is {format_bytes(one.width)}; all data drives together hold {format_bytes(stripe)}",
            "requests of the preferred size leave drives out", f"make swidth {format_bytes(stripe)}",
        )  # fmt: skip


def _log(seen: Seen, one: SeenFileSystem) -> Iterator[Fault]:
    disk = top_disk(seen, one)
    small = one.size is not None and one.size < 8 * GIB
    if one.log is not None and one.log < SMALLEST_LOG and not small:
        yield Fault(
            "log too small", one.where, f"the log has {format_bytes(one.log)}",
            f"writing that allocates stops growing at about {LEGACY_LOG_RATE / 1e6:.0f} to 350 MB/s, and creates wait",
            f"make it with -l size={LEGACY_LARGEST_LOG // 4096}b (128 MiB) or more, or give it an external log",
        )  # fmt: skip
    if one.log_device and one.log_device.startswith("/dev/") and disk is not None:
        own = {inner.name for inner in seen.beneath(disk.name)}
        if one.log_device.rsplit("/", 1)[-1] in own:
            yield Fault(
                "log on the same disks", one.where, f"its external log {one.log_device} lies on a disk of the data",
                "every commit moves the heads away from the data", "put the log on a mirror of its own",
            )  # fmt: skip


def _groups(one: SeenFileSystem) -> Iterator[Fault]:
    if one.group_count is None or one.group_blocks is None or not one.block:
        return
    size = one.group_blocks * one.block
    large = one.size is not None and one.size >= 64 * GIB
    if one.group_count < _FEW_GROUPS and large:
        yield Fault(
            "too few allocation groups", one.where, f"it has {counted(one.group_count, 'allocation group')}",
            "creates and allocations at the same time wait for each other",
            "make it with -d agcount=16 or more; it also grows with xfs_growfs",
        )  # fmt: skip
    legacy = one.device.startswith(("/dev/dsk/", "/hw/")) or one.where.startswith("/dev/dsk/") or size <= 4 * GIB
    if one.group_count > _MANY_GROUPS and one.size is not None and one.size // one.group_count < 16 * GIB:
        grown = "" if not legacy else ", the size that mkfs of 2004 chose"
        yield Fault(
            "too many allocation groups", one.where,
            f"it has {one.group_count:,} allocation groups of {format_bytes(size)}{grown}",
            "large files are cut at the ends of groups, and allocation takes processor time when it is nearly full",
            "make it with fewer groups (-d agsize=), up to 1 TiB each",
        )  # fmt: skip
    elif size < _SMALL_GROUP and large:
        yield Fault(
            "too many allocation groups", one.where,
            f"groups have {format_bytes(size)} only (a file system that was grown?)",
            "large files are cut at the ends of groups", "make it again at its final size",
        )  # fmt: skip
    if one.unit and size % one.unit:
        yield Fault(
            "groups are not aligned", one.where,
            f"a group has {one.group_blocks} blocks, no whole number of stripe units of {one.unit // one.block}",
            "every group begins at another place in a stripe", "make it with agsize a multiple of sunit",
        )  # fmt: skip
    if one.width and one.unit and one.width > one.unit and size % one.width == 0 and one.group_count > 1:
        yield Fault(
            "groups begin on one drive", one.where,
            f"a group has {one.group_blocks} blocks, a multiple of swidth: all of them begin on the same drive",
            "headers of all groups, which every allocation writes, lie on one drive",
            "make it with agsize one sunit smaller",
        )  # fmt: skip


def _blocks(seen: Seen, one: SeenFileSystem, plan: Laid | None) -> Iterator[Fault]:
    unit, _ = stripe_beneath(seen, one, plan)
    if one.block and unit and one.block >= unit > 4096:
        yield Fault(
            "blocks as large as segments", one.where,
            f"a block has {format_bytes(one.block)}, a drive holds {format_bytes(unit)} before the next",
            "the smallest file and every piece of metadata take a whole segment", "make it with -b size=4096",
        )  # fmt: skip


_COSTLY = {
    "sync": ("every write waits for the disk", "mount it without sync"),
    "noalign": ("allocations ignore the stripe", "mount it without noalign"),
    "nobarrier": ("a power failure may lose what was said to be written; new kernels refuse it", "mount it without it"),
    "data=journal": ("everything is written twice", "mount it with data=ordered"),
    "nodelalloc": ("every small write allocates by itself", "mount it without nodelalloc"),
    "discard": ("every delete sends a command that drives answer slowly", "use fstrim.timer instead"),
    "strictatime": ("every read writes", "mount it with noatime or relatime"),
}


def _options(one: SeenFileSystem) -> Iterator[Fault]:
    for word in one.options:
        if word in _COSTLY:
            cost, remedy = _COSTLY[word]
            yield Fault("mount option", one.where, f"it is mounted with {word}", cost, remedy)


def _lustre(one: SeenFileSystem) -> Iterator[Fault]:
    count, size = one.facts.get("stripe_count", ""), one.facts.get("stripe_size", "")
    if size.isdigit() and int(size) and int(size) % MIB:
        yield Fault(
            "stripe does not fit RPCs", one.where, f"its stripe size, {size} bytes, is no multiple of 1 MiB",
            "requests of 1 MiB touch two targets, and their locks are fought for", "lfs setstripe -S 1M, 4M or 16M",
        )  # fmt: skip
    targets = one.facts.get("targets", "").split()
    if len(set(targets)) < len(targets):
        yield Fault(
            "objects on one target", one.where, f"{len(targets)} objects lie on {len(set(targets))} targets",
            "a target gets several shares of the traffic", "lfs migrate the file with a stripe count of the targets",
        )  # fmt: skip
    if count.isdigit() and targets and int(count) != len(targets):
        yield Fault(
            "objects are missing", one.where, f"its stripe count is {count}, but it has {len(targets)} objects",
            "part of the file cannot be read", "run lfs check and lctl get_param osc.*.active",
        )  # fmt: skip


def _zfs(one: SeenFileSystem) -> Iterator[Fault]:
    facts = one.facts
    widths = dict(word.split("=") for word in facts.get("vdevs", "").split())
    if len({(name.partition("-")[0], width) for name, width in widths.items()}) > 1:
        yield Fault(
            "unequal members of a stripe", one.where, f"its vdevs differ: {facts['vdevs']}",
            "the pool is as fast as its slowest vdev", "make every vdev of equal drives",
        )  # fmt: skip
    if facts.get("state") not in ("ONLINE", "", None) or facts.get("sick"):
        yield Fault(
            "degraded", one.where, f"the pool is {facts.get('state')} {facts.get('sick', '')}".strip(),
            "reads compute what is missing, and one more drive may lose it", "zpool replace the drive that failed",
        )  # fmt: skip
    if facts.get("ashift", "12").isdigit() and int(facts.get("ashift", "12")) not in (0, 12, 13, 14):
        yield Fault(
            "sectors too small", one.where,
            f"ashift is {facts['ashift']}, sectors of {1 << int(facts['ashift'])} bytes",
            "drives with sectors of 4 KiB read before they write", "make the pool again with ashift=12",
        )  # fmt: skip
    full = facts.get("capacity", "").rstrip("%")
    if full.isdigit() and int(full) > _USED_SHARE:
        yield Fault(
            "too full", one.where, f"{full} % of the pool are used",
            "free space is in small pieces: writing slows down",
            f"keep it under {_USED_SHARE} %",
        )  # fmt: skip


def _extents(seen: Seen, file: Extents) -> Iterator[Fault]:
    """A file in many pieces; pieces that follow each other on the device count as one."""
    whole: list[list[int]] = []
    for _, place, length in sorted(file.pieces):
        if whole and whole[-1][0] + whole[-1][1] == place:
            whole[-1][1] += length
        else:
            whole.append([place, length])
    total = sum(length for _, length in whole)
    width = next((one.width for one in seen.file_systems if one.width), None) or MIB
    if len(whole) > 1 and total / len(whole) < _PIECE_WIDTHS * width:
        yield Fault(
            "fragmented", file.path,
            f"{format_bytes(total)} lie in {len(whole):,} pieces of {format_bytes(total / len(whole))}",
            f"pieces shorter than {_PIECE_WIDTHS} stripe widths ({format_bytes(width)} each) break streaming",
            "preallocate it (fallocate), write it in larger pieces, or run xfs_fsr on it",
        )  # fmt: skip
