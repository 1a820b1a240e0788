# SPDX-License-Identifier: Apache-2.0
"""The plans of ``sonde check``, put together from what is known about the machine and how fast it turned out to be.

Pure functions: facts in, plans out. Each plan is one run; what each of its phases counts is in ``figures``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.units import exact_bytes, format_bytes, parse_duration

MIB = 1 << 20
GIB = 1 << 30
TRANSFER = MIB
SMALL = 4096
QUEUE_DEPTH = 32
# How long a timed part should last. Quick: long enough to see whether the rate moves. Full: what acceptance tests ask.
QUICK_S, FULL_S = 2.5, 60.0
# In quick mode, parts that a clock ends may be shorter, and cleaning up must not take longer than measuring.
_TIMED_S, _CACHED_S, _REMOVAL_S, _FILE_REMOVAL_S = 2.0, 1.0, 3.0, 6.0
_READ_S = 1.3
# Small files of a quick check over all tasks: enough samples, and removed in seconds also where that is slow.
_QUICK_FILES, _QUICK_FILES_DISCARD = 10_000, 4_000
# In full mode buffered data must exceed memory by this, so that a read cannot come from the page cache.
OVER_MEMORY = 1.5
_FLUSH_S = 20.0


@dataclass(frozen=True)
class Machine:
    """What the probe of the engine said."""

    cpus: int
    memory: int  # bytes
    available: int  # bytes that this user may still write
    file_system: str
    memory_backed: bool
    direct: bool  # O_DIRECT works here
    io_uring: bool
    evict: str | None  # the treatment that empties the page cache of our data; None when nothing does
    discard: bool = False  # freed blocks are trimmed at once, which makes removing files slow
    network: bool = False  # servers answer for names, not the memory of this node


@dataclass(frozen=True)
class Speed:
    """What the calibration measured."""

    to_storage: float  # bytes per second of one task, until on storage
    from_storage: float  # bytes per second of one task, cold
    files: float  # small files per second of one task, created and written
    removal: float = float("inf")  # bytes per second, of whole files
    file_removal: float = float("inf")  # small files per second


@dataclass(frozen=True)
class Part:
    """One plan of the check."""

    key: str  # sequential-1, sequential-all, random, small-files, small-files-durable
    title: str
    document: Mapping[str, Any]
    tasks: int


def parts(target: str, machine: Machine, speed: Speed, full: bool = False) -> list[Part]:
    """All plans, in the order they are run."""
    lasting = FULL_S if full else QUICK_S
    counts = [1] if machine.cpus == 1 else [1, machine.cpus]
    found = [_sequential(target, machine, speed, tasks, lasting, full) for tasks in counts]
    found.append(_random(target, machine, speed, lasting, full))
    found.append(_small_files(target, machine, speed, lasting, durable=False))
    if not machine.memory_backed:
        found.append(_small_files(target, machine, speed, lasting, durable=True))
    return found


def expected_seconds(machine: Machine, speed: Speed, full: bool) -> float:
    """About how long all parts take together, cleaning up included."""
    lasting = FULL_S if full else QUICK_S
    volume = _volume(machine, speed, lasting, full)
    total = 0.0
    for part in parts("/", machine, speed, full):
        for phase in part.document["phases"]:
            stop = phase.get("stop", {})
            if "time" in stop:
                total += parse_duration(stop["time"])
            elif part.key.startswith("small"):
                total += min(lasting, 1.0)
            elif phase["op"] == "read":
                total += volume / speed.from_storage
            else:
                total += volume / speed.to_storage
        total += min(volume / speed.removal, _REMOVAL_S if not full else float("inf"))
    return total


def calibration(target: str, volume: int, evict: str, direct: bool) -> dict[str, Any]:
    """Writes and reads `volume` bytes with one task: how fast, whether `evict` works, whether O_DIRECT works."""
    phases: list[dict[str, Any]] = [
        {"id": "write", "op": "write"},
        {"id": "read", "op": "read", "before": [{"kind": "sync"}, {"kind": evict}]},
    ]
    if direct:
        phases.append({"id": "direct", "op": "read", "io": {"direct": True}, "stop": {"time": "0.2s"}})
    return {
        "id": "check-calibration",
        "title": "Calibration: how large the volumes of the check must be",
        "target": {"path": target},
        "data": {
            "access": {"transfer": exact_bytes(TRANSFER), "volume": exact_bytes(volume)},
            "io": {"fsync": "end_timed_separately"},
        },
        "phases": phases,
        "limits": {"time": "60s"},
    }


def file_calibration(target: str, count: int) -> dict[str, Any]:
    """Creates and removes a few small files with one task."""
    document = _many(target, count, "none")
    document |= {"id": "check-calibration-files", "title": "Calibration: how many small files the check needs"}
    document["phases"] = [{"id": "create", "op": "write"}, {"id": "remove", "op": "remove"}]
    return document


def _volume(machine: Machine, speed: Speed, lasting: float, full: bool) -> int:
    """Bytes of a sequential phase over all tasks: long enough, and within what space and memory allow."""
    wanted = speed.to_storage * lasting
    # Where reading is much faster, the read of what was written would be over too soon.
    wanted = max(wanted, min(speed.from_storage * _READ_S, 2 * wanted))
    if full:
        wanted = max(wanted, OVER_MEMORY * machine.memory)
        limit = 0.8 * machine.available
    else:
        # it must fit into memory with room to spare, or "cached" would mean nothing
        limit = min(0.4 * machine.available, 0.25 * machine.memory, _REMOVAL_S * speed.removal)
    if machine.memory_backed:
        limit = min(limit, 0.2 * machine.memory)
    return max(16 * MIB, int(min(wanted, limit)) // MIB * MIB)


def _sequential(target: str, machine: Machine, speed: Speed, tasks: int, lasting: float, full: bool) -> Part:
    volume = _volume(machine, speed, lasting, full)
    per_task = max(8 * MIB, volume // tasks // MIB * MIB)
    # The volume should be written in `lasting`; a speed that was measured in a burst must not cost minutes.
    write = {"stop": {"stonewall": f"{3 * lasting:g}s"}, "valid": {"min_time": "1s"}}
    phases: list[dict[str, Any]] = [{"id": "write", "op": "write", **write}]
    if not full:
        phases.append({"id": "read-cached", "op": "read", "stop": _time(_CACHED_S)})
    if machine.evict and not machine.memory_backed:
        phases.append(
            {"id": "read-storage", "op": "read", "before": _evicted(machine), "valid": {"max_resident": 0.01}}
        )
    if machine.direct and not machine.memory_backed:
        # A rewrite repeats its pattern until the time is over: no volume has to be guessed.
        direct = {"io": {"direct": True, "fsync": "none"}, "stop": _time(_timed(lasting))}
        phases.append({"id": "write-direct", "op": "rewrite", **direct})
        phases.append({"id": "read-direct", "op": "read", **direct})
    crowd = "1 task" if tasks == 1 else f"{tasks} tasks"
    document: dict[str, Any] = {
        "id": f"check-sequential-{tasks}",
        "title": f"Sequential, {crowd}, {format_bytes(TRANSFER)} transfers",
        "calibrated": ["data.access.volume"],
        "target": {"path": target},
        "tasks": {"threads": tasks},
        "data": {
            "access": {"transfer": exact_bytes(TRANSFER), "volume": exact_bytes(per_task)},
            "io": {"fsync": "end_timed_separately"},
        },
        "phases": phases,
        "limits": _limit(lasting, len(phases)),
    }
    return Part("sequential-1" if tasks == 1 else "sequential-all", document["title"], document, tasks)


def _random(target: str, machine: Machine, speed: Speed, lasting: float, full: bool) -> Part:
    volume = min(_volume(machine, speed, lasting, full), (64 if full else 8) * GIB)
    queued = machine.direct and machine.io_uring
    tasks = 1 if queued else QUEUE_DEPTH
    per_task = max(MIB, volume // tasks // MIB * MIB)
    small: dict[str, Any] = {"transfer": exact_bytes(SMALL), "volume": exact_bytes(per_task), "order": "random_permute"}
    phases: list[dict[str, Any]] = [{"id": "lay-out", "op": "write", "measure": False, "io": {"fsync": "end"}}]
    for depth in (1, QUEUE_DEPTH) if queued else (1,):
        for op in ("read", "write"):
            phase: dict[str, Any] = {
                "id": f"{op}-{depth if queued else QUEUE_DEPTH}",
                "op": "read" if op == "read" else "rewrite",
                "access": small,
                "io": {"direct": machine.direct, "queue_depth": depth},
                "stop": _time(_timed(lasting)),
            }
            if queued and depth > 1:
                phase["backend"] = "io_uring"
            if not machine.direct:
                # Through the page cache every block may be touched only once: the second time it would be there.
                phase["stop"] = {"stonewall": _time(_timed(lasting))["time"]}
                phase["io"]["fsync"] = "end_timed_separately" if op == "write" else "none"
                if op == "read" and machine.evict:
                    phase["before"] = _evicted(machine)
            phases.append(phase)
    document: dict[str, Any] = {
        "id": "check-random",
        "calibrated": ["data.access.volume"],
        "title": f"Random, {format_bytes(SMALL)} transfers",
        "target": {"path": target},
        "tasks": {"threads": tasks},
        "data": {"access": {"transfer": exact_bytes(TRANSFER), "volume": exact_bytes(per_task)}},
        "phases": phases,
        "limits": _limit(lasting, len(phases)),
    }
    return Part("random", document["title"], document, tasks)


def _small_files(target: str, machine: Machine, speed: Speed, lasting: float, durable: bool) -> Part:
    tasks = machine.cpus
    wanted = speed.files * (lasting / 3 if durable else lasting)
    if lasting <= QUICK_S:
        most = _QUICK_FILES_DISCARD if machine.discard else _QUICK_FILES
        wanted = min(wanted, most / tasks, _FILE_REMOVAL_S * speed.file_removal / tasks)
    count = max(64, min(int(wanted), 400_000))
    count = max(16, min(count, int(0.1 * machine.available) // (tasks * 2 * SMALL)))
    document = _many(target, count, "end" if durable else "none")
    document["calibrated"] = ["data.files.count"]
    document["tasks"] = {"threads": tasks}
    if durable:
        # Every file is made durable before the next: on some storage a hundred times slower, so time ends it.
        phases: list[dict[str, Any]] = [{"id": "create", "op": "write", "stop": {"stonewall": f"{lasting:g}s"}}]
    else:
        phases = [
            {"id": "create", "op": "write"},
            {"id": "stat", "op": "stat"},
            {"id": "open-read-cached", "op": "read"},
        ]
        if machine.evict and not machine.memory_backed:
            phases.append({"id": "open-read", "op": "read", "before": _evicted(machine)})
        phases.append({"id": "remove", "op": "remove"})
    document["phases"] = phases
    document["limits"] = _limit(lasting, len(phases))
    key = "small-files-durable" if durable else "small-files"
    ending = ", each made durable" if durable else ""
    document["id"] = f"check-{key}"
    document["title"] = f"Small files of {format_bytes(SMALL)}, {tasks} {'task' if tasks == 1 else 'tasks'}{ending}"
    return Part(key, document["title"], document, tasks)


def _many(target: str, count: int, fsync: str) -> dict[str, Any]:
    return {
        "target": {"path": target},
        "data": {
            "files": {"mapping": "many", "count": count, "directories": "per_task"},
            "access": {"transfer": exact_bytes(SMALL), "segments": 1},
            "io": {"fsync": fsync},
        },
        "limits": {"time": "60s"},
    }


def _evicted(machine: Machine) -> list[dict[str, Any]]:
    return [{"kind": "sync"}, {"kind": machine.evict, "need": "best_effort"}]


def _timed(lasting: float) -> float:
    return min(lasting, _TIMED_S) if lasting <= QUICK_S else lasting


def _time(seconds: float) -> dict[str, str]:
    return {"time": f"{seconds:g}s"}


def _limit(lasting: float, phases: int) -> dict[str, str]:
    """Stops what hangs: several times what the plan should take, the flushing of caches included."""
    return {"time": f"{(4 * lasting + _FLUSH_S) * phases:.0f}s"}
