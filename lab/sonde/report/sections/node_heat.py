# SPDX-License-Identifier: Apache-2.0
"""Nodes over the time of one phase, where the record holds a series for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from markupsafe import Markup

from sonde.charts.axes import time_axis
from sonde.charts.heat import HeatMap, heat_map
from sonde.findings.members import host_names
from sonde.findings.verdicts import Judged
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.report.sections.section import Place, Section
from sonde.stats.bins import rebin

_MOST_COLUMNS = 300


def node_heat(run: Run, phase: PhaseRecord, operations: bool) -> Markup | None:
    """The heat map, each value by the median of all nodes and slices at work; None with fewer than two such series."""
    series = [one for one in phase.series if one.scope == "node"]
    if len(series) < 2:
        return None
    length = max(len(one.bytes) for one in series)
    if not length:
        return None
    hosts = host_names(run)
    rows = []
    for one in series:
        moved = [float(value) for value in (one.ops if operations else one.bytes)]
        rows.append(rebin([*moved, *[0.0] * (length - len(moved))], min(length, _MOST_COLUMNS)))
    values = np.array(rows)
    working = values[values > 0]
    if not working.size:
        return None
    axis = time_axis(length * (series[0].slice_s or 0.0) or 1.0)
    names = [hosts.get(one.node or 0, f"node {one.node}") for one in series]
    words = "One row a node, over the time of the phase; each value by the median of all."
    columns = [(tick.at, f"{tick.label} {axis.unit}") for tick in axis.ticks if not tick.minor and tick.at < 0.95]
    return heat_map(HeatMap("Nodes over time", words, names, values / float(np.median(working)), columns))


def _draw(run: Run, judged: Judged) -> Iterator[tuple[Place, Markup]]:
    heat = node_heat(run, judged.phase, judged.operations)
    if heat:
        yield "wide", heat


SECTION = Section(40, _draw)
