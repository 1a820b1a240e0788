# SPDX-License-Identifier: Apache-2.0
"""Checks the devices of the targets that a server of Lustre holds: shared ones, and planned targets not mounted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.device_identity import describe_device, is_planned_device
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

_DATA_TARGET_PATTERN = re.compile(r"\w+-OST[0-9a-f]{4}")
_BASE_KINDS = ("md", "multipath", "lun", "disk")
_SLICE = "$(slice"


def list_target_labels(observed_storage: ObservedStorage) -> dict[str, str]:
    """The labels of devices by their names; a path of a map has the label of its map."""
    paths = {path.name for disk in observed_storage.disks.values() for path in disk.paths}
    return {
        disk.name: re.sub(r"[:=]", "-", disk.settings.get("fs_label", ""))
        for disk in observed_storage.disks.values() if disk.name not in paths
    }  # fmt: skip


def find_shared_devices(
    observed_storage: ObservedStorage, planned_targets: Mapping[str, str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Object targets on one array or LUN, unless the plan divides devices among targets."""
    if any(path.startswith(_SLICE) for path in planned_targets.values()):
        return
    labels_by_base: dict[str, dict[str, str]] = {}
    for name, label in list_target_labels(observed_storage).items():
        base = find_base_device(observed_storage, name)
        if _DATA_TARGET_PATTERN.fullmatch(label) and base is not None:
            labels_by_base.setdefault(base.name, {})[label] = name
            yield CheckedItem("one target on each device", base.name)
    for base_name, names in labels_by_base.items():
        if len(names) > 1:
            texts = [f"{label} on {name}" for label, name in sorted(names.items())]
            yield LayoutFault(
                "targets share a device", ", ".join(sorted(names)),
                f"{len(names)} object targets are on {describe_device(observed_storage.disks[base_name])}: "
                f"{', '.join(texts)}",
                "they share its rate, heads go back and forth between them, and all are lost with it",
                "make one of them on a device that holds no other target", ("device",), tuple(sorted(names)),
            )  # fmt: skip


def find_base_device(observed_storage: ObservedStorage, name: str) -> ObservedDisk | None:
    """The array, map or disk that holds a device: itself, or what a partition or volume of one device is cut from."""
    disk = observed_storage.disks.get(name)
    while disk is not None and disk.kind not in _BASE_KINDS:
        below = disk.on or (disk.members[0] if len(disk.members) == 1 else "")
        disk = observed_storage.disks.get(below)
    return disk


def find_unmounted_targets(
    observed_storage: ObservedStorage, planned_targets: Mapping[str, str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Planned targets whose array runs on this server, where outputs show its mounts. Only one server of a pair runs an
    array."""
    mounted = {_read_device_name(observed_storage, each.device) for each in observed_storage.file_systems
               if each.kind == "lustre" and any(option.startswith("svname=") for option in each.options)}  # fmt: skip
    running = {each.location for each in observed_storage.file_systems if each.facts.get("device_state") == "UP"}
    shows_mounts = any(each.options and each.location.startswith("/") for each in observed_storage.file_systems)
    for label, path in planned_targets.items() if shows_mounts else ():
        for disk in observed_storage.disks.values():
            if disk.kind != "md" or not is_planned_device(observed_storage, path, disk):
                continue
            yield CheckedItem("planned targets are mounted", label)
            if disk.name not in mounted and label not in running:
                yield LayoutFault(
                    "target not mounted", label,
                    f"its device {describe_device(disk)} runs here, but no target of it is mounted",
                    "files with objects on it cannot be read or written",
                    f"mount -t lustre {path}, after a look at the log of the kernel",
                )  # fmt: skip


def _read_device_name(observed_storage: ObservedStorage, device_path: str) -> str:
    """The name of the disk that a path in /dev leads to."""
    name = device_path.rsplit("/", 1)[-1]
    disks = [
        disk
        for disk in observed_storage.disks.values()
        if device_path in disk.settings.get("links", "").split() or name in (disk.name, disk.settings.get("name"))
    ]
    return disks[0].name if disks else name
