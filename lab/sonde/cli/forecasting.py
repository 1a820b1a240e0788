# SPDX-License-Identifier: Apache-2.0
"""How a dry run of an experiment is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from sonde.experiments.forecast import Forecast, PhaseForecast, total_seconds
from sonde.model.experiment import Experiment
from sonde.model.units import counted, format_bytes, format_wait
from sonde.terminal.screen import plain_table


def print_forecast(console: Console, experiment: Experiment, found: Sequence[Forecast]) -> None:
    """For each cell what it would take, and what a person would type instead; then all of it."""
    console.print(Text(experiment.title, style="bold"))
    for one in found:
        console.print()
        heading = Text(one.cell, style="bold")
        if one.prepared.directory:
            heading.append(f"  in {one.prepared.directory}", style="dim")
        console.print(heading, soft_wrap=True)
        if one.phases:
            _cell(console, one)
        if one.refused:
            console.print(Text(f"  ! not run: {one.refused}", style="yellow"), soft_wrap=True)
    console.print()
    console.print(_total(found), soft_wrap=True)


def _cell(console: Console, one: Forecast) -> None:
    table = plain_table()
    for title in ("  phase", "what"):
        table.add_column(title)
    for title in ("files", "bytes", "of memory", "operations", "time"):
        table.add_column(title, justify="right")
    for phase in one.phases:
        table.add_row(
            f"  {phase.id}", phase.op, f"{phase.files:,}", format_bytes(phase.bytes), _share(phase),
            f"{phase.operations:,}", "?" if phase.seconds is None else format_wait(phase.seconds),
        )  # fmt: skip
    console.print(table)
    room = "" if one.available is None else f" of {format_bytes(one.available)} available"
    console.print(
        f"  {counted(one.tasks, 'task')}, {counted(one.runs, 'run')}, {format_bytes(one.space)}{room}", soft_wrap=True
    )
    cached = [phase.id for phase in one.phases if phase.from_memory]
    if cached:
        console.print(
            Text(f"  {', '.join(cached)}: may be served from memory, nothing empties it before", style="dim"),
            soft_wrap=True,
        )
    console.print(Text(f"  {one.classic.command or one.classic.why_not}", style="dim"), soft_wrap=True)


def _share(phase: PhaseForecast) -> str:
    return "-" if phase.of_memory is None or not phase.bytes else f"{phase.of_memory:.2g} x"


def _total(found: Sequence[Forecast]) -> str:
    ready = [one for one in found if not one.refused]
    seconds, whole = total_seconds(found)
    time = f"about {format_wait(seconds)}" if whole else f"{format_wait(seconds)} and what is not limited by time"
    more = "" if whole else " (--rate 1GB/s reckons it)"
    refused = f"; {counted(len(found) - len(ready), 'cell')} cannot be run" if len(ready) < len(found) else ""
    runs = sum(one.runs for one in ready)
    return f"{counted(len(ready), 'cell')}, {counted(runs, 'run')} at least, {time}{more}{refused}."


def forecast_document(experiment: Experiment, found: Sequence[Forecast]) -> dict[str, Any]:
    """The machine form."""
    seconds, whole = total_seconds(found)
    return {
        "schema": "sonde-forecast/1",
        "experiment": experiment.id,
        "seconds": seconds if whole else None,
        "at_least_seconds": seconds,
        "cells": [
            {
                "cell": one.cell,
                "at": dict(one.prepared.cell.at),
                "directory": one.prepared.directory,
                "tasks": one.tasks,
                "runs": one.runs,
                "space_bytes": one.space,
                "available_bytes": one.available,
                "command": one.classic.command or None,
                "no_command": one.classic.why_not or None,
                "refused": one.refused or None,
                "phases": [
                    {
                        "phase": phase.id,
                        "op": phase.op,
                        "files": phase.files,
                        "bytes": phase.bytes,
                        "operations": phase.operations,
                        "of_memory": phase.of_memory,
                        "seconds": phase.seconds,
                        "from_memory": phase.from_memory,
                    }
                    for phase in one.phases
                ],
            }
            for one in found
        ],
    }
