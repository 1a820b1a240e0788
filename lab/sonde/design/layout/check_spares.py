# SPDX-License-Identifier: Apache-2.0
"""Checks spares: that each array of md with redundancy has one, its own or that of its spare-group, and their size."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_planned_pools import find_vdev_disk
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.model.units import format_bytes

_LEVELS = ("raid4", "raid5", "raid6", "raid10")


def find_spare_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Arrays without a spare. Arrays may share spares in a spare group, which only mdadm.conf shows. Without its
    output, an array is no fault if another array of its level has spares."""
    for array in _list_arrays(observed_storage):
        if _may_share_spares(observed_storage, array):
            continue
        yield CheckedItem("spares", array.name)
        # the spare of an array that is degraded is being used, or is what is missing
        if not _count_spares(array) and not _is_degraded(array) and not _shares_spares(observed_storage, array):
            yield _report_absent_spare(observed_storage, array)


def _is_degraded(array: ObservedDisk) -> bool:
    return array.settings.get("degraded", "0") != "0" or "degraded" in array.state.lower()


def _report_absent_spare(observed_storage: ObservedStorage, array: ObservedDisk) -> LayoutFault:
    """An array without a spare: by the line of mdadm.conf of another array that lacks its spare-group, or because
    another array of the group has used the common spare, or because nobody gave it one."""
    group = array.settings.get("spare_group", "none")
    others = [each for each in _list_arrays(observed_storage) if each.name != array.name and each.level == array.level]
    unshared = [each for each in others if _count_spares(each) and each.settings.get("spare_group", "none") == "none"]
    has_group = group != "none" and "spare_group" in array.settings
    if has_group and unshared and all("spare_group" in each.settings for each in unshared):
        owner = unshared[0]
        return LayoutFault(
            "spare not shared", owner.name,
            f"the line of {owner.name} in mdadm.conf has no spare-group; that of {array.name}, which has no spare, has"
            f" spare-group={group}",
            f"mdadm --monitor does not move the spare of {owner.name}: after the loss of a drive {array.name} stays"
            " degraded until somebody replaces it",
            f"write spare-group={group} into the line of {owner.name}, and restart mdmonitor", ("spares",),
            (owner.name, array.name),
        )  # fmt: skip
    users = [each.name for each in others if has_group and each.settings.get("spare_group") == group
             and (_is_degraded(each) or each.settings.get("failed", "0") not in ("", "0"))]  # fmt: skip
    return LayoutFault(
        "no spare", array.name, f"{array.level} {array.name} has no hot spare",
        "after the loss of a drive it stays degraded until somebody replaces it",
        "mdadm --manage --add a drive, or share one by a spare-group in mdadm.conf", ("spares",),
        (array.name, *users) if users else (),
    )  # fmt: skip


def find_pool_spare_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Spares of ZFS pools that are smaller than the drives of their vdevs."""
    for pool in observed_storage.file_systems:
        sizes = {
            vdev.name: find_vdev_disk(observed_storage, vdev.name).size for vdev in pool.vdevs if vdev.kind == "drive"
        }
        least = min((size for vdev in pool.vdevs if not vdev.use and (size := sizes.get(vdev.name))), default=0)
        for vdev in pool.vdevs if least else ():
            size = sizes.get(vdev.name)
            if vdev.use != "spares" or size is None:
                continue
            yield CheckedItem("the size of a spare", vdev.name)
            if size < least:
                yield LayoutFault(
                    "spare too small", pool.location,
                    f"spare {vdev.name} has {format_bytes(size)}, the drives of vdevs have {format_bytes(least)}",
                    "it cannot replace a drive that fails", "add a spare at least as large as the drives",
                )  # fmt: skip


def list_unknown_spare_groups(observed_storage: ObservedStorage) -> list[str]:
    """Lists facts that are unknown about arrays that may share spares."""
    names = [array.name for array in _list_arrays(observed_storage) if _may_share_spares(observed_storage, array)]
    if not names:
        return []
    return [f"whether {', '.join(names)} {'shares' if len(names) == 1 else 'share'} spares: no output shows mdadm.conf"]


def _list_arrays(observed_storage: ObservedStorage) -> list[ObservedDisk]:
    return [
        disk for disk in observed_storage.disks.values()
        if disk.kind == "md" and disk.level in _LEVELS and disk.settings.get("spares", "").isdigit()
    ]  # fmt: skip


def _count_spares(array: ObservedDisk) -> int:
    return int(array.settings["spares"])


def _shares_spares(observed_storage: ObservedStorage, array: ObservedDisk) -> bool:
    group = array.settings.get("spare_group", "none")
    return group != "none" and any(
        _count_spares(each) for each in _list_arrays(observed_storage) if each.settings.get("spare_group") == group
    )


def _may_share_spares(observed_storage: ObservedStorage, array: ObservedDisk) -> bool:
    return (
        not _count_spares(array)
        and "spare_group" not in array.settings
        and any(_count_spares(each) and each.level == array.level for each in _list_arrays(observed_storage))
    )
