# SPDX-License-Identifier: Apache-2.0
"""Latencies: reads and writes, which are what a phase is about; opening, flushing and closing stand small below."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from sonde.findings.verdicts import Judged
from sonde.model.run import Run
from sonde.report.distributions import latency_chart
from sonde.report.over_time import tone
from sonde.report.sections.section import Place, Section


def _draw(run: Run, judged: Judged) -> Iterator[tuple[Place, Markup]]:
    for line in judged.phase.histograms:
        chart = latency_chart(judged.phase, line, tone(judged.verdict.standing))
        if chart:
            yield "narrow" if chart.about in ("read", "write") else "small", chart.render()


SECTION = Section(20, _draw)
