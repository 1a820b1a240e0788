# SPDX-License-Identifier: Apache-2.0
"""Times in a run that a log of the same machine may show too: dropped caches, failed operations, dips."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from sonde.findings.phase_summary import assess_phase
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun

DROPPED_CACHES_MARK, TROUBLE_MARK = "dropped caches", "trouble"
# Below this fraction of its median the rate of a phase has a dip.
_MAX_DIP_RATE_FRACTION = 0.5
_MIN_SLICES = 8


def list_run_marks(run: RecordedRun) -> dict[str, list[float]]:
    """Seconds since 1970 by kind; empty when the record does not say when the run began."""
    try:
        epoch = datetime.fromisoformat(run.run_line.started).timestamp()
    except ValueError:
        return {}
    dropped = [
        treatment.t
        for phase in run.phases
        for treatment in phase.treatments
        if treatment.kind == "drop_page_cache" and treatment.outcome == "done"
    ]
    trouble = [error.t for error in run.record.errors]
    trouble += [time for phase in run.phases for time in _list_dips(run, phase)]
    return {DROPPED_CACHES_MARK: [epoch + time for time in dropped], TROUBLE_MARK: [epoch + time for time in trouble]}


def _list_dips(run: RecordedRun, phase: PhaseRecord) -> list[float]:
    """Intervals in which the total rate of a phase is below half its median, in seconds of the record."""
    assessed = assess_phase(run, phase)
    timeline = assessed.timeline
    if timeline is None or not phase.begin.measured:
        return []
    rates = np.array(timeline.ops_per_s if assessed.operations else timeline.bytes_per_s)[:-1]  # the last slice is cut
    if rates.size < _MIN_SLICES:
        return []
    low = rates < _MAX_DIP_RATE_FRACTION * float(np.median(rates))
    begins = np.flatnonzero(low & ~np.concatenate(([True], low[:-1])))
    return [phase.begin.t + timeline.edges[index] for index in begins]
