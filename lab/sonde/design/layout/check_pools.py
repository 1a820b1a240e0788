# SPDX-License-Identifier: Apache-2.0
"""Checks ZFS pools: redundancy of every vdev, errors of drives, state, sector size, free space."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_scrubs import find_scrub_faults
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedVdev
from sonde.model.units import format_count_with_noun

_USED_SHARE = 80
_FRAGMENTED_SHARE = 60
GOOD_STATES = ("ONLINE", "AVAIL", "INUSE", "")
_OFFLINE_STATE, _ABSENT_STATES = re.compile("OFFLINE"), re.compile("UNAVAIL|REMOVED")
_FAILED_STATES = re.compile("(?!OFFLINE|UNAVAIL|REMOVED).*")
# Drives that may be missing from a vdev before it loses data.
_PARITY_BY_VDEV_TYPE = {"raidz": 1, "raidz1": 1, "raidz2": 2, "raidz3": 3, "draid1": 1, "draid2": 2, "draid3": 3}
# The pool is lost with these; a log or a cache is not.
_AUXILIARY_USES = {
    "spares": ("spare", "nothing takes over when a drive fails"),
    "cache": ("cache", "reads that it would answer go to the drives"),
}
_BLOCK_SIZES_PATTERN = re.compile(r"block size: (\w+) configured, (\w+) native")
_VITAL_USES = ("", "special", "dedup")
# Sentences of zpool status about features that are not in use: no fault.
_HARMLESS_STATUS_PATTERN = re.compile(r"Some supported|The pool is formatted using|A newer|scan", re.IGNORECASE)


def find_pool_faults(pool: ObservedFileSystem, date: str = "") -> Iterator[LayoutFault | CheckedItem]:
    """All faults of one pool, which was observed on that date."""
    yield from _check_vdevs(pool)
    yield from _check_pool_state(pool)
    yield from _check_pool_errors(pool)
    yield from _check_pool_properties(pool)
    yield from _check_block_sizes(pool)
    yield from _check_moving_data(pool)
    yield from find_scrub_faults(pool, date)
    yield from _check_status(pool)


def _check_vdevs(pool: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    tops = [vdev for vdev in pool.vdevs if not vdev.parent]
    data = [vdev for vdev in tops if not vdev.use]
    shapes = {(vdev.kind, len(pool.list_vdev_members(vdev.name))) for vdev in data}
    if data:
        yield CheckedItem("vdevs", pool.location)
    redundant = any(vdev.kind != "drive" for vdev in data)
    for vdev in tops:
        if vdev.kind != "drive" or vdev.use not in _VITAL_USES:
            continue
        if vdev.use:
            yield LayoutFault(
                f"{vdev.use} vdev without a mirror", pool.location, f"the {vdev.use} vdev is {vdev.name} alone",
                "it holds metadata that nothing else holds: when it is lost, the pool is lost",
                f"zpool attach {pool.location} {vdev.name} and another drive",
            )  # fmt: skip
        elif redundant or len(data) > 1:
            others = " beside redundant ones" if redundant else ""
            yield LayoutFault(
                "vdev without redundancy", pool.location, f"{vdev.name} is a top-level vdev of one drive{others}",
                "when it is lost, the whole pool is lost",
                f"zpool attach {pool.location} {vdev.name} and another drive",
            )  # fmt: skip
    if len(shapes) > 1 and not any(kind == "drive" for kind, _ in shapes):
        yield LayoutFault(
            "unequal members of a stripe", pool.location, f"its vdevs differ: {pool.facts.get('vdevs', '')}",
            "the pool is as fast as its slowest vdev", "make every vdev of equal drives", ("vdevs",),
        )  # fmt: skip
    spares = [vdev for vdev in tops if vdev.use == "spares"]
    parity = [vdev for vdev in data if vdev.kind.startswith(("raidz", "draid"))]
    if parity and not spares:
        yield CheckedItem("spares", pool.location)
        yield LayoutFault(
            "no spare", pool.location, "the pool has no spare",
            "after the loss of a drive it stays degraded until somebody replaces it",
            f"zpool add {pool.location} spare DRIVE", ("spares",),
        )  # fmt: skip


def _check_pool_state(pool: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    state = pool.facts.get("state", "")
    if state:
        yield CheckedItem("state", pool.location)
    tops = [vdev for vdev in pool.vdevs if not vdev.parent and vdev.state not in GOOD_STATES]
    sick = [vdev for vdev in tops if vdev.use not in _AUXILIARY_USES]
    for vdev in tops:
        if vdev.use in _AUXILIARY_USES:
            noun, cost = _AUXILIARY_USES[vdev.use]
            yield LayoutFault(
                f"{noun} failed", pool.location, f"{noun} {vdev.name} is {vdev.state}", cost,
                f"zpool remove {pool.location} {vdev.name}, then add another drive",
            )  # fmt: skip
    for vdev in pool.vdevs:
        if vdev.use == "spares" and vdev.state == "INUSE":
            yield LayoutFault(
                "spare in use", pool.location,
                f"spare {vdev.name} stands for {_find_drive_replaced_by_spare(pool, vdev.name)}",
                "there is one spare less", "zpool replace the drive that failed; the spare is free again then",
            )  # fmt: skip
    drives = [vdev for vdev in pool.vdevs if vdev.kind == "drive" and vdev.use not in _AUXILIARY_USES
              and vdev.parent and vdev.state not in GOOD_STATES]  # fmt: skip
    if state not in ("ONLINE", "") or sick or drives:
        names = ", ".join(f"{vdev.name} {vdev.state}" for vdev in sick)
        cost = _describe_remaining_redundancy(pool, sick)
        if state == "SUSPENDED":
            cost = "too many drives were lost at once: every write, and most reads, wait until somebody clears it"
        names += f"; {', '.join(_describe_drive(drive) for drive in drives)}" if drives else ""
        yield LayoutFault(
            "degraded",
            pool.location,
            f"the pool is {state} {names.removeprefix('; ')}".strip(),
            cost,
            _describe_pool_repair(pool, drives),
            parts=(pool.location, *(drive.name for drive in drives)),
        )
    scan = pool.facts.get("scan", "")
    if scan not in ("", "scrub"):
        yield LayoutFault(
            "rebuilding", pool.location, f"the pool is busy: {scan}", "it takes its share of every drive's rate",
            "measure after it has ended (zpool status)",
        )  # fmt: skip


def _describe_pool_repair(pool: ObservedFileSystem, drives: Sequence[ObservedVdev]) -> str:
    """What brings each faulty drive back: one that an administrator took offline did not fail, and one that another
    drive replaces is no longer needed."""
    if pool.facts.get("state") == "SUSPENDED":
        return (
            "look at cables, enclosures and the log of the kernel; when the drives are back, zpool clear"
            f" {pool.location}, then zpool scrub it"
        )
    replaced = [drive for drive in drives if drive.group.startswith("replacing")]
    offline, absent, failed = (
        [drive.name for drive in drives if drive not in replaced and state_pattern.fullmatch(drive.state)]
        for state_pattern in (_OFFLINE_STATE, _ABSENT_STATES, _FAILED_STATES)
    )
    texts = []
    if replaced:
        names = " ".join(drive.name for drive in replaced)
        wait = "when the resilver has ended, " if pool.facts.get("scan") == "resilver" else ""
        texts.append(f"{wait}zpool detach {pool.location} {names}, which another drive replaces")
    if offline:
        texts.append(f"zpool online {pool.location} {' '.join(offline)}, which somebody took offline (zpool offline)")
    if absent:
        texts.append(f"look for {' '.join(absent)} (slot, cable, lsblk): zpool online it when it is back, else"
                     " zpool replace it")  # fmt: skip
    if failed or not drives:
        texts.append("zpool replace the drive that failed")
    return "; ".join(texts)


def _describe_drive(drive: ObservedVdev) -> str:
    """The name of a drive with its state; zpool prints the GUID of one that is missing, and what it was."""
    return f"{drive.name} {drive.state}" + (f" ({drive.note})" if drive.note.startswith("was ") else "")


def _find_drive_replaced_by_spare(pool: ObservedFileSystem, spare_name: str) -> str:
    """The drive that a spare stands for: the other one of its group."""
    groups = {(vdev.parent, vdev.group) for vdev in pool.vdevs if vdev.name == spare_name and vdev.group}
    drives = [vdev for vdev in pool.vdevs if (vdev.parent, vdev.group) in groups and vdev.name != spare_name]
    return ", ".join(f"{vdev.name} of {vdev.parent} ({vdev.state})" for vdev in drives) or "a drive that failed"


def _describe_remaining_redundancy(pool: ObservedFileSystem, faulty_vdevs: list[ObservedVdev]) -> str:
    """What the pool still bears; of its log, only the last writes of each host depend."""
    logs = [vdev for vdev in faulty_vdevs if vdev.use == "logs"]
    if logs and len(logs) == len(faulty_vdevs):
        remaining = [member for vdev in logs for member in pool.list_vdev_members(vdev.name)
                     if member.state in GOOD_STATES]  # fmt: skip
        if remaining:
            return ("the log has no second copy: if the remaining device fails before its writes reach the pool, the"
                    " last seconds of synchronous writes are lost; the data drives are not affected")  # fmt: skip
        return "synchronous writes wait for the data drives, and the pool is not imported without zpool import -m"
    margins = []
    for vdev in [vdev for vdev in faulty_vdevs if vdev not in logs]:
        children = pool.list_vdev_members(vdev.name)
        lost = sum(child.state not in GOOD_STATES for child in children)
        bears = len(children) - 1 if vdev.kind == "mirror" else _PARITY_BY_VDEV_TYPE.get(vdev.kind.split(":")[0], 0)
        if children:
            margins.append(bears - lost)
    if not margins:
        return "reads compute what is missing; how many more drives may fail is not known"
    if min(margins) <= 0:
        return "reads compute what is missing, and one more drive may lose the pool"
    return f"reads compute what is missing; {min(margins)} more of a vdev may fail"


def _check_pool_errors(pool: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    if lost := pool.facts.get("data_errors", ""):
        yield LayoutFault(
            "data lost", pool.location, f"{format_count_with_noun(int(lost), 'data error')} could not be repaired",
            "reads of them fail", "zpool status -v names them: restore them, then zpool clear and zpool scrub",
        )  # fmt: skip
    errors = pool.facts.get("scrub_errors", "0")
    if errors != "0":
        yield LayoutFault(
            "errors of a scrub", pool.location,
            f"the last scrub found {format_count_with_noun(int(errors), 'error')} that it could not repair",
            "some data is lost or wrong", "zpool status -v names the files: restore them, then scrub again",
        )  # fmt: skip
    errors = pool.facts.get("resilver_errors", "0")
    if errors != "0":
        yield LayoutFault(
            "errors of a resilver", pool.location,
            f"the last resilver met {format_count_with_noun(int(errors), 'error')} that it could not repair",
            "the new drive lacks this data, and so may the pool",
            "zpool status -v names the files: restore them, then zpool clear and zpool scrub",
        )  # fmt: skip
    repaired = pool.facts.get("scrub_repaired", "0").rstrip("B")
    if repaired != "0" and not any(vdev.checksum_errors or vdev.read_errors for vdev in pool.vdevs):
        yield LayoutFault(
            "repaired by a scrub", pool.location, f"the last scrub repaired {repaired}",
            "a drive or its path returned wrong data", "look for the drive: smartctl, log of the kernel",
        )  # fmt: skip
    for vdev in pool.vdevs:
        counts = {"READ": vdev.read_errors, "WRITE": vdev.write_errors, "CKSUM": vdev.checksum_errors}
        if any(counts.values()):
            text = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
            yield LayoutFault(
                "errors of a drive", f"{pool.location} {vdev.name}", f"{vdev.name} has counted {text} errors",
                "data was wrong or missing and was repaired from its redundancy, where there is any",
                "look at cable, port and drive (smartctl), then zpool clear and zpool scrub",
                parts=(vdev.name,),
            )  # fmt: skip


def _check_pool_properties(pool: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    fragmentation = pool.facts.get("fragmentation", "").rstrip("%")
    if fragmentation.isdigit():
        yield CheckedItem("fragmentation", pool.location)
        if int(fragmentation) > _FRAGMENTED_SHARE:
            yield LayoutFault(
                "fragmented", pool.location, f"{fragmentation} % of its free space is in small pieces (fragmentation)",
                "large writes are cut into pieces, and reading them back is slow",
                "add a vdev and move files, or send the data to a new pool",
            )  # fmt: skip
    full = pool.facts.get("capacity", "").rstrip("%")
    if full.isdigit():
        yield CheckedItem("capacity", pool.location)
        if int(full) > _USED_SHARE:
            yield LayoutFault(
                "too full", pool.location, f"{full} % of the pool are used",
                "free space is in small pieces: writing slows down", f"keep it under {_USED_SHARE} %",
            )  # fmt: skip


def _check_block_sizes(pool: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    """A pool, vdevs of it or single drives whose sectors are larger than the blocks that their vdev was made with."""
    sizes = {vdev: match for vdev in pool.vdevs if (match := _BLOCK_SIZES_PATTERN.search(vdev.note))}
    shift = pool.facts.get("ashift", "")
    if shift.isdigit():
        yield CheckedItem("ashift", pool.location)
    if shift.isdigit() and int(shift) not in (0, 12, 13, 14):
        block = f"{1 << int(shift)}B"
        small_drives = [vdev for vdev, match in sizes.items() if match[1] == block]
        native = (
            f"; sectors of {sizes[small_drives[0]][2]} at {format_count_with_noun(len(small_drives), 'drive')}"
            if small_drives else ""
        )  # fmt: skip
        yield LayoutFault(
            "sectors too small", pool.location,
            f"ashift is {shift}, sectors of {1 << int(shift)} bytes{native}",
            "drives with sectors of 4 KiB read before they write", "send the data to a new pool with ashift=12",
            ("ashift",),
        )  # fmt: skip
        sizes = {vdev: match for vdev, match in sizes.items() if vdev not in small_drives}
    vdevs_of_small_blocks = [top for top in pool.vdevs if top.kind != "drive" and not top.parent
             and all(vdev in sizes for vdev in pool.vdevs if vdev.parent == top.name and vdev.kind == "drive")
             and any(vdev.parent == top.name for vdev in sizes)]  # fmt: skip
    if vdevs_of_small_blocks:
        names = [vdev.name for vdev in vdevs_of_small_blocks]
        drives = [vdev for vdev in sizes if vdev.parent in names]
        yield LayoutFault(
            "sectors too small", pool.location,
            f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} blocks of {sizes[drives[0]][1]}, all drives"
            f" there have sectors of {sizes[drives[0]][2]}",
            "the drives read before they write: the pool writes slowly",
            "send the data to a new pool with larger blocks (ashift)", ("block size",), tuple(names),
        )  # fmt: skip
        sizes = {vdev: match for vdev, match in sizes.items() if vdev not in drives}
    for vdev, match in sizes.items():
        yield CheckedItem("the block size of a drive", vdev.name)
        yield LayoutFault(
            "sectors too small", f"{pool.location} {vdev.name}",
            f"its vdev has blocks of {match[1]}, the drive has sectors of {match[2]}",
            "the drive reads before it writes: its vdev, and so the pool, writes slowly",
            f"zpool replace it by a drive with sectors of {match[1]}, or send the data to a pool with larger blocks"
            " (ashift)", ("block size",), (vdev.name,),
        )  # fmt: skip


def _check_moving_data(pool: ObservedFileSystem) -> Iterator[LayoutFault]:
    """Drives that wait for a resilver, and a vdev whose data is moved away."""
    waiting = [vdev.name for vdev in pool.vdevs if "awaiting resilver" in vdev.note]
    if waiting:
        yield LayoutFault(
            "resilver waits", pool.location, f"{', '.join(waiting)} {'awaits' if len(waiting) == 1 else 'await'} a"
            " resilver, which has not begun", "what was written while the drive was absent is not on it: its vdev has"
            " less redundancy than its state shows",
            f"zpool resilver {pool.location}, when the one that runs has ended",
            parts=(pool.location, *waiting),
        )  # fmt: skip
    if removed := pool.facts.get("removal", ""):
        yield LayoutFault(
            "vdev is removed", pool.location, f"zpool remove moves all data away from {removed}",
            "it takes its share of every drive's rate, and afterwards the pool has a vdev less",
            f"wait for its end (zpool status), or zpool remove -s {pool.location} stops it",
        )  # fmt: skip


def _check_status(pool: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    """Faults from the status text of a pool that is online and has no counted errors; pools with errors have other
    faults."""
    status, is_online = pool.facts.get("status", ""), pool.facts.get("state", "") == "ONLINE"
    counts_errors = any(vdev.read_errors or vdev.write_errors or vdev.checksum_errors for vdev in pool.vdevs)
    if status:
        yield CheckedItem("status", pool.location)
    is_named = (
        counts_errors
        or bool(pool.facts.get("data_errors"))
        or pool.facts.get("scan", "scrub") != "scrub"
        or any(_BLOCK_SIZES_PATTERN.search(vdev.note) for vdev in pool.vdevs)
    )
    if status and is_online and not is_named and not _HARMLESS_STATUS_PATTERN.match(status):
        yield LayoutFault(
            "status of the pool", pool.location, f"zpool status says: {status}",
            "zpool says that something is not as it should be", "do what zpool status asks for (action:)",
        )  # fmt: skip
