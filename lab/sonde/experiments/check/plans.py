# SPDX-License-Identifier: Apache-2.0
"""The plans of ``sonde check``, derived from machine facts and calibrated speed.

All functions are pure. Each plan is one run; ``figures`` maps its phases to figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.units import format_bytes, format_exact_bytes, parse_duration

MIB = 1 << 20
GIB = 1 << 30
SEQUENTIAL_TRANSFER_BYTES = MIB
SMALL_TRANSFER_BYTES = 4096
QUEUE_DEPTH = 32
# Duration of a timed phase. Quick: long enough to detect variation. Full: the duration of acceptance tests.
QUICK_S, FULL_S = 2.5, 60.0
# In quick mode, phases with a time limit may be shorter, and removal must not take longer than measuring.
_TIMED_S, _CACHED_S, _REMOVAL_S, _FILE_REMOVAL_S = 2.0, 1.0, 3.0, 6.0
_READ_PHASE_S = 1.3
# Small files of a quick check over all tasks: enough samples, and removed in seconds even if removal is slow.
_QUICK_FILES, _QUICK_FILES_DISCARD = 10_000, 4_000
# In full mode, buffered data exceeds memory by this factor, so that reads cannot come from the page cache.
MIN_DATA_TO_MEMORY_RATIO = 1.5
_MAX_FLUSH_S = 20.0


@dataclass(frozen=True)
class CheckedMachine:
    """Facts about machine and file system from the engine's probe."""

    cpus: int
    memory: int  # bytes
    available: int  # bytes that this user can write
    file_system: str
    memory_backed: bool
    direct: bool  # O_DIRECT works
    io_uring: bool
    evict: str | None  # treatment that evicts our data from the page cache; None if none works
    discard: bool = False  # freed blocks are trimmed at once, which slows down removal
    network: bool = False  # a network file system: servers answer metadata operations


@dataclass(frozen=True)
class CalibratedSpeed:
    """Rates that the calibration measured."""

    write_bytes_per_s: float  # of one task, until the data is on storage
    read_bytes_per_s: float  # of one task, with a cold cache
    files_per_s: float  # small files of one task: create and write
    removal_bytes_per_s: float = float("inf")  # bytes of removed files
    removal_files_per_s: float = float("inf")  # removed small files


@dataclass(frozen=True)
class CheckPart:
    """One plan of the check."""

    key: str  # sequential-1, sequential-all, random, small-files, small-files-durable
    title: str
    document: Mapping[str, Any]
    tasks: int


def plan_check_parts(
    target_directory: str, machine: CheckedMachine, speed: CalibratedSpeed, is_full_check: bool = False
) -> list[CheckPart]:
    """Returns all parts in the order of execution."""
    phase_seconds = FULL_S if is_full_check else QUICK_S
    counts = [1] if machine.cpus == 1 else [1, machine.cpus]
    check_parts = [
        _make_sequential_part(target_directory, machine, speed, tasks, phase_seconds, is_full_check) for tasks in counts
    ]
    check_parts.append(_make_random_part(target_directory, machine, speed, phase_seconds, is_full_check))
    check_parts.append(_make_small_files_part(target_directory, machine, speed, phase_seconds, is_durable=False))
    if not machine.memory_backed:
        check_parts.append(_make_small_files_part(target_directory, machine, speed, phase_seconds, is_durable=True))
    return check_parts


def estimate_check_seconds(machine: CheckedMachine, speed: CalibratedSpeed, is_full_check: bool) -> float:
    """Returns the approximate seconds of all parts, removal included."""
    phase_seconds = FULL_S if is_full_check else QUICK_S
    volume = _compute_sequential_volume(machine, speed, phase_seconds, is_full_check)
    total = 0.0
    for part in plan_check_parts("/", machine, speed, is_full_check):
        for phase in part.document["phases"]:
            stop = phase.get("stop", {})
            if "time" in stop:
                total += parse_duration(stop["time"])
            elif part.key.startswith("small"):
                total += min(phase_seconds, 1.0)
            elif phase["op"] == "read":
                total += volume / speed.read_bytes_per_s
            else:
                total += volume / speed.write_bytes_per_s
        total += min(volume / speed.removal_bytes_per_s, _REMOVAL_S if not is_full_check else float("inf"))
    return total


def build_calibration_plan(
    target_directory: str, volume_bytes: int, evict_method: str, uses_direct_io: bool
) -> dict[str, Any]:
    """Returns a plan that measures rates with one task and tests whether `evict_method` and O_DIRECT work."""
    phases: list[dict[str, Any]] = [
        {"id": "write", "op": "write"},
        {"id": "read", "op": "read", "before": [{"kind": "sync"}, {"kind": evict_method}]},
    ]
    if uses_direct_io:
        phases.append({"id": "direct", "op": "read", "io": {"direct": True}, "stop": {"time": "0.2s"}})
    return {
        "id": "check-calibration",
        "title": "Calibration: how large the volumes of the check must be",
        "target": {"path": target_directory},
        "data": {
            "access": {
                "transfer": format_exact_bytes(SEQUENTIAL_TRANSFER_BYTES),
                "volume": format_exact_bytes(volume_bytes),
            },
            "io": {"fsync": "end_timed_separately"},
        },
        "phases": phases,
        "limits": {"time": "60s"},
    }


