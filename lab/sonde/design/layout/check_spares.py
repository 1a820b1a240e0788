# SPDX-License-Identifier: Apache-2.0
"""Checks spares: that each array of md with redundancy has one, its own or that of its spare-group, and their size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_planned_arrays import list_planned_arrays, pair_arrays
from sonde.design.layout.check_planned_pools import find_vdev_disk
from sonde.design.layout.device_identity import is_planned_device
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.design.layout.written_attributes import WrittenAttribute, group_by_command
from sonde.model.units import format_bytes

_SPARES_KEY = ("mdadm", "--spare-devices")
_LEVELS = ("raid4", "raid5", "raid6", "raid10")


def find_spare_faults(
    observed_storage: ObservedStorage,
    planned_layout: FileSystemLayout | None = None,
    written: Sequence[WrittenAttribute] = (),
) -> Iterator[LayoutFault | CheckedItem]:
    """Arrays without a spare. Arrays may share spares in a spare group, which only mdadm.conf shows. Without its
    output, an array is no fault if another array of its level has spares. `written` is what the scripts of the plan
    write: it may give a RAID 10 no spare."""
    planned = pair_arrays(observed_storage, list_planned_arrays(group_by_command(written).values()))
    owners = _pair_with_spare_owners(observed_storage, planned_layout) if planned_layout is not None else {}
    for array in _list_arrays(observed_storage):
        if _may_share_spares(observed_storage, array):
            continue
        yield CheckedItem("spares", array.name)
        has_planned_spares = array.name not in planned or _SPARES_KEY in planned[array.name].options
        if array.level == "raid10" and not has_planned_spares and array.name not in owners:
            continue
        # the spare of an array that is degraded is being used, or is what is missing
        if not _count_spares(array) and not _is_degraded(array) and not _shares_spares(observed_storage, array):
            fault = _report_absent_spare(observed_storage, array)
            yield _report_unshared_spare(fault, owners[array.name]) if array.name in owners else fault


def _pair_with_spare_owners(observed_storage: ObservedStorage, planned_layout: FileSystemLayout) -> dict[str, str]:
    """For each array without a spare that shares one in the plan: the array that has it."""
    groups = {device.id: device for base in planned_layout.all_devices for device in base.iterate_top_down()
              if device.kind == "raid_groups"}  # fmt: skip
    spares = {disk.name: set(getattr(group.table, "spares", ())) for group in groups.values()
              for disk in _list_arrays(observed_storage)
              if is_planned_device(observed_storage, group.device_label, disk)}  # fmt: skip
    owners = {name for name in spares if _count_spares(observed_storage.disks[name])}
    return {name: owner for name in spares.keys() - owners for owner in sorted(owners) if spares[name] & spares[owner]}


def _report_unshared_spare(fault: LayoutFault, owner: str) -> LayoutFault:
    if fault.kind != "no spare":
        return fault  # a spare-group is there
    return replace(
        fault, problem=f"{fault.problem}; planned is that it shares that of {owner}, but the lines of mdadm.conf have"
        " no common spare-group", planned=f"that it shares that of {owner}",
        remedy=f"write one spare-group (spare-group=NAME) into the lines of {owner} and {fault.location} in mdadm.conf,"
        " and restart mdmonitor",
    )  # fmt: skip


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
    # the common spare is in use, or is what another array of the group lacks
    users = [each.name for each in others if has_group and each.settings.get("spare_group") == group]
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
