# SPDX-License-Identifier: Apache-2.0
"""One run folder: its record, its plan and its notes, read without trusting them.

A record may end in the middle of a line, lack its end line, or contain invalid lines. Valid lines are read, and
`Run.damage` describes the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sonde.model.confined_files import open_file, read_json_file
from sonde.model.documents import read_bounded_lines
from sonde.model.errors import ReportError
from sonde.model.json_access import get_finite_number, get_items, get_member, get_object, get_text
from sonde.model.lines import EndLine, ErrorLine, Finding, NodeLine, RunLine
from sonde.model.parents import TargetParents, parse_parents
from sonde.model.record import RECORD_FILE, PhaseRecord, RecordReader, read_record

_RECORD_FORMAT = "sonde-record/2"
_MAX_LISTED_PROBLEMS = 5
# Member of run.json: findings of the lab about the whole run.
LAB_FINDINGS = "lab_findings"


@dataclass(frozen=True)
class RecordedRun:
    """One run folder. `machines` are the node lines as they were written, with members that the model does not name."""

    folder: Path
    record: RecordReader
    raw_nodes: tuple[Mapping[str, Any], ...]
    notes: Mapping[str, Any]
    plan: Mapping[str, Any]
    damage: tuple[str, ...]

    @property
    def run_line(self) -> RunLine:
        """The first line; empty when the record has lost it."""
        return self.record.run or RunLine()

    @property
    def phases(self) -> list[PhaseRecord]:
        """The phases in the order they were run."""
        return list(self.record.phases.values())

    @property
    def nodes(self) -> list[NodeLine]:
        """The machines that took part."""
        return self.record.nodes

    @property
    def end(self) -> EndLine:
        """The last line; empty when the run was lost."""
        return self.record.end or EndLine()

    @property
    def status(self) -> str:
        """done, failed, interrupted or mismatch, as recorded; lost if the record has no end."""
        return self.record.status

    @property
    def tasks(self) -> int:
        """How many streams of I/O."""
        return self.run_line.tasks or 1

    @property
    def title(self) -> str:
        """The title of the plan."""
        return get_text(self.plan, "title") or get_text(self.plan, "id") or self.folder.name

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Findings on the whole run: those of the engine, and those that the lab stored in run.json."""
        stored = [get_object(entry) for entry in get_items(self.notes, LAB_FINDINGS)]
        return (
            *self.record.findings,
            *(
                Finding(
                    id=get_text(entry, "id"),
                    severity=get_text(entry, "severity"),
                    text=get_text(entry, "text"),
                    advice=get_text(entry, "advice"),
                    evidence=dict(get_object(entry, "evidence")),
                )
                for entry in stored
            ),
        )

    @property
    def all_findings(self) -> list[Finding]:
        """Findings on the run and on each of its phases."""
        return [*self.findings, *(finding for phase in self.phases for finding in phase.findings)]

    @cached_property
    def parents(self) -> TargetParents:
        """To which servers and units its storage targets belong; empty where no described system was named."""
        return parse_parents(self.notes.get("parents"))

    @property
    def run_errors(self) -> list[ErrorLine]:
        """Errors that belong to no phase that began."""
        return [error for error in self.record.errors if error.phase not in self.record.phases]

    def find_planned_phase(self, phase_id: str) -> Mapping[str, Any]:
        """That phase as the plan has it; empty when the plan is not known."""
        for entry in get_items(self.plan, "phases"):
            if get_text(entry, "id") == phase_id:
                return get_object(entry)
        return {}

    def find_setting(self, phase_id: str, *path: str) -> Any:
        """A setting of a phase: its own value, else that of the plan's `data`; None if neither sets it."""
        value = get_member(self.find_planned_phase(phase_id), path)
        return value if value is not None else get_member(self.plan, ("data", *path))


def make_recorded_run(
    record: RecordReader, run_folder: Path | None = None, summary_document: Mapping[str, Any] | None = None
) -> RecordedRun:
    """The run of a record that was read already. `run_folder` defaults to that of the record; of its files only
    `summary_document` (run.json) are given, and telemetry is read from it."""
    plan = record.run.plan if record.run else {}
    return RecordedRun(
        folder=record.folder if run_folder is None else run_folder,
        record=record,
        raw_nodes=(),
        notes=summary_document or {},
        plan=plan,
        damage=(),
    )


def read_recorded_run_folder(run_folder: Path) -> RecordedRun:
    """Reads `run_folder`/record.ndjson, run.json and plan.json; the last two may be missing.

    Raises ReportError when there is no record or nothing in it can be read.
    """
    path = run_folder / RECORD_FILE
    try:
        record = read_record(path)
    except FileNotFoundError:
        if (run_folder / "run.json").is_file():
            raise ReportError(
                f"{run_folder.name} holds numbers of another tool and no record, so there is no report of it;"
                " `sonde show` prints its numbers, `sonde trend -o FILE` and `sonde compare -o FILE` draw them."
            ) from None
        raise ReportError(f"{run_folder} holds no record.ndjson: name the folder of a run.") from None
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror}.") from None
    if record.run is None and not record.phases and record.end is None:
        raise ReportError(f"{path} holds no line that can be read: it is not the record of a run.")
    head = record.run or RunLine()
    return RecordedRun(
        folder=run_folder,
        record=record,
        raw_nodes=_read_raw_node_lines(path),
        notes=read_json_file(run_folder / "run.json") or {},
        plan=head.plan or read_json_file(run_folder / "plan.json") or {},
        damage=tuple(_describe_record_damage(record)),
    )


def _describe_record_damage(record: RecordReader) -> Iterable[str]:
    if record.run is None:
        yield "The record has no first line: what was run, and when, is not known."
    elif record.run.schema and record.run.schema != _RECORD_FORMAT:
        yield f"The record says it is {record.run.schema}; this report knows {_RECORD_FORMAT} and may miss parts of it."
    yield from record.problems[:_MAX_LISTED_PROBLEMS]
    if len(record.problems) > _MAX_LISTED_PROBLEMS:
        yield f"{len(record.problems) - _MAX_LISTED_PROBLEMS} more lines of the record were skipped."


def _read_raw_node_lines(record_file: Path) -> tuple[Mapping[str, Any], ...]:
    """The model names the facts that others decide on; the report shows all that were recorded."""
    nodes: dict[Any, Mapping[str, Any]] = {}
    with open_file(record_file) as file:
        for text in read_bounded_lines(file):
            if b'"node"' in text:
                try:
                    line = json.loads(text.decode("utf-8", "replace"))
                except (ValueError, RecursionError):
                    continue
                if isinstance(line, dict) and line.get("type") == "node":
                    nodes.setdefault(get_finite_number(line, "node"), line)
    return tuple(nodes.values())
