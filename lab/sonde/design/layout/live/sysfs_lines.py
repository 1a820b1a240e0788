# SPDX-License-Identifier: Apache-2.0
"""Parses lines of files below /sys/block, as grep prints them with the names of the files."""

from __future__ import annotations

import re

from sonde.design.layout.live.md_output import PARITY_DRIVES, get_array_layout_name
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.model.errors import UserError

_SECTOR = 512
_LINE_PATTERN = re.compile(r"^/sys/(?:class/)?block/([^/]+)/(?:(queue|md|device)/)?([\w/:.-]+):(.*)$", re.MULTILINE)
# Attributes of the device itself, not of its queue, that are of use.
_DEVICE_ATTRIBUTES = {"ro": "read_only", "alignment_offset": "alignment"}


def read_sysfs_lines(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses grep -H "" of files below /sys/block: the settings of queues, arrays and devices."""
    attributes: dict[str, dict[str, dict[str, str]]] = {}
    for name, folder, setting, value in _LINE_PATTERN.findall(output_text):
        attributes.setdefault(name, {}).setdefault(folder, {})[setting] = value.strip()
    disks = {name: _make_disk(name, folders, output_origin) for name, folders in attributes.items()}
    if not disks:
        raise UserError(
            f"{output_origin} names no setting; it should be lines like /sys/block/sda/queue/nr_requests:256."
        )
    return ObservedStorage(disks=disks)


def _make_disk(disk_name: str, text_by_folder_and_file: dict[str, dict[str, str]], output_origin: str) -> ObservedDisk:
    queue, array, device = (
        text_by_folder_and_file.get("queue", {}),
        text_by_folder_and_file.get("md", {}),
        dict(text_by_folder_and_file.get("device", {})),
    )
    device = {_name_link(name): value for name, value in device.items()}
    state, depth = device.pop("state", ""), device.pop("queue_depth", "")
    general = {_DEVICE_ATTRIBUTES[key]: value for key, value in text_by_folder_and_file.get("", {}).items()
               if key in _DEVICE_ATTRIBUTES and value != "0"}  # fmt: skip
    size = text_by_folder_and_file.get("", {}).get("size", "")
    level, chunk = array.get("level", ""), array.get("chunk_size", "")
    drives = array.get("raid_disks", "")
    data = int(drives) - PARITY_DRIVES[level] if level in PARITY_DRIVES and drives.isdigit() else None
    return ObservedDisk(
        disk_name, "md" if disk_name.startswith("md") else "disk", int(size) * _SECTOR if size.isdigit() else None,
        queue=queue, settings={**general, **device, **read_array_attributes(array)}, level=level, data=data,
        unit=int(chunk) or None if chunk.isdigit() else None, origin=output_origin,
        flash={"0": True, "1": False}.get(queue.get("rotational", "")),
        queue_depth=int(depth) if depth.isdigit() else None, state=state,
    )  # fmt: skip


def _name_link(path: str) -> str:
    """A file about the link of a drive by its name, that of the port above it with a prefix."""
    name = path.rsplit("/", 1)[-1]
    if not re.fullmatch(r"negotiated_linkrate|(?:current|max)_link_\w+", name):
        return path
    return f"port_{name}" if re.search(r"device/\.\./[^/]+$", path) else name


def read_array_attributes(text_by_file: dict[str, str]) -> dict[str, str]:
    """Files of /sys/block/…/md by their names, with the layout and the write-mostly members in the terms of mdadm."""
    settings = {name: value for name, value in text_by_file.items() if not name.startswith("dev-")}
    if layout := get_array_layout_name(text_by_file.get("level", ""), settings.pop("layout", "")):
        settings["layout"] = layout
    states = {name.split("/")[0].removeprefix("dev-"): value for name, value in text_by_file.items()
              if name.startswith("dev-") and name.endswith("/state")}  # fmt: skip
    if states:
        settings["write_mostly"] = " ".join(name for name, value in states.items() if "write_mostly" in value)
        settings["journal_devices"] = " ".join(name for name, value in states.items() if "journal" in value.split(","))
    if version := settings.pop("metadata_version", ""):
        settings["metadata"] = version
    return {name: value for name, value in settings.items() if value}
