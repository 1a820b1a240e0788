# SPDX-License-Identifier: Apache-2.0
"""Checks that all paths of a multipath map lead to its LUN. The WWID of the map decides which paths are foreign, or
without it the majority of the paths; where they are divided evenly, no path is named for removal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import read_identity
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

_ATTRIBUTES = ("wwn", "serial")
# The first half of a WWN of 16 bytes, which old versions of lsblk print: it is that of the array, not of the LUN.
_SHORT_WWN_PATTERN = re.compile(r"6[0-9a-f]{15}")
_WWN_PATTERN = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}")
_FAULT_KIND = "path to another LUN"
_FAULT_COST = "what is written through it overwrites the other LUN, and reads return its data"


def find_foreign_paths(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Paths whose WWN is not that of their map. Serial numbers are compared only where WWNs do not distinguish LUNs:
    those of some arrays identify the controller."""
    for disk in observed_storage.disks.values():
        paths = [observed_storage.disks[path.name] for path in disk.paths if path.name in observed_storage.disks]
        for attribute in _ATTRIBUTES:
            values = {path.name: _read_value(path, attribute) for path in paths if path.settings.get(attribute)}
            map_name = disk.settings.get("name") or disk.name
            if attribute == "wwn" and _is_map_of_another_lun(observed_storage, disk, set(values.values())):
                yield CheckedItem(f"{attribute} of paths of {map_name}", disk.name)
                yield _report_changed_lun(observed_storage, disk, map_name, next(iter(values.values())))
                break
            if len(values) < 2:
                continue
            yield CheckedItem(f"{attribute} of paths of {map_name}", disk.name)
            if len(set(values.values())) > 1:
                yield from _describe_foreign_paths(observed_storage, disk, map_name, attribute, values)
                break
            if attribute == "wwn" and len(values) == len(paths) and not _SHORT_WWN_PATTERN.fullmatch(
                next(iter(values.values()))
            ):  # fmt: skip
                break


def _is_map_of_another_lun(observed_storage: ObservedStorage, disk: ObservedDisk, path_identities: Set[str]) -> bool:
    """Whether all paths of a map have one WWN, and it is another one than that of the map."""
    map_identity = read_identity(disk, observed_storage.disks)
    identities = {map_identity, *path_identities}
    return len(path_identities) == 1 and len(identities) == 2 and all(
        _WWN_PATTERN.fullmatch(identity) and len(identity) == len(map_identity) for identity in identities)  # fmt: skip


def _report_changed_lun(
    observed_storage: ObservedStorage, disk: ObservedDisk, map_name: str, path_identity: str
) -> LayoutFault:
    owner = _find_map_name(observed_storage, path_identity)
    return LayoutFault(
        _FAULT_KIND, disk.name,
        f"all paths of {map_name} have the wwn {f'of {owner}, ' if owner else ''}{path_identity}; the WWID of"
        f" {map_name} is {read_identity(disk, observed_storage.disks)}: the array maps another LUN there now",
        "what is written to the map overwrites the other LUN, and reads return its data",
        f"stop all writes to {map_name} and unmount it, undo the change of the mapping on the array or remove the map"
        f" (multipath -f {map_name}) and scan again, and check the file systems of both LUNs before they are mounted",
        _ATTRIBUTES, (disk.name, *(path.name for path in disk.paths)),
    )  # fmt: skip


def _read_value(path: ObservedDisk, attribute: str) -> str:
    return read_identity(path, {}) if attribute == "wwn" else path.settings[attribute].strip()


def _describe_foreign_paths(
    observed_storage: ObservedStorage,
    disk: ObservedDisk,
    map_name: str,
    attribute: str,
    value_by_path: Mapping[str, str],
) -> Iterator[LayoutFault]:
    (common, count), *others = Counter(value_by_path.values()).most_common()
    map_identity = read_identity(disk, observed_storage.disks) if attribute == "wwn" else ""
    if map_identity in value_by_path.values():
        common = map_identity
    elif 2 * count <= len(value_by_path):
        texts = "; ".join(f"{value} on {' '.join(path for path in value_by_path if value_by_path[path] == value)}"
                          for value, _ in [(common, count), *others])  # fmt: skip
        yield LayoutFault(
            _FAULT_KIND, disk.name, f"paths of {map_name} lead to different LUNs: {attribute} {texts}", _FAULT_COST,
            f"stop all writes to {map_name}, and compare the WWID of each path (/lib/udev/scsi_id) with that of the map"
            " (multipath -ll) before a path is removed", _ATTRIBUTES, tuple(value_by_path),
        )  # fmt: skip
        return
    for path_name, value in value_by_path.items():
        if value != common:
            owner = _find_map_name(observed_storage, value) if attribute == "wwn" else ""
            yield LayoutFault(
                _FAULT_KIND, path_name, f"{path_name} is a path of {map_name}, and has the {attribute}"
                f" {f'of {owner}, ' if owner else ''}{value}; that of {map_name} is {common}", _FAULT_COST,
                f"stop all writes to {map_name}, remove the path (echo 1 > /sys/block/{path_name}/device/delete), scan"
                " again, and check the file systems of both LUNs before they are mounted again", _ATTRIBUTES,
            )  # fmt: skip


def _find_map_name(observed_storage: ObservedStorage, identity: str) -> str:
    names = [disk.settings.get("name") or disk.name for disk in observed_storage.disks.values()
             if disk.kind == "multipath" and read_identity(disk, observed_storage.disks) == identity]  # fmt: skip
    return names[0] if names else ""
