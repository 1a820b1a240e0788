# SPDX-License-Identifier: Apache-2.0
"""Storage targets over the time of one phase, and what each of them served, where the record knows it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from markupsafe import Markup

from sonde.charts.axes import time_axis
from sonde.charts.heat import HeatMap, heat_map
from sonde.charts.plot import table
from sonde.findings.served import served, slow_answers, target_series, unknown_words
from sonde.findings.verdicts import Judged
from sonde.model import quantities
from sonde.model.lines import SeriesLine, TargetsLine
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.visible import one_line
from sonde.report.sections.section import Place, Section
from sonde.stats.bins import rebin

_MOST_COLUMNS = 64
# Of more targets those with the longest 99th percentile are in the table; the record has them all.
_MOST_LISTED = 16


def target_heat(phase: PhaseRecord) -> Markup | None:
    """The heat map of bytes, each value by the median of all; None with fewer than two targets."""
    series = target_series(phase)
    length = max((len(one.bytes) for one in series), default=0)
    if len(series) < 2 or not length:
        return None
    columns = min(length, _MOST_COLUMNS)
    values = np.array([_shown(one, length, columns) for one in series])
    working = values[values > 0]
    if not working.size:
        return None
    axis = time_axis(length * series[0].slice_s)
    ticks = [(tick.at, f"{tick.label} {axis.unit}") for tick in axis.ticks if not tick.minor and tick.at < 0.95]
    slow = {one.name for one in slow_answers(phase)}
    marked = [at for at, one in enumerate(series) if one.target in slow]
    kind = {"read": "read from", "write": "written to"}.get(series[0].kind, "moved by")
    words = (
        f"Bytes {kind} each target, one row a target, over the time of the phase; each value by the median of all. A"
        " target takes part from the first to the last slice in which an operation ended there."
    )
    names = [str(one.target) for one in series]
    return heat_map(HeatMap("Targets over time", words, names, values / float(np.median(working)), ticks, marked))


def _shown(one: SeriesLine, length: int, columns: int) -> list[float]:
    """What a target moved in each column; NaN before its first operation and after its last: nobody asked it then."""
    moved = rebin([*map(float, one.bytes), *[0.0] * (length - len(one.bytes))], columns)
    at_work = [at for at, value in enumerate(moved) if value > 0]
    if not at_work:
        return [float("nan")] * len(moved)
    return [value if at_work[0] <= at <= at_work[-1] else float("nan") for at, value in enumerate(moved)]


def _table(line: TargetsLine) -> Markup:
    rows = served(line)
    listed = sorted(rows, key=lambda one: -(one.p99_ns or 0))[:_MOST_LISTED] if len(rows) > _MOST_LISTED else rows
    cells = [
        (
            one_line(one.target, 60),
            one.kind,
            str(quantities.size(one.bytes)),
            f"{one.ops:,}",
            *("" if ns is None else str(quantities.seconds(ns / 1e9)) for ns in (one.p50_ns, one.p99_ns, one.max_ns)),
        )
        for one in listed
    ]
    words = ["What each target served, by the offsets of the operations"]
    if len(listed) < len(rows):
        words.append(f"the {len(listed)} with the longest 99th percentile of {len(rows):,}")
    whole = sum(one.single_ops for one in rows)
    touched = sum(one.ops for one in rows)
    if whole < touched:
        words.append("latencies are those of operations that lie on one target alone")
    if unknown := unknown_words(line):
        words.append(unknown)
    return table(("Target", "Kind", "Bytes", "Operations", "Median", "99 %", "Longest"), cells, "; ".join(words), 2)


def _draw(_run: Run, judged: Judged) -> Iterator[tuple[Place, Markup]]:
    if heat := target_heat(judged.phase):
        yield "wide", heat
    if judged.phase.targets is not None:
        yield "wide", _table(judged.phase.targets)


SECTION = Section(41, _draw)
