# SPDX-License-Identifier: Apache-2.0
"""Storage targets, and the servers and units they belong to, on both sides of a comparison.

`findings.target_changes` finds those that differ; this module reads the records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.findings.target_changes import PhaseChanges, compare_phase_targets
from sonde.model.confined_files import open_file
from sonde.model.documents import read_bounded_lines
from sonde.model.lines import PhaseBeginLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader, read_record
from sonde.model.run import RecordedRun, make_recorded_run
from sonde.model.system import System
from sonde.model.system.parents import add_target_parents
from sonde.store.archive import RECORD
from sonde.store.summary import Summary
from sonde.trends.comparison import Comparison, NumberComparison
from sonde.trends.profile_comparison import MAX_COMPARED_RUNS

_TARGET_LINE_PATTERN = re.compile(rb'"type":\s*"(?:targets|layout)"')
_TargetRuns = Sequence[tuple[Summary, RecordedRun | None]]
_DIFFERENT_FILE_SYSTEMS_SENTENCE = (
    "The sides are on different file systems, whose targets are not the same ones: they are not compared."
)


@dataclass(frozen=True)
class TargetComparison:
    """The targets of the phase of one number. `levels` of `changes` begins with targets; servers and units follow."""

    number: NumberComparison
    changes: PhaseChanges

    @property
    def sentences(self) -> list[str]:
        """All that there is to say, a sentence each."""
        return [*(text for level in self.changes.levels for text in level.change_sentences), *self.changes.unknown]

    def to_json(self) -> dict[str, Any]:
        """The machine form."""
        levels = [level.to_json() for level in self.changes.levels]
        return {"levels": levels, "sentences": [replace_no_break_spaces(text) for text in self.sentences]}


def compare_targets(comparison: Comparison, system: System | None = None) -> list[TargetComparison]:
    """One comparison for each number whose records contain targets, in the order of the numbers.

    `system` gives the server and unit of each target; without it they are read from run.json. The latest runs of a side
    are read.
    """
    sides = [list(_read_target_runs(side.runs, system)) for side in (comparison.before, comparison.after)]
    if not any(run for side in sides for _, run in side):
        return []
    comparisons = [TargetComparison(number, _compare_targets_of_phase(number, *sides)) for number in comparison.numbers]
    return [comparison for comparison in comparisons if comparison.changes.levels or comparison.changes.unknown]


def _compare_targets_of_phase(
    number_comparison: NumberComparison, runs_before: _TargetRuns, runs_after: _TargetRuns
) -> PhaseChanges:
    phase = number_comparison.key.phase
    changes = compare_phase_targets(
        list(_iterate_phases_of_runs(runs_before, number_comparison.runs_before, phase)),
        list(_iterate_phases_of_runs(runs_after, number_comparison.runs_after, phase)),
    )
    if changes.levels and any(name == "file system" for name, _, _ in number_comparison.differs_in):
        return PhaseChanges((), (_DIFFERENT_FILE_SYSTEMS_SENTENCE,))
    return changes


def _iterate_phases_of_runs(
    target_runs: _TargetRuns, run_ids: Sequence[str], phase_id: str
) -> Iterator[tuple[RecordedRun, PhaseRecord]]:
    """The phase in each of the runs; an empty one where the record contains no targets."""
    for summary, run in target_runs:
        if summary.id in run_ids:
            phase_record = run.record.phases.get(phase_id) if run else None
            yield run or make_recorded_run(RecordReader()), phase_record or PhaseRecord(PhaseBeginLine(phase=phase_id))


def _read_target_runs(
    run_summaries: Sequence[Summary], system: System | None
) -> Iterator[tuple[Summary, RecordedRun | None]]:
    """Each run whose record contains targets, with its record; other records are not read."""
    for summary in run_summaries[-MAX_COMPARED_RUNS:]:
        path = summary.folder / RECORD
        try:
            with open_file(path) as file:
                has_targets = any(_TARGET_LINE_PATTERN.search(line) for line in read_bounded_lines(file))
        except OSError:
            has_targets = False
        if not has_targets:
            yield summary, None
            continue
        run = make_recorded_run(read_record(path), summary.folder, summary.document)
        yield summary, add_target_parents(run, system) if system else run
