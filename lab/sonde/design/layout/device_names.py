# SPDX-License-Identifier: Apache-2.0
"""Device names for commands: as described in the system file, else a shell variable that the administrator must set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sonde.design.layout.block_devices import BlockDevice, assign_partition_numbers, resolve_block_device
from sonde.model.shell import Argument, make_variable_reference, substitute_command_output
from sonde.model.system import System
from sonde.model.system.storage import RaidGroup, Volume

# Names of disks and volumes on the Cray X1.
_NOT_LINUX_PATTERN = re.compile("/hw/|/dev/(dsk|xlv)/")


@dataclass
class DeviceNames:
    """Names of devices. `required_variables` collects the variables for parts without a name: variable -> meaning."""

    system: System
    required_variables: dict[str, str] = field(default_factory=dict)

    def choose_device_name(self, part_id: str) -> str:
        """The device of an array or volume that the host creates: as described, else a generated name."""
        path = find_described_device_path(self.system, part_id)
        if path:
            return path
        return (
            f"/dev/{part_id}/{part_id}"
            if uses_lvm(resolve_block_device(self.system, part_id))
            else f"/dev/md/{part_id}"
        )

    def make_device_argument(self, part_id: str) -> Argument:
        """The device of a part as an argument of a command: its name, or the variable that holds it."""
        path = find_described_device_path(self.system, part_id)
        if path:
            return path
        item = self.system.get_part(part_id)
        below = self.system.find_references(part_id, "on") if item.kind == "slices" else ()
        if below:
            number = assign_partition_numbers(self.system, below[0])[part_id]
            return substitute_command_output("slice", self.make_device_argument(below[0]), number)
        if item.kind in ("raid_groups", "volumes") and self._is_created_by_host(part_id):
            return self.choose_device_name(part_id)
        name = "DEV_" + re.sub(r"[^A-Z0-9]", "_", part_id.upper())
        kind = {"drives": "drive", "luns": "LUN", "raid_groups": "RAID group", "volumes": "volume"}[item.kind]
        self.required_variables[name] = f"the device of {kind} {part_id}, like /dev/disk/by-id/..."
        return make_variable_reference(name)

    def _is_created_by_host(self, part_id: str) -> bool:
        item = self.system.get_part(part_id)
        if isinstance(item.table, RaidGroup) and item.table.level == "declustered":
            return False  # md has no declustered arrays
        return item.kind == "volumes" or self.system.find_first_reference(part_id, "controller") is None

    def make_device_arguments(self, devices: tuple[BlockDevice, ...]) -> list[Argument]:
        """The devices of several parts as arguments."""
        return [self.make_device_argument(device.id) for device in devices]


def find_described_device_path(system: System, part_id: str) -> str:
    """The device path that the system file gives a part, or empty. A range of names is divided among the parts of a
    table."""
    described = _get_member_of_part(system, part_id, "device")
    return "" if _NOT_LINUX_PATTERN.match(described) else described


def find_bitmap_file(system: System, raid_group_id: str) -> str:
    """The file on another device that the system file gives the write-intent bitmap of a RAID group, or empty."""
    return _get_member_of_part(system, raid_group_id, "bitmap")


def _get_member_of_part(system: System, part_id: str, member: str) -> str:
    """A path that the system file gives a part; the names of a range belong to the parts of a table in turn."""
    item = system.get_part(part_id)
    described = item.read_ranged_text(member)
    is_shared = item.total > 1 and described == getattr(item.table, member, "")
    return described if described.startswith("/") and not is_shared else ""


def uses_lvm(device: BlockDevice) -> bool:
    """Whether a volume is created with LVM: as described, or instead of XLV if the stripe unit is a power of two."""
    table = device.table
    if not isinstance(table, Volume) or table.kind != "stripe" or table.software not in ("LVM", "XLV"):
        return False
    return device.stripe_unit_bytes is not None and device.stripe_unit_bytes & (device.stripe_unit_bytes - 1) == 0


def list_bitmap_folders(system: System, raid_groups: Sequence[BlockDevice]) -> list[str]:
    """The folders of the write-intent bitmaps that are files, each once: mdadm needs a separate file system there."""
    files = [file for group in raid_groups if (file := find_bitmap_file(system, group.id))]
    return list(dict.fromkeys(file.rpartition("/")[0] for file in files))
