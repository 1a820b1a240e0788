# SPDX-License-Identifier: Apache-2.0
"""Caveats of the runs of an experiment, merged over its runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sonde.experiments.results import Results
from sonde.findings.caveats import get_stored_classification, select_phase_caveats
from sonde.model.errors import RecordError
from sonde.model.units import format_count_with_noun
from sonde.store.summary import Summary, read_summary


def describe_run_caveats(results: Results) -> list[str]:
    """Returns one sentence for each caveat: its phases, the text of their latest run, and the number of runs. Phases
    whose texts differ have sentences of their own.

    Warm-up runs are ignored.
    """
    runs = [
        run
        for cell_run in results.runs
        if not cell_run.warm_up and (run := _read_summary_if_present(cell_run.folder)) is not None
    ]
    reasons: dict[tuple[str, str], dict[str, str]] = {}  # kind and phase -> run -> reason
    for run in runs:
        for phase, finding in _list_serious_findings(run):
            kind = str(finding.get("id"))
            reasons.setdefault((kind, phase), {})[run.id] = str(finding.get("text") or kind).rstrip(".")
    joined: dict[tuple[str, str, str], list[str]] = {}  # phases with the same text in as many runs are one sentence
    for (kind, phase), reason_by_run in reasons.items():
        texts = list(reason_by_run.values())
        scope = f"in {len(texts)} of {format_count_with_noun(len(runs), 'run')}"
        if len(set(texts)) > 1:
            scope += "; the text is that of the last of them"
        joined.setdefault((kind, texts[-1], scope), []).append(phase)
    return [f"Doubtful, {', '.join(phases)}: {reason} ({scope})." for (_, reason, scope), phases in joined.items()]


def _read_summary_if_present(run_folder: Path) -> Summary | None:
    """Returns None if the run was removed meanwhile."""
    try:
        return read_summary(run_folder)
    except RecordError:
        return None


def _list_serious_findings(run_summary: Summary) -> list[tuple[str, Mapping[str, object]]]:
    measured = [row for row in run_summary.phases if row.get("measured", True)]
    return [
        (str(row.get("phase")), finding)
        for row in measured
        for finding in select_phase_caveats(run_summary.document, str(row.get("phase")), get_stored_classification(row))
    ]
