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
    excluded_by_line: dict[str, dict[str, list[str]]] = {}
    for array in observed_storage.disks.values():
        line = array.settings.get("configured_devices", "")
        patterns = line.split()
        if array.kind != "md" or not patterns or not _shows_folders(observed_storage, patterns):
            continue
        yield CheckedItem("the devices in mdadm.conf", array.name)
        others = (array.settings.get(setting, "").split() for setting in ("spare_devices", "journal_devices"))
        members = [*array.members, *(name for names in others for name in names)]
        excluded = [name for name in dict.fromkeys(members)
                    if not any(fnmatchcase(path, pattern) for path in _list_paths(observed_storage, name)
                               for pattern in patterns)]  # fmt: skip
        if excluded:
            excluded_by_line.setdefault(line, {})[array.name] = excluded
    for line, drives in excluded_by_line.items():
        names = list(dict.fromkeys(name for excluded in drives.values() for name in excluded))
        yield LayoutFault(
            "drives left out by mdadm.conf", ", ".join(drives),
            f"DEVICE in mdadm.conf ({line}) does not match {join_first_names(names)}",
            f"mdadm does not look at them: after the next start of the machine {' and '.join(drives)}"
            f" {'lacks' if len(drives) == 1 else 'lack'} them, or"
            f" {'does' if len(drives) == 1 else 'do'} not run",
            "write DEVICE partitions, or remove the line, and make the initramfs again", ("configured_devices",),
            tuple(drives),
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
