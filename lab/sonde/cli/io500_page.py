# SPDX-License-Identifier: Apache-2.0
"""Our figures of a run of IO500, beside those of IO500."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from sonde.cli.screen import plain_table
from sonde.experiments.io500.conduct import Row
from sonde.experiments.io500.figures import ours_of
from sonde.model.units import format_latency, format_ops, format_rate

_DEFINITION = (
    "By Sonde: transfers or operations alone / first start to last end; until the deadline, where there is one;"
    " single calls"
)


def by_sonde(rows: Sequence[Row]) -> Table:
    """One line a phase that was measured by the engine."""
    table = plain_table(title=_DEFINITION, title_justify="left", title_style="dim")
    for name in ("phase", "IO500", "", "Sonde", "to the deadline", "call p50", "p99"):
        table.add_column(name, justify="left" if name in ("phase", "") else "right")
    for row in rows:
        if row.run is None:
            continue
        rate, p50, p99 = ours_of(row.run.record)
        moves = row.phase.tool == "ior"
        wall = row.figures.stonewall if row.phase.writes else None
        table.add_row(
            row.phase.name,
            f"{row.figures.value:.3f}",
            row.phase.unit,
            "" if rate is None else format_rate(rate) if moves else format_ops(rate),
            "" if wall is None else format_rate(wall * (1 << 30)) if moves else format_ops(wall * 1000),
            "" if p50 is None else format_latency(p50 * 1e9),
            "" if p99 is None else format_latency(p99 * 1e9),
        )
    return table
