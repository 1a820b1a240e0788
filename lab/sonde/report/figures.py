# SPDX-License-Identifier: Apache-2.0
"""The tables of figures of one phase."""

from __future__ import annotations

from sonde.findings.phase_summary import format_rate_terms
from sonde.findings.sample_source import describe_sample_source
from sonde.findings.stragglers import map_nodes_to_hosts
from sonde.model import quantities
from sonde.model.json_access import get_finite_number, get_items, get_text
from sonde.model.line_members import DirectionRates
from sonde.model.lines import TreatmentLine
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.report.definitions import RATE_DEFINITIONS, RateDefinition
from sonde.report.distributions import MIN_DRAWN_OPERATIONS, list_latency_percentiles, list_task_time_shares
from sonde.report.facts import LabelsAndValues

FourTexts = tuple[str, str, str, str]


def list_rates(phase: PhaseRecord, counts_operations: bool) -> tuple[tuple[RateDefinition, str, str, str], ...]:
    """(definition, rate, the same in the other unit, numerator / interval) for every rate that applies."""
    rows = []
    for name, definition in RATE_DEFINITIONS.items():
        rate = getattr(phase.end.rates, name) if phase.end else None
        if rate is None:
            continue
        by_bytes = quantities.display_byte_rate(rate.bytes_per_s)
        if counts_operations:
            values = (str(quantities.display_operation_rate(rate.ops_per_s)), str(by_bytes))
        else:
            values = (str(by_bytes), str(quantities.display_binary_byte_rate(rate.bytes_per_s)))
        # A sum of rates has no single interval to divide by.
        exact = format_rate_terms(rate, counts_operations) if definition.one_interval else ""
        rows.append((definition, *values, exact))
    return tuple(rows)


def list_phase_figures(run: RecordedRun, phase: PhaseRecord) -> LabelsAndValues:
    """Amounts, CPU, balance, verification."""
    end = phase.end
    if end is None:
        return ()
    planned = end.bytes.planned
    of = (
        f" of {quantities.display_transferred_bytes(planned)} planned"
        if planned and planned != end.bytes.transferred
        else ""
    )
    odd = [(end.ops.short, "short"), (end.ops.failed, "failed"), (end.ops.retries, "retried")]
    extra = "".join(f", {quantities.display_count(n)} {name}" for n, name in odd if n)
    result = [
        ("Transferred", f"{quantities.display_transferred_bytes(end.bytes.transferred)}{of}"),
        ("Operations", f"{quantities.display_count(end.ops.done)}{extra}"),
        ("Stopped by", end.stopped_by.replace("_", " ")),
        *_describe_cpu_time(phase),
        *_describe_balance(run, phase),
        *_describe_training(phase),
    ]
    if end.verify and end.verify.checked_bytes:
        wrong = end.verify.mismatches
        text = "all correct" if not wrong else quantities.display_count_with_noun(wrong, "mismatch")
        result.append(("Verified", f"{quantities.display_transferred_bytes(end.verify.checked_bytes)}, {text}"))
    if end.wearout_ratio is not None:
        result.append(("Total over stonewall", f"{end.wearout_ratio:.2f}"))
    result.append(("Labels", ", ".join(phase.begin.labels)))
    return tuple((name, text) for name, text in result if text)


def _describe_cpu_time(phase: PhaseRecord) -> LabelsAndValues:
    cpu = phase.end.cpu if phase.end else None
    if cpu is None or cpu.user_s is None or cpu.system_s is None:
        return ()
    busy = phase.end.task_seconds.transfer if phase.end else None
    share = (
        f", {quantities.display_percent(min(1.0, (cpu.user_s + cpu.system_s) / busy))} of the tasks’ time"
        if busy
        else ""
    )
    text = f"user {quantities.display_seconds(cpu.user_s)}, system {quantities.display_seconds(cpu.system_s)}{share}"
    if not cpu.bytes_per_system_s:
        return (("CPU", text),)
    return (("CPU", text), ("Per system CPU second", str(quantities.display_transferred_bytes(cpu.bytes_per_system_s))))


def _describe_balance(run: RecordedRun, phase: PhaseRecord) -> LabelsAndValues:
    if run.tasks < 2 or phase.end is None:
        return ()
    worst, tail = phase.end.imbalance.max_over_mean, phase.end.imbalance.tail_share
    longest = "" if worst is None else f"{worst:.2f} × the mean time"
    after = "" if tail is None else f"{quantities.display_percent(tail)} of the time"
    return (("Longest task", longest), ("After half had finished", after))


def _describe_training(phase: PhaseRecord) -> LabelsAndValues:
    training = phase.end.training if phase.end else None
    if training is None or training.utilization is None or training.lowest_utilization is None:
        return ()
    mean, lowest = (quantities.display_percent(share) for share in (training.utilization, training.lowest_utilization))
    rate = f"{quantities.display_count(training.samples_per_s or 0.0)} per second"
    first = quantities.display_seconds(training.first_batch_s)
    return (
        ("Accelerators computed", f"{mean} of the time, the least busy one {lowest}"),
        ("Samples", f"{rate}, the first batch after {first}; {describe_sample_source(training)}"),
    )


