# SPDX-License-Identifier: Apache-2.0
"""Metrics of one phase of one run, from its record. `sonde.model.experiment.claims.METRICS` defines them.

Each function returns None if the record lacks the value; zero is a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sonde.model.line_members import LatencySummary
from sonde.model.record import PhaseRecord, RecordReader

_S_PER_NS = 1e-9
# Latency kinds that are not the main operation of a phase.
_SURROUNDING_KINDS = ("open", "close", "fsync", "sync")


def compute_bandwidth(phase: PhaseRecord) -> float | None:
    """Bytes per second over the total time of the phase; None if no bytes were transferred."""
    rate = phase.end.rates.total if phase.end else None
    return rate.bytes_per_s if rate is not None and rate.bytes else None


def compute_stonewall_bandwidth(phase: PhaseRecord) -> float | None:
    rate = phase.end.rates.stonewall if phase.end else None
    return rate.bytes_per_s if rate is not None and rate.bytes else None


def compute_operation_rate(phase: PhaseRecord) -> float | None:
    """Operations per second over the total time of the phase."""
    rate = phase.end.rates.total if phase.end else None
    return rate.ops_per_s if rate is not None and rate.ops else None


def compute_rate_of_slowest_task(phase: PhaseRecord) -> float | None:
    """The rate of the slowest task times the number of tasks, as mdtest defines its rate."""
    rates = [ops / seconds for ops, _, seconds, _ in _list_task_rows(phase) if ops and seconds > 0]
    return min(rates) * len(rates) if rates else None


def get_elapsed_seconds(phase: PhaseRecord) -> float | None:
    return phase.end.seconds.elapsed if phase.end else None


def find_main_latency(phase: PhaseRecord) -> LatencySummary | None:
    """Latencies of the main operation of a phase: the kind with most operations, except open, close and sync."""
    if phase.end is None:
        return None
    main_kinds = {
        kind: latency for kind, latency in phase.end.latency.items() if kind not in _SURROUNDING_KINDS and latency.count
    }
    chosen = main_kinds or {kind: latency for kind, latency in phase.end.latency.items() if latency.count}
    return max(chosen.values(), key=lambda latency: latency.count, default=None)


def _make_latency_metric(summary_member: str) -> Callable[[PhaseRecord], float | None]:
    def read_latency(phase: PhaseRecord) -> float | None:
        latency = find_main_latency(phase)
        value = getattr(latency, summary_member) if latency is not None else None
        return None if value is None else float(value) * _S_PER_NS

    return read_latency


def compute_cpu_rate(phase: PhaseRecord) -> float | None:
    """Bytes per second of system CPU time; None if no system time was recorded."""
    seconds = get_system_time(phase)
    moved = phase.end.bytes.transferred if phase.end else 0
    return moved / seconds if seconds and moved else None


def get_system_time(phase: PhaseRecord) -> float | None:
    return phase.end.cpu.system_s if phase.end else None


def get_user_time(phase: PhaseRecord) -> float | None:
    return phase.end.cpu.user_s if phase.end else None


def get_page_cache_residency(phase: PhaseRecord) -> float | None:
    return phase.residency


def compute_accelerator_utilization(phase: PhaseRecord) -> float | None:
    training = phase.end.training if phase.end else None
    return training.utilization if training else None


def get_sample_rate(phase: PhaseRecord) -> float | None:
    """Samples per second of all emulated accelerators."""
    training = phase.end.training if phase.end else None
    return training.samples_per_s if training else None


def count_failed_operations(phase: PhaseRecord) -> float | None:
    commands = sum(treatment.kind == "command" and treatment.outcome == "failed" for treatment in phase.treatments)
    return float(phase.end.ops.failed + commands) if phase.end else None


def _make_command_metric(treatment_member: str) -> Callable[[PhaseRecord], float | None]:
    """Returns a metric of the last command before the phase, which is the measured program."""

    def read_command(phase: PhaseRecord) -> float | None:
        commands = [
            treatment for treatment in phase.treatments if treatment.kind == "command" and treatment.outcome == "done"
        ]
        value = getattr(commands[-1], treatment_member) if commands else None
        return None if value is None else float(value)

    return read_command


def count_operations(phase: PhaseRecord) -> float | None:
    """Number of operations. Without a preload library, each is a call that reaches the file system."""
    return float(phase.end.ops.done) if phase.end else None


# Metrics that need only the phase; others need the run, other phases or the system.
PHASE_METRICS: Mapping[str, Callable[[PhaseRecord], float | None]] = {
    "bandwidth": compute_bandwidth,
    "bandwidth_stonewall": compute_stonewall_bandwidth,
    "operations": compute_operation_rate,
    "operations_slowest": compute_rate_of_slowest_task,
    "time": get_elapsed_seconds,
    "real_time": _make_command_metric("seconds"),
    "command_user_time": _make_command_metric("user_s"),
    "command_system_time": _make_command_metric("system_s"),
    "latency_p50": _make_latency_metric("p50_ns"),
    "latency_p99": _make_latency_metric("p99_ns"),
    "latency_max": _make_latency_metric("max_ns"),
    "cpu_rate": compute_cpu_rate,
    "system_time": get_system_time,
    "user_time": get_user_time,
    "accelerator_utilization": compute_accelerator_utilization,
    "samples": get_sample_rate,
    "residency": get_page_cache_residency,
    "errors": count_failed_operations,
    "calls": count_operations,
}
# The divisors of metrics that are a bandwidth divided by a count.
DIVISORS_BY_METRIC: Mapping[str, str] = {"bandwidth_per_unit": "unit", "bandwidth_per_target": "target",
                              "bandwidth_per_node": "node"}  # fmt: skip


def compute_duplex_efficiency(record: RecordReader, phase: PhaseRecord) -> float | None:
    """Bandwidth of a duplex phase / the sum of separate write and read bandwidths. These come from the latest measured
    write phase and read phase before it. None if one is missing."""
    duplex_rate = compute_bandwidth(phase)
    earlier_phases = [
        earlier
        for earlier in record.phases.values()
        if earlier.begin.index < phase.begin.index and earlier.begin.measured
    ]
    written = next(
        (
            compute_bandwidth(earlier)
            for earlier in reversed(earlier_phases)
            if earlier.begin.op in ("write", "rewrite")
        ),
        None,
    )
    read = next(
        (
            compute_bandwidth(earlier)
            for earlier in reversed(earlier_phases)
            if earlier.begin.op in ("read", "reread", "read_only")
        ),
        None,
    )
    if duplex_rate is None or not written or not read:
        return None
    return duplex_rate / (written + read)


def _list_task_rows(phase: PhaseRecord) -> list[tuple[float, float, float, int]]:
    """Returns operations, bytes, seconds and node of each active task, summed over the task's streams."""
    tasks: dict[int, list[float]] = {}
    for table in phase.tasks:
        if not {"task", "ops", "bytes", "start_s", "end_s", "node"} <= set(table.columns):
            continue
        columns = {name: table.columns.index(name) for name in table.columns}
        for row in table.rows:
            if row[columns["start_s"]] is None or row[columns["end_s"]] is None:
                continue
            start, end = float(row[columns["start_s"]]), float(row[columns["end_s"]])
            totals = tasks.setdefault(
                int(row[columns["task"]]), [0.0, 0.0, start, end, float(row[columns["node"]] or 0)]
            )
            totals[0] += float(row[columns["ops"]] or 0)
            totals[1] += float(row[columns["bytes"]] or 0)
            totals[2], totals[3] = min(totals[2], start), max(totals[3], end)
    return [(ops, moved, end - start, int(node)) for ops, moved, start, end, node in tasks.values()]


