# SPDX-License-Identifier: Apache-2.0
"""Finds swap space in use on drives that also hold data: an array, a volume or a pool that is not of the system."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_peers import find_disk_of_partition
from sonde.design.layout.check_planned_pools import find_vdev_disk
from sonde.design.layout.device_use import SYSTEM_MOUNT_POINTS, list_drives_below, list_mounted_drives
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage


def find_shared_swap(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Swap space whose drives also hold data. Swap on the drives of the system is usual."""
    swaps = [disk for disk in observed_storage.disks.values() if disk.settings.get("mountpoint") == "[SWAP]"]
    if not swaps:
        return
    system = list_mounted_drives(observed_storage, SYSTEM_MOUNT_POINTS)
    users = _list_users_by_drive(observed_storage)
    for swap in swaps:
        yield CheckedItem("the drives of swap", swap.name)
        drives = sorted(list_drives_below(observed_storage, swap.name))
        names = sorted({user for drive in drives if drive not in system for user in users.get(drive, ())} - {swap.name})
        if names:
            yield LayoutFault(
                "swap on a drive of data", swap.name,
                f"swap lies on {', '.join(drives)}, which {', '.join(names)} uses for data",
                "pages that are swapped take this drive from its array, which waits for it; when it fails, programs"
                " whose pages it holds fail too",
                f"swapoff /dev/{swap.name}, and remove its line from /etc/fstab; put swap on a mirror of the drives of"
                " the system", parts=(swap.name,),
            )  # fmt: skip


def _list_users_by_drive(observed_storage: ObservedStorage) -> dict[str, set[str]]:
    """The arrays, volumes with several drives, and pools that use each drive."""
    users: dict[str, set[str]] = {}
    for disk in observed_storage.disks.values():
        if _joins_drives(disk):
            for member in disk.members:
                for drive in list_drives_below(observed_storage, find_disk_of_partition(observed_storage, member)):
                    users.setdefault(drive, set()).add(disk.name)
    for pool in observed_storage.file_systems:
        for drive in _list_pool_drives(observed_storage, pool):
            users.setdefault(drive, set()).add(pool.location)
    return users


def _joins_drives(disk: ObservedDisk) -> bool:
    return disk.kind in ("md", "lvm") and disk.settings.get("mountpoint") != "[SWAP]"


def _list_pool_drives(observed_storage: ObservedStorage, pool: ObservedFileSystem) -> Iterator[str]:
    """The drives of a pool, unless a part of it is mounted as the root of the system."""
    if "/" in [value for name, value in pool.facts.items() if name.startswith("mountpoint@")]:
        return
    for vdev in pool.vdevs:
        disk = find_vdev_disk(observed_storage, vdev.name) if vdev.kind == "drive" else None
        if disk is not None and disk.name:
            yield find_disk_of_partition(observed_storage, disk.name)
