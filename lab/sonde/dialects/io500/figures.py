# SPDX-License-Identifier: Apache-2.0
"""Computes the result of a phase from its record: IO500's number by its definition, and Sonde's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.model.lines import PhaseEndLine
from sonde.model.record import PhaseRecord, RecordReader

GIB = 1 << 30


@dataclass(frozen=True)
class PhaseFigures:
    """Result of a phase, as IO500 defines it.

    `value`: GiB/s or thousands of operations/s. `seconds`: of the work, IOR's (first open to last close, comparing
    included) or mdtest's (common start to the end of the last task). `stonewall`: rate until the deadline, in the same
    unit, None where there was none. `ours`: sentences that say what else the record shows.
    """

    value: float = 0.0
    seconds: float = 0.0
    stonewall: float | None = None
    stonewall_s: float = 0.0
    max_operations: int = 0  # of one task
    mismatches: int = 0
    matches: int | None = None
    visited: int | None = None
    sentences: tuple[str, ...] = ()


def compute_ior_figures(record: RecordReader) -> PhaseFigures:
    """Figures of a phase of IOR: bytes transferred / (last close - first open, and the time of the task that compared
    longest)."""
    phase = _get_last_phase(record)
    if phase is None or phase.end is None:
        return PhaseFigures()
    end = phase.end
    seconds = (end.seconds.elapsed or 0.0) + (end.seconds.verify or 0.0)
    wall = end.rates.stonewall
    return PhaseFigures(
        value=end.bytes.transferred / seconds / GIB if seconds > 0 else 0.0,
        seconds=seconds,
        stonewall=wall.bytes_per_s / GIB if wall else None,
        stonewall_s=wall.seconds if wall else 0.0,
        max_operations=int(max(_sum_task_column(phase, "ops"), default=0)),
        mismatches=end.verify.mismatches if end.verify else 0,
        sentences=_list_ior_sentences(end),
    )


def compute_mdtest_figures(record: RecordReader) -> PhaseFigures:
    """Figures of a phase of mdtest: tasks x items of the task that did least / time until the last has finished."""
    phase = next(
        (
            phase_record
            for phase_record in record.phases.values()
            if "-file-" in phase_record.id and phase_record.end is not None
        ),
        None,
    )
    if phase is None or phase.end is None:
        return PhaseFigures()
    items, ends = _sum_task_column(phase, "ops"), _sum_task_column(phase, "end_s")
    seconds = max(ends, default=0.0)
    wall = phase.end.rates.stonewall
    return PhaseFigures(
        value=min(items) * len(items) / seconds / 1000 if items and seconds > 0 else 0.0,
        seconds=seconds,
        stonewall=wall.ops_per_s / 1000 if wall else None,
        stonewall_s=wall.seconds if wall else 0.0,
        max_operations=int(max(items, default=0)),
        mismatches=sum(
            phase_record.end.verify.mismatches
            for phase_record in record.phases.values()
            if phase_record.end and phase_record.end.verify
        ),
        sentences=_list_mdtest_sentences(phase.end),
    )


def compute_mdworkbench_figures(records: Sequence[RecordReader]) -> PhaseFigures:
    """Figures of a phase of md-workbench: calls / time until the last task has finished, the mean of its iterations.
    Directories and objects are created and removed in two parts; the times of both parts are added for each task."""
    values, seconds, mismatches = [], 0.0, 0
    for record in records:
        finished_phases = [phase_record for phase_record in record.phases.values() if phase_record.end is not None]
        times: dict[int, float] = {}
        for phase in finished_phases:
            for task, end in enumerate(_sum_task_column(phase, "end_s")):
                times[task] = times.get(task, 0.0) + end
            mismatches += phase.end.verify.mismatches if phase.end and phase.end.verify else 0
        calls = sum(sum(_sum_task_column(phase, "ops")) for phase in finished_phases)
        longest = max(times.values(), default=0.0)
        seconds += longest
        values.append(calls / longest / 1000 if longest > 0 else 0.0)
    return PhaseFigures(
        value=sum(values) / len(values) if values else 0.0,
        seconds=seconds,
        mismatches=mismatches,
    )


def compute_search_figures(record: RecordReader) -> PhaseFigures:
    """Figures of a search: entries that are no directories / (first task's start to last task's end), as pfind
    counts."""
    phase = _get_last_phase(record)
    if phase is None or phase.end is None or phase.end.walk is None:
        return PhaseFigures()
    end, walk = phase.end, phase.end.walk
    assert walk is not None
    visited = (end.entries or 0) - walk.directories
    seconds = end.seconds.elapsed or 0.0
    ours = (f"visited {end.entries or 0} entries, {walk.directories} of them directories; examined {walk.examined}",)
    return PhaseFigures(
        value=visited / seconds / 1000 if seconds > 0 else 0.0,
        seconds=seconds,
        matches=walk.matched or 0,
        visited=visited,
        sentences=ours,
    )


def make_search_table(search_figures: PhaseFigures, record: RecordReader) -> str:
    """The CSV file of a search: its first line is that of IO500; each row has the counts of one task."""
    lines = [
        f"runtime: {search_figures.seconds:f} rate: {search_figures.value * 1000:f}",
        "rank, entries, start in s, end in s",
    ]
    phase = _get_last_phase(record)
    if phase is not None:
        tasks, entries, starts, ends = (_sum_task_column(phase, name) for name in ("task", "ops", "start_s", "end_s"))
        rows = sorted(zip(tasks, entries, starts, ends, strict=True))
        lines += [f"{int(task)}, {int(count)}, {start:.6f}, {end:.6f}" for task, count, start, end in rows]
    return "\n".join(lines) + "\n"


def compute_sonde_figures(record: RecordReader) -> tuple[float | None, float | None, float | None]:
    """Our rate of the phase (bytes/s, else operations/s, first start to last end of the transfers), and the median and
    the 99th percentile of single calls in seconds; None where the record does not say."""
    phase = next(
        (phase_record for phase_record in record.phases.values() if "-file-" in phase_record.id), None
    ) or _get_last_phase(record)
    if phase is None or phase.end is None:
        return None, None, None
    end = phase.end
    rate = end.rates.transfer or end.rates.total
    kind = max(end.latency, key=lambda name: end.latency[name].count, default=None)
    latency = end.latency[kind] if kind else None
    per_s = (
        (rate.bytes_per_s if end.bytes.transferred and "-file-" not in phase.id else rate.ops_per_s) if rate else None
    )
    p50 = latency.p50_ns / 1e9 if latency and latency.p50_ns is not None else None
    p99 = latency.p99_ns / 1e9 if latency and latency.p99_ns is not None else None
    return per_s, p50, p99


def _list_ior_sentences(phase_end: PhaseEndLine) -> tuple[str, ...]:
    sentences = []
    if phase_end.rates.transfer:
        sentences.append(
            f"transfers alone, first start to last end: {phase_end.rates.transfer.bytes_per_s / GIB:.6f} GiB/s"
        )
    if phase_end.seconds.verify:
        sentences.append(
            f"comparing took up to {phase_end.seconds.verify:.3f} s of a task; it is in the score's time, not in ours"
        )
    return tuple(sentences)


def _list_mdtest_sentences(phase_end: PhaseEndLine) -> tuple[str, ...]:
    if phase_end.rates.total is None:
        return ()
    rate = phase_end.rates.total.ops_per_s / 1000
    return (f"all operations / first start to last end: {rate:.6f} kIOPS",)


def _get_last_phase(record: RecordReader) -> PhaseRecord | None:
    return next(reversed(record.phases.values()), None)


def _sum_task_column(phase: PhaseRecord, column_name: str) -> Sequence[float]:
    """A number of each task; of a task with two streams, their sum."""
    values: dict[int, float] = {}
    for table in phase.tasks:
        if {"task", column_name} <= set(table.columns):
            task, column = table.columns.index("task"), table.columns.index(column_name)
            for row in table.rows:
                values[int(row[task])] = values.get(int(row[task]), 0.0) + float(row[column] or 0)
    return list(values.values())
