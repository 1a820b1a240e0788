# SPDX-License-Identifier: Apache-2.0
"""Determines whether an observed device is the one that a plan names by a path: by links in /dev, WWN, serial number or
name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

_SLICE_PATTERN = re.compile(r"\$\(slice \"?(\S+?)\"? (\d+)\)")
_ARGUMENT_PATTERN = re.compile(r"\$\(slice \"?\S+?\"? \d+\)|\S+")
_PARTITION_NUMBER_PATTERN = re.compile(r"(?:-part|p)?(\d+)$")


def split_device_arguments(arguments_text: str) -> list[str]:
    """The devices among the arguments of a command; `$(slice DEVICE NUMBER)` is one of them."""
    return _ARGUMENT_PATTERN.findall(arguments_text)


def is_planned_device(observed_storage: ObservedStorage, planned_path: str, disk: ObservedDisk) -> bool | None:
    """Whether `disk` is the planned device; None where the plan names none or no output identifies it."""
    if match := _SLICE_PATTERN.fullmatch(planned_path):
        return _is_planned_partition(observed_storage, match[1], match[2], disk)
    if "$" in planned_path:
        return None
    if match := re.fullmatch(r"(/dev/(?:disk/by-[a-z]+|mapper)/.+)-part(\d+)", planned_path):
        return _is_planned_partition(observed_storage, match[1], match[2], disk)
    links = disk.settings.get("links", "").split()
    if planned_path in links or planned_path == f"/dev/{disk.name}":
        return True
    parent = observed_storage.disks.get(disk.on) if disk.kind == "part" else None
    if parent is not None and not re.search(r"(sd[a-z]+|p)\d+$", planned_path):
        disk, links = parent, parent.settings.get("links", "").split()  # a partition of all of a planned drive
        if planned_path in links or planned_path == f"/dev/{disk.name}":
            return True
    folder, _, name = planned_path.rpartition("/")
    if any(link.startswith(f"{folder}/") for link in links) and folder != "/dev":
        return False  # the links of that kind were collected, and this one leads elsewhere
    if folder == "/dev/disk/by-id":
        return _has_identity(disk, name)
    if planned_path == f"/dev/mapper/{disk.name}" or name in _list_names(disk, folder):
        return True
    # the administrator may have given it another name: it is another device only where the planned name exists
    return False if any(name in _list_names(other, folder) for other in observed_storage.disks.values()) else None


def _list_names(disk: ObservedDisk, folder: str) -> list[str]:
    """The names that a device has in a folder of /dev, as far as outputs without links show them."""
    if folder == "/dev/mapper":
        return [disk.name, disk.settings.get("name", "")]
    if folder == "/dev/md":
        return [disk.settings.get("array_name", "") or disk.name]
    if folder == "/dev":
        return [disk.name]
    group = folder.rpartition("/")[2].replace("-", "--")
    names = [disk.name, disk.settings.get("name", "")]
    return [text.removeprefix(f"{group}-").replace("--", "-") for text in names if text.startswith(f"{group}-")]


def _has_identity(disk: ObservedDisk, link_name: str) -> bool | None:
    """Whether a name below /dev/disk/by-id is that of a device, by the rules of udev; None is unknown."""
    kind, _, value = link_name.partition("-")
    wwn, serial = disk.settings.get("wwn", "").lower(), disk.settings.get("serial", "")
    mapper_uuid = disk.settings.get("uuid", "").removeprefix("mpath-")
    if link_name.startswith("dm-uuid-mpath-"):
        return mapper_uuid == link_name.removeprefix("dm-uuid-mpath-") if mapper_uuid else None
    if link_name.startswith("dm-name-"):
        return link_name.removeprefix("dm-name-") in (disk.name, disk.settings.get("name", ""))
    if kind == "wwn":
        if not wwn and mapper_uuid:
            return mapper_uuid.lower() == f"3{value.lower().removeprefix('0x')}"
        return wwn == value.lower() if wwn else None
    if kind == "scsi" and value.startswith("3"):
        identity = wwn or f"0x{mapper_uuid[1:].lower()}" * bool(mapper_uuid)
        return identity == f"0x{value[1:].lower()}" if identity else None
    if kind in ("ata", "scsi", "nvme", "usb", "virtio"):
        return value.endswith(serial.strip().replace(" ", "_")) if serial.strip() else None
    return None


def _is_planned_partition(
    observed_storage: ObservedStorage, planned_disk: str, number: str, disk: ObservedDisk
) -> bool | None:
    match = _PARTITION_NUMBER_PATTERN.search(disk.settings.get("name", "") or disk.name)
    parent = observed_storage.disks.get(disk.on)
    if parent is None:
        return None
    if match is not None and match[1] != number:
        return False
    return is_planned_device(observed_storage, planned_disk, parent)


def find_planned_names(
    observed_storage: ObservedStorage, planned_paths: list[str], disk: ObservedDisk
) -> list[str] | None:
    """The planned paths that lead to `disk`; None where that is not known of all of them and none is sure."""
    answers = {path: is_planned_device(observed_storage, path, disk) for path in planned_paths}
    matching = [path for path, answer in answers.items() if answer]
    return matching if matching or all(answer is False for answer in answers.values()) else None


def describe_planned_devices(planned_paths: Sequence[str]) -> str:
    """Planned devices as people read them: `$(slice DEVICE NUMBER)` is a partition of a device."""
    texts = [f"partition {match[2]} of {match[1]}" if (match := _SLICE_PATTERN.fullmatch(path)) else path
             for path in planned_paths]  # fmt: skip
    return ", ".join(texts)


def describe_device(disk: ObservedDisk) -> str:
    """The name of a device with what identifies it."""
    links = [link for link in disk.settings.get("links", "").split() if link.startswith("/dev/disk/by-")]
    mapper_name = disk.settings.get("name", "") if disk.name.startswith("dm-") else ""
    identity = disk.settings.get("wwn") or disk.settings.get("serial") or (links[0] if links else mapper_name)
    return f"{disk.name} ({identity})" if identity else disk.name
