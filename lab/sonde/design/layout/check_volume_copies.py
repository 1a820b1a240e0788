# SPDX-License-Identifier: Apache-2.0
"""Finds physical volumes that are on two devices: clones and snapshots of LUNs, and paths that LVM does not reject."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import read_identity
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

_MEMBER_KIND = "LVM2_member"


def find_copied_volumes(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Devices with the UUID of a physical volume that another device has too."""
    volumes = {disk.name: disk for disk in observed_storage.disks.values()
               if disk.settings.get("fs_kind") == _MEMBER_KIND or "unused_volume" in disk.settings
               or "preferred_volume" in disk.settings}  # fmt: skip
    paths = {path.name: disk.name for disk in observed_storage.disks.values() for path in disk.paths}
    groups: dict[str, list[ObservedDisk]] = {}
    for disk in volumes.values():
        settings = disk.settings
        uuid = settings.get("unused_volume") or settings.get("preferred_volume") or settings.get("fs_uuid", "")
        # a path shows what its map holds, which is a fault only where LVM looks at it
        is_below_map = disk.name in paths or disk.on in paths
        if uuid and (not is_below_map or "unused_volume" in settings):
            groups.setdefault(uuid, []).append(disk)
            yield CheckedItem("the UUID of a physical volume", disk.name)
    for uuid, disks in groups.items():
        used = next((disk for disk in disks if _is_used(disk)), disks[0])
        for copy in (disk for disk in disks if disk is not used):
            first, second = (read_identity(disk, observed_storage.disks) for disk in (copy, used))
            is_path = paths.get(copy.name) == used.name or first == second != ""
            # where outputs do not identify both, only LVM knows that they are two devices
            if "unused_volume" in copy.settings or (first and second and not is_path):
                yield _report_copy(copy, used, uuid, is_path=is_path)


def _is_used(disk: ObservedDisk) -> bool:
    settings = disk.settings
    return "unused_volume" not in settings and ("group_of_pv" in settings or "preferred_volume" in settings)


def _report_copy(copy: ObservedDisk, used: ObservedDisk, uuid: str, *, is_path: bool) -> LayoutFault:
    copy_name, used_name = (disk.settings.get("name") or disk.name for disk in (copy, used))
    group = f" of {used.settings['group_of_pv']}" if "group_of_pv" in used.settings else ""
    if is_path:
        return LayoutFault(
            "physical volume twice", copy.name,
            f"LVM finds the physical volume {uuid}{group} on {used_name} and on its path {copy_name}",
            "after the next start it may take the path, which has no failover",
            "let LVM reject paths (filter and global_filter in lvm.conf), and make the initramfs again",
            parts=(copy.name, used.name),
        )  # fmt: skip
    return LayoutFault(
        "physical volume twice", copy.name,
        f"{copy_name} holds the physical volume {uuid}{group}, which is on {used_name} too: it is another device,"
        " with a copy (a clone or snapshot of the LUN)",
        "LVM refuses to activate the volumes, or takes the copy after the next start, with old data",
        "unmap the copy from this host, or let LVM reject it (global_filter) and give it other UUIDs (vgimportclone)",
        parts=(copy.name, used.name),
    )  # fmt: skip
