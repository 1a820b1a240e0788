# SPDX-License-Identifier: Apache-2.0
"""What storage targets served in a run, and the servers and units they belong to, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.text import Text

from sonde.findings.served import served, unknown_words
from sonde.findings.units import levels_of, unit_rows
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.units import format_bytes, format_latency, format_rate
from sonde.model.visible import one_line
from sonde.terminal.screen import plain_table

# Of more targets those with the longest 99th percentile fit on a screen.
_MOST_LISTED = 12
_Row = TypeVar("_Row")
_HEAD = ("what", "bytes", "rate", "operations", "median", "99 %", "max")


def print_targets(console: Console, run: Run) -> None:
    """A table for each phase whose targets are known; nothing else."""
    for phase in run.phases:
        if phase.begin.measured and phase.targets is not None and phase.targets.rows:
            _print_phase(console, run, phase)


def targets_document(run: Run, phase: PhaseRecord) -> dict[str, Any]:
    """The same of one phase in machine form: `targets`, a row for each and kind of operations, and `units` by level."""
    if phase.targets is None:
        return {}
    rows = [{name: value for name, value in vars(one).items() if value is not None} for one in served(phase.targets)]
    known: dict[str, Any] = {"targets": rows, "known_bytes": phase.targets.known_bytes}
    levels = {level: [one.as_json() for one in unit_rows(run, phase, level)] for level in levels_of(run, phase)}
    return known | ({"units": levels} if levels else {})


def _print_phase(console: Console, run: Run, phase: PhaseRecord) -> None:
    assert phase.targets is not None
    rows, seconds = served(phase.targets), (phase.end.seconds.elapsed if phase.end else None) or 0.0
    listed = _worst(rows, [one.p99_ns for one in rows])
    table = plain_table()
    table.add_column(f"{phase.id}: target")
    for name in _HEAD:
        table.add_column(name, justify="left" if name == "what" else "right")
    for one in listed:
        rate = format_rate(one.bytes / seconds) if seconds else "-"
        times = (one.p50_ns, one.p99_ns, one.max_ns)
        name = one_line(one.target, 40)
        table.add_row(name, one.kind, format_bytes(one.bytes), rate, f"{one.ops:,}", *map(_latency, times))
    console.print(table)
    words = [_left_out(len(rows))] if len(listed) < len(rows) else []
    words += [unknown] if (unknown := unknown_words(phase)) else []
    if words:
        console.print(Text("; ".join(words), style="dim"))
    for level in levels_of(run, phase):
        _print_level(console, run, phase, level)
    console.print()


def _print_level(console: Console, run: Run, phase: PhaseRecord, level: str) -> None:
    table = plain_table()
    table.add_column(one_line(level, 30))
    for name in ("what", "targets", "bytes", "rate", "operations", "mean", "worst 99 %", "max"):
        table.add_column(name, justify="left" if name == "what" else "right")
    rows = unit_rows(run, phase, level)
    for one in _worst(rows, [one.worst_p99_ns for one in rows]):
        rate = format_rate(one.bytes_per_s) if one.bytes_per_s is not None else "-"
        times = (one.mean_ns, one.worst_p99_ns, one.max_ns)
        counts = (f"{one.targets}", format_bytes(one.bytes), rate, f"{one.ops:,}")
        table.add_row(one_line(one.unit, 40), one.kind, *counts, *map(_latency, times))
    console.print(table)
    if len(rows) > _MOST_LISTED:
        console.print(Text(_left_out(len(rows)), style="dim"))


def _worst(rows: Sequence[_Row], p99_ns: Sequence[float | None]) -> list[_Row]:
    """Those with the longest 99th percentile, in their order, when there are too many for a screen."""
    if len(rows) <= _MOST_LISTED:
        return list(rows)
    longest = sorted(range(len(rows)), key=lambda at: -(p99_ns[at] or 0))[:_MOST_LISTED]
    return [rows[at] for at in sorted(longest)]


def _left_out(count: int) -> str:
    return f"the {_MOST_LISTED} with the longest 99th percentile of {count:,}"


def _latency(value: float | None) -> str:
    return "-" if value is None else format_latency(value)
