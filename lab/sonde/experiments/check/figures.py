# SPDX-License-Identifier: Apache-2.0
"""The figures of a check: each is a number with its classification and caveats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sonde.experiments.check.plans import QUEUE_DEPTH, CheckedMachine
from sonde.findings.assessment import assess_phase_rate
from sonde.findings.best_numbers import (
    NO_STORAGE_NUMBER,
    STORAGE_CLASSIFICATIONS,
    BestCandidate,
    WorkKind,
    describe_best,
    determine_work_kind,
    select_best_numbers,
)
from sonde.findings.caveats import convert_caveat_to_json
from sonde.findings.classification import Classification
from sonde.model.errors import format_as_sentence
from sonde.model.line_members import LatencySummary, Rate
from sonde.model.lines import Finding
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import RecordedRun, make_recorded_run

# If all tasks are faster than one task by this factor, the one task was the limit, not the storage.
_TASK_LIMITED_RATE_FACTOR = 1.3


@dataclass(frozen=True)
class CheckFigure:
    """One line of the result of a check."""

    key: str
    section: str
    label: str
    unit: str  # bytes_per_s, ops_per_s or files_per_s
    classification: Classification
    classification_clause: str
    value: float | None = None
    seconds: float | None = None
    bytes: int | None = None
    tasks: int = 1
    p50_ns: float | None = None
    p99_ns: float | None = None
    validity: str = "good"  # good, doubtful, invalid
    caveats: tuple[Finding, ...] = ()  # beyond what the classification implies
    variation: str = ""  # how the rate varied during the phase: a sentence or empty
    stragglers: str = ""  # which tasks were slow: a sentence or empty
    run: str = ""
    phase: str = ""
    modeled: Classification | None = None  # of a simulated number: its classification within the model
    kind: WorkKind | None = None  # its category among the best numbers

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form without empty members; assessment members have the names that they have everywhere."""
        document = asdict(self) | {
            "classification": self.classification.value,
            "classification_text": format_as_sentence(self.classification_clause),
        }
        del document["classification_clause"], document["kind"], document["modeled"]
        document["modeled_classification"] = self.modeled.value if self.modeled else None
        document["caveats"] = [convert_caveat_to_json(caveat) for caveat in self.caveats]
        return {name: value for name, value in document.items() if value not in (None, "", [])}


@dataclass(frozen=True)
class FigureRow:
    """The phase and part that contain a figure."""

    part: str
    phase: str
    key: str
    section: str
    label: str
    unit: str = "bytes_per_s"
    interval: str = "total"  # name of the rate
    latency: str = ""  # kind of operation whose latency is shown


_RANDOM_SECTION, _SMALL_FILES_SECTION = "Random, 4 KiB transfers", "Small files, 4 KiB each"


def list_possible_figures(cpu_count: int, is_queued: bool, is_memory_backed: bool = False) -> list[FigureRow]:
    """Returns all possible figures in the order of display; a phase that was not run gives none."""
    sequential = _list_memory_rows if is_memory_backed else _list_sequential_rows
    all_rows = sequential("1", "1 task") + sequential("all", f"{cpu_count} tasks")
    for op in ("read", "write"):
        for depth in (1, QUEUE_DEPTH):
            load = f"{depth} in flight" if is_queued or depth == 1 else f"{depth} tasks"
            key = f"{op}-{depth}"
            all_rows.append(
                FigureRow("random", key, f"random-{key}", _RANDOM_SECTION, f"{op}, {load}", "ops_per_s", latency=op)
            )
    files: dict[str, Any] = {"section": _SMALL_FILES_SECTION, "unit": "files_per_s", "latency": "open"}
    return [
        *all_rows,
        FigureRow("small-files", "create", "create", label="create, write, close", **files),
        FigureRow("small-files-durable", "create", "create-durable", label="the same with fsync", **files),
        FigureRow("small-files", "stat", "stat", _SMALL_FILES_SECTION, "stat", "files_per_s", latency="stat"),
        FigureRow("small-files", "open-read-cached", "open-read-cached", label="open, read, close", **files),
        FigureRow("small-files", "open-read", "open-read", label="the same, cache emptied", **files),
        FigureRow("small-files", "remove", "remove", _SMALL_FILES_SECTION, "remove", "files_per_s", latency="remove"),
    ]


