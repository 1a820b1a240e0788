# SPDX-License-Identifier: Apache-2.0
"""A trace for people, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from sonde.model.trace import Trace, TracedFile, TransferCounters
from sonde.model.units import format_bytes, format_count_with_noun, format_seconds
from sonde.terminal.screen import make_plain_table

_MAX_LISTED_FILES = 20
# Files beyond this share of the time are folded: what an interpreter reads at its start hides the files that matter.
_MIN_LISTED_TIME_SHARE = 0.99


def print_trace(console: Console, trace: Trace) -> None:
    """Processes in one line, the files that cost most time in a table."""
    names = sorted({" ".join(process["command"])[:60] for process in trace.processes})
    console.print(Text(names[0] if len(names) == 1 else f"{names[0]} and others", style="bold"))
    inside = sum(file.call_seconds for file in trace.files.values())
    console.print(
        f"Processes  {len(trace.processes)}, {format_seconds(trace.duration_seconds)};"
        f" {format_seconds(inside)} in calls on {format_count_with_noun(len(trace.files), 'file')}"
    )
    if trace.untraced_calls:
        console.print(
            f"Not seen   {trace.untraced_calls:,} read and write calls of streams of the C library, pipes and sockets",
            style="dim",
        )
    for name in trace.damaged_files:
        console.print(f"{name} ends in the middle: its process was killed while it wrote.", style="yellow")
    console.print()
    ordered = sorted(trace.files.values(), key=lambda file: -file.call_seconds)
    table = make_plain_table()
    for title in ("file", "time", "reads", "bytes", "mean", "in sequence", "writes", "bytes", "mean", "in sequence"):
        table.add_column(title, justify="left" if title == "file" else "right", overflow="fold")
    displayed = _count_listed_files(ordered)
    for file in ordered[:displayed]:
        table.add_row(
            Text(file.path),
            format_seconds(file.call_seconds),
            *_format_transfer_cells(file.read),
            *_format_transfer_cells(file.write),
        )
    console.print(table)
    if len(ordered) > displayed:
        remaining = sum(file.call_seconds for file in ordered[displayed:])
        console.print(
            f"and {len(ordered) - displayed} more, which took {format_seconds(remaining)} together", style="dim"
        )
    for file in ordered[: min(3, displayed)]:
        for remark in _describe_access_problems(file):
            console.print(f"{file.path}: {remark}", soft_wrap=True)


def _count_listed_files(sorted_files: Sequence[TracedFile]) -> int:
    """How many of the files, the dearest first, make up the time that counts; one at least, where there is one."""
    wanted, reported = _MIN_LISTED_TIME_SHARE * sum(file.call_seconds for file in sorted_files), 0.0
    for count, file in enumerate(sorted_files[:_MAX_LISTED_FILES]):
        if count and reported >= wanted:
            return count
        reported += file.call_seconds
    return min(len(sorted_files), _MAX_LISTED_FILES)


def _format_transfer_cells(transfers: TransferCounters) -> tuple[str, str, str, str]:
    if not transfers.calls:
        return "-", "-", "-", "-"
    share = transfers.consecutive / max(transfers.calls - 1, 1)
    return (
        f"{transfers.calls:,}",
        format_bytes(transfers.bytes),
        format_bytes(round(transfers.bytes / transfers.calls)),
        f"{share:.0%}",
    )


def _describe_access_problems(traced_file: TracedFile) -> list[str]:
    result = []
    calls = traced_file.read.calls + traced_file.write.calls
    small = sum(traced_file.read.sizes[:4]) + sum(traced_file.write.sizes[:4])
    if calls >= 200 and small * 2 > calls:
        common = ", ".join(
            f"{size:,} B ({_format_repetitions(count)})" for size, count in traced_file.sizes.most_common(2)
        )
        result.append(f"{small:,} of {calls:,} calls move less than 100 KiB; most frequent: {common}.")
    if calls >= 200 and traced_file.file_unaligned * 2 > calls:
        result.append(
            f"{traced_file.file_unaligned:,} calls start between blocks of {format_bytes(traced_file.block_bytes)}."
        )
    if traced_file.calls["sync"] * 10 > calls > 0:
        result.append(f"it is synchronized {traced_file.calls['sync']:,} times.")
    return result


def _format_repetitions(repetitions: int) -> str:
    return "once" if repetitions == 1 else f"{repetitions:,} times"


def build_trace_document(trace: Trace) -> dict[str, Any]:
    """The same for programs."""
    files = [
        {
            **vars(file),
            "calls": dict(file.calls),
            "seconds": file.call_seconds,
            "read": asdict(file.read),
            "write": asdict(file.write),
            "sizes": file.sizes.most_common(),
            "strides": file.strides.most_common(),
        }
        for file in sorted(trace.files.values(), key=lambda file: -file.call_seconds)
    ]
    return {
        "seconds": trace.duration_seconds,
        "unseen_calls": trace.untraced_calls,
        "broken": trace.damaged_files,
        "processes": trace.processes,
        "files": files,
    }
