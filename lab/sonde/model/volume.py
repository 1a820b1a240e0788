# SPDX-License-Identifier: Apache-2.0
"""Computes tasks, files and bytes of each phase of a plan without accessing storage.

With an engine, ``sonde-engine resolve`` gives the numbers, because only the engine can determine how much data exists
to read. The formulas are the engine's, and a test compares them for write phases: segments = ceil(volume of one task /
files / block), at least 1; a pass transfers segments x block bytes in each file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.operations import DIRECTORY_OPS
from sonde.model.plan import Plan
from sonde.model.plan_resolution import count_directories, count_item_directories
from sonde.model.units import parse_bytes, parse_duration


@dataclass(frozen=True)
class PhaseVolume:
    """Planned amounts of one phase in one pass."""

    id: str
    op: str
    backend: str
    mapping: str
    tasks: int
    files: int
    transfer_bytes: int  # bytes
    block_bytes: int  # bytes
    segments: int
    bytes: int  # over all tasks, one pass
    operations: int
    time_limit_s: float | None  # seconds, when a time limit ends the phase instead of the volume
    stonewall_s: float | None  # seconds, when the phase may end earlier


def compute_phase_volumes(
    plan: Plan, task_count: int, node_count: int = 1, node_memory: int | None = None
) -> list[PhaseVolume]:
    """Returns one entry per phase. Without `node_memory`, a volume relative to memory counts as one block per task."""
    return [_compute_phase(plan, phase, task_count, node_count, node_memory) for phase in plan.phases]


def count_task_items(resolved_tree: Mapping[str, Any]) -> int:
    """Returns the items per task in all copies of a tree."""
    if "items_per_task" in resolved_tree:
        return int(resolved_tree["items_per_task"])
    return int(resolved_tree.get("items_per_dir", 0)) * count_item_directories(resolved_tree)


def _compute_tree_phase(plan: Plan, phase: Mapping[str, Any], task_count: int, node_count: int) -> PhaseVolume:
    meta = plan.resolve_meta(phase)
    tree, file, stop = meta["tree"], meta["file"], phase.get("stop", {})
    active_tasks = min(task_count, int(plan.document.get("tasks", {}).get("active", task_count)))
    items_per_task = count_task_items(tree)
    if "window" in meta:
        items_per_task = int(meta["window"]["count"]) * (items_per_task // max(1, int(tree.get("items_per_dir", 0))))
    items = min(items_per_task, int(stop.get("items", items_per_task))) * active_tasks
    tree_count = {"shared": 1, "per_task": active_tasks, "per_node": node_count}[tree["scope"]]
    directory_count = count_directories(tree) * int(tree["copies"]) * tree_count
    op = phase["op"]
    file_bytes = parse_bytes(file["write"] if op == "create" else file["read"] if op == "read" else 0)
    operations = {"walk": items + directory_count}.get(op, directory_count if op in DIRECTORY_OPS else items)
    moved_bytes = file_bytes * items
    if op == "cycle":  # per item: stat and read, and without `keep` also remove and create
        keeps_items = meta["cycle"]["keep"]
        file_bytes, operations = parse_bytes(file["read"]), items * (2 if keeps_items else 4)
        moved_bytes = items * (file_bytes + (0 if keeps_items else parse_bytes(file["write"])))
    return PhaseVolume(
        id=phase["id"],
        op=op,
        backend=meta["backend"],
        mapping=tree["scope"],
        tasks=active_tasks,
        files=items if meta["objects"] == "files" else 0,
        transfer_bytes=file_bytes,
        block_bytes=file_bytes,
        segments=1,
        bytes=moved_bytes,
        operations=operations,
        time_limit_s=_parse_stop_time(stop, "time"),
        stonewall_s=_parse_stop_time(stop, "stonewall"),
    )


def _compute_phase(
    plan: Plan, phase: Mapping[str, Any], task_count: int, node_count: int, memory: int | None
) -> PhaseVolume:
    if plan.is_tree_phase(phase):
        return _compute_tree_phase(plan, phase, task_count, node_count)
    data = plan.resolve_data(phase)
    task_count = min(task_count, int(plan.document.get("tasks", {}).get("active", task_count)))
    access, files = data["access"], data["files"]
    transfer, block = parse_bytes(access["transfer"]), parse_bytes(access["block"])
    files_per_task = len(phase.get("files", ())) or (files["count"] if files["mapping"] == "many" else 1)
    if "volume" in access:
        volume = _compute_task_volume(access["volume"], task_count, node_count, memory, block)
        file_volume = -(-volume // files_per_task)
        segments = max(1, -(-file_volume // block))
    else:
        segments = int(access["segments"])
    is_metadata_op = phase["op"] in ("stat", "remove")
    # How much a replay moves is in its list of operations only.
    slots = 0 if phase["op"] == "replay" else segments * block // transfer * files_per_task  # of a task
    moved_bytes = 0 if is_metadata_op else _count_bytes(access, slots) * task_count
    stop = phase.get("stop", {})
    return PhaseVolume(
        id=phase["id"],
        op=phase["op"],
        backend=data["backend"],
        mapping=files["mapping"],
        tasks=task_count,
        files=_count_files(files, files_per_task, task_count, node_count),
        transfer_bytes=transfer,
        block_bytes=block,
        segments=segments,
        bytes=moved_bytes,
        operations=(files_per_task if is_metadata_op else slots) * task_count,
        time_limit_s=_parse_stop_time(stop, "time"),
        stonewall_s=_parse_stop_time(stop, "stonewall"),
    )


def _count_bytes(access: Mapping[str, Any], operation_count: int) -> int:
    """Returns the bytes that so many operations move; with mixed sizes their expectation."""
    if not access.get("sizes"):
        return operation_count * parse_bytes(access["transfer"])
    mean = sum(parse_bytes(entry["size"]) * float(entry["percent"]) / 100 for entry in access["sizes"])
    return math.floor(operation_count * mean + 0.5)


def _parse_stop_time(stop_rule: Mapping[str, Any], rule_name: str) -> float | None:
    return parse_duration(stop_rule[rule_name]) if rule_name in stop_rule else None


def _compute_task_volume(
    amount_member: Any, task_count: int, node_count: int, memory_bytes: int | None, block_bytes: int
) -> int:
    if not isinstance(amount_member, Mapping):
        return parse_bytes(amount_member)
    if amount_member["of"] == "bytes":
        total = parse_bytes(amount_member.get("bytes", 0))
    elif memory_bytes is None:
        return block_bytes
    else:
        total = math.ceil(float(amount_member.get("x", 1.0)) * memory_bytes)
    divisor = {"task": 1, "node": max(1, task_count // node_count), "total": task_count}[
        amount_member.get("per", "task")
    ]
    return -(-total // divisor)


def _count_files(mapping: Mapping[str, Any], files_per_task: int, task_count: int, node_count: int) -> int:
    mapping_name = mapping["mapping"]
    if mapping_name == "shared":
        return int(mapping.get("count", 1))
    if mapping_name == "per_node":
        return node_count
    if mapping_name == "per_group":
        return math.ceil(task_count / max(1, int(mapping.get("group_size", 1))))
    return task_count * files_per_task
