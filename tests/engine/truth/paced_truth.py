# SPDX-License-Identifier: Apache-2.0
"""Expected results of storage of known speed, computed from the plan by another method than the engine's.

Each task has one server that moves bytes at a given rate, one operation after the other; the latency is added to every
operation and overlaps with the others in the queue. Bytes served until a time are a piecewise quadratic function of it,
so the end of an operation is the root of a quadratic equation. Times are seconds.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Plan = dict[str, Any]

HALF_NS = 0.5e-9  # the engine's virtual clock counts whole nanoseconds
UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "B": 1,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 1024,
    "MiB": 2**20,
}


def parse_quantity(text: str | float) -> float:
    """Seconds, bytes or bytes per second."""
    if not isinstance(text, str):
        return text
    text = text.removesuffix("/s")
    unit = text.lstrip("0123456789.")
    return float(text.removesuffix(unit)) * UNITS[unit]


class ServedTime:
    """Bytes that a server has transferred at a time, and the time at which it has transferred a number of bytes."""

    def __init__(self, paced: Plan, task: int) -> None:
        steps = paced.get("schedule") or [{"at": 0, "rate": paced["rate"]}]
        slower: float = paced.get("slow_tasks", {}).get(str(task), 1)
        self.at: list[float] = [parse_quantity(step.get("at", 0)) for step in steps]
        self.rate: list[float] = [parse_quantity(step["rate"]) / slower for step in steps]
        self.slope = [0.0] * len(steps)
        if paced.get("ramp"):
            for i in range(len(steps) - 1):
                self.slope[i] = (self.rate[i + 1] - self.rate[i]) / (self.at[i + 1] - self.at[i])
        self.before = [0.0]  # bytes at the beginning of each step
        for i in range(len(steps) - 1):
            self.before.append(self.before[-1] + self._compute_bytes_in_step(i, self.at[i + 1] - self.at[i]))

    def _compute_bytes_in_step(self, step: int, duration_s: float) -> float:
        return self.rate[step] * duration_s + self.slope[step] * duration_s * duration_s / 2

    def by(self, time: float) -> float:
        """Bytes from the start to `time` when the server never waits."""
        step = bisect.bisect_right(self.at, time) - 1
        return self.before[step] + self._compute_bytes_in_step(step, time - self.at[step])

    def when(self, served: float) -> float:
        """The inverse."""
        step = bisect.bisect_right(self.before, served) - 1
        remaining, rate, slope = served - self.before[step], self.rate[step], self.slope[step]
        if abs(slope) < 1e-12:
            return self.at[step] + remaining / rate
        return self.at[step] + (-rate + math.sqrt(rate * rate + 2 * slope * remaining)) / slope


@dataclass
class Task:
    """Start and end of every operation of one task."""

    length: int
    spans: list[tuple[float, float]] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return self.length * len(self.spans)

    @property
    def end(self) -> float:
        return self.spans[-1][1]

    @cached_property
    def ends(self) -> list[float]:
        """End times of all operations; valid only after the last operation was added."""
        return [end for _, end in self.spans]

    def until(self, time: float) -> float:
        """Bytes moved until `time`; of the operations that span it in proportion."""
        over = bisect.bisect_right(self.ends, time)
        moved = float(over)
        while over < len(self.spans) and self.spans[over][0] < time:
            start, end = self.spans[over]
            moved += (time - start) / (end - start)
            over += 1
        return self.length * moved


@dataclass
class Truth:
    """All tasks of a phase."""

    tasks: list[Task]
    stopped_by: str
    stonewall: float | None

    @property
    def bytes(self) -> int:
        return sum(task.bytes for task in self.tasks)

    @property
    def end(self) -> float:
        return max(task.end for task in self.tasks)

    @property
    def first_end(self) -> float:
        return min(task.end for task in self.tasks)

    def until(self, time: float) -> float:
        return sum(task.until(time) for task in self.tasks)

    def latencies(self) -> list[float]:
        return sorted(end - start for task in self.tasks for start, end in task.spans)

    def rates(self, slice_s: float) -> dict[str, float]:
        """Bytes per second of every named rate that applies."""
        rates = {"total": self.bytes / self.end, "transfer": self.bytes / self.end}
        if self.stonewall is not None:
            wall = min(self.stonewall, self.end)
            rates["stonewall"] = self.until(wall) / wall
        last_whole = math.floor(self.first_end / slice_s + 1e-9) * slice_s
        if last_whole / slice_s > 2.5:
            rates["steady"] = self.until(last_whole) / last_whole
        rates["first_done"] = self.until(self.first_end) / self.first_end
        rates["task_sum"] = sum(task.bytes / task.end for task in self.tasks)
        return rates


class Server:
    """A task that executes operations up to a count or a time; may be continued repeatedly."""

    def __init__(self, plan: Plan, task: int) -> None:
        data = plan["data"]
        self.served = ServedTime(data["paced"], task)
        self.length = int(parse_quantity(data["access"]["transfer"]))
        self.latency = parse_quantity(data["paced"].get("latency", 0))
        self.depth = data.get("io", {}).get("queue_depth", 1)
        self.task = Task(self.length)
        self.free = 0.0  # when the server has moved all bytes so far

    def go(self, limit: float, most: int | None) -> bool:
        """Operations with an empty queue in the beginning and in the end, until there are `most` in all, or until one
        ends at `limit` or later. True when the limit came first."""
        spans = self.task.spans
        first = len(spans)
        resumed = spans[-1][1] if spans else 0.0
        passed: float | None = None
        while most is None or len(spans) < most:
            queued = len(spans) - first
            handed_over = spans[-self.depth][1] if queued >= self.depth else resumed
            if passed is not None and handed_over >= passed - HALF_NS:
                break
            self.free = self.served.when(self.served.by(max(self.free, handed_over)) + self.length)
            spans.append((handed_over, self.free + self.latency))
            if passed is None and spans[-1][1] >= limit - HALF_NS:
                passed = spans[-1][1]
        return passed is not None


def compute_truth(plan: Plan) -> Truth:
    """The first phase of a plan with the backend `paced`."""
    stop = plan["phases"][0].get("stop", {})
    tasks = plan.get("tasks", {})
    access = plan["data"]["access"]
    in_pass = int(parse_quantity(access["block"]) / parse_quantity(access["transfer"])) * access.get("segments", 1)
    servers = [Server(plan, task) for task in range(tasks.get("processes", 1) * tasks.get("threads", 1))]
    wall = parse_quantity(stop.get("stonewall", stop.get("time", math.inf)))
    at_least = parse_quantity(stop.get("min_time", stop.get("time", 0)))
    stopped_by = "time" if "time" in stop else "volume"
    for server in servers:
        passed = server.go(wall, in_pass)
        while not passed and server.task.end < at_least - HALF_NS:
            passed = server.go(wall, len(server.task.spans) + in_pass)
        if passed and "stonewall" in stop:
            stopped_by = "stonewall"
    if stop.get("wearout"):
        most = max(len(server.task.spans) for server in servers)
        for server in servers:
            server.go(math.inf, most)
    return Truth([server.task for server in servers], stopped_by, wall if "stonewall" in stop else None)
