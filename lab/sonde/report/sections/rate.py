# SPDX-License-Identifier: Apache-2.0
"""Rate over time, the first thing to look at."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from sonde.findings.verdicts import Judged
from sonde.model.run import Run
from sonde.report.over_time import rate_chart
from sonde.report.sections.section import Place, Section


def _draw(run: Run, judged: Judged) -> Iterator[tuple[Place, Markup]]:
    chart = rate_chart(run, judged)
    if chart:
        yield "wide", chart.render()


SECTION = Section(10, _draw, preparation=True)
