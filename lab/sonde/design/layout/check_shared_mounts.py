# SPDX-License-Identifier: Apache-2.0
"""Finds local file systems and pools that several hosts have mounted or imported from the same drives at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.check_fstab_mounts import is_target_line
from sonde.design.layout.check_fstab_sources import list_named_devices
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import read_identity
from sonde.design.layout.live.observations import FstabEntry, ObservedDisk, ObservedFileSystem, ObservedStorage
from sonde.design.layout.observe_written import list_disks_below

_LOCAL_KINDS = ("xfs", "ext3", "ext4", "btrfs")
# Hosts give these names in the order in which they find drives.
_NAMES_OF_ONE_HOST = ("/dev/sd", "/dev/nvme", "/dev/dm-")


def find_shared_mounts(storage_by_host: Mapping[str, ObservedStorage]) -> Iterator[LayoutFault | CheckedItem]:
    """File systems of one host alone that two hosts use. Copies of system disks have one UUID, but other drives; an
    array of md that runs on two hosts is another fault."""
    users: dict[str, dict[str, ObservedFileSystem]] = {}
    for host, storage in storage_by_host.items():
        for file_system in storage.file_systems:
            name = _read_name(storage, file_system)
            for identity in _list_identities(storage, file_system) if _is_in_use(file_system) else ():
                users.setdefault(f"{file_system.kind} {name} {identity}", {})[host] = file_system
    reported: set[frozenset[str]] = set()
    for by_host in users.values():
        locations = frozenset(f"{host}: {file_system.location}" for host, file_system in by_host.items())
        if locations in reported:
            continue
        reported.add(locations)
        yield CheckedItem("the hosts that use a file system", ", ".join(sorted(locations)))
        if len(by_host) > 1 and not all(_is_read_only(file_system) for file_system in by_host.values()):
            yield _describe_shared_mount(by_host)


def find_shared_fstab_lines(storage_by_host: Mapping[str, ObservedStorage]) -> Iterator[LayoutFault | CheckedItem]:
    """Devices that several hosts see, and that a start of each of them mounts."""
    lines: dict[str, dict[str, FstabEntry]] = {}
    for host, storage in storage_by_host.items():
        for entry in storage.fstab:
            for name in _list_device_names(storage, entry):
                lines.setdefault(name, {})[host] = entry
    shared: dict[tuple[str, ...], list[FstabEntry]] = {}
    parts_by_hosts: dict[tuple[str, ...], list[str]] = {}
    for by_host in lines.values():
        parts = [f"{host}: {entry.mount_point}" for host, entry in by_host.items()]
        automatic = tuple(host for host, entry in by_host.items() if not {"noauto", "ro"} & set(entry.options))
        if len(by_host) < 2 or set(parts) <= set(parts_by_hosts.get(automatic, ())):
            continue
        yield CheckedItem("the hosts whose fstab mounts a device", ", ".join(parts))
        shared.setdefault(automatic, []).append(by_host[next(iter(automatic or by_host))])
        parts_by_hosts.setdefault(automatic, []).extend(parts)
    for automatic, entries in shared.items():
        if len(automatic) > 1:
            yield _report_automatic_lines(automatic, entries, parts_by_hosts[automatic])


def _list_device_names(storage: ObservedStorage, entry: FstabEntry) -> list[str]:
    """What tells the device of a line from those of other hosts: its identity, and the UUID or label of a target, whose
    array runs on one host at a time."""
    devices = list_named_devices(storage, entry.source)
    if not is_target_line(entry):  # system disks copied with their UUID are not shared
        devices = [disk for disk in devices if entry.kind in _LOCAL_KINDS and _lies_on_map(storage, disk)]
        return [identity for disk in devices if (identity := read_identity(disk, storage.disks))]
    is_unique = "=" in entry.source or not entry.source.startswith(_NAMES_OF_ONE_HOST)
    names = [entry.source if "=" in entry.source else f"{entry.source} {entry.mount_point}"] * is_unique
    return names + [identity for disk in devices if (identity := read_identity(disk, storage.disks))]


def _report_automatic_lines(hosts: Sequence[str], entries: Sequence[FstabEntry], parts: Sequence[str]) -> LayoutFault:
    texts = [f"{entry.source} at {entry.mount_point}" for entry in entries]
    devices_text = f", {'one device' if len(entries) == 1 else 'devices'} of both, without noauto"
    return LayoutFault(
        "mounted at a start of several hosts", "; ".join(parts),
        f"fstab of {' and '.join(hosts)} mounts {join_first_names(texts)}{devices_text}",
        "a host that starts while the other one has it mounted mounts it too: both together destroy it, if no"
        " protection (mmp) prevents it",
        "write noauto into both lines, and let the cluster manager or an administrator mount it",
        ("noauto",), tuple(parts),
    )  # fmt: skip


def _lies_on_map(storage: ObservedStorage, disk: ObservedDisk) -> bool:
    return any(each.kind == "multipath" for each in storage.iterate_disks_below(disk.name))


def _read_name(storage: ObservedStorage, file_system: ObservedFileSystem) -> str:
    """What tells file systems on one drive apart, as those on two volumes of a group: the UUID, else the location."""
    device = file_system.device.rpartition("/")[2]
    uuids = [disk.settings.get("fs_uuid", "") for disk in storage.disks.values()
             if device and device in (disk.name, disk.settings.get("name"))]  # fmt: skip
    return file_system.uuid or next((uuid for uuid in uuids if uuid), file_system.location)


def _is_in_use(file_system: ObservedFileSystem) -> bool:
    if file_system.kind == "zfs":
        return bool(file_system.vdevs)
    return file_system.kind in _LOCAL_KINDS and bool(file_system.options)


def _is_read_only(file_system: ObservedFileSystem) -> bool:
    return "ro" in file_system.options


def _list_identities(storage: ObservedStorage, file_system: ObservedFileSystem) -> set[str]:
    """The identities of the drives and LUNs below; none where md is below, which a check of arrays compares."""
    disks = list_disks_below(storage, (file_system,))
    if any(disk.kind == "md" for disk in disks):
        return set()
    return {read_identity(disk, storage.disks) for disk in disks if disk.kind in ("disk", "multipath")} - {""}


def _describe_shared_mount(by_host: Mapping[str, ObservedFileSystem]) -> LayoutFault:
    names = [f"{host} ({file_system.location})" for host, file_system in by_host.items()]
    parts = tuple(f"{host}: {file_system.location}" for host, file_system in by_host.items())
    kind = next(iter(by_host.values())).kind
    verb, undo, check = "mounted", "unmount", "check it (xfs_repair -n, e2fsck -n) before it is mounted again"
    if kind == "zfs":
        verb, undo, check = "imported", "export", "scrub it; multihost=on (zpool set) prevents a second import"
    return LayoutFault(
        "used by several hosts", "; ".join(parts),
        f"{' and '.join(names)} have one {kind} {verb} at the same time, from the same drives or LUNs",
        f"{kind} is no file system of a cluster: two hosts that write to it destroy it",
        f"{undo} it at once on the host that does not serve it now, then {check}", parts=parts,
    )  # fmt: skip
