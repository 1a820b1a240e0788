# SPDX-License-Identifier: Apache-2.0
"""Directions of a mixed phase in claims, in the terminal and in the report."""

from __future__ import annotations

from dataclasses import replace

from phase_builders import make_phase

from sonde.experiments.claims.metrics import PHASE_METRICS
from sonde.model.line_members import DirectionRates, LatencySummary, Rate
from sonde.model.lines import PhaseEndLine
from sonde.terminal.phase_text import describe_phase_end

BOTH_DIRECTIONS = DirectionRates(
    Rate(bytes=3 << 20, ops=3, seconds=1.0, bytes_per_s=2e9), Rate(bytes=1 << 20, ops=1, seconds=1.0, bytes_per_s=1e9)
)


def test_latency_of_mixed_phase_covers_all_operations() -> None:
    latency = {
        "read": LatencySummary(count=3, p50_ns=1e6),
        "write": LatencySummary(count=1, p50_ns=9e6),
        "all": LatencySummary(count=4, p50_ns=2e6),
    }
    phase = replace(make_phase("mixed"), end=PhaseEndLine(latency=latency))
    assert PHASE_METRICS["latency_p50"](phase) == 2e-3


def test_terminal_prints_both_directions_of_mixed_phase() -> None:
    assert describe_phase_end(PhaseEndLine(directions=BOTH_DIRECTIONS)).endswith("read 2.00 GB/s, write 1.00 GB/s")
    only_reads = describe_phase_end(PhaseEndLine(directions=replace(BOTH_DIRECTIONS, write=None)))
    assert only_reads.endswith("read 2.00 GB/s")
    assert "read" not in describe_phase_end(PhaseEndLine())
