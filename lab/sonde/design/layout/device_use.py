# SPDX-License-Identifier: Apache-2.0
"""Determines which drives are in use. Settings of unused drives, for example a USB stick, do not matter."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sonde.design.layout.check_planned_pools import find_vdev_disk
from sonde.design.layout.live.linux_tool_output import TARGET_LABEL_PATTERN
from sonde.design.layout.live.md_output import OUTSIDE_OF_DATA
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

# File systems of media that are carried around, and of images.
_PORTABLE_KINDS = ("", "vfat", "exfat", "ntfs", "iso9660", "udf", "hfsplus", "squashfs")
# File systems that are in use only where they are mounted.
_MOUNTED_KINDS = ("xfs", "ext2", "ext3", "ext4", "btrfs")

# Where file systems of the operating system are mounted; they hold no data of the storage.
SYSTEM_MOUNT_POINTS = (
    *("/", "/boot", "/boot/efi", "/usr", "/var", "/opt", "/home", "/srv", "/root"),
    "/tmp",  # nosec B108: only compared
)


def list_drives_below(observed_storage: ObservedStorage, device_name: str) -> set[str]:
    """The drives and multipath devices that a device consists of."""
    return {disk.name for disk in observed_storage.iterate_disks_below(device_name)
            if disk.kind in ("disk", "multipath")}  # fmt: skip


def list_mounted_drives(observed_storage: ObservedStorage, mount_points: Collection[str]) -> set[str]:
    """The drives below file systems and swap that lsblk shows at some mount points."""
    tops = [disk.name for disk in observed_storage.disks.values() if disk.settings.get("mountpoint") in mount_points]
    return {drive for top in tops for drive in list_drives_below(observed_storage, top)}


def list_unused_drives(observed_storage: ObservedStorage) -> set[str]:
    """Drives that lsblk shows and that nothing uses: no array, volume, map, pool or mount. Of a drive that only other
    outputs show, the use is not known."""
    used = set(_list_used_devices(observed_storage))
    used |= {disk.on for disk in observed_storage.disks.values() if disk.kind == "part" and disk.name in used}
    return {disk.name for disk in observed_storage.disks.values()
            if disk.kind == "disk" and disk.settings.get("name") and disk.name not in used}  # fmt: skip


def _list_used_devices(observed_storage: ObservedStorage) -> Iterator[str]:
    disks = observed_storage.disks
    names = {name: disk.name for disk in disks.values() for name in (disk.settings.get("name", disk.name), disk.name)}
    shows_mounts = any(each.options for each in observed_storage.file_systems)
    for disk in disks.values():
        if disk.kind not in ("disk", "part"):
            yield from disk.members
        yield from (path.name for path in disk.paths)
        yield from (name for setting in OUTSIDE_OF_DATA for name in disk.settings.get(setting, "").split())
        if _holds_storage(disk, shows_mounts=shows_mounts):
            yield disk.name
    for file_system in observed_storage.file_systems:
        for device in (file_system.device, file_system.log_device or ""):
            yield names.get(device.rpartition("/")[2], "")
        yield from (find_vdev_disk(observed_storage, vdev.name).name for vdev in file_system.vdevs)


def _holds_storage(disk: ObservedDisk, *, shows_mounts: bool) -> bool:
    """Whether a device holds a part of an array, volume or pool, a target of Lustre or a mounted file system."""
    kind, settings = disk.settings.get("fs_kind", ""), disk.settings
    if kind in _MOUNTED_KINDS and shows_mounts:
        return bool(settings.get("mountpoint")) or bool(TARGET_LABEL_PATTERN.fullmatch(settings.get("fs_label", "")))
    return kind not in _PORTABLE_KINDS
