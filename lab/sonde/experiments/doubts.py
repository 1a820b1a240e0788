# SPDX-License-Identifier: Apache-2.0
"""What speaks against the runs of an experiment: a median of runs beside which others worked is one of both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sonde.experiments.results import Results
from sonde.findings.doubts import grave_of_phase
from sonde.model.errors import RecordError
from sonde.model.units import counted
from sonde.store.summary import Summary, read_summary


def run_doubts(results: Results) -> list[str]:
    """A sentence for each kind of doubt about measured runs: the phases, the reason in the words of the last such run,
    and in how many runs. Warm-ups are not looked at."""
    runs = [run for one in results.runs if not one.warm_up and (run := _summary(one.folder)) is not None]
    phases: dict[str, dict[str, None]] = {}
    having: dict[str, dict[str, str]] = {}  # kind -> run -> reason
    for run in runs:
        for phase, finding in _grave(run):
            kind = str(finding.get("id"))
            phases.setdefault(kind, {})[phase] = None
            having.setdefault(kind, {})[run.id] = str(finding.get("text") or kind).rstrip(".")
    return [
        f"Doubtful, {', '.join(phases[kind])}: {list(reasons.values())[-1]}"
        f" (in {len(reasons)} of {counted(len(runs), 'run')})."
        for kind, reasons in having.items()
    ]


def _summary(folder: Path) -> Summary | None:
    """None of a run that was removed meanwhile."""
    try:
        return read_summary(folder)
    except RecordError:
        return None


def _grave(run: Summary) -> list[tuple[str, Mapping[str, object]]]:
    measured = [row for row in run.phases if row.get("measured", True)]
    return [
        (str(row.get("phase")), one)
        for row in measured
        for one in grave_of_phase(run.document, str(row.get("phase")), str(row.get("standing") or ""))
    ]
