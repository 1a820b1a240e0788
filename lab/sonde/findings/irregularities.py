# SPDX-License-Identifier: Apache-2.0
"""Irregularities of a phase beyond its assessment: late tasks or nodes, and periodic dips of the rate."""

from __future__ import annotations

from sonde.findings.phase_timeline import PhaseTimeline
from sonde.findings.stragglers import map_nodes_to_hosts
from sonde.model import quantities
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.stats.imbalance import attribute_slowness_to_nodes_or_tasks, describe_stragglers
from sonde.stats.shapes import find_rate_shape


def describe_irregularities(
    run: RecordedRun, phase: PhaseRecord, timeline: PhaseTimeline | None, counts_operations: bool
) -> list[str]:
    """One sentence for each irregularity, late tasks first."""
    return [
        text for text in (describe_late_tasks(run, phase), describe_periodic_dips(timeline, counts_operations)) if text
    ]


def describe_late_tasks(run: RecordedRun, phase: PhaseRecord) -> str:
    """Names the few tasks or nodes that determined the length of the phase; empty if there are none."""
    if phase.end is None or phase.end.stopped_by not in ("volume", "stonewall"):
        return ""
    seconds, nodes = phase.task_times
    late = attribute_slowness_to_nodes_or_tasks(seconds, nodes) if len(seconds) >= 3 else None
    if late is None:
        return ""
    hosts = map_nodes_to_hosts(run)
    members = late.stragglers.members
    return describe_stragglers(
        late, [hosts.get(node, str(node)) if late.is_of_nodes else str(node) for node in members]
    )


def describe_periodic_dips(timeline: PhaseTimeline | None, counts_operations: bool) -> str:
    """Depth and period of recurring dips of the rate; empty without them."""
    if timeline is None:
        return ""
    shape = find_rate_shape(timeline.ops_per_s if counts_operations else timeline.bytes_per_s)
    if shape is None or shape.name != "periodic dips" or shape.period is None:
        return ""
    period = quantities.display_seconds(shape.period * timeline.edges[-1])
    return f"The rate fell by {100 * shape.depth:.0f} % again and again: {shape.count} dips, one every {period}."
