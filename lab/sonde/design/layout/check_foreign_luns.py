# SPDX-License-Identifier: Apache-2.0
"""Finds LUNs with a file system that belongs to nothing on this host: their array may map them here by mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_planned_pools import find_vdev_disk
from sonde.design.layout.device_identity import find_planned_names, split_device_arguments
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.linux_tool_output import TARGET_LABEL_PATTERN
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.design.layout.written_attributes import WrittenAttribute
from sonde.model.units import format_bytes

# File systems that one host at a time may mount. Members of arrays, groups and pools are in use by what lies on them.
_KINDS = ("xfs", "ext2", "ext3", "ext4", "btrfs")
_NETWORKS = ("fc", "iscsi", "fcoe", "srp")
_SOURCES = {"UUID": "fs_uuid", "LABEL": "fs_label", "PARTLABEL": "partlabel"}


def find_foreign_luns(
    observed_storage: ObservedStorage, written: Sequence[WrittenAttribute]
) -> Iterator[LayoutFault | CheckedItem]:
    """LUNs with a file system that is neither mounted nor in fstab, and whose device no script of a plan names.
    `written` is what the scripts of all planned file systems write: without device names in it nothing is known."""
    if not any(each.options for each in observed_storage.file_systems) or not observed_storage.fstab:
        return  # what is mounted is not known
    planned = sorted({path for attribute in written for path in _list_device_paths(attribute)})
    used = _list_used_devices(observed_storage)
    for disk in observed_storage.disks.values() if planned else ():
        lun = observed_storage.disks.get(disk.on, disk) if disk.kind == "part" else disk
        is_path = any(path.name == lun.name for other in observed_storage.disks.values() for path in other.paths)
        if not _is_lun(lun) or is_path:
            continue
        if disk.settings.get("fs_kind") not in _KINDS or TARGET_LABEL_PATTERN.fullmatch(
            disk.settings.get("fs_label", "")
        ):
            continue
        yield CheckedItem("the use of a LUN", disk.name)
        answers = [find_planned_names(observed_storage, planned, each) for each in (disk, lun)]
        if disk.name in used or lun.name in used or answers != [[], []]:
            continue
        label = disk.settings.get("fs_label", "")
        name = disk.settings.get("name", "") or disk.name
        yield LayoutFault(
            "LUN of no known use", disk.name,
            f"{name} ({disk.settings['fs_kind']}{f' with the label {label}' if label else ''}"
            + (f", {format_bytes(disk.size)}" if disk.size else "")
            + ") is visible here and belongs to nothing that is planned or mounted",
            "if it is that of another host, a mkfs, a mount or a check here destroys its data",
            "look at the host mapping of the array: remove it there if it is not for this host, else put it into the"
            " plan or fstab; write nothing to it before",
        )  # fmt: skip


def _is_lun(disk: ObservedDisk) -> bool:
    return disk.kind == "multipath" or (disk.kind == "disk" and disk.settings.get("tran") in _NETWORKS)


def _list_device_paths(attribute: WrittenAttribute) -> Iterator[str]:
    for text in (*attribute.devices, *split_device_arguments(attribute.value)):
        if text.startswith(("/dev/", "$(slice")):
            yield text


def _list_used_devices(observed_storage: ObservedStorage) -> set[str]:
    """Devices that are mounted, that a line of fstab names, or that something lies on, by their kernel names."""
    disks = observed_storage.disks
    names = {alias: disk.name for disk in disks.values() for alias in (
        disk.settings.get("name", disk.name), disk.name, *(
            link.rpartition("/")[2] for link in disk.settings.get("links", "").split()))}  # fmt: skip
    used = {disk.name for disk in disks.values() if disk.settings.get("mountpoint")}
    for file_system in observed_storage.file_systems:
        devices = (file_system.device, file_system.log_device or "")
        used |= {names.get(device.rpartition("/")[2], "") for device in devices}
        used |= {find_vdev_disk(observed_storage, vdev.name).name for vdev in file_system.vdevs}
    for entry in observed_storage.fstab:
        key, _, value = entry.source.partition("=")
        value = value.strip("\"'").lower()
        setting = _SOURCES.get(key, "")
        used |= {disk.name for disk in disks.values() if value and disk.settings.get(setting, "").lower() == value}
        values = (option.partition("=")[2] for option in entry.options)
        used |= {names.get(path.rpartition("/")[2], "") for path in (entry.source, *values) if path.startswith("/dev/")}
    used |= {name for disk in disks.values() if disk.kind not in ("disk", "part") for name in disk.members}
    return used
