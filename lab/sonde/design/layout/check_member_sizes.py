# SPDX-License-Identifier: Apache-2.0
"""Checks how much of the members of an array or striped volume is lost because their sizes differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.model.units import format_bytes

# Members whose sizes differ by less than this fraction are alike: a partition begins elsewhere, or another model of
# drive has some sectors more.
_EQUAL_SHARE = 0.01
# Of each member md uses the size of the smallest one.
_EQUALLY_USED_LEVELS = ("raid4", "raid5", "raid6", "raid10")


def is_striped(disk: ObservedDisk) -> bool:
    """Whether data is striped over the members of a disk."""
    return disk.level in ("raid0", "stripe") or bool(disk.unit)


def find_size_faults(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """Members of which much less is usable than of others, and larger ones of a stripe. A few larger drives of an array
    are none: they were all that was there when a drive was replaced, and the array uses all members equally."""
    if disk.member_sizes or any(member in observed_storage.disks for member in disk.members):
        yield CheckedItem("members", disk.name)
    sizes = _list_usable_sizes(observed_storage, disk)
    if not is_striped(disk) or not sizes or max(sizes) - min(sizes) <= _EQUAL_SHARE * max(sizes):
        return
    common, count = Counter(sizes).most_common(1)[0]
    has_majority = len(sizes) == len(disk.members) and 2 * count > len(sizes)
    if (
        has_majority
        and common - min(sizes) <= _EQUAL_SHARE * common
        and disk.kind == "md"
        and disk.level in _EQUALLY_USED_LEVELS
    ):
        return
    odd = {name: size for name, size in zip(disk.members, sizes, strict=True)
           if abs(size - common) > _EQUAL_SHARE * common} if has_majority else {}  # fmt: skip
    text = f"members have {format_bytes(min(sizes))} to {format_bytes(max(sizes))}"
    if odd:
        texts = ", ".join(f"{name} has {format_bytes(size)}" for name, size in odd.items())
        text = f"{texts}; {count} of {len(sizes)} members have {format_bytes(common)}"
    lost = sum(sizes) - len(sizes) * min(sizes)
    yield LayoutFault(
        "unequal members of a stripe", disk.name, text,
        f"{format_bytes(lost)} cannot be striped over all, or are lost", "give every member the same size",
        ("size",), tuple(odd),
    )  # fmt: skip


def _list_usable_sizes(observed_storage: ObservedStorage, disk: ObservedDisk) -> list[int]:
    """The sizes of members; of physical volumes what LVM uses of them (pvs), which is whole extents."""
    members = [observed_storage.disks[member] for member in disk.members if member in observed_storage.disks]
    used = [int(text) for member in members if (text := member.settings.get("volume_bytes", "")).isdigit()]
    return used if used and len(used) == len(disk.members) else list(disk.member_sizes)
