# SPDX-License-Identifier: Apache-2.0
"""Tasks and nodes with their own rates: who was slow."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from sonde.model.escaping import escape_line
from sonde.model.json_access import concatenate_table_lines, get_column_numbers
from sonde.model.lines import TableLine
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.stats.imbalance import compute_straggler_threshold


@dataclass(frozen=True)
class MemberRate:
    """One task or node with its rate: bytes or operations per second, as the phase counts."""

    name: str
    value: float
    host: str = ""


def collect_task_rates(run: RecordedRun, phase: PhaseRecord, counts_operations: bool) -> list[MemberRate]:
    """Every task with its own rate: what it moved over the time it took."""
    rows = concatenate_table_lines(phase.tasks)
    rates = _list_recorded_rates(rows, counts_operations) if rows else None
    if rows is None or rates is None:
        return []
    ids = get_column_numbers(rows, "task") or [float(index) for index in range(len(rates))]
    nodes = get_column_numbers(rows, "node")
    names = map_nodes_to_hosts(run)
    hosts = [names.get(int(node), f"node {int(node)}") for node in nodes] if nodes else [""] * len(rates)
    return [MemberRate(f"task {int(task)}", rate, host) for task, rate, host in zip(ids, rates, hosts, strict=True)]


def read_task_rates(phase: PhaseRecord, counts_operations: bool) -> dict[int, float]:
    """Task -> its own rate; empty when not recorded."""
    rows = concatenate_table_lines(phase.tasks)
    rates = _list_recorded_rates(rows, counts_operations) if rows else None
    ids = get_column_numbers(rows, "task") if rows else None
    return {} if rates is None or ids is None else {int(task): rate for task, rate in zip(ids, rates, strict=True)}


def collect_node_rates(run: RecordedRun, phase: PhaseRecord, counts_operations: bool) -> list[MemberRate]:
    """Every node with the rate of its tasks together."""
    rows = concatenate_table_lines(phase.nodes)
    rates = _list_recorded_rates(rows, counts_operations) if rows else None
    if rows is None or rates is None:
        return []
    ids = get_column_numbers(rows, "node") or [float(index) for index in range(len(rates))]
    hosts = map_nodes_to_hosts(run)
    return [MemberRate(hosts.get(int(n), f"node {int(n)}"), rate) for n, rate in zip(ids, rates, strict=True)]


def map_nodes_to_hosts(run: RecordedRun) -> dict[int, str]:
    """Node number -> host."""
    return {line.node: escape_line(line.host, 80) for line in run.nodes if line.host}


def compute_straggler_limit(member_rates: Sequence[float]) -> float:
    """The rate below which a member is slow; 0 if there are fewer than three members or the median rate is 0."""
    moving = [rate for rate in member_rates if rate > 0]
    middle = statistics.median(member_rates) if member_rates else 0.0
    return middle / compute_straggler_threshold(moving) if len(member_rates) >= 3 and middle > 0 else 0.0


def find_slowest_straggler(members: Sequence[MemberRate]) -> tuple[MemberRate, float, int] | None:
    """The slowest member, the median rate, and the number of slow members; None if no member is slow."""
    limit = compute_straggler_limit([member.value for member in members])
    behind = [member for member in members if member.value < limit]
    middle = statistics.median(member.value for member in members) if members else 0.0
    return (min(behind, key=lambda item: item.value), middle, len(behind)) if behind else None


def _list_recorded_rates(table_line: TableLine, counts_operations: bool) -> list[float] | None:
    """The recorded rates; operations per second are made of the count and the member's own time."""
    recorded = get_column_numbers(table_line, "ops_per_s" if counts_operations else "bytes_per_s")
    if recorded is not None:
        return recorded
    amount = get_column_numbers(table_line, "ops" if counts_operations else "bytes")
    start, end, took = (
        get_column_numbers(table_line, "start_s"),
        get_column_numbers(table_line, "end_s"),
        get_column_numbers(table_line, "seconds"),
    )
    if took is None and start is not None and end is not None:
        took = [b - a for a, b in zip(start, end, strict=True)]
    if amount is None or took is None:
        return None
    return [a / s if s > 0 else 0.0 for a, s in zip(amount, took, strict=True)]
