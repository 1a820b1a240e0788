# SPDX-License-Identifier: Apache-2.0
"""The values that the scripts of a plan set on the devices that outputs show. Devices with different planned values are
not compared as peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonde.design.layout.check_planned_arrays import list_planned_arrays, pair_arrays
from sonde.design.layout.device_identity import is_planned_device
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.design.layout.written_attributes import WrittenAttribute, group_by_command

# Attributes of arrays in observations, by the option of mdadm that sets them.
_ARRAY_ATTRIBUTES = {
    "--chunk": ("unit", "minimum_io_size", "optimal_io_size"), "--bitmap": ("bitmap", "bitmap_position"),
    "--layout": ("layout",), "--metadata": ("metadata",),
}  # fmt: skip


def list_planned_values(
    observed_storage: ObservedStorage, written: Sequence[WrittenAttribute]
) -> Mapping[tuple[str, str], str]:
    """The planned value of each attribute by the name of the device and that of the attribute. Paths have the values of
    their map."""
    values: dict[tuple[str, str], str] = {}
    devices: dict[str, list[ObservedDisk]] = {}
    for attribute in written:
        name = attribute.option.rpartition("/")[2]
        for path in attribute.devices:
            if path not in devices:
                devices[path] = _find_planned_disks(observed_storage, path)
            for disk in devices[path]:
                values |= {(path.name, name): attribute.value for path in disk.paths}
                values[disk.name, name] = attribute.value
    planned_arrays = list_planned_arrays(group_by_command(written).values())
    for array_name, array in pair_arrays(observed_storage, planned_arrays).items():
        for option, names in _ARRAY_ATTRIBUTES.items():
            values |= {(array_name, name): array.options.get(("mdadm", option), "") for name in names}
    return values


def _find_planned_disks(observed_storage: ObservedStorage, planned_path: str) -> list[ObservedDisk]:
    """The disks of a planned path. Those with another name and no link of that kind are left out early: to compare each
    disk with each path takes long on hosts with hundreds of them."""
    name = planned_path.rpartition("/")[2]
    is_identity = planned_path.startswith("/dev/disk/by-id/")
    disks = [disk for disk in observed_storage.disks.values() if is_identity or planned_path in disk.settings.get(
        "links", "").split() or any(text.endswith(name) for text in (
            disk.name, disk.settings.get("name", ""), disk.settings.get("array_name", "")))]  # fmt: skip
    return [disk for disk in disks if is_planned_device(observed_storage, planned_path, disk)]
