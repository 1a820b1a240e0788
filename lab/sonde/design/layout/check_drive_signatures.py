# SPDX-License-Identifier: Apache-2.0
"""Finds drives of ZFS pools that also carry the signature of an array, a volume group or another file system."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_planned_pools import find_disk_of_drive
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

_FOREIGN_KINDS = ("linux_raid_member", "LVM2_member", "isw_raid_member", "ddf_raid_member", "crypto_LUKS", "xfs",
                  "ext2", "ext3", "ext4", "btrfs", "swap")  # fmt: skip


def find_foreign_signatures(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Drives of pools, their spares among them, on which lsblk or blkid finds something else than a pool."""
    for pool in observed_storage.file_systems:
        for vdev in pool.vdevs:
            disk = find_disk_of_drive(observed_storage, vdev) if vdev.kind == "drive" else None
            kind = disk.settings.get("fs_kind", "") if disk is not None else ""
            if disk is None or disk.name not in observed_storage.disks:
                continue
            yield CheckedItem("the signature of a drive of a pool", disk.name)
            parts = [each for each in observed_storage.disks.values() if disk.name in (each.name, each.on)]
            mounted = [each for each in parts if each.settings.get("mountpoint", "").startswith("/")]
            if mounted and vdev.use == "spares":
                yield _report_mounted_spare(pool.location, vdev.name, disk.name, mounted[0])
                continue
            if kind not in _FOREIGN_KINDS:
                continue
            label = disk.settings.get("fs_label", "")
            noun = "spare" if vdev.use == "spares" else "drive"
            yield LayoutFault(
                "signature of another use", disk.name,
                f"it is a {noun} of pool {pool.location} and carries the signature {kind}"
                f"{f' ({label})' if label else ''}",
                "at a start of the machine md, LVM or a mount may take the drive, and the pool lacks it or is damaged",
                f"look whether anything of it is needed, then zpool remove {pool.location} {vdev.name}, wipefs -a"
                f" /dev/{disk.name}, and add it again" if noun == "spare"
                else f"zpool replace {pool.location} {vdev.name} by another drive, then wipefs this one; never wipefs a"
                " drive that the pool uses", parts=(disk.name, vdev.name),
            )  # fmt: skip


def _report_mounted_spare(pool: str, spare: str, drive: str, mounted: ObservedDisk) -> LayoutFault:
    mount_point = mounted.settings["mountpoint"]
    return LayoutFault(
        "spare in other use", pool,
        f"spare {spare} holds the file system that is mounted at {mount_point} ({mounted.name})",
        "it cannot replace a drive that fails, or the file system is overwritten when it does",
        f"zpool remove {pool} {spare}, and add a free drive as spare; or move the files, umount {mount_point}, and"
        f" wipefs -a /dev/{drive}", parts=(pool, drive, spare),
    )  # fmt: skip
