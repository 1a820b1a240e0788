# SPDX-License-Identifier: Apache-2.0
"""Metrics of one phase of one run, from its record. `sonde.model.experiment.claims.METRICS` names and defines them.

Each function returns None where the record does not say; zero is not absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sonde.model.lines import Latency
from sonde.model.record import PhaseRecord, RecordReader

_NS = 1e-9
# Kinds of latency that are the operation of a phase rather than something around it.
_AROUND = ("open", "close", "fsync", "sync")


def bandwidth(phase: PhaseRecord) -> float | None:
    """Bytes per second over the whole time of the phase; None where no byte was moved."""
    rate = phase.end.rates.total if phase.end else None
    return rate.bytes_per_s if rate is not None and rate.bytes else None


def bandwidth_stonewall(phase: PhaseRecord) -> float | None:
    rate = phase.end.rates.stonewall if phase.end else None
    return rate.bytes_per_s if rate is not None and rate.bytes else None


def operations(phase: PhaseRecord) -> float | None:
    """Operations per second over the whole time of the phase."""
    rate = phase.end.rates.total if phase.end else None
    return rate.ops_per_s if rate is not None and rate.ops else None


def operations_slowest(phase: PhaseRecord) -> float | None:
    """The rate of the slowest task times the number of tasks: what mdtest calls the rate."""
    rates = [ops / seconds for ops, _, seconds, _ in _tasks(phase) if ops and seconds > 0]
    return min(rates) * len(rates) if rates else None


def elapsed(phase: PhaseRecord) -> float | None:
    return phase.end.seconds.elapsed if phase.end else None


def latency_of(phase: PhaseRecord) -> Latency | None:
    """Latencies of the operation that the phase is about: the kind with the most operations, opens and closes aside."""
    if phase.end is None:
        return None
    own = {kind: one for kind, one in phase.end.latency.items() if kind not in _AROUND and one.count}
    chosen = own or {kind: one for kind, one in phase.end.latency.items() if one.count}
    return max(chosen.values(), key=lambda one: one.count, default=None)


def _latency(member: str) -> Callable[[PhaseRecord], float | None]:
    def found(phase: PhaseRecord) -> float | None:
        latency = latency_of(phase)
        value = getattr(latency, member) if latency is not None else None
        return None if value is None else float(value) * _NS

    return found


def cpu_rate(phase: PhaseRecord) -> float | None:
    """Bytes for each second of system time; None when no system time was seen."""
    seconds = system_time(phase)
    moved = phase.end.bytes.moved if phase.end else 0
    return moved / seconds if seconds and moved else None


def system_time(phase: PhaseRecord) -> float | None:
    return phase.end.cpu.system_s if phase.end else None


def user_time(phase: PhaseRecord) -> float | None:
    return phase.end.cpu.user_s if phase.end else None


def resident(phase: PhaseRecord) -> float | None:
    return phase.resident


def errors(phase: PhaseRecord) -> float | None:
    commands = sum(one.kind == "command" and one.outcome == "failed" for one in phase.treatments)
    return float(phase.end.ops.failed + commands) if phase.end else None


def _of_command(member: str) -> Callable[[PhaseRecord], float | None]:
    """A program as a cell is the last command before the phase."""

    def found(phase: PhaseRecord) -> float | None:
        done = [one for one in phase.treatments if one.kind == "command" and one.outcome == "done"]
        value = getattr(done[-1], member) if done else None
        return None if value is None else float(value)

    return found


def calls(phase: PhaseRecord) -> float | None:
    """Operations that the tasks did: without a layer between, each one is a call that reaches the file system."""
    return float(phase.end.ops.done) if phase.end else None


# Metrics that a phase alone says; the others need the run, the other phases, or the system.
OF_PHASE: Mapping[str, Callable[[PhaseRecord], float | None]] = {
    "bandwidth": bandwidth,
    "bandwidth_stonewall": bandwidth_stonewall,
    "operations": operations,
    "operations_slowest": operations_slowest,
    "time": elapsed,
    "real_time": _of_command("seconds"),
    "command_user_time": _of_command("user_s"),
    "command_system_time": _of_command("system_s"),
    "latency_p50": _latency("p50_ns"),
    "latency_p99": _latency("p99_ns"),
    "latency_max": _latency("max_ns"),
    "cpu_rate": cpu_rate,
    "system_time": system_time,
    "user_time": user_time,
    "resident": resident,
    "errors": errors,
    "calls": calls,
}
# Numerators of the metrics that are another one divided by something.
DIVIDED: Mapping[str, str] = {"bandwidth_per_unit": "unit", "bandwidth_per_target": "target",
                              "bandwidth_per_node": "node"}  # fmt: skip


def duplex_efficiency(record: RecordReader, phase: PhaseRecord) -> float | None:
    """Bandwidth of a duplex phase over the sum of its two halves alone: the last phases of the same run before it that
    only wrote, and that only read, the preparation left out. None when one of them is not there."""
    both = bandwidth(phase)
    before = [one for one in record.phases.values() if one.begin.index < phase.begin.index and one.begin.measured]
    written = next((bandwidth(one) for one in reversed(before) if one.begin.op in ("write", "rewrite")), None)
    read = next((bandwidth(one) for one in reversed(before) if one.begin.op in ("read", "reread", "read_only")), None)
    if both is None or not written or not read:
        return None
    return both / (written + read)


def _tasks(phase: PhaseRecord) -> list[tuple[float, float, float, int]]:
    """Operations, bytes, seconds and node of each task that did something, the lanes of a task together."""
    found: dict[int, list[float]] = {}
    for table in phase.tasks:
        if not {"task", "ops", "bytes", "start_s", "end_s", "node"} <= set(table.columns):
            continue
        at = {name: table.columns.index(name) for name in table.columns}
        for row in table.rows:
            if row[at["start_s"]] is None or row[at["end_s"]] is None:
                continue
            start, end = float(row[at["start_s"]]), float(row[at["end_s"]])
            one = found.setdefault(int(row[at["task"]]), [0.0, 0.0, start, end, float(row[at["node"]] or 0)])
            one[0] += float(row[at["ops"]] or 0)
            one[1] += float(row[at["bytes"]] or 0)
            one[2], one[3] = min(one[2], start), max(one[3], end)
    return [(ops, moved, end - start, int(node)) for ops, moved, start, end, node in found.values()]


def task_ends(phase: PhaseRecord) -> list[float]:
    """When each task that did something was done, seconds from the start of the first; empty when not recorded."""
    ends: list[tuple[float, float]] = []
    for table in phase.tasks:
        if {"start_s", "end_s"} <= set(table.columns):
            start, end = table.columns.index("start_s"), table.columns.index("end_s")
            known = [row for row in table.rows if row[start] is not None and row[end] is not None]
            ends += [(float(row[start]), float(row[end])) for row in known if float(row[end]) > float(row[start])]
    first = min((start for start, _ in ends), default=0.0)
    return [end - first for _, end in ends]


def of_members(metric: str, phase: PhaseRecord, per: str) -> list[float]:
    """A rate or a time of each task or node; empty when the record does not say it for members.

    A node's rate is what its tasks moved over the time from its first task's start to its last one's end.
    """
    rows = [row[:3] for row in _tasks(phase)] if per == "task" else _nodes(phase)
    chosen: Mapping[str, Callable[[float, float, float], float]] = {
        "bandwidth": lambda _, moved, seconds: moved / seconds,
        "operations": lambda ops, _, seconds: ops / seconds,
        "time": lambda *row: row[2],
    }
    if metric not in chosen:
        return []
    return [chosen[metric](*row) for row in rows if row[2] > 0]


def _nodes(phase: PhaseRecord) -> list[tuple[float, float, float]]:
    found: list[tuple[float, float, float]] = []
    for table in phase.nodes:
        if {"ops", "bytes", "seconds"} <= set(table.columns):
            places: Sequence[int] = [table.columns.index(name) for name in ("ops", "bytes", "seconds")]
            found += [tuple(float(row[one] or 0.0) for one in places) for row in table.rows]  # type: ignore[misc]
    return found
