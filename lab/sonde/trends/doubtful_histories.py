# SPDX-License-Identifier: Apache-2.0
"""What speaks against the last runs of histories, from the runs themselves: a survey knows values and times only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sonde.model.errors import RecordError
from sonde.store.shards import locate_run_folder
from sonde.store.summary import Summary, read_summary
from sonde.trends.run_caveats import count_caveats, count_other_numbers
from sonde.trends.survey import FRESH, Survey


def add_caveats(survey: Survey, root: Path) -> Survey:
    """The survey with what speaks against the last runs of each of its histories, as the archive at `root` holds them.

    Of the repeats of one probe the first is looked at. A run that is not there, or cannot be read, is not counted.
    """
    summaries: dict[str, Summary | None] = {}

    def read(run: str) -> Summary | None:
        if run not in summaries:
            summaries[run] = _read_summary(root, run)
        return summaries[run]

    analyses = []
    for analysis in survey.analyses:
        runs = [result for run in analysis.history.runs[-FRESH:] if (result := read(run)) is not None]
        phase = analysis.history.labels.get("phase", "")
        against = [*count_other_numbers("", runs, phase), *count_caveats("", runs, [phase])]
        analyses.append(replace(analysis, caveats=tuple(against)) if against else analysis)
    return replace(survey, analyses=tuple(analyses))


def _read_summary(root: Path, run: str) -> Summary | None:
    for folder in (locate_run_folder(root, run), root / run):
        try:
            return read_summary(folder)
        except RecordError:
            continue
    return None