def list_task_ends(phase: PhaseRecord) -> list[float]:
    """Returns the end of each active task in seconds from the first start; empty if not recorded."""
    ends: list[tuple[float, float]] = []
    for table in phase.tasks:
        if {"start_s", "end_s"} <= set(table.columns):
            start, end = table.columns.index("start_s"), table.columns.index("end_s")
            timed_rows = [row for row in table.rows if row[start] is not None and row[end] is not None]
            ends += [(float(row[start]), float(row[end])) for row in timed_rows if float(row[end]) > float(row[start])]
    first_start = min((start for start, _ in ends), default=0.0)
    return [end - first_start for _, end in ends]


def compute_member_metric(metric_name: str, phase: PhaseRecord, member_kind: str) -> list[float]:
    """Returns a rate or time of each task or node; empty if the record lacks it.

    A node's rate is the sum over its tasks / the time from the first start to the last end of its tasks.
    """
    rows = [row[:3] for row in _list_task_rows(phase)] if member_kind == "task" else _list_node_rows(phase)
    chosen: Mapping[str, Callable[[float, float, float], float]] = {
        "bandwidth": lambda _, moved, seconds: moved / seconds,
        "operations": lambda ops, _, seconds: ops / seconds,
        "time": lambda *row: row[2],
    }
    if metric_name not in chosen:
        return []
    return [chosen[metric_name](*row) for row in rows if row[2] > 0]


def _list_node_rows(phase: PhaseRecord) -> list[tuple[float, float, float]]:
    nodes: list[tuple[float, float, float]] = []
    for table in phase.nodes:
        if {"ops", "bytes", "seconds"} <= set(table.columns):
            columns: Sequence[int] = [table.columns.index(name) for name in ("ops", "bytes", "seconds")]
            nodes += [tuple(float(row[column] or 0.0) for column in columns) for row in table.rows]  # type: ignore[misc]
    return nodes
