# SPDX-License-Identifier: Apache-2.0
"""Compares the stripe unit and width of a file system with the stripe of the devices below it."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage
from sonde.model.units import format_bytes

_TUNE_BY_KIND = dict.fromkeys(("ext4", "ldiskfs"), " (tune2fs -E stride=, stripe_width= in blocks)")


def find_top_disk(observed_storage: ObservedStorage, file_system: ObservedFileSystem) -> ObservedDisk | None:
    """The disk of a file system, by its name or by its device-mapper name."""
    name = file_system.device.rsplit("/", 1)[-1]
    if name in observed_storage.disks:
        return observed_storage.disks[name]
    return next((disk for disk in observed_storage.disks.values() if name and disk.settings.get("name") == name), None)


def find_unit_and_stripe_below(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem, planned_layout: FileSystemLayout | None
) -> tuple[int | None, int | None]:
    """Unit and full stripe below a file system in bytes: of md, dm, what disks report, or the plan; None is unknown."""
    disk = find_top_disk(observed_storage, file_system)
    for inner in observed_storage.iterate_disks_below(disk.name) if disk is not None else ():
        if inner.full_stripe_bytes:
            return inner.unit, inner.full_stripe_bytes
        best = int(inner.queue.get("optimal_io_size", 0) or 0)
        least = int(inner.queue.get("minimum_io_size", 0) or 0)
        if best > least >= 4096 and best % least == 0 and inner.kind != "part":
            return least, best
    if planned_layout is not None and planned_layout.unit:
        return planned_layout.unit, planned_layout.width
    return None, None


def _has_parity_below(observed_storage: ObservedStorage, file_system: ObservedFileSystem) -> bool:
    """Whether a stripe below has parity; of a stripe whose level is not known it is assumed."""
    disk = find_top_disk(observed_storage, file_system)
    levels = [inner.level for inner in observed_storage.iterate_disks_below(disk.name) if inner.level] if disk else []
    return not levels or any(level in ("raid4", "raid5", "raid6") for level in levels)


def lies_on_mirrors(observed_storage: ObservedStorage, file_system: ObservedFileSystem) -> bool:
    """Whether all arrays below are mirrors, which have no stripe."""
    disk = find_top_disk(observed_storage, file_system)
    levels = [inner.level for inner in observed_storage.iterate_disks_below(disk.name) if inner.level] if disk else []
    return bool(levels) and set(levels) <= {"raid1", "linear"}


def find_stripe_faults(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem, planned_layout: FileSystemLayout | None
) -> Iterator[LayoutFault | CheckedItem]:
    """Faults of the stripe unit and width of one file system, compared with what is below it."""
    unit, stripe = find_unit_and_stripe_below(observed_storage, file_system, planned_layout)
    if file_system.unit is not None:
        yield CheckedItem("stripe unit and width", file_system.location)
    if file_system.unit == 0 and stripe:
        yield LayoutFault(
            "no stripe unit", file_system.location,
            f"sunit is 0, but there is a RAID stripe below of {format_bytes(stripe)}",
            "allocations begin anywhere in a stripe: "
            + ("RAID 5 and 6 read before they write (271 against 136 MB/s measured)"
               if _has_parity_below(observed_storage, file_system)
               else "a request of one unit may use two drives, and files do not begin in turn"),
            "mount XFS with sunit= and swidth=, or save the data and make it again with"
            f" su={format_bytes(unit or stripe)}", ("sunit", "swidth", "unit", "width"),
        )  # fmt: skip
    if (
        file_system.unit == 0
        and stripe is None
        and file_system.width == 0
        and not observed_storage.disks
        and planned_layout is None
    ):
        yield LayoutFault(
            "no stripe unit", file_system.location, "sunit and swidth are 0, as mkfs makes them without options",
            "on RAID 5 or 6 allocations begin anywhere in a stripe; on a single drive nothing",
            "if it is on RAID, mount it with sunit= and swidth= of the full stripe, or save the data and make it again",
        )  # fmt: skip
    if not file_system.unit:
        return
    if file_system.width and file_system.width % file_system.unit:
        yield LayoutFault(
            "width is no multiple of unit", file_system.location,
            f"swidth {format_bytes(file_system.width)} is no whole number of sunit {format_bytes(file_system.unit)}",
            "preferred I/O sizes end within a stripe unit", "give swidth as sunit times the data drives or members",
        )  # fmt: skip
    yield from _compare_with_stripe(observed_storage, file_system, unit, stripe)


def _compare_with_stripe(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem, unit: int | None, stripe: int | None
) -> Iterator[LayoutFault]:
    """Units and widths that do not fit the stripe below. A unit of several chunks, or a width of
    several stripes, was meant for another array, where one array with parity is all that is below."""
    if not file_system.unit or not stripe:
        return
    is_one_array = _has_parity_below(observed_storage, file_system) and _is_one_array(observed_storage, file_system)
    is_multiple = bool(unit) and file_system.unit % (unit or 1) == 0
    has_other_unit = unit is not None and unit < file_system.unit and file_system.unit % stripe != 0 and is_one_array
    if unit and (has_other_unit or (file_system.unit % unit and unit % file_system.unit)):
        yield LayoutFault(
            "unit does not fit the stripe", file_system.location,
            f"sunit is {format_bytes(file_system.unit)}; one drive holds {format_bytes(unit)} before the next",
            f"allocations begin only at one of {file_system.unit // unit} chunks" if is_multiple
            else "allocations drift through the stripe, and most writes touch part of one",
            f"use su={format_bytes(unit)} or the full stripe, {format_bytes(stripe)}"
            + _TUNE_BY_KIND.get(file_system.kind, ""),
            ("sunit", "unit"),
        )  # fmt: skip
    elif file_system.width and (
        (
            file_system.width % stripe
            and (stripe % file_system.width or _has_parity_below(observed_storage, file_system))
        )
        or (file_system.width > stripe and file_system.unit == unit and is_one_array)
    ):
        yield LayoutFault(
            "width does not fit the stripe", file_system.location,
            f"swidth is {format_bytes(file_system.width)}; all data drives together hold {format_bytes(stripe)}",
            "requests of the preferred size cover several stripes" if file_system.width % stripe == 0
            else "requests of the preferred size leave drives out",
            f"make swidth {format_bytes(stripe)}{_TUNE_BY_KIND.get(file_system.kind, '')}",
            ("swidth", "width"),
        )  # fmt: skip


def _is_one_array(observed_storage: ObservedStorage, file_system: ObservedFileSystem) -> bool:
    """Whether an array of md is below a file system, with nothing but partitions and volumes on it alone between."""
    disk = find_top_disk(observed_storage, file_system)
    for inner in observed_storage.iterate_disks_below(disk.name) if disk is not None else ():
        if inner.kind == "md" and inner.full_stripe_bytes:
            return True
        if len(inner.members) > 1 or inner.kind not in ("part", "lvm", "md"):
            return False
    return False
