# SPDX-License-Identifier: Apache-2.0
"""Checks whether inodes suffice for the space of a file system or target: those of ext4 and ldiskfs are made once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import KIB
from sonde.design.layout.live.observations import ObservedFileSystem
from sonde.model.units import format_bytes

_MIN_FULL_PERCENT = 90
# The number of inodes of XFS falls with its free space: only that of one without any is close to the used ones.
_MOST_XFS_PERCENT = 95
# With fewer used inodes the mean size of a file says little.
_MIN_FILES = 10_000
_MIN_PEERS = 3
# Bytes for each inode that mkfs.lustre chooses by the size of an OST (Lustre manual, "Formatting options for OSTs"),
# and for an MDT.
_OBJECT_INODE_BYTES = ((8 << 40, 1 << 20), (1 << 40, 256 * KIB), (10 << 30, 68 * KIB), (0, 16 * KIB))
_METADATA_INODE_BYTES = 2560
# A metadata target that also holds the first MiB of small files has up to so many bytes for each inode.
_MOST_METADATA_BYTES = 256 * KIB
_ROLE_PATTERN = re.compile(r"-(?:OST|MDT)[0-9a-f]{4}$")
# Capacities of targets alike differ by less than this fraction.
_SIZE_SHARE = 0.02


def find_inode_faults(file_systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
    """Local file systems that run out of inodes, and targets with another number of inodes or size than their peers."""
    for each in file_systems:
        total, used = each.facts.get("inodes", ""), each.facts.get("inodes_used", "")
        if not total.isdigit() or not used.isdigit() or not int(total):
            continue
        yield CheckedItem("inodes", each.location)
        percent = 100 * int(used) // int(total)
        if each.kind in ("ext4", "ldiskfs") and percent > _MIN_FULL_PERCENT:
            yield LayoutFault(
                "too full", each.location, f"{percent} % of its inodes are used",
                "creates fail although there is space", "remove files, or make it with more inodes (mke2fs -i)",
                ("inodes",),
            )  # fmt: skip
        if each.kind == "xfs" and percent > _MOST_XFS_PERCENT:
            yield LayoutFault(
                "too full", each.location, f"{percent} % of the inodes that it may have are used",
                "creates fail, also where there is space for large files: XFS takes inodes from free space, up to"
                " imaxpct of it", "remove files, or xfs_growfs -m with a larger imaxpct (xfs_info) if space is free",
            )  # fmt: skip
        if each.kind == "lustre" and "-MDT" in each.location:
            yield from _check_metadata_target(each, int(total))
        if each.kind == "lustre" and "-OST" in each.location:
            yield from _check_object_size(each, int(total), int(used))
    yield from _compare_targets(file_systems)


def find_planned_inode_faults(
    file_systems: Sequence[ObservedFileSystem], target_names: Collection[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Planned targets with another number of inodes than mkfs.lustre makes without an option, which no plan writes."""
    backends = {each.location: each.facts.get("backend", "") for each in file_systems}
    for each in file_systems:
        inodes, total_kib = each.facts.get("inodes", ""), each.facts.get("kib", "")
        size = each.size_bytes if each.kind == "ldiskfs" else int(total_kib) * KIB if total_kib.isdigit() else None
        is_zfs = "zfs" in (each.facts.get("backend"), backends.get(each.location))
        if each.location not in target_names or not _ROLE_PATTERN.search(each.location):
            continue  # mkfs.lustre leaves the number of a management target alone to mke2fs
        if not size or not inodes.isdigit() or not int(inodes) or is_zfs:
            continue
        is_metadata = "-MDT" in each.location
        usual = _METADATA_INODE_BYTES if is_metadata else next(
            number for least, number in _OBJECT_INODE_BYTES if size >= least)  # fmt: skip
        yield CheckedItem("bytes for each inode of a target", each.location)
        ratio, factor = size // int(inodes), 4 if is_metadata else 2
        if usual <= ratio * factor and ratio <= usual * factor:
            continue
        yield LayoutFault(
            "not as planned", each.location,
            f"it has an inode for {format_bytes(ratio)}; mkfs.lustre makes one for {format_bytes(usual)}",
            "creates fail while it has space for smaller files" if ratio > usual
            else "inodes take space that objects need, and make checks longer",
            "empty the target (lfs migrate), then make it again without -i in --mkfsoptions, as the script of sonde"
            " layout plan does", ("inodes",),
        )  # fmt: skip


