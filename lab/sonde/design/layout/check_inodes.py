# SPDX-License-Identifier: Apache-2.0
"""Checks whether inodes suffice for the space of a file system or target: those of ext4 and ldiskfs are made once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import KIB
from sonde.design.layout.live.observations import ObservedFileSystem
from sonde.model.units import format_bytes

_FULL_PERCENT = 90
# With fewer used inodes the mean size of a file says little.
_FEWEST_FILES = 10_000
_FEWEST_PEERS = 3
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
        if each.kind == "ext4" and percent > _FULL_PERCENT:
            yield LayoutFault(
                "too full", each.location, f"{percent} % of its inodes are used",
                "creates fail although there is space", "remove files, or make it with more inodes (mke2fs -i)",
            )  # fmt: skip
        if each.kind == "lustre" and "-OST" in each.location:
            yield from _check_object_size(each, int(total), int(used))
    yield from _compare_targets(file_systems)


def _check_object_size(
    target: ObservedFileSystem, inodes: int, inodes_used: int
) -> Iterator[LayoutFault | CheckedItem]:
    """Whether a target runs out of inodes before its space is used, at the mean size of its objects. ZFS makes inodes
    as it needs them, and reports as many as fit."""
    sizes = [target.facts.get(name, "") for name in ("kib", "kib_used")]
    if target.facts.get("backend") == "zfs" or not all(size.isdigit() for size in sizes):
        return
    total_kib, used_kib = (int(size) for size in sizes)
    if inodes_used < _FEWEST_FILES or not used_kib:
        return
    mean = used_kib * KIB // inodes_used
    yield CheckedItem("inodes for the mean size of objects", target.location)
    if 2 * mean * inodes < total_kib * KIB:
        yield LayoutFault(
            "too few inodes", target.location,
            f"it has {inodes:,} inodes, one for {format_bytes(total_kib * KIB // inodes)}; its objects have"
            f" {format_bytes(mean)} on average",
            "creates fail when less than half of its space is used",
            "make it again with fewer bytes per inode (mkfs.lustre --mkfsoptions=-i)",
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


def _find_odd_numbers(fact: str, values: dict[str, int], cost: str) -> Iterator[LayoutFault | CheckedItem]:
    if len(values) < _FEWEST_PEERS:
        return
    title = "size" if fact == "kib" else "number of inodes"
    yield CheckedItem(f"the same {title} of all targets", f"{len(values)} targets")
    common, count = Counter(values.values()).most_common(1)[0]
    odd = {name: value for name, value in values.items() if abs(value - common) > _SIZE_SHARE * common}
    # only a number that most have exactly was chosen when the targets were made
    if 2 * count <= len(values) or len(odd) * 3 > len(values):
        return
    for name, value in odd.items():
        texts = [format_bytes(number * KIB) if fact == "kib" else f"{number:,}" for number in (value, common)]
        yield LayoutFault(
            "targets differ", name,
            f"its {title} is {texts[0]}; {count} of {len(values)} targets have {texts[1]}", cost,
            "make it again like the others, if it is not meant so",
        )  # fmt: skip
