# SPDX-License-Identifier: Apache-2.0
"""Storage targets, and the servers and units they belong to, on both sides of a comparison.

Which of them differs is said by `findings.target_changes`; here the records are found and what was compared is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.findings.target_changes import PhaseChanges, phase_changes
from sonde.model.lines import PhaseBegin
from sonde.model.quantities import plain
from sonde.model.record import PhaseRecord, RecordReader, read_record
from sonde.model.run import Run, run_of
from sonde.model.system import System
from sonde.model.system.parents import described
from sonde.store.archive import RECORD
from sonde.store.summary import Summary
from sonde.trends.comparison import Compared, Comparison
from sonde.trends.curves import MOST

_TOLD = re.compile(rb'"type":\s*"(?:targets|layout)"')
_Told = Sequence[tuple[Summary, Run | None]]
_ELSEWHERE = "The sides are on different file systems, whose targets are not the same ones: they are not compared."


@dataclass(frozen=True)
class ComparedTargets:
    """The targets of the phase of one number. `levels` of `changes` begins with targets; servers and units follow."""

    number: Compared
    changes: PhaseChanges

    @property
    def words(self) -> list[str]:
        """All that there is to say, a sentence each."""
        return [*(words for level in self.changes.levels for words in level.words), *self.changes.unknown]

    def as_json(self) -> dict[str, Any]:
        """The machine form."""
        levels = [level.as_json() for level in self.changes.levels]
        return {"levels": levels, "words": [plain(words) for words in self.words]}


def compared_targets(comparison: Comparison, machine: System | None = None) -> list[ComparedTargets]:
    """Of each number whose records tell of targets, in the order of the numbers.

    `machine` says which server and unit has which target; without it run.json does. The latest runs of a side are read.
    """
    sides = [list(_told(side.runs, machine)) for side in (comparison.before, comparison.after)]
    if not any(run for side in sides for _, run in side):
        return []
    found = [ComparedTargets(number, _changes(number, *sides)) for number in comparison.numbers]
    return [one for one in found if one.changes.levels or one.changes.unknown]


def _changes(number: Compared, before: _Told, after: _Told) -> PhaseChanges:
    phase = number.key.phase
    changes = phase_changes(
        list(_phases(before, number.runs_before, phase)), list(_phases(after, number.runs_after, phase))
    )
    if changes.levels and any(name == "file system" for name, _, _ in number.differs_in):
        return PhaseChanges((), (_ELSEWHERE,))
    return changes


def _phases(side: _Told, runs: Sequence[str], phase: str) -> Iterator[tuple[Run, PhaseRecord]]:
    """The phase in each of the runs; an empty one where the record tells of no targets."""
    for summary, run in side:
        if summary.id in runs:
            known = run.record.phases.get(phase) if run else None
            yield run or run_of(RecordReader()), known or PhaseRecord(PhaseBegin(phase=phase))


def _told(runs: Sequence[Summary], machine: System | None) -> Iterator[tuple[Summary, Run | None]]:
    """Each run with its record where that tells of targets: all others need not be understood."""
    for summary in runs[-MOST:]:
        path = summary.folder / RECORD
        try:
            known = _TOLD.search(path.read_bytes()) is not None
        except OSError:
            known = False
        if not known:
            yield summary, None
            continue
        run = run_of(read_record(path), summary.folder, summary.document)
        yield summary, described(run, machine) if machine else run
