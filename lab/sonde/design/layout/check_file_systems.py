# SPDX-License-Identifier: Apache-2.0
"""Checks one host against the plans of all of its local file systems."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sonde.design.layout.faults import LayoutCheck, LayoutFault
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedStorage
from sonde.design.layout.plan import LayoutPlan

_LOCAL_KINDS = ("xfs", "ext4", "btrfs", "zfs")
_HOST_KINDS = ("nodes", "servers")


def list_local_layouts(
    plan: LayoutPlan, observed_storage: ObservedStorage, planned_mount_points: Collection[str]
) -> list[FileSystemLayout]:
    """The planned local file systems of a system of one host, if its outputs show mounts, and one of them by label or
    mount point; else none."""
    host_count = sum(len(plan.system.list_parts(kind)) for kind in _HOST_KINDS)
    layouts = [layout for layout in plan.file_systems if layout.table.kind in _LOCAL_KINDS]
    mounts = {each.location for each in observed_storage.file_systems if each.options}
    labels = {disk.settings.get("fs_label", "") for disk in observed_storage.disks.values()}
    is_shown = any(layout.id[:12] in labels or f"/{layout.id}" in mounts for layout in layouts)
    if host_count != 1 or not mounts or not (is_shown or mounts & set(planned_mount_points)):
        return []
    return layouts


def join_checks(checks: Sequence[LayoutCheck]) -> LayoutCheck:
    """One check of a host from those with each of its plans: each fault once, with the most consequences, and without
    those that another check explains. What one of them knows is known."""
    faults: dict[tuple[str, str, str], LayoutFault] = {}
    for fault in (fault for check in checks for fault in check.faults):
        key = (fault.kind, fault.location, fault.observation)
        if key not in faults or fault.fact_count > faults[key].fact_count:
            faults[key] = fault
    explained = {text for fault in faults.values() for text in fault.consequences}
    unknown = [text for text in checks[0].unknown if all(text in check.unknown for check in checks)]
    items = dict.fromkeys(item for check in checks for item in check.checked_items)
    not_compared = dict.fromkeys(text for check in checks for text in check.not_compared)
    return LayoutCheck(
        tuple(fault for fault in faults.values() if f"{fault.location}: {fault.problem}" not in explained),
        tuple(unknown),
        tuple(items),
        tuple(not_compared),
    )
