# SPDX-License-Identifier: Apache-2.0
"""What speaks against the last runs of histories, from the runs themselves: a survey knows values and times only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sonde.model.errors import RecordError
from sonde.store.shards import place_of
from sonde.store.summary import Summary, read_summary
from sonde.trends.doubted import doubted
from sonde.trends.survey import FRESH, Survey


def with_doubts(survey: Survey, root: Path) -> Survey:
    """The survey with what speaks against the last runs of each of its histories, as the archive at `root` holds them.

    Of the repeats of one probe the first is looked at. A run that is not there, or cannot be read, is not counted.
    """
    known: dict[str, Summary | None] = {}

    def read(run: str) -> Summary | None:
        if run not in known:
            known[run] = _summary_of(root, run)
        return known[run]

    standings = []
    for one in survey.standings:
        runs = [found for run in one.series.runs[-FRESH:] if (found := read(run)) is not None]
        against = doubted("", runs, [one.series.labels.get("phase", "")])
        standings.append(replace(one, doubts=tuple(against)) if against else one)
    return replace(survey, standings=tuple(standings))


def _summary_of(root: Path, run: str) -> Summary | None:
    for folder in (place_of(root, run), root / run):
        try:
            return read_summary(folder)
        except RecordError:
            continue
    return None
