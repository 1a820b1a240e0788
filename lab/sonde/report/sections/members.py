# SPDX-License-Identifier: Apache-2.0
"""Rates of nodes and of tasks: who was slow."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.charts.markup import Markup
from sonde.findings.phase_summary import AssessedPhase
from sonde.findings.stragglers import collect_node_rates, collect_task_rates
from sonde.model.run import RecordedRun
from sonde.report.distributions import build_member_rate_chart
from sonde.report.over_time import choose_style_class
from sonde.report.sections.section import ChartWidth, PhaseSection


def _draw_member_rates(run: RecordedRun, assessed_phase: AssessedPhase) -> Iterator[tuple[ChartWidth, Markup]]:
    css = choose_style_class(assessed_phase.summary.classification)
    nodes, tasks = (
        of(run, assessed_phase.phase, assessed_phase.operations) for of in (collect_node_rates, collect_task_rates)
    )
    if len(nodes) > 1:
        yield (
            "wide",
            build_member_rate_chart("nodes", "Rate of each node", nodes, assessed_phase.operations, css).render(),
        )
    if len(tasks) > 1:
        yield (
            "narrow",
            build_member_rate_chart("tasks", "Rate of each task", tasks, assessed_phase.operations, css).render(),
        )


SECTION = PhaseSection(30, _draw_member_rates)
