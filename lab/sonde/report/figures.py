# SPDX-License-Identifier: Apache-2.0
"""The figures of one phase that stand in tables beside its charts."""

from __future__ import annotations

from sonde.findings.members import host_names
from sonde.findings.verdicts import exact_words
from sonde.model import quantities
from sonde.model.json_parts import items, number, text
from sonde.model.lines import TreatmentLine
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.visible import one_line
from sonde.report.definitions import RATES, Definition
from sonde.report.distributions import FEWEST_DRAWN, percentiles, time_split
from sonde.report.facts import Pairs

Four = tuple[str, str, str, str]


def rate_rows(phase: PhaseRecord, operations: bool) -> tuple[tuple[Definition, str, str, str], ...]:
    """(definition, rate, the same in the other unit, numerator / interval) for every rate that applies."""
    rows = []
    for name, definition in RATES.items():
        rate = getattr(phase.end.rates, name) if phase.end else None
        if rate is None:
            continue
        by_bytes = quantities.byte_rate(rate.bytes_per_s)
        if operations:
            values = (str(quantities.operation_rate(rate.ops_per_s)), str(by_bytes))
        else:
            values = (str(by_bytes), str(quantities.binary_byte_rate(rate.bytes_per_s)))
        # A sum of rates has no single interval to divide by.
        exact = exact_words(rate, operations) if definition.one_interval else ""
        rows.append((definition, *values, exact))
    return tuple(rows)


def of_phase(run: Run, phase: PhaseRecord) -> Pairs:
    """Amounts, CPU, balance, verification."""
    end = phase.end
    if end is None:
        return ()
    planned = end.bytes.planned
    of = f" of {quantities.volume(planned)} planned" if planned and planned != end.bytes.moved else ""
    odd = [(end.ops.short, "short"), (end.ops.failed, "failed")]
    extra = "".join(f", {quantities.count(n)} {name}" for n, name in odd if n)
    found = [
        ("Moved", f"{quantities.volume(end.bytes.moved)}{of}"),
        ("Operations", f"{quantities.count(end.ops.done)}{extra}"),
        ("Stopped by", one_line(end.stopped_by, 40).replace("_", " ")),
        *_cpu(phase),
        *_balance(run, phase),
    ]
    if end.verify and end.verify.checked_bytes:
        wrong = end.verify.mismatches
        words = "all correct" if not wrong else quantities.plural(wrong, "mismatch")
        found.append(("Verified", f"{quantities.volume(end.verify.checked_bytes)}, {words}"))
    if end.wearout_ratio is not None:
        found.append(("Total over stonewall", f"{end.wearout_ratio:.2f}"))
    found.append(("Labels", ", ".join(one_line(label, 60) for label in phase.begin.labels)))
    return tuple((name, words) for name, words in found if words)


def _cpu(phase: PhaseRecord) -> Pairs:
    cpu = phase.end.cpu if phase.end else None
    if cpu is None or cpu.user_s is None or cpu.system_s is None:
        return ()
    busy = phase.end.task_seconds.transfer if phase.end else None
    share = f", {quantities.percent(min(1.0, (cpu.user_s + cpu.system_s) / busy))} of the tasks’ time" if busy else ""
    words = f"user {quantities.seconds(cpu.user_s)}, system {quantities.seconds(cpu.system_s)}{share}"
    if not cpu.bytes_per_system_s:
        return (("CPU", words),)
    return (("CPU", words), ("Per system CPU second", str(quantities.volume(cpu.bytes_per_system_s))))


def _balance(run: Run, phase: PhaseRecord) -> Pairs:
    if run.tasks < 2 or phase.end is None:
        return ()
    worst, tail = phase.end.imbalance.max_over_mean, phase.end.imbalance.tail_share
    longest = "" if worst is None else f"{worst:.2f} × the mean time"
    after = "" if tail is None else f"{quantities.percent(tail)} of the time"
    return (("Longest task", longest), ("After half had finished", after))


def split(phase: PhaseRecord) -> tuple[tuple[str, str, float, str], ...]:
    """(part, time summed over tasks, its share, wall time) of open, transfer, fsync and close."""
    rows = []
    for part, spent, share in time_split(phase):
        wall = getattr(phase.end.seconds, part) if phase.end else None
        rows.append(
            (part, str(quantities.seconds(spent)), share, "" if wall is None else str(quantities.seconds(wall)))
        )
    return tuple(rows)


def slowest(run: Run, phase: PhaseRecord) -> tuple[Four, ...]:
    """Task, host, rate and time of the slowest tasks; empty when there is only one task."""
    if run.tasks < 2 or phase.end is None:
        return ()
    hosts = host_names(run)
    return tuple(
        (
            f"task {one.task}",
            one_line(one.host, 80) or hosts.get(one.node or 0, ""),
            "" if one.bytes_per_s is None else str(quantities.byte_rate(one.bytes_per_s)),
            "" if one.seconds is None else str(quantities.seconds(one.seconds)),
        )
        for one in phase.end.imbalance.slowest[:5]
    )


def treatment(line: TreatmentLine) -> Four:
    """Kind, outcome, time taken, and what it did to the page cache."""
    said = one_line(line.text, 400)
    if line.resident_before is not None and line.resident_after is not None:
        before, after = quantities.percent(line.resident_before), quantities.percent(line.resident_after)
        said = f"in page cache: {before} before, {after} after" + (f"{quantities.DOT}{said}" if said else "")
    took = "" if line.seconds is None else str(quantities.seconds(line.seconds))
    return one_line(line.kind, 60).replace("_", " "), one_line(line.outcome, 40), took, said


def latencies(phase: PhaseRecord) -> tuple[tuple[str, ...], ...]:
    """Kind, count and percentiles of the operations that were too few to draw."""
    rows = []
    for kind, stats in (phase.end.latency if phase.end else {}).items():
        if 0 < stats.count < FEWEST_DRAWN:
            known = dict(percentiles(phase, kind))
            cells = (
                str(quantities.nanoseconds(known[name])) if name in known else "" for name in ("p50", "p99", "max")
            )
            rows.append((one_line(kind, 40), quantities.count(stats.count), *cells))
    return tuple(rows)


def lanes(run: Run, phase: PhaseRecord) -> tuple[tuple[Four, ...], str]:
    """Lane, operation, amount and rate of a duplex phase, and a clause on their overlap."""
    found = phase.end.lanes if phase.end else None
    recorded = items({"v": found}, "v") or items(found, "lanes")
    planned = items(run.plan_of(phase.id), "lanes")
    rows: list[Four] = []
    for at, lane in enumerate(recorded):
        plan = planned[at] if at < len(planned) else {}
        rate, moved = number(lane, "bytes_per_s"), number(lane, "bytes")
        rows.append(
            (
                one_line(text(lane, "id") or text(plan, "id") or f"lane {at + 1}", 60),
                one_line(text(lane, "op") or text(plan, "op"), 40),
                "" if moved is None else str(quantities.volume(moved)),
                "" if rate is None else str(quantities.byte_rate(rate)),
            )
        )
    clauses = []
    for name, words in (("overlap_s", "both at work for"), ("efficiency", "efficiency"), ("fairness", "fairness")):
        value = next((v for holder in (found, *recorded) if (v := number(holder, name)) is not None), None)
        if value is not None:
            clauses.append(f"{words} {quantities.seconds(value) if name == 'overlap_s' else f'{value:.2f}'}")
    return tuple(rows), ", ".join(clauses)