def build_file_calibration_plan(target_directory: str, file_count: int) -> dict[str, Any]:
    """Returns a plan that creates and removes a few small files with one task."""
    document = _make_small_files_document(target_directory, file_count, "none")
    document |= {"id": "check-calibration-files", "title": "Calibration: how many small files the check needs"}
    document["phases"] = [{"id": "create", "op": "write"}, {"id": "remove", "op": "remove"}]
    return document


def _compute_sequential_volume(
    machine: CheckedMachine, speed: CalibratedSpeed, phase_seconds: float, is_full_check: bool
) -> int:
    """Returns the bytes of a sequential phase over all tasks, limited by free space and memory."""
    wanted = speed.write_bytes_per_s * phase_seconds
    # If reads are much faster, reading the same volume would be too short.
    wanted = max(wanted, min(speed.read_bytes_per_s * _READ_PHASE_S, 2 * wanted))
    if is_full_check:
        wanted = max(wanted, MIN_DATA_TO_MEMORY_RATIO * machine.memory)
        limit = 0.8 * machine.available
    else:
        # The data must fit into memory with reserve, or "cached" would be wrong.
        limit = min(0.4 * machine.available, 0.25 * machine.memory, _REMOVAL_S * speed.removal_bytes_per_s)
    if machine.memory_backed:
        limit = min(limit, 0.2 * machine.memory)
    return max(16 * MIB, int(min(wanted, limit)) // MIB * MIB)


def _make_sequential_part(
    target_directory: str,
    machine: CheckedMachine,
    speed: CalibratedSpeed,
    task_count: int,
    phase_seconds: float,
    is_full_check: bool,
) -> CheckPart:
    volume = _compute_sequential_volume(machine, speed, phase_seconds, is_full_check)
    per_task = max(8 * MIB, volume // task_count // MIB * MIB)
    # Limits the phase to a few times `phase_seconds`, since the calibrated rate may be that of a burst.
    write = {"stop": {"stonewall": f"{3 * phase_seconds:g}s"}, "valid": {"min_time": "1s"}}
    phases: list[dict[str, Any]] = [{"id": "write", "op": "write", **write}]
    if not is_full_check:
        phases.append({"id": "read-cached", "op": "read", "stop": _make_time_stop_rule(_CACHED_S)})
    if machine.evict and not machine.memory_backed:
        phases.append(
            {
                "id": "read-storage",
                "op": "read",
                "before": _make_eviction_treatments(machine),
                "valid": {"max_residency": 0.01},
            }
        )
    if machine.direct and not machine.memory_backed:
        # A rewrite repeats its pattern until the time limit, so its volume need not be estimated.
        direct = {
            "io": {"direct": True, "fsync": "none"},
            "stop": _make_time_stop_rule(_limit_timed_seconds(phase_seconds)),
        }
        phases.append({"id": "write-direct", "op": "rewrite", **direct})
        phases.append({"id": "read-direct", "op": "read", **direct})
    load = "1 task" if task_count == 1 else f"{task_count} tasks"
    key = "sequential-1" if task_count == 1 else "sequential-all"
    document: dict[str, Any] = {
        "id": f"check-{key}",
        "title": f"Sequential, {load}, {format_bytes(SEQUENTIAL_TRANSFER_BYTES)} transfers",
        "calibrated": ["data.access.volume"],
        "target": {"path": target_directory},
        "tasks": {"threads": task_count},
        "data": {
            "access": {
                "transfer": format_exact_bytes(SEQUENTIAL_TRANSFER_BYTES),
                "volume": format_exact_bytes(per_task),
            },
            "io": {"fsync": "end_timed_separately"},
        },
        "phases": phases,
        "limits": _make_time_limit(phase_seconds, len(phases)),
    }
    return CheckPart(key, document["title"], document, task_count)


def _make_random_part(
    target_directory: str, machine: CheckedMachine, speed: CalibratedSpeed, phase_seconds: float, is_full_check: bool
) -> CheckPart:
    volume = min(
        _compute_sequential_volume(machine, speed, phase_seconds, is_full_check), (64 if is_full_check else 8) * GIB
    )
    queued = machine.direct and machine.io_uring
    tasks = 1 if queued else QUEUE_DEPTH
    per_task = max(MIB, volume // tasks // MIB * MIB)
    small: dict[str, Any] = {
        "transfer": format_exact_bytes(SMALL_TRANSFER_BYTES),
        "volume": format_exact_bytes(per_task),
        "order": "random_permute",
    }
    phases: list[dict[str, Any]] = [{"id": "lay-out", "op": "write", "measure": False, "io": {"fsync": "end"}}]
    for depth in (1, QUEUE_DEPTH) if queued else (1,):
        for op in ("read", "write"):
            phase: dict[str, Any] = {
                "id": f"{op}-{depth if queued else QUEUE_DEPTH}",
                "op": "read" if op == "read" else "rewrite",
                "access": small,
                "io": {"direct": machine.direct, "queue_depth": depth},
                "stop": _make_time_stop_rule(_limit_timed_seconds(phase_seconds)),
            }
            if queued and depth > 1:
                phase["backend"] = "io_uring"
            if not machine.direct:
                # With the page cache, each block may be accessed only once: the second access would be cached.
                phase["stop"] = {"stonewall": _make_time_stop_rule(_limit_timed_seconds(phase_seconds))["time"]}
                phase["io"]["fsync"] = "end_timed_separately" if op == "write" else "none"
                if op == "read" and machine.evict:
                    phase["before"] = _make_eviction_treatments(machine)
            phases.append(phase)
    document: dict[str, Any] = {
        "id": "check-random",
        "calibrated": ["data.access.volume"],
        "title": f"Random, {format_bytes(SMALL_TRANSFER_BYTES)} transfers",
        "target": {"path": target_directory},
        "tasks": {"threads": tasks},
        "data": {
            "access": {
                "transfer": format_exact_bytes(SEQUENTIAL_TRANSFER_BYTES),
                "volume": format_exact_bytes(per_task),
            }
        },
        "phases": phases,
        "limits": _make_time_limit(phase_seconds, len(phases)),
    }
    return CheckPart("random", document["title"], document, tasks)


def _make_small_files_part(
    target_directory: str, machine: CheckedMachine, speed: CalibratedSpeed, phase_seconds: float, is_durable: bool
) -> CheckPart:
    tasks = machine.cpus
    wanted = speed.files_per_s * (phase_seconds / 3 if is_durable else phase_seconds)
    if phase_seconds <= QUICK_S:
        max_files = _QUICK_FILES_DISCARD if machine.discard else _QUICK_FILES
        wanted = min(wanted, max_files / tasks, _FILE_REMOVAL_S * speed.removal_files_per_s / tasks)
    count = max(64, min(int(wanted), 400_000))
    count = max(16, min(count, int(0.1 * machine.available) // (tasks * 2 * SMALL_TRANSFER_BYTES)))
    document = _make_small_files_document(target_directory, count, "end" if is_durable else "none")
    document["calibrated"] = ["data.files.count"]
    document["tasks"] = {"threads": tasks}
    if is_durable:
        # An fsync after each file is up to 100 times slower on some storage, so a time limit ends the phase.
        phases: list[dict[str, Any]] = [{"id": "create", "op": "write", "stop": {"stonewall": f"{phase_seconds:g}s"}}]
    else:
        phases = [
            {"id": "create", "op": "write"},
            {"id": "stat", "op": "stat"},
            {"id": "open-read-cached", "op": "read"},
        ]
        if machine.evict and not machine.memory_backed:
            phases.append({"id": "open-read", "op": "read", "before": _make_eviction_treatments(machine)})
        phases.append({"id": "remove", "op": "remove"})
    document["phases"] = phases
    document["limits"] = _make_time_limit(phase_seconds, len(phases))
    key = "small-files-durable" if is_durable else "small-files"
    ending = ", each made durable" if is_durable else ""
    document["id"] = f"check-{key}"
    document["title"] = (
        f"Small files of {format_bytes(SMALL_TRANSFER_BYTES)}, {tasks} {'task' if tasks == 1 else 'tasks'}{ending}"
    )
    return CheckPart(key, document["title"], document, tasks)


def _make_small_files_document(target_directory: str, file_count: int, fsync_time: str) -> dict[str, Any]:
    return {
        "target": {"path": target_directory},
        "data": {
            "files": {"mapping": "many", "count": file_count, "directories": "per_task"},
            "access": {"transfer": format_exact_bytes(SMALL_TRANSFER_BYTES), "segments": 1},
            "io": {"fsync": fsync_time},
        },
        "limits": {"time": "60s"},
    }


def _make_eviction_treatments(machine: CheckedMachine) -> list[dict[str, Any]]:
    return [{"kind": "sync"}, {"kind": machine.evict, "need": "best_effort"}]


def _limit_timed_seconds(phase_seconds: float) -> float:
    return min(phase_seconds, _TIMED_S) if phase_seconds <= QUICK_S else phase_seconds


def _make_time_stop_rule(phase_seconds: float) -> dict[str, str]:
    return {"time": f"{phase_seconds:g}s"}


def _make_time_limit(phase_seconds: float, phase_count: int) -> dict[str, str]:
    """Returns a time limit of several times the expected duration, cache flushes included, against hangs."""
    return {"time": f"{(4 * phase_seconds + _MAX_FLUSH_S) * phase_count:.0f}s"}
