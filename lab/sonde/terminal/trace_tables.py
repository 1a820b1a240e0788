# SPDX-License-Identifier: Apache-2.0
"""A trace for people, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from sonde.model.trace import Moves, Trace, TracedFile
from sonde.model.units import counted, format_bytes, format_seconds
from sonde.terminal.screen import plain_table

_MOST_FILES = 20
# Files beyond this share of the time are folded: what an interpreter reads at its start hides the files that matter.
_MOST_TIME = 0.99


def print_trace(console: Console, trace: Trace) -> None:
    """Processes in one line, the files that cost most time in a table."""
    names = sorted({" ".join(one["command"])[:60] for one in trace.processes})
    console.print(Text(names[0] if len(names) == 1 else f"{names[0]} and others", style="bold"))
    inside = sum(one.seconds for one in trace.files.values())
    console.print(
        f"Processes  {len(trace.processes)}, {format_seconds(trace.seconds)};"
        f" {format_seconds(inside)} in calls on {counted(len(trace.files), 'file')}"
    )
    if trace.unseen:
        console.print(
            f"Not seen   {trace.unseen:,} read and write calls of streams of the C library, pipes and sockets",
            style="dim",
        )
    for name in trace.broken:
        console.print(f"{name} ends in the middle: its process was killed while it wrote.", style="yellow")
    console.print()
    ordered = sorted(trace.files.values(), key=lambda one: -one.seconds)
    table = plain_table()
    for title in ("file", "time", "reads", "bytes", "mean", "in sequence", "writes", "bytes", "mean", "in sequence"):
        table.add_column(title, justify="left" if title == "file" else "right", overflow="fold")
    shown = _worth_a_row(ordered)
    for file in ordered[:shown]:
        table.add_row(Text(file.path), format_seconds(file.seconds), *_moves(file.read), *_moves(file.write))
    console.print(table)
    if len(ordered) > shown:
        rest = sum(file.seconds for file in ordered[shown:])
        console.print(f"and {len(ordered) - shown} more, which took {format_seconds(rest)} together", style="dim")
    for file in ordered[: min(3, shown)]:
        for remark in _remarks(file):
            console.print(f"{file.path}: {remark}", soft_wrap=True)


def _worth_a_row(ordered: Sequence[TracedFile]) -> int:
    """How many of the files, the dearest first, make up the time that counts; one at least, where there is one."""
    wanted, told = _MOST_TIME * sum(file.seconds for file in ordered), 0.0
    for count, file in enumerate(ordered[:_MOST_FILES]):
        if count and told >= wanted:
            return count
        told += file.seconds
    return min(len(ordered), _MOST_FILES)


def _moves(moves: Moves) -> tuple[str, str, str, str]:
    if not moves.calls:
        return "-", "-", "-", "-"
    share = moves.consecutive / max(moves.calls - 1, 1)
    return f"{moves.calls:,}", format_bytes(moves.bytes), format_bytes(round(moves.bytes / moves.calls)), f"{share:.0%}"


def _remarks(file: TracedFile) -> list[str]:
    found = []
    calls = file.read.calls + file.write.calls
    small = sum(file.read.sizes[:4]) + sum(file.write.sizes[:4])
    if calls >= 200 and small * 2 > calls:
        common = ", ".join(f"{size:,} B ({count:,} times)" for size, count in file.sizes.most_common(2))
        found.append(f"{small:,} of {calls:,} calls move less than 100 KiB; most frequent: {common}.")
    if calls >= 200 and file.file_unaligned * 2 > calls:
        found.append(f"{file.file_unaligned:,} calls start between blocks of {format_bytes(file.block_bytes)}.")
    if file.calls["sync"] * 10 > calls > 0:
        found.append(f"it is synchronized {file.calls['sync']:,} times.")
    return found


def trace_document(trace: Trace) -> dict[str, Any]:
    """The same for programs."""
    files = [
        {
            **vars(one),
            "calls": dict(one.calls),
            "seconds": one.seconds,
            "read": asdict(one.read),
            "write": asdict(one.write),
            "sizes": one.sizes.most_common(),
            "strides": one.strides.most_common(),
        }
        for one in sorted(trace.files.values(), key=lambda one: -one.seconds)
    ]
    return {
        "seconds": trace.seconds,
        "unseen_calls": trace.unseen,
        "broken": trace.broken,
        "processes": trace.processes,
        "files": files,
    }