def _list_sequential_rows(part_suffix: str, task_label: str) -> list[FigureRow]:
    part, section = f"sequential-{part_suffix}", f"Sequential, 1 MiB transfers, {task_label}"
    return [
        FigureRow(part, "write", f"write-cached-{part_suffix}", section, "write, into page cache", interval="transfer"),
        FigureRow(part, "write", f"write-storage-{part_suffix}", section, "write, until on storage"),
        FigureRow(part, "write-direct", f"write-direct-{part_suffix}", section, "rewrite, direct"),
        FigureRow(part, "read-cached", f"read-cached-{part_suffix}", section, "read, just written"),
        FigureRow(part, "read-storage", f"read-storage-{part_suffix}", section, "read, cache emptied"),
        FigureRow(part, "read-direct", f"read-direct-{part_suffix}", section, "read, direct"),
    ]


def _list_memory_rows(part_suffix: str, task_label: str) -> list[FigureRow]:
    """Returns the rows of a file system in memory: cached and direct access are the same there."""
    part, section = f"sequential-{part_suffix}", f"Sequential, 1 MiB transfers, {task_label}"
    return [
        FigureRow(part, "write", f"write-{part_suffix}", section, "write"),
        FigureRow(part, "read-cached", f"read-{part_suffix}", section, "read"),
    ]


def compute_figures(
    records: Mapping[str, tuple[str, RecordReader]], machine: CheckedMachine, is_queued: bool
) -> list[CheckFigure]:
    """Returns the figures of all parts that were run; `records` maps a part's key to id and record of its run."""
    computed = []
    for row in list_possible_figures(machine.cpus, is_queued, machine.memory_backed):
        if row.part not in records:
            continue
        run_id, record = records[row.part]
        phase = record.phases.get(row.phase)
        if phase is not None:
            computed.append(_compute_check_figure(row, phase, make_recorded_run(record), run_id))
    return _mark_figures_limited_by_one_task(computed)


def _compute_check_figure(figure_row: FigureRow, phase: PhaseRecord, run: RecordedRun, run_id: str) -> CheckFigure:
    end, assessment = phase.end, assess_phase_rate(run, phase, figure_row.interval)
    figure = CheckFigure(
        figure_row.key,
        figure_row.section,
        figure_row.label,
        figure_row.unit,
        assessment.classification,
        replace_no_break_spaces(assessment.classification_clause),
        run=run_id,
        phase=figure_row.phase,
        validity=assessment.validity,
        caveats=assessment.caveats,
        variation=replace_no_break_spaces(assessment.variation),
        stragglers=replace_no_break_spaces(assessment.stragglers),
        modeled=assessment.modeled,
        # The same phase without its fsync is a different number.
        kind=determine_work_kind(run, phase) if figure_row.interval == "total" else None,
    )
    if end is None or not end.ops.done:
        return figure
    rate = getattr(end.rates, figure_row.interval) or end.rates.total or end.rates.transfer or Rate()
    latency = end.latency.get(figure_row.latency, LatencySummary())
    return replace(
        figure,
        value=rate.bytes_per_s if figure_row.unit == "bytes_per_s" else rate.ops_per_s,
        seconds=rate.seconds,
        bytes=end.bytes.transferred,
        tasks=phase.begin.tasks or run.tasks,
        p50_ns=latency.p50_ns,
        p99_ns=latency.p99_ns,
    )


def _mark_figures_limited_by_one_task(check_figures: list[CheckFigure]) -> list[CheckFigure]:
    """Marks figures of one task that the task itself limited, not the storage."""
    by_key = {figure.key: figure for figure in check_figures}
    result = []
    for figure in check_figures:
        all_tasks = by_key.get(figure.key.removesuffix("-1") + "-all") if figure.key.endswith("-1") else None
        if (
            all_tasks
            and figure.classification in STORAGE_CLASSIFICATIONS
            and figure.value
            and (all_tasks.value or 0) > _TASK_LIMITED_RATE_FACTOR * figure.value
        ):
            figure = replace(figure, classification_clause=f"{figure.classification_clause}; limited by one task")
        result.append(figure)
    return result


def select_best_figures(check_figures: Sequence[CheckFigure]) -> list[BestCandidate]:
    """Returns the numbers that the headline quotes, as `findings.best_numbers` selects them."""
    return select_best_numbers(
        BestCandidate(figure.kind, figure.value, figure.classification, figure.caveats, figure.key, figure.modeled)
        for figure in check_figures
    )


def make_headline(check_figures: Sequence[CheckFigure], machine: CheckedMachine) -> str:
    """Returns the check in one sentence; caveats of a number precede it."""
    if machine.memory_backed:
        return f"Files here live in memory ({machine.file_system}). {NO_STORAGE_NUMBER}"
    return describe_best(select_best_figures(check_figures))
