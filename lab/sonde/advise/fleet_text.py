# SPDX-License-Identifier: Apache-2.0
"""The survey of a fleet in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from sonde.advise.fleet import FleetLosses
from sonde.model.units import format_bytes, format_count_with_noun
from sonde.terminal.screen import make_plain_table

_MAX_LISTED_ROWS = 10
_DIRECTIONS = (("read_bytes", "read"), ("written_bytes", "written"))


def print_fleet_losses(console: Console, losses: FleetLosses) -> None:
    """Prints the mix, then what costs most by application, user, change and access pattern."""
    for name, value in list_fleet_facts(losses):
        console.print(f"{name:<10} {value}", soft_wrap=True)
    for title, rows in (("Application", losses.applications), ("User", losses.users), ("Change", losses.changes)):
        _print_losses(console, title, rows)
    _print_accesses(console, losses.accesses)
    if losses.library:
        lost = sum(row["lost_hours"] for row in losses.library)
        console.print(
            f"The preload library (sonde iobuf) would help {format_count_with_noun(len(losses.library), 'job')},"
            f" with up to {_format_hours(lost)} of the lost process-hours; --json lists them.",
            soft_wrap=True,
        )
    if losses.refused:
        console.print(
            f"! {format_count_with_noun(len(losses.refused), 'log')} cannot be read; the first reason: "
            f"{losses.refused[0]['refused']}",
            style="yellow",
            soft_wrap=True,
        )


def list_fleet_facts(losses: FleetLosses) -> list[tuple[str, str]]:
    """Names and values that describe the fleet as a whole."""
    mix = losses.mix
    calls = mix["calls"]
    shares = [
        f"{mix[name] / calls:.0%} {text}"
        for name, text in (
            ("small_calls", "below 1 MiB"),
            ("unaligned_calls", "unaligned"),
            ("random_calls", "not sequential"),
        )
        if calls
    ]
    moved = (f"{format_bytes(round(mix[name]))} {text}" for name, text in _DIRECTIONS)
    users = f" of {format_count_with_noun(mix['users'], 'user')}" if mix["users"] else ""
    return [
        ("Jobs", f"{mix['jobs']:,}{users}, {format_count_with_noun(mix['applications'], 'application')}"),
        (
            "Cost",
            f"{_format_hours(mix['process_hours'])} process-hours, "
            f"{_format_hours(mix['io_hours'])} of them in I/O (slowest rank of"
            f" each job), {_format_hours(mix['lost_hours'])} lost",
        ),
        ("Moved", ", ".join(moved)),
        ("Calls", f"{calls:,.0f}" + (": " + ", ".join(shares) if shares else "")),
        ("Lost", f"the largest gain of one change in each job, compared with {losses.storage}"),
    ]


def _print_losses(console: Console, title: str, loss_rows: Sequence[Mapping[str, Any]]) -> None:
    table = make_plain_table()
    table.add_column(title)
    for heading in ("jobs", "process-hours", "in I/O", "lost", "from", "to"):
        table.add_column(heading, justify="right")
    for row in loss_rows[:_MAX_LISTED_ROWS]:
        names = ("process_hours", "io_hours", "lost_hours", "lost_low_hours", "lost_high_hours")
        table.add_row(str(row["name"]), f"{row['jobs']:,}", *(_format_hours(row[name]) for name in names))
    _print_table(console, table, len(loss_rows))


def _print_accesses(console: Console, access_rows: Sequence[Mapping[str, Any]]) -> None:
    table = make_plain_table()
    for heading in ("Access", "time in calls", "jobs", "bytes", "acceptance test"):
        table.add_column(heading, justify="left" if heading in ("Access", "acceptance test") else "right")
    for row in access_rows[:_MAX_LISTED_ROWS]:
        files = "shared files" if row["is_shared"] else "a file per process"
        size = row["size_class"]
        sizes = {"more": "above 1 GiB", "unknown": "size unknown"}.get(size, f"up to {size}")
        table.add_row(
            f"{row['direction']}, {row['access_order']}, {sizes}, {files}, {row['interface']}",
            f"{row['share_of_time']:.0%}",
            f"{row['jobs']:,}",
            format_bytes(round(row["bytes"])),
            row["test"],
        )
    _print_table(console, table, len(access_rows))


def _print_table(console: Console, table: Any, row_count: int) -> None:
    if not row_count:
        return
    console.print()
    console.print(table)
    if row_count > _MAX_LISTED_ROWS:
        console.print(f"and {row_count - _MAX_LISTED_ROWS:,} more; --json lists all", style="dim")


def _format_hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
