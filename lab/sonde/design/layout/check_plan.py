# SPDX-License-Identifier: Apache-2.0
"""How a file system that was seen differs from the planned one."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.layout.faults import Fault
from sonde.design.layout.laid import Laid
from sonde.design.layout.live.seen import Seen, SeenDisk, SeenFileSystem
from sonde.model.units import format_bytes

_MAKE = "make it with the script of sonde layout plan"
# A device may be this much larger than planned: metadata of md and LVM are planned generously.
_SIZE_SHARE = 0.02


def plan_faults(seen: Seen, plan: Laid) -> Iterator[Fault]:
    """Every number that is another one than planned; one that was not seen is no fault."""
    for one in seen.file_systems:
        if one.kind != plan.table.kind:
            yield Fault("not as planned", one.where, f"it is {one.kind}; planned is {plan.table.kind}",
                        "other rules hold for it", _MAKE)  # fmt: skip
            continue
        yield from _numbers(one, plan)
        yield from _log(one, plan)
    yield from _members(seen, plan)


def _numbers(one: SeenFileSystem, plan: Laid) -> Iterator[Fault]:
    groups = plan.groups if one.kind == "xfs" else None
    rows: list[tuple[str, int | None, int | None, bool, str]] = [
        ("sunit", one.unit, plan.unit, True, "allocations begin at other places of a stripe"),
        ("swidth", one.width, plan.width, True, "programs ask for other sizes than a full width"),
        ("agcount", one.group_count, groups.count if groups else None, False, "other parallelism of allocations"),
        ("agsize in blocks", one.group_blocks, groups.size if groups else None, False, "groups may begin on one drive"),
        ("block", one.block, plan.block, True, "metadata take another amount of space"),
    ]  # fmt: skip
    for name, found, wanted, size, cost in rows:
        if found is not None and wanted is not None and found != wanted:
            words = (format_bytes(found), format_bytes(wanted)) if size else (f"{found:,}", f"{wanted:,}")
            yield Fault("not as planned", one.where, f"{name} is {words[0]}; planned is {words[1]}", cost, _MAKE)
    if (
        one.size is not None
        and plan.capacity is not None
        and abs(one.size - plan.capacity) > _SIZE_SHARE * plan.capacity
    ):
        yield Fault(
            "not as planned", one.where, f"it has {format_bytes(one.size)}; planned are {format_bytes(plan.capacity)}",
            "it lies on something else, or part of the device is not used", _MAKE,
        )  # fmt: skip


def _log(one: SeenFileSystem, plan: Laid) -> Iterator[Fault]:
    if one.log is not None and plan.log_size is not None and one.log != plan.log_size:
        yield Fault(
            "not as planned", one.where,
            f"its log has {format_bytes(one.log)}; planned are {format_bytes(plan.log_size)}",
            "a smaller log limits writing, a larger one takes space", _MAKE,
        )  # fmt: skip
    external = one.log_device not in (None, "internal")
    if one.log_device is not None and external != (plan.log is not None):
        where = "outside" if external else "inside"
        yield Fault(
            "not as planned", one.where,
            f"its log is {where}; planned is {'outside' if plan.log is not None else 'inside'}",
            "commits and data share drives, or need another disk", _MAKE,
        )  # fmt: skip


def _members(seen: Seen, plan: Laid) -> Iterator[Fault]:
    """The volume has as many members as planned, arrays their geometry, and slices begin where a stripe does."""
    store = plan.store if plan.stores else None
    if store is None:
        return
    wanted = len(store.members) if store.kind == "volumes" else 0
    planned = {str(group.geometry) for group in store.groups() if group.geometry is not None}
    for disk in _data_disks(seen):
        if disk.level == "raid0" and len(disk.members) > 1 and wanted and len(disk.members) != wanted:
            yield Fault(
                "not as planned", disk.name, f"it has {len(disk.members)} members; planned are {wanted}",
                "other capacity and bandwidth", _MAKE,
            )  # fmt: skip
        if disk.kind == "md" and disk.geometry and disk.level != "raid0" and planned and disk.geometry not in planned:
            yield Fault(
                "not as planned", disk.name, f"it is {disk.geometry}; planned is {', '.join(sorted(planned))}",
                "another stripe, and other drives may fail", _MAKE,
            )  # fmt: skip
        if disk.kind == "part" and disk.start is not None and plan.alignment and disk.start % plan.alignment:
            yield Fault(
                "slice is not aligned", disk.name,
                f"it begins at {disk.start} B, no multiple of the planned {format_bytes(plan.alignment)}",
                "a request of one full stripe touches two", "cut it with the script of sonde layout plan",
            )  # fmt: skip


def _data_disks(seen: Seen) -> list[SeenDisk]:
    """Disks beneath the file systems, without what holds their logs; all disks where no file system was seen."""
    tops = [one.device.rsplit("/", 1)[-1] for one in seen.file_systems]
    named = {disk.settings.get("name", disk.name): disk.name for disk in seen.disks.values()}
    found = {disk.name: disk for top in tops for disk in seen.beneath(named.get(top, top))}
    return list(found.values()) if found or tops else list(seen.disks.values())
