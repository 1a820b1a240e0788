# SPDX-License-Identifier: Apache-2.0
"""Compares arrays of md over hosts that see the same drives: an array may run on one of them only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sonde.design.layout.check_inactive_arrays import normalize_uuid
from sonde.design.layout.check_superblocks import MEMBER_KIND
from sonde.design.layout.check_target_devices import find_base_device
from sonde.design.layout.device_identity import describe_device, is_planned_device
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import read_identity
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage


@dataclass(frozen=True)
class MemberView:
    """The members of an array that runs on `host`, as another host sees them: how many it sees, and the others."""

    host: str
    visible_count: int
    missing: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether the other host sees all members."""
        return not self.missing


@dataclass(frozen=True)
class SharedArray:
    """An array that runs on several hosts: its device on each, whether a file system of it is mounted there, and the
    parts of each host that the array holds."""

    title: str
    devices: Mapping[str, ObservedDisk]
    mounted: Mapping[str, bool]
    parts: Mapping[str, frozenset[str]]

    @property
    def superfluous_hosts(self) -> list[str]:
        """The hosts that should not run it, where one of them has it mounted."""
        return [host for host in self.devices if not self.mounted[host]] if any(self.mounted.values()) else []


def find_member_view(storage_by_host: Mapping[str, ObservedStorage], host: str, path: str) -> MemberView | None:
    """How a host sees the members of the array of a planned device; None where no other host runs that array."""
    for other, storage in storage_by_host.items():
        for disk in storage.disks.values() if other != host else ():
            array = find_base_device(storage, disk.name) if is_planned_device(storage, path, disk) else None
            if array is not None and array.kind == "md" and array.members:
                return compare_members(storage_by_host[host], storage, array, other)
    return None


def compare_members(
    storage: ObservedStorage, running_storage: ObservedStorage, array: ObservedDisk, running_host: str
) -> MemberView:
    """How a host sees the members of an array that another one runs."""
    identities = {read_identity(disk, storage.disks) for disk in storage.disks.values()}
    members = [running_storage.disks.get(name) or ObservedDisk(name) for name in array.members]
    identified = [member for member in members if read_identity(member, running_storage.disks)]
    if len(identified) == len(members):
        missing = [member for member in members if read_identity(member, running_storage.disks) not in identities]
        return MemberView(
            running_host, len(members) - len(missing), tuple(describe_device(member) for member in missing)
        )
    uuid = normalize_uuid(array.settings.get("array_uuid", ""))
    paths = {path.name for disk in storage.disks.values() for path in disk.paths}
    count = sum(disk.settings.get("fs_kind") == MEMBER_KIND and disk.name not in paths and uuid != ""
                and normalize_uuid(disk.settings.get("fs_uuid", "")) == uuid
                for disk in storage.disks.values())  # fmt: skip
    absent = max(0, len(members) - count)
    return MemberView(running_host, min(count, len(members)), ("a device without identity",) * absent)


def find_shared_arrays(storage_by_host: Mapping[str, ObservedStorage]) -> list[SharedArray]:
    """Arrays of one UUID and with a common member that run on several hosts. Arrays of cloned system disks have one
    UUID, but no common member; an array of a cluster (md-cluster) may run on several hosts."""
    devices_by_uuid: dict[str, dict[str, ObservedDisk]] = {}
    for host, storage in storage_by_host.items():
        for disk in storage.disks.values():
            uuid = normalize_uuid(disk.settings.get("array_uuid", ""))
            if disk.kind == "md" and uuid and "clustered" not in disk.settings:
                devices_by_uuid.setdefault(uuid, {})[host] = disk
    arrays = []
    for devices in devices_by_uuid.values():
        identities = {host: _list_identities(storage_by_host[host], disk) for host, disk in devices.items()}
        common = {host: disk for host, disk in devices.items()
                  if any(identities[host] & identities[other] for other in devices if other != host)}  # fmt: skip
        if common:
            arrays.append(_describe_shared_array(storage_by_host, common))
    return arrays


def _list_identities(storage: ObservedStorage, array: ObservedDisk) -> set[str]:
    members = (storage.disks.get(name) for name in array.members)
    return {read_identity(member, storage.disks) for member in members if member is not None} - {""}


