# SPDX-License-Identifier: Apache-2.0
"""Finds the servers and units of a system's targets, with target names as in records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from sonde.model.json_access import get_text
from sonde.model.parents import GENERIC_SERVER_LEVEL, SERVER_LEVELS, TargetParents
from sonde.model.run import RecordedRun
from sonde.model.system.service import Mount, Target, Unit
from sonde.model.system.system import System


def find_target_parents(system: System, path_or_id: str, is_simulated: bool = False) -> TargetParents:
    """Returns the parents of the targets of a file system, given by path or by the id of a mount, pool or file system.

    If the file system is unknown, all targets count, unless two have the same name. A simulated run names targets by
    id, Lustre by index, BeeGFS by number, and a label replaces all of these.
    """
    file_system = _find_file_system(system, path_or_id)
    targets = system.find_targets(file_system) if file_system else system.list_part_ids("targets")
    servers: dict[str, dict[str, list[str]]] = {}
    units: dict[str, dict[str, list[str]]] = {}
    names = list(targets) if is_simulated else list_recorded_target_names(system, targets)
    if len(set(names)) < len(names):
        return TargetParents()
    for target, name in zip(targets, names, strict=True):
        kind = _get_target(system, target).kind
        for server in system.find_servers(target)[:1]:
            servers.setdefault(SERVER_LEVELS.get(kind, GENERIC_SERVER_LEVEL), {}).setdefault(server, []).append(name)
    for unit in system.find_units(file_system) if file_system else system.list_part_ids("units"):
        table = system.get_part(unit).table
        level = (table.kind if isinstance(table, Unit) else "") or "unit"
        targets_of_part = dict(zip(targets, names, strict=True))
        for target in system.find_targets(unit):
            if target in targets_of_part:
                units.setdefault(level, {}).setdefault(unit, []).append(targets_of_part[target])
    levels = {
        level: {part: tuple(targets_of_part) for part, targets_of_part in parts.items()}
        for level, parts in {**servers, **units}.items()
    }
    return TargetParents(system.id, levels)


def add_target_parents(run: RecordedRun, system: System) -> RecordedRun:
    """Returns the run with the servers and units of its targets from `system`. Raises SystemFileError."""
    simulated = run.run_line.simulated
    location = str(simulated.get("mount") or "") if simulated else ""
    location = location or get_text(run.plan, "target", "path") or get_text(run.notes, "target")
    parents = find_target_parents(system, location, is_simulated=bool(simulated))
    return replace(run, notes={**run.notes, "parents": parents.to_json()})


def _find_file_system(system: System, path_or_id: str) -> str:
    """Returns the id of the file system at a path or id; empty when it is not determined."""
    if path_or_id in system.list_part_ids("file_systems"):
        return path_or_id
    if path_or_id in system.list_part_ids("mounts") or path_or_id in system.list_part_ids("pools"):
        return system.find_first_reference(path_or_id, "file_system") or ""
    candidates: list[tuple[int, str]] = []
    for item in system.list_parts("mounts"):
        path = item.table.path if isinstance(item.table, Mount) else ""
        if path and (
            PurePosixPath(path_or_id) == PurePosixPath(path) or PurePosixPath(path) in PurePosixPath(path_or_id).parents
        ):
            candidates.append((len(path), system.find_first_reference(item.id, "file_system") or ""))
    if candidates:
        return max(candidates)[1]
    with_targets = [
        file_system for file_system in system.list_part_ids("file_systems") if system.find_targets(file_system)
    ]
    return with_targets[0] if len(with_targets) == 1 else ""


def list_recorded_target_names(system: System, target_ids: Sequence[str]) -> list[str]:
    """Returns the names of targets as in the `targets` line of a record of a real run, in the same order.

    Lustre's targets without an index are numbered in the order of `target_ids`.
    """
    osts = [target for target in target_ids if _get_target(system, target).kind == "ost"]
    return [
        _make_recorded_target_name(system, target, osts.index(target) if target in osts else 0) for target in target_ids
    ]


def _make_recorded_target_name(system: System, target_id: str, target_number: int) -> str:
    item, table = system.get_part(target_id), _get_target(system, target_id)
    index = None if table.index is None else int(table.index) + item.position
    if table.label:
        server = system.find_first_reference(target_id, "server") or ""
        number = item.position if index is None else index
        return table.label.replace("{id}", target_id).replace("{index}", str(number)).replace("{server}", server)
    if table.kind == "ost":
        return f"OST{target_number if index is None else index:04x}"
    return str(index) if table.kind == "target" and index is not None else target_id


def _get_target(system: System, target_id: str) -> Target:
    table = system.get_part(target_id).table
    assert isinstance(table, Target)
    return table
