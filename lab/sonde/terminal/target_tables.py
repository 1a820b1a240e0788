# SPDX-License-Identifier: Apache-2.0
"""Tables of the operations of storage targets in a run, and of their servers and units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.text import Text

from sonde.findings.storage_units import list_storage_levels, sum_unit_operations
from sonde.findings.target_operations import (
    compute_busy_rate,
    describe_unknown_bytes,
    read_target_operations,
    select_target_series,
)
from sonde.model.escaping import escape_line
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.model.units import format_bytes, format_latency, format_rate
from sonde.terminal.screen import make_plain_table

# Of more targets those with the longest 99th percentile fit on a screen.
_MAX_LISTED_TARGETS = 12
_BUFFERED_WRITES_NOTE = (
    "buffered writes: rates and latencies are those of the page cache while it has room, without fsync"
)
_Row = TypeVar("_Row")
_COLUMN_TITLES = ("what", "bytes", "rate", "operations", "median", "99 %", "max")


def print_targets(console: Console, run: RecordedRun) -> None:
    """A table for each phase whose targets are known; nothing else."""
    for phase in run.phases:
        if phase.begin.measured and phase.targets is not None and phase.targets.rows:
            _print_targets_of_phase(console, run, phase)


def build_targets_document(run: RecordedRun, phase: PhaseRecord) -> dict[str, Any]:
    """The tables of one phase as JSON members: `targets`, a row for each and kind of operations, and `units` by
    level."""
    if phase.targets is None:
        return {}
    rows = [
        {name: value for name, value in vars(operation).items() if value is not None}
        for operation in read_target_operations(phase.targets)
    ]
    document: dict[str, Any] = {"targets": rows, "known_bytes": phase.targets.known_bytes}
    levels = {
        level: [operation.to_json() for operation in sum_unit_operations(run, phase, level)]
        for level in list_storage_levels(run, phase)
    }
    return document | ({"units": levels} if levels else {})


def _print_targets_of_phase(console: Console, run: RecordedRun, phase: PhaseRecord) -> None:
    assert phase.targets is not None
    rows = read_target_operations(phase.targets)
    rows_listed = _select_slowest_targets(rows, [row.p99_ns for row in rows])
    table = make_plain_table()
    table.add_column(f"{phase.id}: target")
    for name in _COLUMN_TITLES:
        table.add_column(name, justify="left" if name == "what" else "right")
    for item in rows_listed:
        rate = compute_busy_rate(select_target_series(phase, item.kind, [item.target]))
        times = (item.p50_ns, item.p99_ns, item.max_ns)
        name = escape_line(item.target, 40)
        table.add_row(
            name, item.kind, format_bytes(item.bytes), _format_rate(rate), f"{item.ops:,}", *map(_format_latency, times)
        )
    console.print(table)
    text = [_describe_selection(len(rows))] if len(rows_listed) < len(rows) else []
    text += [unknown] if (unknown := describe_unknown_bytes(phase)) else []
    if any(row.kind == "write" for row in rows) and _ends_writes_in_page_cache(run, phase):
        text.append(_BUFFERED_WRITES_NOTE)
    if text:
        console.print(Text("; ".join(text), style="dim"))
    for level in list_storage_levels(run, phase):
        _print_units_of_level(console, run, phase, level)
    console.print()


def _ends_writes_in_page_cache(run: RecordedRun, phase: PhaseRecord) -> bool:
    return not phase.begin.direct and run.find_setting(phase.id, "io", "sync") not in ("dsync", "sync")


def _print_units_of_level(console: Console, run: RecordedRun, phase: PhaseRecord, unit_level: str) -> None:
    table = make_plain_table()
    table.add_column(escape_line(unit_level, 30))
    for name in ("what", "targets", "bytes", "rate", "operations", "mean", "worst 99 %", "max"):
        table.add_column(name, justify="left" if name == "what" else "right")
    rows = sum_unit_operations(run, phase, unit_level)
    for item in _select_slowest_targets(rows, [row.worst_p99_ns for row in rows]):
        times = (item.mean_ns, item.worst_p99_ns, item.max_ns)
        counts = (f"{item.targets}", format_bytes(item.bytes), _format_rate(item.bytes_per_s), f"{item.ops:,}")
        table.add_row(escape_line(item.unit, 40), item.kind, *counts, *map(_format_latency, times))
    console.print(table)
    if len(rows) > _MAX_LISTED_TARGETS:
        console.print(Text(_describe_selection(len(rows)), style="dim"))


def _select_slowest_targets(target_rows: Sequence[_Row], p99_ns: Sequence[float | None]) -> list[_Row]:
    """Targets with the longest 99th percentile, in their original order, when there are too many for a screen."""
    if len(target_rows) <= _MAX_LISTED_TARGETS:
        return list(target_rows)
    longest = sorted(range(len(target_rows)), key=lambda index: -(p99_ns[index] or 0))[:_MAX_LISTED_TARGETS]
    return [target_rows[index] for index in sorted(longest)]


def _describe_selection(shown_count: int) -> str:
    return f"the {_MAX_LISTED_TARGETS} with the longest 99th percentile of {shown_count:,}"


def _format_rate(rate: float | None) -> str:
    return "-" if rate is None else format_rate(rate)


def _format_latency(latency_ns: float | None) -> str:
    return "-" if latency_ns is None else format_latency(latency_ns)
