# SPDX-License-Identifier: Apache-2.0
"""When a node was slow: its rate by that of the middle node at the same time, which takes away what hit all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sonde.findings.members import host_names
from sonde.model import quantities
from sonde.model.lines import SeriesLine
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.stats.bins import padded, rebin
from sonde.stats.imbalance import slow_factor

# A middle needs company.
FEWEST_NODES = 3
# A cell with fewer operations says more about counting than about the node.
_OPERATIONS_A_CELL = 8
_FEWEST_CELLS, _MOST_CELLS = 8, 64
# So many cells in a row, each of them slow: one alone comes by chance in a long phase on many nodes.
_IN_A_ROW = 3
# Less than this is no finding, however quiet the others were.
_LEAST_FACTOR = 1.3
_NOTHING = 1e-3
_MOST_NAMED = 3


@dataclass(frozen=True)
class Stretch:
    """`node` moved `factor` times less than the middle node did from `start_s` to `end_s` of the phase. `whole` when
    that is all of the time in which nodes were compared."""

    node: int
    start_s: float
    end_s: float
    factor: float
    whole: bool


def node_series(phase: PhaseRecord) -> list[SeriesLine]:
    """The series of nodes: of all of them, or of the extremes among many."""
    return [one for one in phase.series if one.scope == "node" and one.slice_s > 0]


def all_nodes(phase: PhaseRecord) -> SeriesLine | None:
    """The spread over the nodes of a phase on more nodes than have a series each."""
    return next((one for one in phase.series if one.scope == "nodes"), None)


def middle_rates(several: SeriesLine, operations: bool) -> list[float | None]:
    """Of the middle node, by slice: bytes or operations in a second."""
    return list((several.node_ops_rate if operations else several.node_rate).p50)


def slow_stretches(phase: PhaseRecord, operations: bool) -> list[Stretch]:
    """Stretches of time in which a node was slow, the one that cost most first; one a node. Empty when none was."""
    found = node_series(phase)
    several = all_nodes(phase)
    if len(found) < FEWEST_NODES:
        return []
    length = max(len(one.bytes) for one in found)
    slices = _slices(found, length, operations)
    cells = _cells(found, length)
    if cells < _FEWEST_CELLS:
        return []
    moved = np.array([rebin(row, cells) for row in slices])
    middle = _middle_of_many(several, operations, length, found[0].slice_s, cells) if several else _middle(moved)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(_compared(found, length, cells), moved / middle, np.nan)
    known = shares[np.isfinite(shares) & (shares > 0)]
    if known.size < FEWEST_NODES * _FEWEST_CELLS:
        return []
    limit = 1 / max(_LEAST_FACTOR, slow_factor(known))
    width = length * found[0].slice_s / cells
    stretches = [
        made
        for line, row in zip(found, shares, strict=True)
        if (made := _longest(line.node or 0, row, limit, width)) is not None
    ]
    return sorted(stretches, key=lambda one: -(1 - 1 / one.factor) * (one.end_s - one.start_s))


def stretch_words(run: Run, phase: PhaseRecord, operations: bool) -> str:
    """The slow stretches as sentences; empty when there are none."""
    found = slow_stretches(phase, operations)
    hosts = host_names(run)
    words = []
    for one in found[:_MOST_NAMED]:
        seconds = f"from {quantities.seconds(one.start_s)} to {quantities.seconds(one.end_s)}"
        when = "all through" if one.whole else seconds
        name = hosts.get(one.node, str(one.node))
        if one.factor < 1 / _NOTHING:
            words.append(f"Node {name} was {one.factor:.1f} times slower than the middle node {when}.")
        else:
            words.append(f"Node {name} stood still {when}, while the middle node moved.")
    if len(found) > _MOST_NAMED:
        words.append(f"So were {quantities.plural(len(found) - _MOST_NAMED, 'other node')}, for some time.")
    return " ".join(words)


def _slices(found: Sequence[SeriesLine], length: int, operations: bool) -> list[list[float]]:
    return [padded(one.ops if operations else one.bytes, length) for one in found]


def _cells(found: Sequence[SeriesLine], length: int) -> int:
    """So few that a cell of the middle node holds enough operations."""
    ops = float(np.median([sum(one.ops) for one in found]))
    return min(length, _MOST_CELLS, int(ops / _OPERATIONS_A_CELL))


def _compared(found: Sequence[SeriesLine], length: int, cells: int) -> NDArray[np.bool_]:
    """Cells all through which as many tasks of the node were at work as ever were."""
    full = np.zeros((len(found), cells), dtype=bool)
    edges = np.linspace(0, length, cells + 1)
    for row, one in enumerate(found):
        active = np.array(padded(one.active, length))
        at_work = np.flatnonzero(active == active.max(initial=1))
        if at_work.size:
            # The first and the last slice of a transfer are full in part only.
            full[row] = (edges[:-1] >= at_work[0] + 1) & (edges[1:] <= at_work[-1])
    return full


def _middle(moved: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.median(moved, axis=0), dtype=float)


def _middle_of_many(
    several: SeriesLine, operations: bool, length: int, slice_s: float, cells: int
) -> NDArray[np.float64]:
    """The median over all nodes from the spread, in the slices of single nodes."""
    per_slice = [(rate or 0.0) * several.slice_s for rate in middle_rates(several, operations)]
    joined = max(1, round(slice_s / several.slice_s))
    wide = [sum(per_slice[at : at + joined]) for at in range(0, len(per_slice), joined)]
    return np.array(rebin(padded(wide, length)[:length], cells))


def _longest(node: int, shares: NDArray[np.float64], limit: float, width: float) -> Stretch | None:
    """The run of slow cells that cost most."""
    known = np.isfinite(shares)
    slow = known & (shares < limit)
    runs: list[tuple[float, int, int]] = []
    at = 0
    while at < slow.size:
        end = at
        while end < slow.size and slow[end]:
            end += 1
        if end - at >= _IN_A_ROW:
            runs.append((float(np.sum(1 - shares[at:end])), at, end))
        at = end + 1
    if not runs:
        return None
    _, start, stop = max(runs)
    share = float(np.median(shares[start:stop]))  # the first and the last cell may be slow in part only
    return Stretch(node, start * width, stop * width, 1 / max(share, _NOTHING / 2), bool(slow.sum() == known.sum()))
