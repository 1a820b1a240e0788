# SPDX-License-Identifier: Apache-2.0
"""Computes the bytes that a plan needs on its target.

The engine computes the same in ``engine/runs/footprint.cpp``; ``tests/together/test_plan_agreement.py`` compares them.
Phases that write the same files need the space of the largest phase, and other files add to it. A phase that a
stonewall may end early is not guaranteed to need space, unless its files are preallocated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.backends import BACKENDS_WITHOUT_STORAGE
from sonde.model.operations import WRITE_OPS
from sonde.model.plan import Plan
from sonde.model.units import parse_bytes
from sonde.model.volume import PhaseVolume, compute_phase_volumes, count_task_items


@dataclass(frozen=True)
class RequiredSpace:
    """`bytes` is needed for certain; `most_bytes` also counts the whole volume of phases with a stonewall."""

    bytes: int
    most_bytes: int


def compute_required_space(
    plan: Plan, task_count: int, node_count: int = 1, node_memory: int | None = None
) -> RequiredSpace:
    """Returns the space of the plan's files. Without `node_memory`, a volume relative to memory counts as one block
    per task."""
    estimated_volumes = compute_phase_volumes(plan, task_count, node_count, node_memory)
    return RequiredSpace(
        _sum_bytes_on_target(plan, estimated_volumes, False), _sum_bytes_on_target(plan, estimated_volumes, True)
    )


def _sum_bytes_on_target(plan: Plan, estimated_volumes: list[PhaseVolume], counts_stonewalled: bool) -> int:
    tasks = estimated_volumes[0].tasks if estimated_volumes else 0
    return _compute_data_bytes(plan, estimated_volumes, counts_stonewalled) * tasks + _compute_tree_bytes(
        plan, estimated_volumes, counts_stonewalled
    )


def _compute_data_bytes(plan: Plan, estimated_volumes: list[PhaseVolume], counts_stonewalled: bool) -> int:
    """Returns the bytes of one task's data files."""
    every_file, by_file = 0, dict[int, int]()
    for phase, volume in zip(plan.phases, estimated_volumes, strict=True):
        if plan.is_tree_phase(phase) or not _leaves_bytes_on_target(plan, phase, counts_stonewalled):
            continue
        file_bytes = volume.segments * volume.block_bytes
        numbers = _list_file_numbers(phase)
        if not numbers:
            every_file = max(every_file, file_bytes)
        for number in numbers:
            by_file[number] = max(by_file.get(number, 0), file_bytes)
    files = plan.resolve_data({})["files"]
    file_count = int(files["count"]) if files["mapping"] == "many" else 1
    return every_file * max(0, file_count - len(by_file)) + sum(max(every_file, size) for size in by_file.values())


def _list_file_numbers(phase: Mapping[str, Any]) -> list[int]:
    """Returns the numbers of each task's files that a phase writes; [] = all."""
    if phase["op"] != "duplex":
        return [int(number) for number in phase.get("files", ())]
    return [int(stream.get("file", 0)) for stream in phase.get("streams", ()) if stream["op"] in WRITE_OPS]


def _leaves_bytes_on_target(plan: Plan, phase_table: Mapping[str, Any], counts_stonewalled: bool) -> bool:
    data, stop = plan.resolve_data(phase_table), phase_table.get("stop", {})
    is_in_place = bool(data["files"].get("paths"))
    is_interruptible = "stonewall" in stop and (is_in_place or data["io"]["preallocate"] == "none")
    if (is_interruptible and not counts_stonewalled) or (is_in_place and "operations" in stop):
        return False
    return phase_table["op"] in WRITE_OPS and data["backend"] not in BACKENDS_WITHOUT_STORAGE


def _compute_tree_bytes(plan: Plan, estimated_volumes: list[PhaseVolume], counts_stonewalled: bool) -> int:
    """Returns the largest number of bytes in trees at one time: created minus removed ones."""
    existing, largest = dict[tuple[str, str], int](), 0
    for phase, volume in zip(plan.phases, estimated_volumes, strict=True):
        if not plan.is_tree_phase(phase) or volume.backend in BACKENDS_WITHOUT_STORAGE:
            continue
        meta, stop = plan.resolve_meta(phase), phase.get("stop", {})
        key = str(meta["tree"]["top"]), str(meta["objects"])
        if phase["op"] == "create":
            items = count_task_items(meta["tree"]) if "window" not in meta else volume.operations // volume.tasks
            items = min(items, int(stop.get("items", items)))
            is_counted = "stonewall" not in stop or counts_stonewalled
            copies = 1 if meta["file"]["shared_single"] else volume.tasks
            existing[key] = items * copies * parse_bytes(meta["file"]["write"]) if is_counted else 0
        elif phase["op"] == "remove":
            existing.pop(key, None)
        largest = max(largest, sum(existing.values()))
    return largest
