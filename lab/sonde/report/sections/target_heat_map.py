# SPDX-License-Identifier: Apache-2.0
"""Draws storage targets over the time of one phase, with the bytes or operations that each served, if they are
recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sonde.charts.heat_map import HeatMap, build_time_labels, render_heat_map
from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.findings.phase_summary import AssessedPhase
from sonde.findings.storage_units import collect_unit_series, find_slow_units, list_storage_levels, sum_unit_operations
from sonde.findings.target_operations import (
    compute_target_series,
    describe_unknown_bytes,
    find_slow_targets_by_latency,
    read_target_operations,
)
from sonde.findings.targets import SlowTarget
from sonde.model import quantities
from sonde.model.lines import SeriesLine, TargetsLine
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.report.sections.section import ChartWidth, PhaseSection
from sonde.stats.bins import pad_with_zeros, sum_into_bins

_MAX_COLUMNS = 64
# Of more targets those with the longest 99th percentile are in the table; the record has them all.
_MAX_LISTED_TARGETS = 16


def render_target_heat_map(phase: PhaseRecord) -> Markup | None:
    """The heat map of bytes, each value by the median of all; None with fewer than two targets."""
    series = compute_target_series(phase)
    length = max((len(line.bytes) for line in series), default=0)
    if len(series) < 2 or not length:
        return None
    columns = min(length, _MAX_COLUMNS)
    values = np.array([_sum_amounts_by_column(line, length, columns) for line in series])
    kind = {"read": "read from", "write": "written to"}.get(series[0].kind, "moved by")
    text = (
        f"Bytes {kind} each target, one row a target, over the time of the phase; each value by the median of all. A"
        " target takes part from the first to the last slice in which an operation ended there."
    )
    names = [str(line.target) for line in series]
    return _render_heat_map(
        "Targets over time", text, names, values, length * series[0].slice_s, find_slow_targets_by_latency(phase)
    )


def _render_heat_map(
    title: str,
    caption: str,
    row_names: list[str],
    amounts_by_row: NDArray[np.float64],
    duration_s: float,
    slow_targets: Sequence[SlowTarget],
) -> Markup | None:
    """One row a name over `duration_s`, each value by the median of all, the slow ones marked; None when nothing
    moved."""
    working = amounts_by_row[amounts_by_row > 0]
    if not working.size:
        return None
    slow_names = {target.name for target in slow_targets}
    marked = [index for index, name in enumerate(row_names) if name in slow_names]
    return render_heat_map(
        HeatMap(
            title, caption, row_names, amounts_by_row / float(np.median(working)), build_time_labels(duration_s), marked
        )
    )


def _sum_amounts_by_column(series_line: SeriesLine, slice_count: int, column_count: int) -> list[float]:
    """Amount that a target served in each column; NaN before its first and after its last operation."""
    moved = sum_into_bins(pad_with_zeros(series_line.bytes, slice_count), column_count)
    at_work = [index for index, value in enumerate(moved) if value > 0]
    if not at_work:
        return [float("nan")] * len(moved)
    return [value if at_work[0] <= index <= at_work[-1] else float("nan") for index, value in enumerate(moved)]


def _make_target_table(phase: PhaseRecord, targets_line: TargetsLine) -> Markup:
    rows = read_target_operations(targets_line)
    rows_listed = (
        sorted(rows, key=lambda row: -(row.p99_ns or 0))[:_MAX_LISTED_TARGETS]
        if len(rows) > _MAX_LISTED_TARGETS
        else rows
    )
    cells = [
        (
            item.target,
            item.kind,
            str(quantities.display_configured_size(item.bytes)),
            f"{item.ops:,}",
            *(_format_time(ns) for ns in (item.p50_ns, item.p99_ns, item.max_ns)),
        )
        for item in rows_listed
    ]
    sentences = ["What each target served, by the offsets of the operations"]
    if len(rows_listed) < len(rows):
        sentences.append(f"the {len(rows_listed)} with the longest 99th percentile of {len(rows):,}")
    total_ops = sum(row.single_ops for row in rows)
    touched = sum(row.ops for row in rows)
    if total_ops < touched:
        sentences.append("latencies are those of operations that lie on one target alone")
    if unknown := describe_unknown_bytes(phase):
        sentences.append(unknown)
    return render_html_table(
        ("Target", "Kind", "Bytes", "Operations", "Median", "99 %", "Longest"), cells, "; ".join(sentences), 2
    )


def render_unit_heat_map(run: RecordedRun, phase: PhaseRecord, unit_level: str) -> Markup | None:
    """The heat map of the parts of a level ("OSS", "SSU"), each value by the median of all; None for one."""
    series = collect_unit_series(run, phase, unit_level)
    length = max((len(line.bytes) for line in series), default=0)
    if len(series) < 2 or not length:
        return None
    values = np.array([sum_into_bins(line.bytes, min(length, _MAX_COLUMNS)) for line in series])
    text = (
        f"Bytes of the targets of each {unit_level} together, one row each, over the time of the phase; each value by"
        " the median of all."
    )
    names = [line.unit for line in series]
    seconds = length * series[0].slice_s
    return _render_heat_map(
        f"{unit_level} over time", text, names, values, seconds, find_slow_units(run, phase, unit_level)
    )


def _make_unit_table(run: RecordedRun, phase: PhaseRecord, unit_level: str) -> Markup:
    cells = [
        (
            operation.unit,
            operation.kind,
            f"{operation.targets}",
            str(quantities.display_configured_size(operation.bytes)),
            "" if operation.bytes_per_s is None else str(quantities.display_byte_rate(operation.bytes_per_s)),
            f"{operation.ops:,}",
            *(_format_time(ns) for ns in (operation.mean_ns, operation.worst_p99_ns, operation.max_ns)),
        )
        for operation in sum_unit_operations(run, phase, unit_level)
    ]
    text = (
        f"What the targets of each {unit_level} served together; rates are over the whole phase, the mean is that of"
        " the operations that lie on one target alone, the 99th percentile that of its worst target"
    )
    head = (unit_level, "Kind", "Targets", "Bytes", "Rate", "Operations", "Mean", "Worst 99 %", "Longest")
    return render_html_table(head, cells, text, 2)


def _format_time(ns: float | None) -> str:
    return "" if ns is None else str(quantities.display_seconds(ns / 1e9))


def _draw_target_heat_map(run: RecordedRun, assessed_phase: AssessedPhase) -> Iterator[tuple[ChartWidth, Markup]]:
    phase = assessed_phase.phase
    if heat := render_target_heat_map(phase):
        yield "wide", heat
    if phase.targets is None:
        return
    yield "wide", _make_target_table(phase, phase.targets)
    for level in list_storage_levels(run, phase):
        if heat := render_unit_heat_map(run, phase, level):
            yield "wide", heat
        yield "wide", _make_unit_table(run, phase, level)


SECTION = PhaseSection(41, _draw_target_heat_map)
