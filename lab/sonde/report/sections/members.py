# SPDX-License-Identifier: Apache-2.0
"""Rates of nodes and of tasks: who was slow."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from sonde.findings.members import nodes_of, tasks_of
from sonde.findings.verdicts import Judged
from sonde.model.run import Run
from sonde.report.distributions import spread_chart
from sonde.report.over_time import tone
from sonde.report.sections.section import Place, Section


def _draw(run: Run, judged: Judged) -> Iterator[tuple[Place, Markup]]:
    css = tone(judged.verdict.standing)
    nodes, tasks = (of(run, judged.phase, judged.operations) for of in (nodes_of, tasks_of))
    if len(nodes) > 1:
        yield "wide", spread_chart("nodes", "Rate of each node", nodes, judged.operations, css).render()
    if len(tasks) > 1:
        yield "narrow", spread_chart("tasks", "Rate of each task", tasks, judged.operations, css).render()


SECTION = Section(30, _draw)
