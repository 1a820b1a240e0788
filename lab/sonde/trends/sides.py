# SPDX-License-Identifier: Apache-2.0
"""Sides of a comparison: runs that the user's arguments select, and their values by number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

from sonde.findings.best_numbers import STORAGE_CLASSIFICATIONS
from sonde.findings.classification import Classification, is_judged_classification, label_classification
from sonde.model.errors import RecordError, UserError
from sonde.model.history_key import HistoryKey, RunKey
from sonde.model.simulation import is_simulated_document
from sonde.store.archive import Archive
from sonde.store.catalog import Catalog
from sonde.store.rows import (
    is_counted_in_histories,
    make_history_key,
    make_history_key_and_value,
    parse_epoch_seconds,
    read_classification,
)
from sonde.store.selection import Selection, parse_moment
from sonde.store.summary import Summary, read_summary

BASELINE_PREFIX = "baseline:"
_STORAGE_CLASSIFICATIONS = frozenset(kind.value for kind in STORAGE_CLASSIFICATIONS)
_PROGRESS_STEP_RUNS = 500
_TAG_OR_PLAN_PATTERN = re.compile(r"(tag|plan):(.+)", re.ASCII)


@dataclass(frozen=True)
class ComparedSide:
    """Runs, the oldest first, under the name that the user gave them."""

    name: str
    runs: tuple[Summary, ...]
    left_out: int = 0  # simulated runs that `require_runs_of_same_origin` removed

    @property
    def is_simulated(self) -> bool:
        """Whether it has only simulated runs."""
        return bool(self.runs) and all(is_simulated_document(run.document) for run in self.runs)


@dataclass(frozen=True)
class SideValues:
    """One number of a side: its values by run, in the order of the runs. `key` is that of the latest."""

    key: HistoryKey
    plan: str
    values: tuple[float, ...]
    runs: tuple[str, ...]
    times: tuple[float, ...]
    classifications: tuple[str, ...] = ()  # of the values, "" where nothing is known; empty: of none

    def select_judged_values(self) -> SideValues:
        """The number with those values only that may be judged; all if all are simulated."""
        rows = zip(self.values, self.runs, self.times, self.classifications, strict=True)
        if set(self.classifications) <= {Classification.SIMULATED.value}:
            return self
        judged = [row for row in rows if is_judged_classification(row[3])]
        values, runs, times, classifications = (
            (tuple(column) for column in zip(*judged, strict=True)) if judged else ((),) * 4
        )
        return SideValues(self.key, self.plan, values, runs, times, classifications)

    @property
    def classification_text(self) -> str:
        """Classifications of the values other than storage: ``too short, cached``; else empty."""
        kinds = dict.fromkeys(kind for kind in self.classifications if kind and kind not in _STORAGE_CLASSIFICATIONS)
        return ", ".join(label_classification(kind) for kind in kinds)


def find_compared_side(
    archive: Archive, side_text: str, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> ComparedSide:
    """The runs that `side_text` means.

    A run, a group of runs, a unique beginning of either, a folder or "last", as everywhere; ``tag:WORD`` and
    ``baseline:NAME`` for what people marked; ``plan:TEXT`` for all runs of an experiment; ``2026-08-01..2026-08-31``
    for a time (UTC, the second day included). `on_progress` receives the progress of reading many runs. Raises
    UserError in one sentence.
    """
    wanted = _parse_selection(side_text)
    try:
        if wanted is None:
            folders = archive.find_run_folders(side_text)
        else:
            result = Catalog(archive.root).read_run_table(["folder", "problem"], wanted).to_pylist()
            folders = [archive.root / row["folder"] for row in result if not row["problem"]]
        runs = []
        for done, folder in enumerate(folders):
            runs.append(read_summary(folder))
            if done % _PROGRESS_STEP_RUNS == _PROGRESS_STEP_RUNS - 1:
                on_progress(done + 1, len(folders))
    except RecordError as reason:
        raise UserError(f"A run of {side_text} {reason}; it cannot be compared.") from None
    runs = [run for run in runs if is_counted_in_histories(run) and make_history_key(run)]
    if not runs:
        raise UserError(
            f'"{side_text}" means no run with numbers that can be compared; `sonde list` shows what there is.'
        )
    return ComparedSide(side_text, tuple(sorted(runs, key=lambda run: (parse_epoch_seconds(run.started), run.id))))


def require_runs_of_same_origin(
    side_before: ComparedSide, side_after: ComparedSide, refusal_hint: str
) -> tuple[ComparedSide, ComparedSide]:
    """Both sides with runs of one origin: all simulated, else measured runs only.

    Raises UserError, with the sentence `refusal_hint`, if one side is simulated and the other is not.
    """
    if side_before.is_simulated and side_after.is_simulated:
        return side_before, side_after
    for side, other in ((side_before, side_after), (side_after, side_before)):
        if side.is_simulated:
            raise UserError(
                f"{side.name} is simulated and {other.name} is measured: a model says nothing about what this storage"
                f" did. {refusal_hint}"
            )
    return _remove_simulated_runs(side_before), _remove_simulated_runs(side_after)


def _remove_simulated_runs(side: ComparedSide) -> ComparedSide:
    measured = tuple(run for run in side.runs if not is_simulated_document(run.document))
    return ComparedSide(side.name, measured, len(side.runs) - len(measured))


def _parse_selection(side_text: str) -> Selection | None:
    """Parses `tag:TAG` or `plan:PLAN`; None for other texts."""
    if side_text.startswith(BASELINE_PREFIX):
        return Selection(tags=(side_text,))
    if match := _TAG_OR_PLAN_PATTERN.fullmatch(side_text):
        return Selection(tags=(match[2],)) if match[1] == "tag" else Selection(plan=match[2])
    if ".." in side_text and "/" not in side_text:
        begin, _, end = side_text.partition("..")
        until = parse_moment(end, "The end of the time") if end else None
        whole_day = 86400.0 if re.fullmatch(r"\d{4}-\d{2}-\d{2}", end.strip()) else 0.0
        return Selection(
            since_s=parse_moment(begin, "The begin of the time") if begin else None,
            until_s=None if until is None else until + whole_day,
        )
    return None


def collect_values_by_number(run_summaries: Sequence[Summary]) -> list[SideValues]:
    """The numbers of the runs, by histories; what differs only in epoch is one number."""
    gathered: dict[HistoryKey, list[tuple[Summary, HistoryKey, float, str]]] = {}
    for run in run_summaries:
        for key, value, classification in _iterate_history_values(run):
            gathered.setdefault(_remove_epoch_from_key(key), []).append((run, key, value, classification))
    return [
        SideValues(
            key=rows[-1][1],
            plan=rows[-1][0].plan,
            values=tuple(value for _, _, value, _ in rows),
            runs=tuple(run.id for run, *_ in rows),
            times=tuple(parse_epoch_seconds(run.started) for run, *_ in rows),
            classifications=tuple(classification for *_, classification in rows),
        )
        for rows in gathered.values()
    ]


def _iterate_history_values(run_summary: Summary) -> Iterator[tuple[HistoryKey, float, str]]:
    key = make_history_key(run_summary)
    for phase in run_summary.phases if key else ():
        result = make_history_key_and_value(key, phase) if key else None
        if result is not None:
            yield *result, read_classification(phase) or ""


def _remove_epoch_from_key(history_key: HistoryKey) -> HistoryKey:
    return HistoryKey(
        **{
            field.name: getattr(history_key, field.name) if field.name != "epoch" else ""
            for field in fields(HistoryKey)
        }
    )


def pair_comparable_values(
    values_before: Sequence[SideValues], values_after: Sequence[SideValues]
) -> list[tuple[SideValues, SideValues]]:
    """Cells that belong together: of the same key, else of the same phase and operation when that is unambiguous.

    The second kind compares what the user asked to compare, two file systems say; `list_key_differences` says in what.
    """
    same = {_remove_epoch_from_key(number.key): number for number in values_before}
    result = [
        (same[_remove_epoch_from_key(number.key)], number)
        for number in values_after
        if _remove_epoch_from_key(number.key) in same
    ]
    occupied = {id(item) for pair in result for item in pair}
    loose_before = [number for number in values_before if id(number) not in occupied]
    loose_after = [number for number in values_after if id(number) not in occupied]
    for number in loose_after:
        alike = [other for other in loose_before if _make_pairing_key(other) == _make_pairing_key(number)]
        rivals = [other for other in loose_after if _make_pairing_key(other) == _make_pairing_key(number)]
        if len(alike) == 1 and len(rivals) == 1:
            result.append((alike[0], number))
    return result


def _make_pairing_key(side_values: SideValues) -> tuple[str, ...]:
    return (side_values.plan, side_values.key.phase, side_values.key.op, side_values.key.unit)


def list_key_differences(key_before: HistoryKey, key_after: HistoryKey) -> list[tuple[str, str, str]]:
    """Members of the key in which two numbers differ: name, before, after."""
    displayed = [field.name for field in fields(RunKey)] + ["cache", "definition"]
    both = ((name, getattr(key_before, name), getattr(key_after, name)) for name in displayed)
    return [(name.replace("_", " "), old, new) for name, old, new in both if old != new]
