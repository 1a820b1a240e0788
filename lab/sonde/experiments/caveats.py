# SPDX-License-Identifier: Apache-2.0
"""Caveats of the runs of an experiment, merged over its runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sonde.experiments.results import Results
from sonde.findings.caveats import get_own_classification, select_phase_caveats
from sonde.model.errors import RecordError
from sonde.model.units import counted
from sonde.store.summary import Summary, read_summary


def describe_run_caveats(results: Results) -> list[str]:
    """Returns one sentence for each kind of caveat: its phases, the text of the latest run, and the number of runs.

    Warm-up runs are ignored.
    """
    runs = [
        run
        for cell_run in results.runs
        if not cell_run.warm_up and (run := _read_summary_if_present(cell_run.folder)) is not None
    ]
    phases: dict[str, dict[str, None]] = {}
    reasons_by_kind: dict[str, dict[str, str]] = {}  # kind -> run -> reason
    for run in runs:
        for phase, finding in _serious_findings(run):
            kind = str(finding.get("id"))
            phases.setdefault(kind, {})[phase] = None
            reasons_by_kind.setdefault(kind, {})[run.id] = str(finding.get("text") or kind).rstrip(".")
    return [
        f"Doubtful, {', '.join(phases[kind])}: {list(reasons.values())[-1]} (in {len(reasons)} of"
        f" {counted(len(runs), 'run')})."
        for kind, reasons in reasons_by_kind.items()
    ]


def _read_summary_if_present(folder: Path) -> Summary | None:
    """Returns None if the run was removed meanwhile."""
    try:
        return read_summary(folder)
    except RecordError:
        return None


def _serious_findings(run: Summary) -> list[tuple[str, Mapping[str, object]]]:
    measured = [row for row in run.phases if row.get("measured", True)]
    return [
        (str(row.get("phase")), finding)
        for row in measured
        for finding in select_phase_caveats(run.document, str(row.get("phase")), get_own_classification(row))
    ]
