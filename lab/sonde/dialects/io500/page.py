# SPDX-License-Identifier: Apache-2.0
"""Our figures of a run of IO500, beside those of IO500."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.dialects.io500.conduct import Row
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
