# SPDX-License-Identifier: Apache-2.0
"""Storage targets over the time of one phase, and what each of them served, where the record knows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from sonde.charts.heat import HeatMap, heat_map, heat_ticks
from sonde.charts.plot import table
from sonde.findings.served import served, slow_answers, target_series, unknown_words
from sonde.findings.targets import SlowTarget
from sonde.findings.units import levels_of, slow_units, unit_rows, unit_series
from sonde.findings.verdicts import Judged
from sonde.model import quantities
from sonde.model.lines import SeriesLine, TargetsLine
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.visible import one_line
from sonde.report.sections.section import Place, Section
from sonde.stats.bins import padded, rebin

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
    kind = {"read": "read from", "write": "written to"}.get(series[0].kind, "moved by")
    words = (
        f"Bytes {kind} each target, one row a target, over the time of the phase; each value by the median of all. A"
        " target takes part from the first to the last slice in which an operation ended there."
    )
    names = [str(one.target) for one in series]
    return _heat("Targets over time", words, names, values, length * series[0].slice_s, slow_answers(phase))


def _heat(
    title: str, words: str, names: list[str], values: NDArray[np.float64], seconds: float, slow: Sequence[SlowTarget]
) -> Markup | None:
    """One row a name over `seconds`, each value by the median of all, the slow ones marked; None when nothing moved."""
    working = values[values > 0]
    if not working.size:
        return None
    named = {one.name for one in slow}
    marked = [at for at, name in enumerate(names) if name in named]
    return heat_map(HeatMap(title, words, names, values / float(np.median(working)), heat_ticks(seconds), marked))


def _shown(one: SeriesLine, length: int, columns: int) -> list[float]:
    """What a target moved in each column; NaN before its first operation and after its last: nobody asked it then."""
    moved = rebin(padded(one.bytes, length), columns)
    at_work = [at for at, value in enumerate(moved) if value > 0]
    if not at_work:
        return [float("nan")] * len(moved)
    return [value if at_work[0] <= at <= at_work[-1] else float("nan") for at, value in enumerate(moved)]


def _table(phase: PhaseRecord, line: TargetsLine) -> Markup:
    rows = served(line)
    listed = sorted(rows, key=lambda one: -(one.p99_ns or 0))[:_MOST_LISTED] if len(rows) > _MOST_LISTED else rows
    cells = [
        (
            one_line(one.target, 60),
            one.kind,
            str(quantities.size(one.bytes)),
            f"{one.ops:,}",
            *(_time(ns) for ns in (one.p50_ns, one.p99_ns, one.max_ns)),
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
    if unknown := unknown_words(phase):
        words.append(unknown)
    return table(("Target", "Kind", "Bytes", "Operations", "Median", "99 %", "Longest"), cells, "; ".join(words), 2)


def unit_heat(run: Run, phase: PhaseRecord, level: str) -> Markup | None:
    """The heat map of the parts of a level ("OSS", "SSU"), each value by the median of all; None for one."""
    series = unit_series(run, phase, level)
    length = max((len(one.bytes) for one in series), default=0)
    if len(series) < 2 or not length:
        return None
    values = np.array([rebin(one.bytes, min(length, _MOST_COLUMNS)) for one in series])
    name = one_line(level, 40)
    words = (
        f"Bytes of the targets of each {name} together, one row each, over the time of the phase; each value by the"
        " median of all."
    )
    names = [one.unit for one in series]
    seconds = length * series[0].slice_s
    return _heat(f"{name} over time", words, names, values, seconds, slow_units(run, phase, level))


def _unit_table(run: Run, phase: PhaseRecord, level: str) -> Markup:
    name = one_line(level, 40)
    cells = [
        (
            one_line(one.unit, 60),
            one.kind,
            f"{one.targets}",
            str(quantities.size(one.bytes)),
            "" if one.bytes_per_s is None else str(quantities.byte_rate(one.bytes_per_s)),
            f"{one.ops:,}",
            *(_time(ns) for ns in (one.mean_ns, one.worst_p99_ns, one.max_ns)),
        )
        for one in unit_rows(run, phase, level)
    ]
    words = (
        f"What the targets of each {name} served together; rates are over the whole phase, the mean is that of the"
        " operations that lie on one target alone, the 99th percentile that of its worst target"
    )
    head = (name, "Kind", "Targets", "Bytes", "Rate", "Operations", "Mean", "Worst 99 %", "Longest")
    return table(head, cells, words, 2)


def _time(ns: float | None) -> str:
    return "" if ns is None else str(quantities.seconds(ns / 1e9))


def _draw(run: Run, judged: Judged) -> Iterator[tuple[Place, Markup]]:
    phase = judged.phase
    if heat := target_heat(phase):
        yield "wide", heat
    if phase.targets is None:
        return
    yield "wide", _table(phase, phase.targets)
    for level in levels_of(run, phase):
        if heat := unit_heat(run, phase, level):
            yield "wide", heat
        yield "wide", _unit_table(run, phase, level)


SECTION = Section(41, _draw)
