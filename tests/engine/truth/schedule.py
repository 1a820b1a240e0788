# SPDX-License-Identifier: Apache-2.0
"""The truth about the backend `paced`, computed on its own: when each operation of each task ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

Steps = Sequence[tuple[float, float]]  # (seconds since the start, bytes per second from there on)


def time_for(byte_count: float, start: float, steps: Steps, ramp: bool) -> float:
    """When `byte_count` bytes that begin at `start` have moved, by integrating the rate in small exact pieces."""
    now, remaining = start, float(byte_count)
    for index, (step_start, rate) in enumerate(steps):
        last = index + 1 == len(steps)
        until = float("inf") if last else steps[index + 1][0]
        if now >= until:
            continue
        slope = 0.0 if last or not ramp else (steps[index + 1][1] - rate) / (until - step_start)
        rate_now = rate + slope * (now - step_start)
        if last:
            return now + remaining / rate_now
        room = (rate_now + slope * (until - now) / 2) * (until - now)
        if remaining > room:
            remaining -= room
            now = until
            continue
        low, high = 0.0, until - now  # bisection: another way than the engine's closed form
        for _ in range(200):
            middle = (low + high) / 2
            moved = (rate_now + slope * middle / 2) * middle
            low, high = (middle, high) if moved < remaining else (low, middle)
        return now + high
    raise AssertionError("the last step has no end")


@dataclass
class Task:
    """One task: the end of every operation, in seconds since the start of the phase."""

    transfer: int
    ends: list[float] = field(default_factory=list)

    def bytes_until(self, time: float) -> float:
        """Bytes moved until a moment; the operation in progress counts in proportion."""
        over = self.done_until(time)
        total = float(over * self.transfer)
        if over < len(self.ends):
            before = self.ends[over - 1] if over else 0.0
            total += self.transfer * (time - before) / (self.ends[over] - before)
        return total

    def done_until(self, time: float) -> int:
        return bisect_right(self.ends, time)

    @property
    def latencies(self) -> list[float]:
        return [end - before for before, end in zip([0.0, *self.ends], self.ends, strict=False)]


def schedule_task(
    operation_count: int,
    transfer_bytes: int,
    steps: Steps,
    ramp: bool = False,
    latency_s: float = 0.0,
    slowdown: float = 1.0,
) -> Task:
    """`operation_count` operations, one after the other; each takes its bytes over the rate, plus the latency."""
    scaled = [(start, rate / slowdown) for start, rate in steps]
    task_truth = Task(transfer_bytes)
    now = 0.0
    for _ in range(operation_count):
        now = time_for(transfer_bytes, now, scaled, ramp) + latency_s
        task_truth.ends.append(now)
    return task_truth
