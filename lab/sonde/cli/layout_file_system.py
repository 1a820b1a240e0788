# SPDX-License-Identifier: Apache-2.0
"""Which file system of a system file a verb of ``sonde layout`` is about."""

from __future__ import annotations

from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.plan import LayoutPlan
from sonde.model.errors import UserError, suggest_close_name
from sonde.model.system import System


def find_planned_layout(
    system: System, plan: LayoutPlan, file_system_id: str | None, mount_points: list[str]
) -> FileSystemLayout:
    """The planned file system: the one that the user names, the one mounted at a given mount point, or the only one."""
    names = [candidate.id for candidate in plan.file_systems]
    if file_system_id is None:
        mounted = [
            file_system for item in plan.system.list_parts("mounts") if getattr(item.table, "path", "") in mount_points
            for file_system in plan.system.find_references(item.id, "file_system")
        ]  # fmt: skip
        candidates = [candidate for candidate in dict.fromkeys(mounted) if candidate in names] or names
        if len(candidates) != 1:
            raise UserError(f"{system.id} has {', '.join(names)}; say with --as which one is meant.")
        file_system_id = candidates[0]
    if file_system_id not in names:
        raise UserError(
            f'{system.id} lays out no file system "{file_system_id}".{suggest_close_name(file_system_id, names)}'
        )
    return plan.get_layout(file_system_id)


def list_mount_points(system: System, file_system: str) -> list[str]:
    """The directories at which any node mounts a file system."""
    return [
        getattr(item.table, "path", "") for item in system.list_parts("mounts")
        if file_system in system.find_references(item.id, "file_system")
    ]  # fmt: skip
