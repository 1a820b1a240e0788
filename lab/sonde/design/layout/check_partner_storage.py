# SPDX-License-Identifier: Apache-2.0
"""Removes the faults of a host that follow from storage which its partner uses, or may use: pools, arrays and file
systems on drives that both see are in use on one of them only, and a cluster mounts them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from sonde.design.layout.check_planned_pools import find_vdev_disk
from sonde.design.layout.check_shared_arrays import find_member_view
from sonde.design.layout.faults import LayoutCheck, LayoutFault
from sonde.design.layout.live.joining import read_identity
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage
from sonde.model.system import System

# Faults of storage that only one server of a pair uses at a time.
_KINDS_OF_ONE_SERVER = ("pool not imported", "array not assembled", "not mounted", "not mounted at a start")
_LOCAL_KINDS = ("xfs", "ext2", "ext3", "ext4", "btrfs")


def list_mounts_of_pairs(system: System, file_system_id: str) -> dict[str, str]:
    """The directories where servers with a failover partner mount a local file system, with the names of the pair."""
    pairs = {}
    for item in system.list_parts("mounts"):
        if file_system_id in system.find_references(item.id, "file_system"):
            for server in system.find_references(item.id, "on"):
                if getattr(item.table, "through", "") == "local" and (partner := system.find_partner(server)):
                    pairs[str(getattr(item.table, "path", ""))] = f"{server} and {partner}"
    return pairs


def exclude_undecided_storage(check: LayoutCheck, pairs_by_mount_point: Mapping[str, str]) -> LayoutCheck:
    """The check of one host of a pair without what depends on its partner, of which no output is given: whether the
    cluster runs the storage there, and mounts it at a start. That is unknown."""
    faults, unknown = [], []
    for fault in check.faults:
        pair = next((names for path, names in pairs_by_mount_point.items() if path in fault.location.split(", ")), "")
        if fault.kind in ("pool not imported", "array not assembled"):
            pair = next(iter(pairs_by_mount_point.values()), "")
        if pair and fault.kind in _KINDS_OF_ONE_SERVER:
            unknown.append(f"{fault.location}: {fault.problem}; that is right where the cluster of {pair} mounts it:"
                           " give the outputs of both")  # fmt: skip
        else:
            faults.append(fault)
    return replace(check, faults=tuple(faults), unknown=(*check.unknown, *unknown))


def exclude_storage_of_partners(
    storage_by_host: Mapping[str, ObservedStorage], faults: Sequence[LayoutFault], mount_points: Collection[str]
) -> list[LayoutFault]:
    """The faults without those of storage that another host uses. `mount_points` are those of the planned file system,
    and the locations of the faults begin with the name of the host."""
    return [fault for fault in faults if not _is_used_by_partner(storage_by_host, fault, mount_points)]


def _is_used_by_partner(
    storage_by_host: Mapping[str, ObservedStorage], fault: LayoutFault, mount_points: Collection[str]
) -> bool:
    host, _, name = fault.location.partition(": ")
    others = {other: storage for other, storage in storage_by_host.items() if other != host}
    if host not in storage_by_host or not others:
        return False
    if fault.kind == "pool not imported":
        return any(each.kind == "zfs" and each.location == name and each.vdevs
                   for storage in others.values() for each in storage.file_systems)  # fmt: skip
    if fault.kind == "array not assembled":
        view = find_member_view(storage_by_host, host, name)
        return view is not None and view.visible_count > 0
    host_identities = _list_identities_of_host(storage_by_host[host])
    if fault.kind == "not mounted":
        return any(host_identities & _list_identities_below(storage, each) for storage in others.values()
                   for each in storage.file_systems
                   if each.kind in _LOCAL_KINDS and each.options and each.location in mount_points)  # fmt: skip
    if fault.kind == "not mounted at a start":
        mounted = [each for each in storage_by_host[host].file_systems if each.options and each.location == name]
        below = {identity for each in mounted for identity in _list_identities_below(storage_by_host[host], each)}
        return any(below & _list_identities_of_host(storage) for storage in others.values())
    return False


def _list_identities_of_host(storage: ObservedStorage) -> set[str]:
    return {read_identity(disk, storage.disks) for disk in storage.disks.values() if disk.kind != "part"} - {""}


def _list_identities_below(storage: ObservedStorage, file_system: ObservedFileSystem) -> set[str]:
    """The identities of the drives and LUNs that a file system lies on."""
    name = file_system.device.rpartition("/")[2]
    tops = [disk.name for disk in storage.disks.values() if name and name in (disk.name, disk.settings.get("name"))]
    tops += [find_vdev_disk(storage, vdev.name).name for vdev in file_system.vdevs]
    return set(_iterate_identities(storage, tops)) - {""}


def _iterate_identities(storage: ObservedStorage, device_names: Sequence[str]) -> Iterator[str]:
    for name in device_names:
        for disk in storage.iterate_disks_below(name):
            if disk.kind not in ("md", "part"):
                yield read_identity(disk, storage.disks)
