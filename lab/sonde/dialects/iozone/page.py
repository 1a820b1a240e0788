# SPDX-License-Identifier: Apache-2.0
"""The grid of IOzone as a page: for each test a heat map of the rate over file size x record size, and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sonde.charts.heat import HeatMap, heat_map
from sonde.charts.plot import table
from sonde.charts.study import Section, Study, write_study
from sonde.dialects.iozone.plans import Cell
from sonde.dialects.iozone.tables import COLUMNS
from sonde.model.units import format_bytes, format_rate

Grid = Mapping[Cell, Mapping[str, float]]


def write_grid(grid: Grid, title: str, out: Path) -> Path | None:
    """Writes the page when there is a grid to draw: more than one cell. Rates are bytes per second."""
    if len(grid) < 2:
        return None
    sections = []
    for name, phases in COLUMNS:
        rates = {(c.file, c.record): r[p] for c, r in grid.items() for p in phases if p in r}
        if rates:
            sections.append(_section(name, rates))
    sizes = sorted({cell.file for cell in grid})
    lead = f"Files from {_kib(sizes[0])} to {_kib(sizes[-1])}, {len(grid)} pairs of file and record size."
    facts = [("command", title)]
    return write_study(
        Study(title="IOzone: file size × record size", lead=lead, facts=facts, alarms=[], sections=sections), out
    )


def _section(name: str, rates: Mapping[tuple[int, int], float]) -> Section:
    files = sorted({size for size, _ in rates})
    records = sorted({record for _, record in rates})
    values = np.array([[rates.get((size, record), np.nan) for record in records] for size in files])
    usual = float(np.nanmedian(values))
    drawn = HeatMap(
        title=f"{name}: rate against the median of all, {format_rate(usual)}",
        words="Rows are file sizes, columns record sizes.",
        rows=[_kib(size) for size in files],
        values=values / usual,
        columns=[((at + 0.5) / len(records), _kib(record)) for at, record in enumerate(records)],
    )
    numbers = [
        [_kib(size), *(format_rate(rates[size, r]) if (size, r) in rates else "" for r in records)] for size in files
    ]
    return Section(name, [], [heat_map(drawn), table(["file", *map(_kib, records)], numbers, f"{name}, rate")])


def _kib(size: int) -> str:
    return format_bytes(size * 1024)
