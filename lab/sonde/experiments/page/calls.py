# SPDX-License-Identifier: Apache-2.0
"""The time of each call against its number, from the log of operations of a run (``operations_file`` of a phase)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from sonde.charts.scatter import Dots, scatter_chart
from sonde.experiments.judging.measured import MeasuredRuns
from sonde.experiments.page.points import PHASE, asked, coordinates, named
from sonde.model.experiment.description import Figure

# Calls of a chart; of more, the longest and an even share of the others.
MOST_CALLS = 2000
# Column of the log.
_SECONDS = "runtime"


def call_figure(one: Figure, runs: MeasuredRuns) -> tuple[list[str], list[Markup]]:
    """One chart for all cells that the figure shows, a colour for each; of the first task of the first run."""
    series: list[Dots] = []
    words = dict[str, None]()
    for cell, phase in asked(one, runs.experiment):
        name = _log_of(runs.experiment.plans[cell.plan]["phases"], phase)
        times = read_calls(runs.folders(cell), name) if name else []
        if not times:
            words[f"Not drawn: no run of cell {cell.id} has a log of the operations of {phase}."] = None
            continue
        at = {**coordinates(runs.experiment, cell), PHASE: phase}
        series.append(Dots(named(runs.experiment, one.series, at.get(one.series)), *thinned(times)))
    if not series:
        return list(words)[:3] or ["Nothing of it was measured."], []
    told = "Each dot is one call of the first task of the first run."
    most = max(int(one.x[-1]) + 1 for one in series if len(one.x))
    if most > MOST_CALLS:
        told += f" Of {most:,} calls the longest are all drawn, of the others an even share."
    return list(words)[:3], [scatter_chart(one.title or one.id, told, series, "call number").render()]


def _log_of(phases: Sequence[Any], wanted: str) -> str:
    named = [str(one.get("operations_file", "")) for one in phases if one["id"] == wanted]
    return Path(named[0]).name if named else ""


def read_calls(folders: Sequence[Path], name: str) -> list[float]:
    """Seconds of each operation of the first task, of the first run that has a log; empty when none has one."""
    for folder in folders:
        file = folder / f"{name}-00000.csv"
        try:
            with file.open(encoding="utf-8", newline="") as lines:
                return [float(row[_SECONDS]) for row in csv.DictReader(lines)]
        except (OSError, KeyError, ValueError):
            continue
    return []


def thinned(times: Sequence[float]) -> tuple[list[float], list[float]]:
    """Number and seconds of the calls that are drawn: all, or the longest half of `MOST_CALLS` and an even share."""
    values = np.asarray(times, dtype=float)
    if values.size <= MOST_CALLS:
        return [float(at) for at in range(values.size)], values.tolist()
    longest = np.argsort(-values, kind="stable")[: MOST_CALLS // 2]
    even = np.linspace(0, values.size - 1, MOST_CALLS // 2).astype(int)
    chosen = np.unique(np.concatenate([longest, even]))
    return [float(at) for at in chosen], values[chosen].tolist()
