# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of a plan: how many tasks, files and bytes each phase means, without touching storage.

Where there is an engine, what it counts is shown (``sonde-engine resolve``): it alone knows how much there is to read.
This arithmetic is for a plan on paper. The formulae are the engine's, and a test holds them to it for what is written:
segments = ceil(volume of one task / files / block), at least 1, and a pass moves segments x block bytes in each file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.operations import ON_DIRECTORIES, WRITING
from sonde.model.plan import Plan
from sonde.model.resolve import directories, holders
from sonde.model.units import parse_bytes, parse_duration


@dataclass(frozen=True)
class PhaseVolume:
    """What one phase is planned to do in one pass."""

    id: str
    op: str
    backend: str
    mapping: str
    tasks: int
    files: int
    transfer: int  # bytes
    block: int  # bytes
    segments: int
    bytes: int  # over all tasks, one pass
    operations: int
    time: float | None  # seconds, when a time ends the phase instead of the volume
    stonewall: float | None  # seconds, when the phase may end earlier
    span: int  # bytes of storage that the files of this phase occupy in the end


def phase_volumes(plan: Plan, tasks: int, nodes: int = 1, node_memory: int | None = None) -> list[PhaseVolume]:
    """One entry a phase. Without `node_memory` a volume that is relative to it counts as one block a task."""
    return [_phase(plan, phase, tasks, nodes, node_memory) for phase in plan.phases]


def written_bytes(volumes: list[PhaseVolume]) -> int:
    """Space the run needs at most: phases write into the same files, so the largest counts, not the sum."""
    return max((one.span for one in volumes if one.op in WRITING or one.op == "create"), default=0)


def items_of_task(tree: Mapping[str, Any]) -> int:
    """Items that each task has in all copies of a tree."""
    if "items_per_task" in tree:
        return int(tree["items_per_task"])
    return int(tree.get("items_per_dir", 0)) * holders(tree)


def _tree_phase(plan: Plan, phase: Mapping[str, Any], tasks: int, nodes: int) -> PhaseVolume:
    meta = plan.meta_of(phase)
    tree, file, stop = meta["tree"], meta["file"], phase.get("stop", {})
    taking_part = min(tasks, int(plan.document.get("tasks", {}).get("used", tasks)))
    of_task = items_of_task(tree)
    if "window" in meta:
        of_task = int(meta["window"]["count"]) * (of_task // max(1, int(tree.get("items_per_dir", 0))))
    items = min(of_task, int(stop.get("items", of_task))) * taking_part
    trees = {"shared": 1, "per_task": taking_part, "per_node": nodes}[tree["scope"]]
    folders = directories(tree) * int(tree["copies"]) * trees
    op = phase["op"]
    length = parse_bytes(file["write"] if op == "create" else file["read"] if op == "read" else 0)
    made = {"walk": items + folders}.get(op, folders if op in ON_DIRECTORIES else items)
    moved = length * items
    if op == "cycle":  # of each item stat and read, and unless it is kept remove and create
        keeps = meta["cycle"]["keep"]
        length, made = parse_bytes(file["read"]), items * (2 if keeps else 4)
        moved = items * (length + (0 if keeps else parse_bytes(file["write"])))
    return PhaseVolume(
        id=phase["id"],
        op=op,
        backend=meta["backend"],
        mapping=tree["scope"],
        tasks=taking_part,
        files=items if meta["objects"] == "files" else 0,
        transfer=length,
        block=length,
        segments=1,
        bytes=moved,
        operations=made,
        time=_seconds(stop, "time"),
        stonewall=_seconds(stop, "stonewall"),
        span=parse_bytes(file["write"]) * items if op == "create" else 0,
    )


def _phase(plan: Plan, phase: Mapping[str, Any], tasks: int, nodes: int, memory: int | None) -> PhaseVolume:
    if plan.on_tree(phase):
        return _tree_phase(plan, phase, tasks, nodes)
    data = plan.data_of(phase)
    tasks = min(tasks, int(plan.document.get("tasks", {}).get("used", tasks)))
    access, mapping = data["access"], data["files"]
    transfer, block = parse_bytes(access["transfer"]), parse_bytes(access["block"])
    files_per_task = len(phase.get("files", ())) or (mapping["count"] if mapping["mapping"] == "many" else 1)
    if "volume" in access:
        volume = _volume_of_task(access["volume"], tasks, nodes, memory, block)
        of_file = -(-volume // files_per_task)
        segments = max(1, -(-of_file // block))
    else:
        segments = int(access["segments"])
    on_names = phase["op"] in ("stat", "remove")
    moved = 0 if on_names else segments * block * files_per_task * tasks
    stop = phase.get("stop", {})
    return PhaseVolume(
        id=phase["id"],
        op=phase["op"],
        backend=data["backend"],
        mapping=mapping["mapping"],
        tasks=tasks,
        files=_files(mapping, files_per_task, tasks, nodes),
        transfer=transfer,
        block=block,
        segments=segments,
        bytes=moved,
        operations=files_per_task * tasks if on_names else moved // transfer,
        time=_seconds(stop, "time"),
        stonewall=_seconds(stop, "stonewall"),
        span=moved + segments * tasks * files_per_task * parse_bytes(access["gap"]),
    )


def _seconds(stop: Mapping[str, Any], name: str) -> float | None:
    return parse_duration(stop[name]) if name in stop else None


def _volume_of_task(amount: Any, tasks: int, nodes: int, memory: int | None, block: int) -> int:
    if not isinstance(amount, Mapping):
        return parse_bytes(amount)
    if amount["of"] == "bytes":
        total = parse_bytes(amount.get("bytes", 0))
    elif memory is None:
        return block
    else:
        total = math.ceil(float(amount.get("x", 1.0)) * memory)
    share = {"task": 1, "node": max(1, tasks // nodes), "total": tasks}[amount.get("per", "task")]
    return -(-total // share)


def _files(mapping: Mapping[str, Any], files_per_task: int, tasks: int, nodes: int) -> int:
    kind = mapping["mapping"]
    if kind == "shared":
        return 1
    if kind == "per_node":
        return nodes
    if kind == "per_group":
        return math.ceil(tasks / max(1, int(mapping.get("group_size", 1))))
    return tasks * files_per_task
