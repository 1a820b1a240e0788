# SPDX-License-Identifier: Apache-2.0
"""Members of arrays that the DEVICE lines of mdadm.conf leave out."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedStorage


def find_excluded_members(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Arrays with members that no pattern of DEVICE matches. Patterns in folders of /dev that no output lists may match
    anything."""
    for array in observed_storage.disks.values():
        patterns = array.settings.get("configured_devices", "").split()
        if array.kind != "md" or not patterns or not _shows_folders(observed_storage, patterns):
            continue
        yield CheckedItem("the devices in mdadm.conf", array.name)
        members = [*array.members, *array.settings.get("spare_devices", "").split()]
        excluded = [name for name in dict.fromkeys(members)
                    if not any(fnmatchcase(path, pattern) for path in _list_paths(observed_storage, name)
                               for pattern in patterns)]  # fmt: skip
        if excluded:
            yield LayoutFault(
                "drives left out by mdadm.conf", array.name,
                f"DEVICE in mdadm.conf ({' '.join(patterns)}) does not match {join_first_names(excluded)}",
                "mdadm does not look at them: after the next start of the machine the array lacks them, or does not"
                " run",
                "write DEVICE partitions, or remove the line, and make the initramfs again", ("configured_devices",),
            )  # fmt: skip


def _list_paths(observed_storage: ObservedStorage, device_name: str) -> list[str]:
    disk = observed_storage.disks.get(device_name)
    names = [device_name, disk.settings.get("name", "")] if disk is not None else [device_name]
    links = disk.settings.get("links", "").split() if disk is not None else []
    return [*(f"{folder}{name}" for name in names if name for folder in ("/dev/", "/dev/mapper/")), *links]


def _shows_folders(observed_storage: ObservedStorage, patterns: list[str]) -> bool:
    folders = {link.rpartition("/")[0] for disk in observed_storage.disks.values()
               for link in disk.settings.get("links", "").split()} | {"/dev", "/dev/mapper"}  # fmt: skip
    return all(any(fnmatchcase(folder, pattern.rpartition("/")[0]) for folder in folders) for pattern in patterns)
