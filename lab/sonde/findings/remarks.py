# SPDX-License-Identifier: Apache-2.0
"""What else strikes about a phase: who made it long, and dips that come back."""

from __future__ import annotations

from sonde.findings.members import host_names
from sonde.findings.profile import Profile
from sonde.model import quantities
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.stats.imbalance import attribute, blame_words
from sonde.stats.shapes import shape_of


def remarks(run: Run, phase: PhaseRecord, profile: Profile | None, operations: bool) -> list[str]:
    """Sentences, the one with the larger loss first; empty when nothing strikes."""
    return [words for words in (late_words(run, phase), dip_words(profile, operations)) if words]


def late_words(run: Run, phase: PhaseRecord) -> str:
    """Without whom the phase would have been faster, when a few tasks or nodes made it so long; else empty."""
    if phase.end is None or phase.end.stopped_by not in ("volume", "stonewall"):
        return ""
    seconds, nodes = phase.task_times
    late = attribute(seconds, nodes) if len(seconds) >= 3 else None
    if late is None:
        return ""
    hosts = host_names(run)
    members = late.blame.members
    return blame_words(
        late, [hosts.get(one, str(one)) for one in members] if late.of_nodes else [str(one) for one in members]
    )


def dip_words(profile: Profile | None, operations: bool) -> str:
    """That the rate fell again and again, with the period; steps, drifts and stalls are told by the verdict."""
    if profile is None:
        return ""
    shape = shape_of(profile.ops_per_s if operations else profile.bytes_per_s)
    if shape is None or shape.name != "periodic dips" or shape.period is None:
        return ""
    period = quantities.seconds(shape.period * profile.edges[-1])
    return f"The rate fell by {100 * shape.depth:.0f} % again and again: {shape.count} dips, one every {period}."
