# SPDX-License-Identifier: Apache-2.0
"""Rate over time, the first thing to look at."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.charts.markup import Markup
from sonde.findings.phase_summary import AssessedPhase
from sonde.model.run import RecordedRun
from sonde.report.over_time import build_rate_chart
from sonde.report.sections.section import ChartWidth, PhaseSection


def _draw_rate_over_time(run: RecordedRun, assessed_phase: AssessedPhase) -> Iterator[tuple[ChartWidth, Markup]]:
    chart = build_rate_chart(run, assessed_phase)
    if chart:
        yield "wide", chart.render()


SECTION = PhaseSection(10, _draw_rate_over_time, preparation=True)
