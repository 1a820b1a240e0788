# SPDX-License-Identifier: Apache-2.0
"""Checks that volumes, arrays, pools and file systems use the multipath map of a LUN, not a single path of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.check_planned_pools import find_vdev_disk
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import read_identity
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage


@dataclass(frozen=True)
class _Use:
    """What lies on a device, in a sentence, how it gets onto the map, and the devices above."""

    text: str
    remedy: str
    parts: tuple[str, ...] = ()


def find_bypassed_maps(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Paths of a LUN that are used directly, so that no other path takes over."""
    disks = observed_storage.disks.values()
    maps = {disk.name: disk for disk in disks if disk.kind == "multipath"}
    names = {path.name: disk.name for disk in maps.values() for path in disk.paths}
    by_identity = {identity: disk.name for disk in maps.values()
                   if (identity := read_identity(disk, observed_storage.disks))}  # fmt: skip
    drives: dict[str, list[ObservedDisk]] = {}
    for disk in disks:
        if disk.kind == "disk" and disk.settings.get("wwn"):
            drives.setdefault(read_identity(disk, observed_storage.disks), []).append(disk)
    # identities of LUNs that one map alone has: those of some arrays identify the controller
    unique = {identity for identity, each in drives.items() if not _is_of_several_maps(each, names)}
    pools = {find_vdev_disk(observed_storage, vdev.name).name: pool.location
             for pool in observed_storage.file_systems for vdev in pool.vdevs}  # fmt: skip
    for disk in [disk for disk in disks if disk.kind == "disk"]:
        identity = read_identity(disk, observed_storage.disks) if disk.settings.get("wwn") else ""
        map_name = names.get(disk.name) or (by_identity.get(identity, "") if identity in unique else "")
        twins = [each for each in drives.get(identity, ()) if each.name not in names] if identity in unique else []
        if not map_name and len(twins) < 2:
            continue
        if map_name:
            yield CheckedItem("the use of a path", disk.name)
        for use in _list_uses(observed_storage, disk, pools):
            yield _report_use(disk, use, maps.get(map_name), twins)


def _is_of_several_maps(drives: Sequence[ObservedDisk], map_by_path: Mapping[str, str]) -> bool:
    return len({map_by_path[drive.name] for drive in drives if drive.name in map_by_path}) > 1


def _report_use(
    disk: ObservedDisk, use: _Use, multipath_map: ObservedDisk | None, twins: Sequence[ObservedDisk]
) -> LayoutFault:
    title = (multipath_map.settings.get("name") or multipath_map.name) if multipath_map is not None else ""
    if multipath_map is not None:
        text = f"lies on one path of {title}, not on the map, so it has no failover"
        joined = ""
    else:
        names = join_first_names([each.name for each in twins])
        text = f"lies on one of {len(twins)} paths of a LUN ({names}), which no map joins, so it has no failover"
        joined = "let multipathd join the paths (blacklist and find_multipaths in multipath.conf), then "
    return LayoutFault(
        "path used without its map", disk.name, f"{use.text} {text}",
        "when this path fails requests fail, though others work; a map cannot use this path as long as it is taken",
        f"{joined}{use.remedy.format(device=f'/dev/mapper/{title}' if title else 'the map')}", ("physical volume",),
        (disk.name, *([multipath_map.name] if multipath_map is not None else []), *use.parts),
    )  # fmt: skip


def _list_uses(
    observed_storage: ObservedStorage, disk: ObservedDisk, pool_by_drive: Mapping[str, str]
) -> Iterator[_Use]:
    """What lies on a drive or its partitions, without what lies on its map."""
    disks = observed_storage.disks
    names = [disk.name, *(each.name for each in disks.values() if each.kind == "part" and each.on == disk.name)]
    for name in names:
        above = [each for each in disks.values() if name in each.members and each.kind not in ("multipath", "part")]
        group = disks[name].settings.get("group_of_pv", "")
        volumes = tuple(each.name for each in above if each.kind == "lvm")
        if group:
            yield _Use(
                f"the physical volume {name} of {group}",
                f"let LVM reject paths (filter and global_filter in lvm.conf), make the initramfs again, and activate"
                f" {group} on {{device}}", volumes,
            )  # fmt: skip
        for array in above:
            if array.kind == "md":
                yield _Use(
                    f"the member {name} of {array.name}",
                    f"stop {array.name}, and assemble it from {{device}} (DEVICE in mdadm.conf)", (array.name,),
                )  # fmt: skip
        for file_system in observed_storage.file_systems:
            if file_system.device == f"/dev/{name}" and file_system.options:
                yield _Use(f"the file system at {file_system.location}",
                           "unmount it, and mount it from {device}, in fstab too", (file_system.location,))  # fmt: skip
        if pool := pool_by_drive.get(name, ""):
            yield _Use(f"the drive {name} of pool {pool}",
                       "zpool export it, and zpool import it with -d /dev/mapper: {device}", (pool,))  # fmt: skip
