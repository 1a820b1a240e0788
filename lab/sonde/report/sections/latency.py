# SPDX-License-Identifier: Apache-2.0
"""Latencies: reads and writes, which are what a phase is about; opening, flushing and closing stand small below."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.charts.markup import Markup
from sonde.findings.phase_summary import AssessedPhase
from sonde.model.run import RecordedRun
from sonde.report.distributions import build_latency_chart
from sonde.report.over_time import choose_style_class
from sonde.report.sections.section import ChartWidth, PhaseSection


def _draw_latency(run: RecordedRun, assessed_phase: AssessedPhase) -> Iterator[tuple[ChartWidth, Markup]]:
    for line in assessed_phase.phase.histograms:
        chart = build_latency_chart(
            assessed_phase.phase, line, choose_style_class(assessed_phase.summary.classification)
        )
        if chart:
            yield "narrow" if chart.about in ("read", "write") else "small", chart.render()


SECTION = PhaseSection(20, _draw_latency)
