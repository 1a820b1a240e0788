# SPDX-License-Identifier: Apache-2.0
"""Prints the forecast of an experiment (`--dry-run`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from sonde.experiments.forecast import Forecast, PhaseForecast, sum_known_seconds_with_completeness
from sonde.model.experiment import Experiment
from sonde.model.units import format_bytes, format_count_with_noun, format_wait
from sonde.terminal.screen import make_plain_table


def print_forecast(console: Console, experiment: Experiment, forecasts: Sequence[Forecast]) -> None:
    """Prints for each cell what it needs and the equivalent command of a classic tool, then the total."""
    console.print(Text(experiment.title, style="bold"))
    for forecast in forecasts:
        console.print()
        heading = Text(forecast.cell_id, style="bold")
        if forecast.prepared.directory:
            heading.append(f"  in {forecast.prepared.directory}", style="dim")
        console.print(heading, soft_wrap=True)
        if forecast.phases:
            _print_cell(console, forecast)
        if forecast.refusal:
            console.print(Text(f"  ! not run: {forecast.refusal}", style="yellow"), soft_wrap=True)
    console.print()
    console.print(_make_total_line(forecasts), soft_wrap=True)


def _print_cell(console: Console, forecast: Forecast) -> None:
    table = make_plain_table()
    for title in ("  phase", "what"):
        table.add_column(title)
    for title in ("files", "bytes", "of memory", "operations", "time"):
        table.add_column(title, justify="right")
    for phase in forecast.phases:
        table.add_row(
            f"  {phase.id}", phase.op, f"{phase.files:,}", format_bytes(phase.bytes), _format_memory_share(phase),
            f"{phase.operations:,}", "?" if phase.seconds is None else format_wait(phase.seconds),
        )  # fmt: skip
    console.print(table)
    room = "" if forecast.available is None else f" of {format_bytes(forecast.available)} available"
    console.print(
        f"  {format_count_with_noun(forecast.tasks, 'task')}, {format_count_with_noun(forecast.runs, 'run')}, "
        f"{format_bytes(forecast.space)}{room}",
        soft_wrap=True,
    )
    if forecast.may_fill_storage:
        sentence = (
            f"  ! may fill the file system: without its stonewall a run writes {format_bytes(forecast.max_space)}; set"
            " a volume that fits, or a shorter stonewall"
        )
        console.print(Text(sentence, style="yellow"), soft_wrap=True)
    cached = [phase.id for phase in forecast.phases if phase.is_from_memory]
    if cached:
        console.print(
            Text(
                f"  {', '.join(cached)}: may be served from memory, since no treatment empties the cache", style="dim"
            ),
            soft_wrap=True,
        )
    equivalent = forecast.equivalent
    text = equivalent.command or f"No other tool has an equivalent command: {equivalent.reason}."
    console.print(Text(f"  {text}", style="dim"), soft_wrap=True)


def _format_memory_share(phase: PhaseForecast) -> str:
    return "-" if phase.memory_share is None or not phase.bytes else f"{phase.memory_share:.2g} x"


def _make_total_line(forecasts: Sequence[Forecast]) -> str:
    ready = [forecast for forecast in forecasts if not forecast.refusal]
    seconds, is_complete = sum_known_seconds_with_completeness(forecasts)
    time = (
        f"about {format_wait(seconds)}" if is_complete else f"{format_wait(seconds)} plus phases without a time limit"
    )
    hint = "" if is_complete else " (--rate 1GB/s estimates it)"
    refused = (
        f"; {format_count_with_noun(len(forecasts) - len(ready), 'cell')} cannot be run"
        if len(ready) < len(forecasts)
        else ""
    )
    runs = sum(forecast.runs for forecast in ready)
    return (
        f"{format_count_with_noun(len(ready), 'cell')}, {format_count_with_noun(runs, 'run')} at least, "
        f"{time}{hint}{refused}."
    )


def convert_forecasts_to_json(experiment: Experiment, forecasts: Sequence[Forecast]) -> dict[str, Any]:
    """Returns the JSON document of the forecasts (schema sonde-forecast/2)."""
    seconds, is_complete = sum_known_seconds_with_completeness(forecasts)
    return {
        "schema": "sonde-forecast/2",
        "experiment": experiment.id,
        "seconds": seconds if is_complete else None,
        "at_least_seconds": seconds,
        "cells": [
            {
                "cell": forecast.cell_id,
                "axis_values": dict(forecast.prepared.cell.coordinates),
                "directory": forecast.prepared.directory,
                "tasks": forecast.tasks,
                "runs": forecast.runs,
                "space_bytes": forecast.space,
                "most_space_bytes": forecast.max_space,
                "available_bytes": forecast.available,
                "command": forecast.equivalent.command or None,
                "no_command": forecast.equivalent.reason or None,
                "refusal": forecast.refusal or None,
                "phases": [
                    {
                        "phase": phase.id,
                        "op": phase.op,
                        "files": phase.files,
                        "bytes": phase.bytes,
                        "operations": phase.operations,
                        "of_memory": phase.memory_share,
                        "seconds": phase.seconds,
                        "from_memory": phase.is_from_memory,
                    }
                    for phase in forecast.phases
                ],
            }
            for forecast in forecasts
        ],
    }
