# SPDX-License-Identifier: Apache-2.0
"""The servers and units of a described system's targets, by the names that records have for the targets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from sonde.model.json_parts import text
from sonde.model.parents import SERVER, SERVERS, Parents
from sonde.model.run import Run
from sonde.model.system.service import Mount, Target, Unit
from sonde.model.system.system import System


def parents_of(system: System, place: str, simulated: bool = False) -> Parents:
    """Of the targets of the file system at `place`: a path, or a mount, pool or file system by its id.

    Where the system does not say which that is, all count, as long as no two targets have the same name. A simulated
    run names targets by their ids; Lustre by their index, BeeGFS by its number.
    """
    chosen = _file_system(system, place)
    targets = system.targets_of(chosen) if chosen else system.ids("targets")
    servers: dict[str, dict[str, list[str]]] = {}
    units: dict[str, dict[str, list[str]]] = {}
    kept = [one for one in targets if _target(system, one).kind == "ost"]  # numbered when the file does not do so
    names = [_name(system, one, kept.index(one) if one in kept else 0, simulated) for one in targets]
    if len(set(names)) < len(names):
        return Parents()
    for one, name in zip(targets, names, strict=True):
        kind = _target(system, one).kind
        for server in system.servers_of(one)[:1]:
            servers.setdefault(SERVERS.get(kind, SERVER), {}).setdefault(server, []).append(name)
    for unit in system.units_of(chosen) if chosen else system.ids("units"):
        table = system.item(unit).table
        level = (table.kind if isinstance(table, Unit) else "") or "unit"
        held = dict(zip(targets, names, strict=True))
        for one in system.targets_of(unit):
            if one in held:
                units.setdefault(level, {}).setdefault(unit, []).append(held[one])
    levels = {
        level: {part: tuple(held) for part, held in parts.items()} for level, parts in {**servers, **units}.items()
    }
    return Parents(system.id, levels)


def described(run: Run, system: System) -> Run:
    """The run with the servers and units of its targets as `system` has them. Raises SystemFileError."""
    simulated = run.head.simulated
    place = str(simulated.get("mount") or "") if simulated else ""
    place = place or text(run.plan, "target", "path") or text(run.notes, "target")
    parents = parents_of(system, place, simulated=bool(simulated))
    return replace(run, notes={**run.notes, "parents": parents.as_json()})


def _file_system(system: System, place: str) -> str:
    """The one that is meant; empty when that cannot be told."""
    if place in system.ids("file_systems"):
        return place
    if place in system.ids("mounts") or place in system.ids("pools"):
        return system.reference(place, "file_system") or ""
    found: list[tuple[int, str]] = []
    for item in system.items("mounts"):
        path = item.table.path if isinstance(item.table, Mount) else ""
        if path and (
            PurePosixPath(place) == PurePosixPath(path) or PurePosixPath(path) in PurePosixPath(place).parents
        ):
            found.append((len(path), system.reference(item.id, "file_system") or ""))
    if found:
        return max(found)[1]
    with_targets = [one for one in system.ids("file_systems") if system.targets_of(one)]
    return with_targets[0] if len(with_targets) == 1 else ""


def _name(system: System, target: str, number: int, simulated: bool) -> str:
    """As the line `targets` of a record has it."""
    item, table = system.item(target), _target(system, target)
    if simulated or table.kind not in ("ost", "target"):
        return target
    if table.index is not None:
        index = int(table.index) + item.position
    elif table.kind == "ost":
        index = number
    else:
        return target
    return f"OST{index:04x}" if table.kind == "ost" else str(index)


def _target(system: System, name: str) -> Target:
    table = system.item(name).table
    assert isinstance(table, Target)
    return table
