# SPDX-License-Identifier: Apache-2.0
"""Compares the slices of volumes of XLV with the planned ones."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.cray_x1_notation import shorten_device_name
from sonde.design.layout.faults import MAKE_AS_PLANNED, LayoutFault
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedStorage


def find_xlv_member_faults(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout
) -> Iterator[LayoutFault | CheckedItem]:
    """The slices of a volume of XLV: those of its data, and those of its log."""
    data = [member for device in planned_layout.devices for member in device.members] if planned_layout.devices else []
    for is_striped, devices in ((True, data), (False, [planned_layout.log] if planned_layout.log is not None else [])):
        planned = [shorten_device_name(device) for device in devices]
        for disk in observed_storage.disks.values():
            if disk.kind != "xlv" or (disk.level == "raid0") != is_striped or not planned:
                continue
            names = [member.rsplit("/", 1)[-1] for member in disk.members]
            absent = [name for name in planned if name not in names]
            if is_striped and len(absent) == len(planned):
                continue  # the volume of another file system, or the plan has other names
            yield CheckedItem("the planned physical volumes", disk.name)
            odd = [name for name in names if name not in planned]
            if odd:
                planned_text = f"; planned {'is' if len(absent) == 1 else 'are'} {', '.join(absent)}" if absent else ""
                yield LayoutFault(
                    "not as planned", disk.name,
                    f"{', '.join(odd)} {'are no members' if len(odd) > 1 else 'is no member'} of it in the plan"
                    f"{planned_text}",
                    "the volume lies on another LUN than planned, with other rates and failures", MAKE_AS_PLANNED,
                )  # fmt: skip