def list_time_of_call_kinds(phase: PhaseRecord) -> tuple[tuple[str, str, float, str], ...]:
    """(part, time summed over tasks, its share, wall time) of open, transfer, fsync and close."""
    rows = []
    for part, spent, share in list_task_time_shares(phase):
        wall = getattr(phase.end.seconds, part) if phase.end else None
        rows.append(
            (
                part,
                str(quantities.display_seconds(spent)),
                share,
                "" if wall is None else str(quantities.display_seconds(wall)),
            )
        )
    return tuple(rows)


def list_slowest_tasks(run: RecordedRun, phase: PhaseRecord) -> tuple[FourTexts, ...]:
    """Task, host, rate and time of the slowest tasks; empty when there is only one task."""
    if run.tasks < 2 or phase.end is None:
        return ()
    hosts = map_nodes_to_hosts(run)
    return tuple(
        (
            f"task {item.task}",
            item.host or hosts.get(item.node or 0, ""),
            "" if item.bytes_per_s is None else str(quantities.display_byte_rate(item.bytes_per_s)),
            "" if item.seconds is None else str(quantities.display_seconds(item.seconds)),
        )
        for item in phase.end.imbalance.slowest[:5]
    )


def make_treatment_cells(treatment_line: TreatmentLine) -> FourTexts:
    """Kind, outcome, time taken, and what it did to the page cache."""
    text = treatment_line.text
    if treatment_line.residency_before is not None and treatment_line.residency_after is not None:
        before, after = (
            quantities.display_percent(treatment_line.residency_before),
            quantities.display_percent(treatment_line.residency_after),
        )
        text = f"in page cache: {before} before, {after} after" + (f"{quantities.FACT_SEPARATOR}{text}" if text else "")
    took = "" if treatment_line.seconds is None else str(quantities.display_seconds(treatment_line.seconds))
    return treatment_line.kind.replace("_", " "), treatment_line.outcome, took, text


def list_undrawn_latencies(phase: PhaseRecord) -> tuple[tuple[str, ...], ...]:
    """Kind, count and percentiles of the operations that were too few to draw."""
    rows = []
    for kind, stats in (phase.end.latency if phase.end else {}).items():
        if 0 < stats.count < MIN_DRAWN_OPERATIONS:
            quantiles = dict(list_latency_percentiles(phase, kind))
            cells = (
                str(quantities.display_nanoseconds(quantiles[name])) if name in quantiles else ""
                for name in ("p50", "p99", "max")
            )
            rows.append((kind, quantities.display_count(stats.count), *cells))
    return tuple(rows)


def _list_direction_texts(directions: DirectionRates) -> tuple[FourTexts, ...]:
    """Direction, operations, amount and rate."""
    rates = (("reads", directions.read), ("writes", directions.write))
    return tuple(
        (
            name,
            f"{quantities.display_count(rate.ops)} operations",
            str(quantities.display_transferred_bytes(rate.bytes)),
            str(quantities.display_byte_rate(rate.bytes_per_s)),
        )
        for name, rate in rates
        if rate is not None
    )


def list_streams(run: RecordedRun, phase: PhaseRecord) -> tuple[tuple[FourTexts, ...], str]:
    """Stream, operation, amount and rate of a duplex phase, and a clause on their overlap; the directions of a mixed
    phase likewise."""
    if phase.end is not None and phase.end.directions is not None:
        return _list_direction_texts(phase.end.directions), ""
    result = phase.end.streams if phase.end else None
    recorded = get_items({"v": result}, "v") or get_items(result, "streams")
    planned = get_items(run.find_planned_phase(phase.id), "streams")
    rows: list[FourTexts] = []
    for index, stream in enumerate(recorded):
        plan = planned[index] if index < len(planned) else {}
        rate, moved = get_finite_number(stream, "bytes_per_s"), get_finite_number(stream, "bytes")
        rows.append(
            (
                get_text(stream, "id") or get_text(plan, "id") or f"stream {index + 1}",
                get_text(stream, "op") or get_text(plan, "op"),
                "" if moved is None else str(quantities.display_transferred_bytes(moved)),
                "" if rate is None else str(quantities.display_byte_rate(rate)),
            )
        )
    clauses = []
    for name, phrase in (("overlap_s", "both at work for"), ("efficiency", "efficiency"), ("fairness", "fairness")):
        value = next((v for holder in (result, *recorded) if (v := get_finite_number(holder, name)) is not None), None)
        if value is not None:
            clauses.append(f"{phrase} {quantities.display_seconds(value) if name == 'overlap_s' else f'{value:.2f}'}")
    return tuple(rows), ", ".join(clauses)