def _check_object_size(
    target: ObservedFileSystem, inode_count: int, inodes_used: int
) -> Iterator[LayoutFault | CheckedItem]:
    """Whether a target runs out of inodes before its space is used, at the mean size of its objects. ZFS makes inodes
    as it needs them, and reports as many as fit."""
    sizes = [target.facts.get(name, "") for name in ("kib", "kib_used")]
    if target.facts.get("backend") == "zfs" or not all(size.isdigit() for size in sizes):
        return
    total_kib, used_kib = (int(size) for size in sizes)
    if inodes_used < _MIN_FILES or not used_kib:
        return
    mean = used_kib * KIB // inodes_used
    yield CheckedItem("inodes for the mean size of objects", target.location)
    if 2 * mean * inode_count < total_kib * KIB:
        yield LayoutFault(
            "too few inodes", target.location,
            f"it has {inode_count:,} inodes, one for {format_bytes(total_kib * KIB // inode_count)}; its objects have"
            f" {format_bytes(mean)} on average",
            "creates fail when less than half of its space is used",
            "empty the target (lfs migrate), then make it again with fewer bytes per inode (--mkfsoptions=-i)",
        )  # fmt: skip


def _check_metadata_target(target: ObservedFileSystem, inode_count: int) -> Iterator[LayoutFault | CheckedItem]:
    """Whether a metadata target has inodes for its space. ZFS makes inodes as it needs them."""
    total_kib = target.facts.get("kib", "")
    if target.facts.get("backend") == "zfs" or not total_kib.isdigit():
        return
    yield CheckedItem("inodes of a metadata target", target.location)
    if int(total_kib) * KIB > _MOST_METADATA_BYTES * inode_count:
        yield LayoutFault(
            "too few inodes", target.location,
            f"it has {inode_count:,} inodes, one for {format_bytes(int(total_kib) * KIB // inode_count)};"
            " mkfs.lustre makes one"
            " for 2.5 KiB",
            "creates fail when a small part of its space is used",
            "save the metadata, then make it again with -i 2560 in --mkfsoptions",
        )  # fmt: skip


def _compare_targets(file_systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
    """The number of inodes and the size of the targets of one role. ZFS reports other numbers for each target."""
    groups: dict[str, list[ObservedFileSystem]] = {}
    for each in file_systems:
        role = re.sub(r"(OST|MDT)[0-9a-f]{4}$", r"\1*", each.location)
        if each.kind in ("lustre", "ldiskfs") and role != each.location and each.facts.get("backend") != "zfs":
            groups.setdefault(f"{each.kind} {role}", []).append(each)
    for targets in groups.values():
        for fact, cost in (
            ("kib", "files are striped over all of them alike: the smallest is full first"),
            ("inodes", "the one with the fewest inodes is full first, while the others have room"),
        ):
            values = {each.location: int(each.facts[fact]) for each in targets if each.facts.get(fact, "").isdigit()}
            yield from _find_odd_numbers(fact, values, cost)


def _find_odd_numbers(
    fact_name: str, value_by_target: dict[str, int], cost: str
) -> Iterator[LayoutFault | CheckedItem]:
    if len(value_by_target) < _MIN_PEERS:
        return
    title = "size" if fact_name == "kib" else "number of inodes"
    yield CheckedItem(f"the same {title} of all targets", f"{len(value_by_target)} targets")
    common, count = Counter(value_by_target.values()).most_common(1)[0]
    odd = {name: value for name, value in value_by_target.items() if abs(value - common) > _SIZE_SHARE * common}
    # only a number that most have exactly was chosen when the targets were made
    if 2 * count <= len(value_by_target) or len(odd) * 3 > len(value_by_target):
        return
    for name, value in odd.items():
        texts = [format_bytes(number * KIB) if fact_name == "kib" else f"{number:,}" for number in (value, common)]
        yield LayoutFault(
            "targets differ", name,
            f"its {title} is {texts[0]}; {count} of {len(value_by_target)} targets have {texts[1]}", cost,
            "empty the target (lfs migrate), then make it again like the others, if it is not meant so", (fact_name,),
        )  # fmt: skip
