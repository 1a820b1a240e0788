# SPDX-License-Identifier: Apache-2.0
"""Nodes over the time of one phase, where the record holds a series for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sonde.charts.heat_map import HeatMap, build_time_labels, render_heat_map
from sonde.charts.markup import Markup
from sonde.findings.phase_summary import AssessedPhase
from sonde.findings.slow_intervals import (
    compute_median_node_rates,
    find_node_spread_series,
    find_slow_intervals,
    select_node_series,
)
from sonde.findings.stragglers import map_nodes_to_hosts
from sonde.model.lines import SeriesLine
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.report.sections.section import ChartWidth, PhaseSection
from sonde.stats.bins import pad_with_zeros, sum_into_bins

_MAX_COLUMNS = 300


def render_node_heat_map(run: RecordedRun, phase: PhaseRecord, counts_operations: bool) -> Markup | None:
    """The heat map, each value by the median of all nodes and slices at work; None with fewer than two such series.

    Of more than 256 nodes the record has the series of the slowest and of the fastest: these are drawn, by the median
    of all nodes.
    """
    series = select_node_series(phase)
    if len(series) < 2:
        return None
    length = max(len(line.bytes) for line in series)
    if not length:
        return None
    columns = min(length, _MAX_COLUMNS)
    values = np.array([_sum_amounts_by_column(line, length, columns, counts_operations) for line in series])
    several = find_node_spread_series(phase)
    usual = _compute_median_amount_of_nodes(values, several, series[0].slice_s * length / columns, counts_operations)
    if not usual > 0:
        return None
    hosts = map_nodes_to_hosts(run)
    names = [hosts.get(line.node or 0, f"node {line.node}") for line in series]
    slow = {interval.node for interval in find_slow_intervals(phase, counts_operations)}
    marked = [index for index, line in enumerate(series) if line.node in slow]
    if several is None:
        title, text = "Nodes over time", "One row a node, over the time of the phase; each value by the median of all."
    else:
        title = "The slowest and the fastest nodes over time"
        text = (
            f"{len(series)} of {several.nodes or 0:,} nodes, those with the lowest and the highest rate over their own"
            " time; each value by the median of all nodes."
        )
    ticks = build_time_labels(length * series[0].slice_s)
    return render_heat_map(HeatMap(title, text, names, values / usual, ticks, marked))


def _sum_amounts_by_column(
    series_line: SeriesLine, slice_count: int, column_count: int, counts_operations: bool
) -> list[float]:
    """Amount that a node transferred in each column; NaN where none of its tasks was active."""
    moved = series_line.ops if counts_operations else series_line.bytes
    active = series_line.active or [1] * len(moved)
    here, there = (sum_into_bins(pad_with_zeros(row, slice_count), column_count) for row in (moved, active))
    return [value if value > 0 or at_work > 0 else float("nan") for value, at_work in zip(here, there, strict=True)]


def _compute_median_amount_of_nodes(
    amounts_of_nodes: NDArray[np.float64], spread_line: SeriesLine | None, column_s: float, counts_operations: bool
) -> float:
    """Amount that the median node transferred in a column, over the time in which nodes were active."""
    if spread_line is not None:
        rates = [rate for rate in compute_median_node_rates(spread_line, counts_operations) if rate]
        return float(np.median(rates)) * column_s if rates else 0.0
    working = amounts_of_nodes[amounts_of_nodes > 0]
    return float(np.median(working)) if working.size else 0.0


def _draw_node_heat_map(run: RecordedRun, assessed_phase: AssessedPhase) -> Iterator[tuple[ChartWidth, Markup]]:
    heat = render_node_heat_map(run, assessed_phase.phase, assessed_phase.operations)
    if heat:
        yield "wide", heat


SECTION = PhaseSection(40, _draw_node_heat_map)
