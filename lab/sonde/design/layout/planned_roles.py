# SPDX-License-Identifier: Apache-2.0
"""Divides the targets of Lustre by their role: those of metadata are planned on other devices than those of data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage

_METADATA = re.compile(r"(?:\w+[-:=])?(?:MDT[0-9a-f]{4}|MGS)")
_DATA = re.compile(r"\w+[-:=]OST[0-9a-f]{4}")


def split_by_role(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout
) -> Iterator[tuple[ObservedStorage, FileSystemLayout]]:
    """The observed file systems with the devices planned for them: once for all, but targets of metadata apart from
    those of data where the outputs name either."""
    names = [(each, _read_target_name(observed_storage, each)) for each in observed_storage.file_systems]
    metadata = tuple(each for each, name in names if _METADATA.fullmatch(name))
    data = tuple(each for each, name in names if _DATA.fullmatch(name))
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


def _read_target_name(observed_storage: ObservedStorage, file_system: ObservedFileSystem) -> str:
    """The name of a target: its label, of its mount (svname), or of its device; empty for other file systems."""
    if file_system.kind not in ("lustre", "ldiskfs"):
        return ""
    mounted = [option.removeprefix("svname=") for option in file_system.options if option.startswith("svname=")]
    disk = observed_storage.disks.get(file_system.device.rsplit("/", 1)[-1])
    label = disk.settings.get("fs_label", "") if disk is not None else ""
    return (mounted or [label])[0] or file_system.location
