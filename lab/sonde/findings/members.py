# SPDX-License-Identifier: Apache-2.0
"""Tasks and nodes with their own rates: who was slow."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from sonde.model.json_parts import column, joined
from sonde.model.lines import TableLine
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.visible import one_line
from sonde.stats.imbalance import slow_factor


@dataclass(frozen=True)
class Member:
    """One task or node with its rate: bytes or operations per second, as the phase counts."""

    name: str
    value: float
    host: str = ""


def tasks_of(run: Run, phase: PhaseRecord, operations: bool) -> list[Member]:
    """Every task with its own rate: what it moved over the time it took."""
    rows = joined(phase.tasks)
    rates = _rates(rows, operations) if rows else None
    if rows is None or rates is None:
        return []
    ids = column(rows, "task") or [float(at) for at in range(len(rates))]
    nodes = column(rows, "node")
    names = host_names(run)
    hosts = [names.get(int(node), f"node {int(node)}") for node in nodes] if nodes else [""] * len(rates)
    return [Member(f"task {int(task)}", rate, host) for task, rate, host in zip(ids, rates, hosts, strict=True)]


def task_rates(phase: PhaseRecord, operations: bool) -> dict[int, float]:
    """Task -> its own rate; empty when not recorded."""
    rows = joined(phase.tasks)
    rates = _rates(rows, operations) if rows else None
    ids = column(rows, "task") if rows else None
    return {} if rates is None or ids is None else {int(task): rate for task, rate in zip(ids, rates, strict=True)}


def nodes_of(run: Run, phase: PhaseRecord, operations: bool) -> list[Member]:
    """Every node with the rate of its tasks together."""
    rows = joined(phase.nodes)
    rates = _rates(rows, operations) if rows else None
    if rows is None or rates is None:
        return []
    ids = column(rows, "node") or [float(at) for at in range(len(rates))]
    hosts = host_names(run)
    return [Member(hosts.get(int(n), f"node {int(n)}"), rate) for n, rate in zip(ids, rates, strict=True)]


def host_names(run: Run) -> dict[int, str]:
    """Node number -> host."""
    return {line.node: one_line(line.host, 80) for line in run.nodes if line.host}


def slow_below(rates: Sequence[float]) -> float:
    """The rate below which a member is slow; 0 where nobody can be: fewer than three, or a middle that stands still."""
    moving = [rate for rate in rates if rate > 0]
    middle = statistics.median(rates) if rates else 0.0
    return middle / slow_factor(moving) if len(rates) >= 3 and middle > 0 else 0.0


def lagging(found: Sequence[Member]) -> tuple[Member, float, int] | None:
    """The slowest member, the median rate, and how many are slow; None when nobody is."""
    limit = slow_below([one.value for one in found])
    behind = [one for one in found if one.value < limit]
    middle = statistics.median(one.value for one in found) if found else 0.0
    return (min(behind, key=lambda one: one.value), middle, len(behind)) if behind else None


def _rates(rows: TableLine, operations: bool) -> list[float] | None:
    """The recorded rates; operations per second are made of the count and the member's own time."""
    recorded = column(rows, "ops_per_s" if operations else "bytes_per_s")
    if recorded is not None:
        return recorded
    amount = column(rows, "ops" if operations else "bytes")
    start, end, took = column(rows, "start_s"), column(rows, "end_s"), column(rows, "seconds")
    if took is None and start is not None and end is not None:
        took = [b - a for a, b in zip(start, end, strict=True)]
    if amount is None or took is None:
        return None
    return [a / s if s > 0 else 0.0 for a, s in zip(amount, took, strict=True)]
