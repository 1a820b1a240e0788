# SPDX-License-Identifier: Apache-2.0
"""Reads the caveats of the last runs of histories from the runs, because a survey has only values and times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sonde.model.errors import RecordError
from sonde.store.shards import locate_run_folder
from sonde.store.summary import Summary, read_summary
from sonde.trends.run_caveats import count_caveats, count_runs_without_storage_number
from sonde.trends.survey import MAX_RUNS_OF_NEW_CHANGE, Survey


def add_caveats_to_survey(survey: Survey, archive_root: Path) -> Survey:
    """The survey with what speaks against the last runs of each of its histories, as the archive at `archive_root`
    holds them.

    Only the first of the repeats of a probe is checked. A run that is not there, or cannot be read, is not counted.
    """
    summaries: dict[str, Summary | None] = {}

    def read_summary_once(run_id: str) -> Summary | None:
        if run_id not in summaries:
            summaries[run_id] = _read_summary(archive_root, run_id)
        return summaries[run_id]

    analyses = []
    for analysis in survey.analyses:
        runs = [
            result
            for run in analysis.history.runs[-MAX_RUNS_OF_NEW_CHANGE:]
            if (result := read_summary_once(run)) is not None
        ]
        phase = analysis.history.labels.get("phase", "")
        against = [*count_runs_without_storage_number("", runs, phase), *count_caveats("", runs, [phase])]
        analyses.append(replace(analysis, caveats=tuple(against)) if against else analysis)
    return replace(survey, analyses=tuple(analyses))


def _read_summary(archive_root: Path, run_id: str) -> Summary | None:
    for folder in (locate_run_folder(archive_root, run_id), archive_root / run_id):
        try:
            return read_summary(folder)
        except RecordError:
            continue
    return None
