# SPDX-License-Identifier: Apache-2.0
"""A replay next to its original, as a table and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from sonde.advise.call_log import CallLog
from sonde.advise.replay_plan import ReplayComparison
from sonde.model.units import format_bytes, format_seconds
from sonde.terminal.screen import make_plain_table


def build_replay_document(
    log: CallLog, comparison: ReplayComparison, run_id: str, note_sentences: Sequence[str]
) -> dict[str, Any]:
    """The comparison as JSON."""
    return {
        "schema": "sonde-replay/1",
        "log": log.source,
        "format": log.format,
        "program": log.program,
        "tasks": len(log.tasks),
        "files": len(log.files),
        "has_single_calls": log.is_exact,
        "run": run_id,
        **comparison.to_json(),
        "notes": list(note_sentences),
    }


def print_replay(
    console: Console, log: CallLog, comparison: ReplayComparison, run_id: str, note_sentences: Sequence[str]
) -> None:
    """Prints a row for each kind of call, a sentence that compares both times, the notes, and the id of the run."""
    console.print(f"{log.source} ({log.format}): {len(log.tasks)} tasks, {len(log.files)} files", soft_wrap=True)
    table = make_plain_table()
    for title in ("call", "original", "replayed", "bytes", "replayed", "seconds", "replayed", "ratio"):
        table.add_column(title, justify="left" if title == "call" else "right")
    for row in comparison.kinds:
        ratio = f"{row.seconds / row.original_s:.2f}" if row.original_s > 0 and row.calls else "-"
        moves = row.kind in ("read", "write")
        table.add_row(
            row.kind,
            f"{row.original_calls:,}",
            f"{row.calls:,}",
            str(format_bytes(row.original_bytes)) if moves else "",
            str(format_bytes(row.bytes)) if moves else "",
            format_seconds(row.original_s),
            format_seconds(row.seconds),
            ratio,
        )
    console.print(table)
    console.print(_describe_comparison(log, comparison), soft_wrap=True)
    for note in note_sentences:
        console.print(note, soft_wrap=True, style="dim")
    console.print(f"Run  {run_id}", soft_wrap=True, style="dim")


def _describe_comparison(log: CallLog, comparison: ReplayComparison) -> str:
    if not comparison.is_complete:
        return "The replay did not end, so it is not compared."
    same = "the same reads and writes" if comparison.is_exact else "not the same reads and writes"
    order = "sizes and order as in the log" if log.is_exact else "sizes and order made up from counters"
    if comparison.time_ratio is None:
        return f"The replay issued {same} ({order}); the log has no times to compare with."
    return (
        f"The replay issued {same} ({order}). Its calls took {format_seconds(comparison.seconds)}, those of the"
        f" original {format_seconds(comparison.original_s)}: {comparison.time_ratio:.2f} times as long."
    )
