# SPDX-License-Identifier: Apache-2.0
"""Nodes over the time of one phase, where the record holds a series for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from sonde.charts.heat import HeatMap, heat_map, heat_ticks
from sonde.findings.members import host_names
from sonde.findings.node_stretches import all_nodes, middle_rates, node_series, slow_stretches
from sonde.findings.verdicts import Judged
from sonde.model.lines import SeriesLine
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.report.sections.section import Place, Section
from sonde.stats.bins import padded, rebin

_MOST_COLUMNS = 300


def node_heat(run: Run, phase: PhaseRecord, operations: bool) -> Markup | None:
    """The heat map, each value by the median of all nodes and slices at work; None with fewer than two such series.

    Of more than 256 nodes the record has the series of the slowest and of the fastest: these are drawn, by the median
    of all nodes.
    """
    series = node_series(phase)
    if len(series) < 2:
        return None
    length = max(len(one.bytes) for one in series)
    if not length:
        return None
    columns = min(length, _MOST_COLUMNS)
    values = np.array([_shown(one, length, columns, operations) for one in series])
    several = all_nodes(phase)
    usual = _usual(values, several, series[0].slice_s * length / columns, operations)
    if not usual > 0:
        return None
    hosts = host_names(run)
    names = [hosts.get(one.node or 0, f"node {one.node}") for one in series]
    slow = {one.node for one in slow_stretches(phase, operations)}
    marked = [at for at, one in enumerate(series) if one.node in slow]
    if several is None:
        title, words = "Nodes over time", "One row a node, over the time of the phase; each value by the median of all."
    else:
        title = "The slowest and the fastest nodes over time"
        words = (
            f"{len(series)} of {several.nodes or 0:,} nodes, those with the lowest and the highest rate over their own"
            " time; each value by the median of all nodes."
        )
    ticks = heat_ticks(length * series[0].slice_s)
    return heat_map(HeatMap(title, words, names, values / usual, ticks, marked))


def _shown(one: SeriesLine, length: int, columns: int, operations: bool) -> list[float]:
    """What a node moved in each column; NaN where none of its tasks was at work."""
    moved = one.ops if operations else one.bytes
    active = one.active or [1] * len(moved)
    here, there = (rebin(padded(row, length), columns) for row in (moved, active))
    return [value if value > 0 or at_work > 0 else float("nan") for value, at_work in zip(here, there, strict=True)]


def _usual(values: NDArray[np.float64], several: SeriesLine | None, column_s: float, operations: bool) -> float:
    """What the middle node moved in a column, over the time in which nodes were at work."""
    if several is not None:
        known = [rate for rate in middle_rates(several, operations) if rate]
        return float(np.median(known)) * column_s if known else 0.0
    working = values[values > 0]
    return float(np.median(working)) if working.size else 0.0


def _draw(run: Run, judged: Judged) -> Iterator[tuple[Place, Markup]]:
    heat = node_heat(run, judged.phase, judged.operations)
    if heat:
        yield "wide", heat


SECTION = Section(40, _draw)