def _describe_shared_array(
    storage_by_host: Mapping[str, ObservedStorage], devices: Mapping[str, ObservedDisk]
) -> SharedArray:
    mounted, parts = dict[str, bool](), dict[str, frozenset[str]]()
    for host, array in devices.items():
        storage = storage_by_host[host]
        above = [disk for disk in storage.disks.values()
                 if array.name in {below.name for below in storage.iterate_disks_below(disk.name)}]  # fmt: skip
        names = {name for disk in above for name in (disk.name, disk.settings.get("name", ""))} - {""}
        mounted[host] = any(each.options and each.device.rpartition("/")[2] in names for each in storage.file_systems)
        labels = {re.sub(r"[:=]", "-", disk.settings.get("fs_label", "")) for disk in above} - {""}
        parts[host] = frozenset(f"{host}: {part}" for part in names | labels)
    titles = [disk.settings.get("array_name", "") or disk.name for disk in devices.values()]
    return SharedArray(titles[0], devices, mounted, parts)


def explain_shared_arrays(arrays: Sequence[SharedArray], faults: Iterable[LayoutFault]) -> Iterator[LayoutFault]:
    """A fault for each array that runs on several hosts, and all other faults. What concerns the array on a host that
    should not run it follows from its fault: its remedies would let that host run or mount it."""
    remaining = list(faults)
    for array in arrays:
        parts = {part for host in array.superfluous_hosts for part in array.parts[host]}
        effects = [fault for fault in remaining if set(fault.parts or (fault.location,)) <= parts]
        remaining = [fault for fault in remaining if fault not in effects]
        yield _report_shared_array(array, tuple(f"{fault.location}: {fault.problem}" for fault in effects))
    yield from remaining


def correct_inactive_arrays(
    storage_by_host: Mapping[str, ObservedStorage], faults: Iterable[LayoutFault]
) -> Iterator[LayoutFault]:
    """The faults, where an inactive array of one host is one that another host runs: its drives are in use there."""
    running = {normalize_uuid(disk.settings["array_uuid"]): (host, disk) for host, storage in storage_by_host.items()
               for disk in storage.disks.values() if disk.kind == "md" and disk.settings.get("array_uuid")}  # fmt: skip
    for fault in faults:
        host, _, name = fault.location.partition(": ")
        storage = storage_by_host.get(host, ObservedStorage())
        disk = storage.disks.get(name) if fault.kind == "array inactive" else None
        other, array = running.get(normalize_uuid(disk.settings.get("array_uuid", "")) if disk else "", ("", None))
        if (
            disk is None
            or array is None
            or other == host
            or not (
                _list_identities(storage, replace(disk, members=tuple(disk.settings["inactive_members"].split())))
                & _list_identities(storage_by_host[other], array)
            )
        ):
            yield fault
            continue
        title = array.settings.get("array_name", "") or array.name
        yield replace(
            fault, problem=f"{title} is inactive here, and {other} runs it ({array.name})",
            cost=f"when {host} takes over, its assembly fails while {name} holds the drives",
            remedy=f"mdadm --stop /dev/{name} on {host}; its drives hold the data of {other}: never --zero-superblock,"
            " --create or --run. Let no host assemble it at its start (AUTO -all in mdadm.conf, and the initramfs made"
            " again)",
        )  # fmt: skip


def _report_shared_array(array: SharedArray, consequences: tuple[str, ...]) -> LayoutFault:
    hosts = " and ".join(array.devices)
    serving = " and ".join(host for host, is_mounted in array.mounted.items() if is_mounted)
    commands = [f"mdadm --stop /dev/{array.devices[host].name} on {host}" for host in array.superfluous_hosts]
    if commands:
        use = f"; {serving} has its file system mounted"
        remedy = " and ".join(commands)
    else:
        use = ""
        remedy = "unmount it and mdadm --stop it on the host that should not serve it"
    return LayoutFault(
        "array active on several hosts", array.title, f"{hosts} run it at the same time{use}",
        "each of them writes superblock, bitmap and rebuilt blocks as if it were alone: data is destroyed",
        f"{remedy}, at once; never mount it there. Let no host assemble it at its start (AUTO -all in mdadm.conf, and"
        " the initramfs made again): the cluster (pacemaker) assembles it where it is mounted. Then compare its parity"
        " (echo check > md/sync_action), and run e2fsck -n while it is unmounted",
        parts=(array.title,), consequences=consequences,
    )  # fmt: skip
