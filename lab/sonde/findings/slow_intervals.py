# SPDX-License-Identifier: Apache-2.0
"""Finds when a node was slow: its rate is divided by that of the median node at the same time, which removes causes
that affect all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sonde.findings.stragglers import map_nodes_to_hosts
from sonde.model import quantities
from sonde.model.lines import SeriesLine
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.stats.bins import pad_with_zeros, sum_into_bins
from sonde.stats.imbalance import compute_straggler_threshold

# A middle needs company.
MIN_COMPARED_NODES = 3
# A cell with fewer operations says more about counting than about the node.
_MIN_OPERATIONS_PER_CELL = 8
_MIN_CELLS, _MAX_CELLS = 8, 64
# So many cells in a row, each of them slow: one alone comes by chance in a long phase on many nodes.
_MIN_CONSECUTIVE_SLOW_CELLS = 3
# Less than this is no finding, however quiet the others were.
_MIN_SLOWNESS_FACTOR = 1.3
_STANDSTILL_RATE_SHARE = 1e-3
_MAX_LISTED_INTERVALS = 3


@dataclass(frozen=True)
class SlowInterval:
    """`node` moved `factor` times less than the middle node did from `start_s` to `end_s` of the phase.
    `covers_all_time` when that is all of the time in which nodes were compared."""

    node: int
    start_s: float
    end_s: float
    factor: float
    covers_all_time: bool


def select_node_series(phase: PhaseRecord) -> list[SeriesLine]:
    """The series of nodes: of all of them, or of the extremes among many."""
    return [line for line in phase.series if line.scope == "node" and line.slice_s > 0]


def find_node_spread_series(phase: PhaseRecord) -> SeriesLine | None:
    """The spread over the nodes of a phase on more nodes than have a series each."""
    return next((line for line in phase.series if line.scope == "nodes"), None)


def compute_median_node_rates(spread_line: SeriesLine, counts_operations: bool) -> list[float | None]:
    """Bytes or operations per second of the median node in each slice."""
    return list((spread_line.node_ops_rate if counts_operations else spread_line.node_rate).p50)


def find_slow_intervals(phase: PhaseRecord, counts_operations: bool) -> list[SlowInterval]:
    """Intervals in which a node was slow, at most one per node, the most expensive first. Empty when none was."""
    result = select_node_series(phase)
    several = find_node_spread_series(phase)
    if len(result) < MIN_COMPARED_NODES:
        return []
    length = max(len(item.bytes) for item in result)
    slices = _pad_node_slices(result, length, counts_operations)
    cells = _choose_cell_count(result, length)
    if cells < _MIN_CELLS:
        return []
    moved = np.array([sum_into_bins(row, cells) for row in slices])
    middle = (
        _compute_median_of_many_nodes(several, counts_operations, length, result[0].slice_s, cells)
        if several
        else _compute_median_over_nodes(moved)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(_mark_comparable_cells(result, length, cells), moved / middle, np.nan)
    known_values = shares[np.isfinite(shares) & (shares > 0)]
    if known_values.size < MIN_COMPARED_NODES * _MIN_CELLS:
        return []
    limit = 1 / max(_MIN_SLOWNESS_FACTOR, compute_straggler_threshold(known_values))
    width = length * result[0].slice_s / cells
    stretches = [
        built
        for line, row in zip(result, shares, strict=True)
        if (built := _find_costliest_slow_interval(line.node or 0, row, limit, width)) is not None
    ]
    return sorted(stretches, key=lambda stretch: -(1 - 1 / stretch.factor) * (stretch.end_s - stretch.start_s))


def describe_slow_intervals(run: RecordedRun, phase: PhaseRecord, counts_operations: bool) -> str:
    """The slow stretches as sentences; empty when there are none."""
    intervals = find_slow_intervals(phase, counts_operations)
    hosts = map_nodes_to_hosts(run)
    sentences = []
    for interval in intervals[:_MAX_LISTED_INTERVALS]:
        seconds = f"from {quantities.display_seconds(interval.start_s)} to {quantities.display_seconds(interval.end_s)}"
        when = "all through" if interval.covers_all_time else seconds
        name = hosts.get(interval.node, str(interval.node))
        if interval.factor < 1 / _STANDSTILL_RATE_SHARE:
            sentences.append(f"Node {name} was {interval.factor:.1f} times slower than the middle node {when}.")
        else:
            sentences.append(f"Node {name} stood still {when}, while the middle node moved.")
    if len(intervals) > _MAX_LISTED_INTERVALS:
        other_nodes = quantities.display_count_with_noun(len(intervals) - _MAX_LISTED_INTERVALS, "other node")
        sentences.append(f"So were {other_nodes}, for some time.")
    return " ".join(sentences)


def _pad_node_slices(node_lines: Sequence[SeriesLine], slice_count: int, counts_operations: bool) -> list[list[float]]:
    return [pad_with_zeros(line.ops if counts_operations else line.bytes, slice_count) for line in node_lines]


def _choose_cell_count(node_lines: Sequence[SeriesLine], slice_count: int) -> int:
    """Number of cells at which a cell of the median node still holds enough operations."""
    ops = float(np.median([sum(line.ops) for line in node_lines]))
    return min(slice_count, _MAX_CELLS, int(ops / _MIN_OPERATIONS_PER_CELL))


def _mark_comparable_cells(node_lines: Sequence[SeriesLine], slice_count: int, cell_count: int) -> NDArray[np.bool_]:
    """Marks the cells in which the node always had its maximum number of active tasks."""
    full = np.zeros((len(node_lines), cell_count), dtype=bool)
    edges = np.linspace(0, slice_count, cell_count + 1)
    for row, line in enumerate(node_lines):
        active = np.array(pad_with_zeros(line.active, slice_count))
        at_work = np.flatnonzero(active == active.max(initial=1))
        if at_work.size:
            # The first and the last slice of a transfer are full in part only.
            full[row] = (edges[:-1] >= at_work[0] + 1) & (edges[1:] <= at_work[-1])
    return full


def _compute_median_over_nodes(amounts_by_node: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.median(amounts_by_node, axis=0), dtype=float)


def _compute_median_of_many_nodes(
    spread_line: SeriesLine, counts_operations: bool, slice_count: int, slice_s: float, cell_count: int
) -> NDArray[np.float64]:
    """The median over all nodes from the spread, in the slices of single nodes."""
    per_slice = [
        (rate or 0.0) * spread_line.slice_s for rate in compute_median_node_rates(spread_line, counts_operations)
    ]
    joined = max(1, round(slice_s / spread_line.slice_s))
    wide = [sum(per_slice[index : index + joined]) for index in range(0, len(per_slice), joined)]
    return np.array(sum_into_bins(pad_with_zeros(wide, slice_count)[:slice_count], cell_count))


def _find_costliest_slow_interval(
    node_number: int, rate_shares: NDArray[np.float64], slow_share: float, cell_s: float
) -> SlowInterval | None:
    """The run of slow cells that cost most."""
    is_known = np.isfinite(rate_shares)
    slow = is_known & (rate_shares < slow_share)
    runs: list[tuple[float, int, int]] = []
    index = 0
    while index < slow.size:
        end = index
        while end < slow.size and slow[end]:
            end += 1
        if end - index >= _MIN_CONSECUTIVE_SLOW_CELLS:
            runs.append((float(np.sum(1 - rate_shares[index:end])), index, end))
        index = end + 1
    if not runs:
        return None
    _, start, stop = max(runs)
    share = float(np.median(rate_shares[start:stop]))  # the first and the last cell may be slow in part only
    return SlowInterval(
        node_number,
        start * cell_s,
        stop * cell_s,
        1 / max(share, _STANDSTILL_RATE_SHARE / 2),
        bool(slow.sum() == is_known.sum()),
    )
