# SPDX-License-Identifier: Apache-2.0
"""Our figures of a run of IO500, beside those of IO500: after its output, and on the page."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sonde.charts.plot import table
from sonde.charts.study import Section
from sonde.dialects.io500.conduct import Outcome, Row
from sonde.dialects.io500.figures import GIB, ours_of
from sonde.model.units import format_latency

_HEAD = """
By Sonde, in the same units: operations alone / first start to last end; all tasks together until the deadline; one call
phase                unit        IO500       Sonde    deadline     call p50          p99
"""


def by_sonde(rows: Sequence[Row]) -> str:
    """A table with one line a phase that was measured by the engine."""
    lines = []
    for row in rows:
        if row.run is None:
            continue
        per_s, p50, p99 = ours_of(row.run.record)
        scale = GIB if row.phase.tool == "ior" else 1000
        wall = row.figures.stonewall if row.phase.writes else None
        rate, until = ("" if one is None else f"{one:.3f}" for one in (None if per_s is None else per_s / scale, wall))
        times = ["" if one is None else format_latency(one * 1e9) for one in (p50, p99)]
        lines.append(
            f"{row.phase.name:<20} {row.phase.unit} {row.figures.value:>11.3f} {rate:>11} {until:>11}"
            f" {times[0]:>12} {times[1]:>12}"
        )
    return _HEAD + "\n".join(lines)


def official(outcome: Outcome) -> list[Section]:
    """What users of IO500 look for first: score, sub-scores, the phases in its units, and why it is INVALID."""
    score = outcome.score
    words = [
        f"Bandwidth {score.bandwidth:.3f} GiB/s, metadata {score.metadata:.3f} kIOPS, total {score.total:.3f}:"
        f" {'valid by the rules' if outcome.valid else 'INVALID by the rules'}."
    ]
    broken = [*outcome.broken, *(f"{row.phase.name}: {text}" for row in outcome.rows for text in row.broken)]
    rows = [
        [
            Markup('<span class="name">{}</span>').format(row.phase.name),
            f"{row.figures.value:,.3f}",
            row.phase.unit,
            f"{row.seconds:,.2f} s",
            _of_sonde(row),
            "INVALID" if row.broken else "valid",
        ]
        for row in outcome.rows
        if row.phase.is_measured
    ]
    columns = ["phase", "result", "unit", "time", "by Sonde", "rules"]
    found = [Section("IO500", words, [table(columns, rows, "Results of IO500, each in its unit")])]
    # names of phases stay as they are, so these sentences keep their first letter
    reasons = [one if one.endswith((".", "!")) else f"{one}." for one in broken]
    return [*found, Section("Why it is INVALID", reasons, [])] if broken else found


def _of_sonde(row: Row) -> str:
    """The same phase by its operations alone, in the unit of IO500."""
    per_s = ours_of(row.run.record)[0] if row.run is not None else None
    return "" if per_s is None else f"{per_s / (GIB if row.phase.tool == 'ior' else 1000):,.3f}"
