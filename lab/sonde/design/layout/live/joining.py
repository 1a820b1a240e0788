# SPDX-License-Identifier: Apache-2.0
"""Joins outputs of several tools: one device under several names, and file systems with the device they are on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial

from sonde.design.layout.live.md_output import OUTSIDE_OF_DATA
from sonde.design.layout.live.observations import (
    ObservedDisk,
    ObservedFileSystem,
    ObservedStorage,
    merge_disks,
)

_KERNEL_NAME_PATTERN = re.compile(r"md\d+")
# A WWID with the digit that says its type: 3 and a world-wide name of 8 or 16 bytes.
_TYPED_WWID_PATTERN = re.compile(r"3([0-9a-f]{16}|[0-9a-f]{32})")


def join_observations(observed_storage: ObservedStorage) -> ObservedStorage:
    """The same observations with each device and each file system once."""
    joined = _join_disks(_replace_numbers_of_members_by_names(observed_storage.disks))
    disks = _join_configured_arrays({name: _reduce_inactive_array(disk) for name, disk in joined.items()})
    file_systems = [
        _add_label_identity(_find_device(file_system, disks), disks)
        for file_system in sorted(
            _add_kinds(observed_storage.file_systems), key=partial(_is_bind_mount, observed_storage)
        )
    ]
    return replace(observed_storage, disks=disks, file_systems=tuple(_join_file_systems(file_systems)))


def _is_bind_mount(observed_storage: ObservedStorage, file_system: ObservedFileSystem) -> bool:
    """Whether a file system is mounted there a second time, as lines of fstab show: by a bind mount, or because one of
    them mounts the same device elsewhere."""
    if not (file_system.options and file_system.device.startswith("/dev/")):
        return False
    entries = {entry.mount_point: entry for entry in observed_storage.fstab}
    entry = entries.get(file_system.location)
    if entry is not None:
        return bool({"bind", "rbind"} & set(entry.options))
    return any(each.options and each.device == file_system.device and each.location in entries
               for each in observed_storage.file_systems)  # fmt: skip


def _reduce_inactive_array(disk: ObservedDisk) -> ObservedDisk:
    """An array that does not run is no device: nothing else that is shown of it is compared."""
    if not disk.settings.get("inactive_members"):
        return disk
    names = ("inactive_members", "array_uuid", "full_array_name")
    settings = {name: disk.settings[name] for name in names if name in disk.settings}
    return ObservedDisk(disk.name, "inactive array", settings=settings, origin=disk.origin)


def _join_configured_arrays(disks: Mapping[str, ObservedDisk]) -> dict[str, ObservedDisk]:
    """Adds the settings in mdadm.conf to arrays. mdadm.conf names an array by its UUID or by the name in its
    superblock, not by the name of the kernel. Lines of arrays that no other output shows are left out."""
    lines = [disk for disk in disks.values() if "configured_name" in disk.settings]
    joined = {name: disk for name, disk in disks.items() if "configured_name" not in disk.settings}
    for name, disk in list(joined.items()):
        if not lines or not disk.level or disk.kind != "md":
            continue
        uuid = disk.settings.get("array_uuid", "")
        same = [line for line in lines if uuid and line.settings.get("configured_uuid") == uuid]
        own_lines = same + [line for line in lines if line not in same and _is_array_of_line(disk, line)]
        settings = {key: line.settings[key] for line in own_lines[:1] for key in ("spare_group", "configured_device")}
        settings |= {} if own_lines else {"configured_device": "none"}
        if all(line.settings.get("configured_alert") == "none" for line in lines):
            settings["configured_alert"] = "none"
        settings |= (
            {"configured_devices": patterns} if (patterns := lines[0].settings.get("configured_devices")) else {}
        )
        settings["configured_uuid"] = " ".join(line.settings.get("configured_uuid", "") for line in own_lines)
        joined[name] = replace(disk, settings={**disk.settings, **settings})
    return joined


def _is_array_of_line(disk: ObservedDisk, array_line: ObservedDisk) -> bool:
    """Whether a line of mdadm.conf is about an array, by its name or by a path that leads to it."""
    device, links = array_line.settings["configured_device"], disk.settings.get("links", "").split()
    return (
        device in (f"/dev/{disk.name}", *links)
        or disk.settings.get("array_name") == array_line.settings["configured_name"]
    )


def _replace_numbers_of_members_by_names(disks: Mapping[str, ObservedDisk]) -> dict[str, ObservedDisk]:
    """Replaces the numbers of devices (8:16) in tables of device mapper by the names that lsblk gives them."""
    names = {disk.settings["number"]: name for name, disk in disks.items() if "number" in disk.settings}
    joined = {}
    for name, disk in disks.items():
        segments = tuple(
            replace(segment, members=tuple(names.get(member, member) for member in segment.members))
            for segment in disk.segments
        )
        joined[name] = replace(disk, segments=segments)
    return joined


def _add_kinds(file_systems: Sequence[ObservedFileSystem]) -> list[ObservedFileSystem]:
    """Gives file systems of unknown kind (of df -i) the kind that another output has for their mount point; those that
    no other output names are left out."""
    kinds = {each.location: each.kind for each in file_systems if each.kind}
    kinds |= {each.device: each.kind for each in file_systems if each.kind and each.device}
    typed = [replace(each, kind=each.kind or kinds.get(each.location) or kinds.get(each.device, ""))
             for each in file_systems]  # fmt: skip
    return [each for each in typed if each.kind]


def _join_disks(disks: Mapping[str, ObservedDisk]) -> dict[str, ObservedDisk]:
    """Devices that have the name of another one (dm-3 is mpatha), and arrays of the same members."""
    names: dict[str, str] = {}
    for disk in disks.values():
        name_in_kernel = disk.settings.get("name", "")
        # the kernel's name (dm-3) holds what lsblk says of the device; tools of LVM and multipath use the other name
        if name_in_kernel and name_in_kernel != disk.name and name_in_kernel in disks:
            names[name_in_kernel] = disk.name
    by_members: dict[tuple[str, ...], str] = {}
    for disk in disks.values():
        if disk.kind != "md" or not disk.members or disk.name in names:
            continue
        first = by_members.setdefault(tuple(sorted(disk.members)), disk.name)
        is_kernel_name = bool(_KERNEL_NAME_PATTERN.fullmatch(disk.name))
        # two names of the kernel are two arrays
        if first != disk.name and not (is_kernel_name and _KERNEL_NAME_PATTERN.fullmatch(first)):
            kernel_name, other = (disk.name, first) if is_kernel_name else (first, disk.name)
            names[other] = kernel_name
    joined: dict[str, ObservedDisk] = {}
    for disk in sorted(disks.values(), key=lambda disk: disk.name in names):
        name = names.get(disk.name, disk.name)
        renamed = replace(
            disk, name=name, on=names.get(disk.on, disk.on),
            members=tuple(dict.fromkeys(names.get(member, member) for member in disk.members)),
            segments=tuple(replace(segment, members=tuple(names.get(member, member) for member in segment.members))
                           for segment in disk.segments),
            settings={**disk.settings, **_rename_devices(disk, names),
                      **({"name": disk.name} if name != disk.name else {})},
        )  # fmt: skip
        joined[name] = merge_disks(joined[name], renamed) if name in joined else renamed
    return {name: _remove_spares_from_members(disk, joined) for name, disk in joined.items()}


def _rename_devices(disk: ObservedDisk, names: Mapping[str, str]) -> dict[str, str]:
    return {setting: " ".join(names.get(name, name) for name in disk.settings[setting].split())
            for setting in OUTSIDE_OF_DATA if setting in disk.settings}  # fmt: skip


def _remove_spares_from_members(disk: ObservedDisk, disks: Mapping[str, ObservedDisk]) -> ObservedDisk:
    """lsblk lists spares, failed drives and journals as members of their array; mdadm distinguishes them."""
    others = (disk.settings.get(name, "").split() for name in OUTSIDE_OF_DATA)
    spares = {name for names in others for name in names}
    # the members of one output may come with the sizes of another one, which counts spares
    if not spares & set(disk.members) and (not spares or len(disk.member_sizes) == len(disk.members)):
        return disk
    members = tuple(member for member in disk.members if member not in spares)
    sizes = tuple(size for member in members if member in disks and (size := disks[member].size) is not None)
    return replace(disk, members=members, member_sizes=sizes)


def _find_device(file_system: ObservedFileSystem, disks: Mapping[str, ObservedDisk]) -> ObservedFileSystem:
    """Adds the device of a file system: by UUID, else by mount point."""
    if file_system.device:
        return file_system
    for disk in disks.values():
        by_uuid = file_system.uuid and disk.settings.get("fs_uuid") == file_system.uuid
        by_mount = file_system.location.startswith("/") and disk.settings.get("mountpoint") == file_system.location
        if by_uuid or (by_mount and file_system.kind == disk.settings.get("fs_kind", file_system.kind)):
            return replace(file_system, device=f"/dev/{disk.name}")
    return file_system


def _add_label_identity(file_system: ObservedFileSystem, disks: Mapping[str, ObservedDisk]) -> ObservedFileSystem:
    """Adds what identifies the device on which a target of Lustre has its label, on any host and by any path."""
    facts = file_system.facts
    if not facts.get("label_origin") or facts.get("label_identity"):
        return file_system
    path = facts.get("label_device", "")
    name = path.rpartition("/")[2]
    identities = [read_identity(disk, disks) for disk in disks.values() if path and (
        name in (disk.name, disk.settings.get("name")) or path in disk.settings.get("links", "").split())]  # fmt: skip
    identity = next((each for each in identities if each), f"? {facts['label_origin']}")
    return replace(file_system, facts={**facts, "label_identity": identity})


def read_identity(disk: ObservedDisk, disks: Mapping[str, ObservedDisk]) -> str:
    """The WWID of a map or drive, or the UUID of an array; of a partition with its start."""
    if disk.kind == "part":
        parent = read_identity(disks[disk.on], disks) if disk.on in disks else ""
        return f"{parent} at {disk.start}" if parent else ""
    identity = disk.settings.get("uuid", "").removeprefix("mpath-") if disk.kind == "multipath" else ""
    identity = identity or disk.settings.get("wwn", "") or disk.settings.get("array_uuid", "")
    # multipath writes the type of the identifier before a world-wide name: 3600a0b80... is 0x600a0b80...
    typed = _TYPED_WWID_PATTERN.fullmatch(identity.lower())
    return typed[1] if typed is not None else identity.lower().removeprefix("0x")


def _join_file_systems(file_systems: list[ObservedFileSystem]) -> list[ObservedFileSystem]:
    """File systems of the same device, mount point or pool, each once."""
    joined: dict[tuple[str, str, int], ObservedFileSystem] = {}
    for file_system in file_systems:
        key = next(
            (
                key
                for key, other in joined.items()
                if other.kind == file_system.kind
                and (
                    (other.location == file_system.location and not _are_two_mounts(other, file_system))
                    or (file_system.device.startswith("/dev/") and other.device == file_system.device)
                )
            ),
            (file_system.kind, file_system.location, len(joined)),
        )
        joined[key] = _merge_file_systems(joined[key], file_system) if key in joined else file_system
    return list(joined.values())


def _are_two_mounts(first: ObservedFileSystem, second: ObservedFileSystem) -> bool:
    """Whether two devices are mounted at one mount point, one over the other."""
    return bool(first.options and second.options and first.device and second.device) and first.device != second.device


def _merge_file_systems(
    first_observation: ObservedFileSystem, second_observation: ObservedFileSystem
) -> ObservedFileSystem:
    empty = ObservedFileSystem("", "")
    additions = {
        member.name: getattr(second_observation, member.name)
        for member in fields(first_observation)
        if getattr(first_observation, member.name) == getattr(empty, member.name)
    }
    # a mount point says more than a device
    location = (
        second_observation.location if first_observation.location.startswith("/dev/") else first_observation.location
    )
    facts = {**second_observation.facts, **{name: value for name, value in first_observation.facts.items() if value}}
    labels = {
        each.facts["label_origin"] for each in (first_observation, second_observation) if each.facts.get("label_origin")
    }
    facts |= {"label_origin": "\n".join(sorted(labels))} if labels else {}
    texts = [
        each.facts["label_identity"]
        for each in (first_observation, second_observation)
        if each.facts.get("label_identity")
    ]
    facts |= (
        {"label_identity": "\n".join(sorted({line for text in texts for line in text.split("\n")}))} if texts else {}
    )
    return replace(
        first_observation, **additions | {"location": location, "kind": first_observation.kind, "facts": facts}
    )
