# SPDX-License-Identifier: Apache-2.0
"""Selects the observed file systems that a plan is for, and the targets of Lustre by role: metadata targets are planned
on other devices than data targets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage
from sonde.design.layout.observe_written import list_disks_below
from sonde.model.system.service import SYSTEM_PURPOSES

# The name of a target of Lustre that is registered.
TARGET_NAME_PATTERN = re.compile(r"\w+-(?:OST|MDT)[0-9a-f]{4}")
_METADATA_PATTERN = re.compile(r"(?:\w+[-:=])?(?:MDT[0-9a-f]{4}|MGS)")
_DATA_PATTERN = re.compile(r"\w+[-:=]OST[0-9a-f]{4}")

# Where the operating system is: file systems there are no planned ones, unless the plan has them.
_SYSTEM_MOUNT_PATTERN = re.compile(r"/|/(?:boot|usr|var|tmp|opt|root|run)(?:/.*)?")
LUSTRE_NAME_LENGTH = 8  # of a file system, as mkfs.lustre --fsname takes it


def select_planned(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout, mount_points: Collection[str]
) -> tuple[ObservedFileSystem, ...]:
    """The file systems that a plan is for: those at its mount points or of its name, with the targets of Lustre on this
    server, else those with its label, else those of its kind, else all."""
    file_systems = observed_storage.file_systems
    mounted = [each for each in file_systems if each.location in mount_points or each.location == planned_layout.id]
    if mounted and planned_layout.table.kind == "lustre":
        # a server may be a client too: its targets are planned as well
        own_target = _compile_target_pattern(planned_layout)
        mounted += [each for each in file_systems if each not in mounted and each.kind == "lustre"
                    and own_target.fullmatch(read_target_name(observed_storage, each))]  # fmt: skip
    if not mounted:
        labels = {disk.settings.get("name", disk.name): disk.settings.get("fs_label", "")
                  for disk in observed_storage.disks.values()}  # fmt: skip
        labels |= {name: disk.settings.get("fs_label", "") for name, disk in observed_storage.disks.items()}
        planned_kind, planned_label = planned_layout.table.kind, planned_layout.id[:12]
        mounted = [each for each in file_systems if each.kind == planned_kind and planned_label == (
            each.facts.get("label") or labels.get(each.device.rsplit("/", 1)[-1], ""))[:12]]  # fmt: skip
    others = file_systems
    if mount_points or planned_layout.table.purpose not in SYSTEM_PURPOSES:
        others = tuple(each for each in file_systems if not _SYSTEM_MOUNT_PATTERN.fullmatch(each.location))
    return tuple(mounted or [each for each in others if each.kind == planned_layout.table.kind]
                 or [each for each in others if each.kind != "ldiskfs"])  # fmt: skip


def exclude_other_file_systems(
    observed_storage: ObservedStorage, planned: tuple[ObservedFileSystem, ...]
) -> ObservedStorage:
    """The storage with the file systems of the plan. A host that has none of them mounted, as the standby server of a
    pair, is compared without the drives of those that it has, as its system disk."""
    disks = observed_storage.disks
    if not planned and observed_storage.file_systems:
        drives = {disk.name for disk in list_disks_below(observed_storage, observed_storage.file_systems)
                  if disk.kind == "disk"}  # fmt: skip
        disks = {name: disk for name, disk in disks.items()
                 if not any(each.name in drives for each in observed_storage.iterate_disks_below(name))}  # fmt: skip
    return replace(observed_storage, file_systems=planned, disks=disks)


def split_by_role(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout
) -> Iterator[tuple[ObservedStorage, FileSystemLayout]]:
    """The observed file systems with the devices planned for them: once for all, but targets of metadata apart from
    those of data where the outputs name either. Targets that the host sees, and its partner has mounted, are some."""
    standby = tuple(_list_standby_targets(observed_storage, planned_layout))
    observed_storage = replace(observed_storage, file_systems=observed_storage.file_systems + standby)
    names = [(each, read_target_name(observed_storage, each)) for each in observed_storage.file_systems]
    metadata = tuple(each for each, name in names if _METADATA_PATTERN.fullmatch(name))
    data = tuple(each for each, name in names if _DATA_PATTERN.fullmatch(name))
    if not planned_layout.metadata_devices or not (metadata or data):
        yield observed_storage, planned_layout
        return
    if data:
        yield replace(observed_storage, file_systems=data), replace(planned_layout, metadata_devices=())
    if metadata:
        devices = planned_layout.metadata_devices
        yield (
            replace(observed_storage, file_systems=metadata),
            replace(planned_layout, devices=devices, metadata_devices=()),
        )


def _list_standby_targets(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout
) -> Iterator[ObservedFileSystem]:
    """The targets of a planned file system by the labels of devices that the host sees, and has not mounted."""
    is_lustre = planned_layout.table.kind == "lustre"
    mounted = {read_target_name(observed_storage, each) for each in observed_storage.file_systems}
    for disk in observed_storage.disks.values() if is_lustre else ():
        label = re.sub(r"[:=]", "-", disk.settings.get("fs_label", ""))
        if label not in mounted and _compile_target_pattern(planned_layout).fullmatch(label):
            yield ObservedFileSystem(label, "lustre", f"/dev/{disk.name}", origin=disk.origin)


def _compile_target_pattern(planned_layout: FileSystemLayout) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(planned_layout.id[:LUSTRE_NAME_LENGTH])}[-:=](OST|MDT)[0-9a-f]{{4}}")


def read_target_name(observed_storage: ObservedStorage, file_system: ObservedFileSystem) -> str:
    """The name of a target: its label, of its mount (svname), or of its device; empty for other file systems."""
    if file_system.kind not in ("lustre", "ldiskfs"):
        return ""
    mounted = [option.removeprefix("svname=") for option in file_system.options if option.startswith("svname=")]
    disk = observed_storage.disks.get(file_system.device.rsplit("/", 1)[-1])
    label = disk.settings.get("fs_label", "") if disk is not None else ""
    return (mounted or [label])[0] or file_system.location
