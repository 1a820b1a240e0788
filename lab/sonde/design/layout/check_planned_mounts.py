# SPDX-License-Identifier: Apache-2.0
"""Planned local file systems that are on a device of the host, but not mounted, and planned pools not imported."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_volumes import list_inactive_volumes
from sonde.design.layout.device_identity import describe_device, is_planned_device
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage
from sonde.design.layout.placement import LOCAL
from sonde.design.layout.planned_roles import select_planned
from sonde.design.layout.written_attributes import WrittenAttribute
from sonde.model.system.service import SYSTEM_PURPOSES

_MAKERS = ("mkfs.xfs", "mke2fs", "mkfs.btrfs")
_LABEL_LENGTHS = {"xfs": 12, "ext4": 16}


def select_mounted_file_systems(
    observed_storage: ObservedStorage,
    planned_layout: FileSystemLayout,
    written: Sequence[WrittenAttribute],
    mount_points: Collection[str],
) -> tuple[tuple[ObservedFileSystem, ...], list[LayoutFault | CheckedItem]]:
    """The observed file systems that a plan is for, and whether the planned one is mounted where outputs show mounts.
    One that is mounted nowhere is represented by its device, so that no other is compared in its place."""
    file_systems = select_planned(observed_storage, planned_layout, mount_points)
    kind, shows_mounts = planned_layout.table.kind, any(each.options for each in observed_storage.file_systems)
    if kind == "zfs":
        results = list(_find_pool_that_is_not_imported(observed_storage, planned_layout.id))
        if any(isinstance(each, LayoutFault) for each in results):
            file_systems = (ObservedFileSystem(planned_layout.id, kind),)
        return file_systems, results
    if kind not in (*LOCAL, "lustre"):
        devices = _list_target_devices(observed_storage, planned_layout) or file_systems
        return devices, list(_find_unmounted_devices(observed_storage, devices))
    if not shows_mounts or kind not in _LABEL_LENGTHS or not mount_points:
        return file_systems, []
    device = _find_planned_device(observed_storage, planned_layout, written)
    names = {device.name, device.settings.get("name", "")} if device is not None else set[str]()
    is_mounted = any(each.options and (each.device.rpartition("/")[2] in names or each.location in mount_points)
                     for each in file_systems)  # fmt: skip
    if device is None or is_mounted:
        likely = tuple(each for each in file_systems if not _is_another(observed_storage, each, planned_layout))
        is_standby = not file_systems and planned_layout.table.purpose not in SYSTEM_PURPOSES
        if is_mounted or likely or is_standby:
            return likely or file_systems, [CheckedItem("the planned mount", planned_layout.id)] * is_mounted
        inactive = list_inactive_volumes(observed_storage)
        return (ObservedFileSystem(planned_layout.id, kind),), _report_absent(planned_layout, mount_points, inactive)
    path = " or ".join(mount_points)
    fault = LayoutFault(
        "not mounted", planned_layout.id,
        f"it is on {describe_device(device)}, but mounted nowhere; planned is {path}",
        f"programs that write to {path} write to the file system below it",
        f"look why it is not mounted (log of the kernel, systemctl status, fstab), then mount it at {path}, and look"
        " for files below the mount point", parts=(planned_layout.id, *mount_points),
    )  # fmt: skip
    unmounted = ObservedFileSystem(planned_layout.id, kind, f"/dev/{device.name}", origin=device.origin)
    return (unmounted,), [fault, CheckedItem("the planned mount", planned_layout.id)]


def list_planned_mount_points(mount_points: Collection[str], written: Sequence[WrittenAttribute]) -> Collection[str]:
    """The mount points of the system file; without one, those of the mount commands of the plan."""
    arguments = [each.value.rpartition(" ")[2] for each in written if each.key == ("mount", "")]
    return mount_points or [argument for argument in arguments if argument.startswith("/")]


def _list_target_devices(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout
) -> tuple[ObservedFileSystem, ...]:
    """The devices that the plan has for targets of BeeGFS, GPFS and the like, which a local file system may hold: what
    is below them is compared. Empty where outputs show neither such a device nor a mount."""
    paths = {device.device_label for device in planned_layout.all_devices if device.device_label.startswith("/dev/")}
    names = [disk.name for disk in observed_storage.disks.values()
             if any(is_planned_device(observed_storage, path, disk) for path in paths)]  # fmt: skip
    kind, shows_mounts = planned_layout.table.kind, any(each.options for each in observed_storage.file_systems)
    devices = tuple(ObservedFileSystem(f"{planned_layout.id} on {name}", kind, f"/dev/{name}") for name in names)
    return devices or ((ObservedFileSystem(planned_layout.id, kind),) if shows_mounts else ())


def _find_unmounted_devices(
    observed_storage: ObservedStorage, devices: Sequence[ObservedFileSystem]
) -> Iterator[LayoutFault | CheckedItem]:
    """Devices of targets that hold a local file system, which is not mounted."""
    mounted = {each.device.rpartition("/")[2] for each in observed_storage.file_systems if each.options}
    for device in devices if mounted else ():
        name = device.device.rpartition("/")[2]
        disk = observed_storage.disks.get(name)
        if disk is None or disk.settings.get("fs_kind") not in _LABEL_LENGTHS:
            continue
        yield CheckedItem("the mount of a target", name)
        if not mounted & {name, disk.settings.get("name", name)}:
            yield LayoutFault(
                "target not mounted", name,
                f"it holds {disk.settings['fs_kind']} for {device.location.partition(' ')[0]}, which is not mounted",
                "files with parts on it cannot be read or written",
                "look at the log of the kernel and fstab, then mount it before the service of the target starts",
            )  # fmt: skip


def _is_another(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem, planned_layout: FileSystemLayout
) -> bool:
    """Whether a mounted file system has the label of another one."""
    name = file_system.device.rpartition("/")[2]
    labels = [disk.settings.get("fs_label", "") for disk in observed_storage.disks.values()
              if name and name in (disk.name, disk.settings.get("name"))]  # fmt: skip
    label = file_system.facts.get("label", "") or next(iter(labels), "")
    planned_label = planned_layout.id[: _LABEL_LENGTHS[planned_layout.table.kind]]
    return bool(file_system.options and label) and label != planned_label


def _report_absent(
    planned_layout: FileSystemLayout, mount_points: Collection[str], inactive_volumes: Sequence[str]
) -> list[LayoutFault | CheckedItem]:
    path, volumes = " or ".join(mount_points), ", ".join(inactive_volumes)
    verb = "is" if len(inactive_volumes) == 1 else "are"
    remedy = (
        "activate them (vgchange -ay); if LVM refuses, pvs and vgs say what is missing"
        if volumes
        else "look for the missing devices (arrays, volumes, paths)"
    )
    return [CheckedItem("the planned mount", planned_layout.id), LayoutFault(
        "not mounted", planned_layout.id, f"nothing is mounted at {path}, and no device holds it"
        + f"; {volumes} of LVM {verb} not active" * bool(volumes),
        f"programs that write to {path} write to the file system below it",
        f"{remedy}, then mount it, and look for files below the mount point",
        parts=(planned_layout.id, *mount_points),
    )]  # fmt: skip


def _find_planned_device(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout, written: Sequence[WrittenAttribute]
) -> ObservedDisk | None:
    """The device that holds the planned file system: with its label, or that of the plan with a file system of its
    kind."""
    kind = planned_layout.table.kind
    label = planned_layout.id[: _LABEL_LENGTHS[kind]]
    paths = [each.value for each in written if each.program in _MAKERS and not each.option]
    for disk in observed_storage.disks.values():
        if disk.settings.get("fs_kind") == kind and (
            disk.settings.get("fs_label") == label
            or any(is_planned_device(observed_storage, path, disk) for path in paths)
        ):
            return disk
    return None


def _find_pool_that_is_not_imported(
    observed_storage: ObservedStorage, pool: str
) -> Iterator[LayoutFault | CheckedItem]:
    members = [disk for disk in observed_storage.disks.values()
               if disk.settings.get("fs_kind") == "zfs_member" and disk.settings.get("fs_label") == pool]  # fmt: skip
    is_imported = any(each.kind == "zfs" and each.location == pool for each in observed_storage.file_systems)
    if members or is_imported:
        yield CheckedItem("the planned pool is imported", pool)
    if members and not is_imported:
        yield LayoutFault(
            "pool not imported", pool,
            f"{len(members)} devices hold parts of it, like {describe_device(members[0])}, but no output shows it",
            "its data is out of reach", f"zpool import, which says what is missing, then zpool import {pool}",
        )  # fmt: skip
