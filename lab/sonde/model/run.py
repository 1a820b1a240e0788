# SPDX-License-Identifier: Apache-2.0
"""One run folder: its record, its plan and its notes, read without trusting them.

A record may be cut off in the middle of a line, miss its end, or hold lines without meaning; what can be understood is
kept, and `Run.damage` says what could not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sonde.model.errors import ReportError
from sonde.model.json_parts import items, member, members, number, text
from sonde.model.lines import End, ErrorLine, NodeLine, RunLine
from sonde.model.parents import Parents, parents_from
from sonde.model.record import PhaseRecord, RecordReader, read_record

_SCHEMA = "sonde-record/1"
_MOST_PROBLEMS = 5


@dataclass(frozen=True)
class Run:
    """One run folder. `machines` are the node lines as they were written, with members that the model does not name."""

    folder: Path
    record: RecordReader
    machines: tuple[Mapping[str, Any], ...]
    notes: Mapping[str, Any]
    plan: Mapping[str, Any]
    damage: tuple[str, ...]

    @property
    def head(self) -> RunLine:
        """The first line; empty when the record has lost it."""
        return self.record.run or RunLine()

    @property
    def phases(self) -> list[PhaseRecord]:
        """The phases in the order they were run."""
        return list(self.record.phases.values())

    @property
    def nodes(self) -> list[NodeLine]:
        """The machines that took part."""
        return self.record.machines

    @property
    def end(self) -> End:
        """The last line; empty when the run was lost."""
        return self.record.end or End()

    @property
    def status(self) -> str:
        """done, failed, interrupted or mismatch as the record says; lost when it has no end."""
        return self.record.status

    @property
    def tasks(self) -> int:
        """How many streams of I/O."""
        return self.head.tasks or 1

    @property
    def title(self) -> str:
        """What the plan calls itself."""
        return text(self.plan, "title") or text(self.plan, "id") or self.folder.name

    @cached_property
    def parents(self) -> Parents:
        """To which servers and units its storage targets belong; empty where no described system was named."""
        return parents_from(self.notes.get("parents"))

    @property
    def own_errors(self) -> list[ErrorLine]:
        """Errors that belong to no phase that began."""
        return [one for one in self.record.errors if one.phase not in self.record.phases]

    def plan_of(self, phase_id: str) -> Mapping[str, Any]:
        """That phase as the plan has it; empty when the plan is not known."""
        for entry in items(self.plan, "phases"):
            if text(entry, "id") == phase_id:
                return members(entry)
        return {}

    def setting(self, phase_id: str, *path: str) -> Any:
        """A setting of a phase: its own value, else the one of the plan's `data`; None when neither says."""
        own = member(self.plan_of(phase_id), path)
        return own if own is not None else member(self.plan, ("data", *path))


def run_of(record: RecordReader, folder: Path = Path(), notes: Mapping[str, Any] | None = None) -> Run:
    """The run of a record that was read already; of what stands beside it in the folder only `notes` (run.json)."""
    plan = record.run.plan if record.run else {}
    return Run(folder=folder, record=record, machines=(), notes=notes or {}, plan=plan, damage=())


def read_run(folder: Path) -> Run:
    """Reads `folder`/record.ndjson, run.json and plan.json; the last two may be missing.

    Raises ReportError when there is no record or nothing in it can be read.
    """
    path = folder / "record.ndjson"
    try:
        record = read_record(path)
    except FileNotFoundError:
        if (folder / "run.json").is_file():
            raise ReportError(
                f"{folder.name} holds numbers of another tool and no record, so there is no report of it;"
                " `sonde show` prints its numbers, `sonde trend -o FILE` and `sonde compare -o FILE` draw them."
            ) from None
        raise ReportError(f"{folder} holds no record.ndjson: name the folder of a run.") from None
    except OSError as problem:
        raise ReportError(f"{path} cannot be read: {problem.strerror}.") from None
    if record.run is None and not record.phases and record.end is None:
        raise ReportError(f"{path} holds no line that can be read: it is not the record of a run.")
    head = record.run or RunLine()
    return Run(
        folder=folder,
        record=record,
        machines=_raw_nodes(path),
        notes=_document(folder / "run.json"),
        plan=head.plan or _document(folder / "plan.json"),
        damage=tuple(_damage(record)),
    )


def _damage(record: RecordReader) -> Iterable[str]:
    if record.run is None:
        yield "The record has no first line: what was run, and when, is not known."
    elif record.run.schema and record.run.schema != _SCHEMA:
        yield f"The record says it is {record.run.schema}; this report knows {_SCHEMA} and may miss parts of it."
    yield from record.problems[:_MOST_PROBLEMS]
    if len(record.problems) > _MOST_PROBLEMS:
        yield f"{len(record.problems) - _MOST_PROBLEMS} more lines of the record were skipped."


def _raw_nodes(path: Path) -> tuple[Mapping[str, Any], ...]:
    """The model names the facts that others decide on; the report shows all that were recorded."""
    found: dict[Any, Mapping[str, Any]] = {}
    with path.open("rb") as file:
        for row in file:
            if b'"node"' in row:
                try:
                    line = json.loads(row.decode("utf-8", "replace"))
                except (ValueError, RecursionError):
                    continue
                if isinstance(line, dict) and line.get("type") == "node":
                    found.setdefault(number(line, "node"), line)
    return tuple(found.values())


def _document(path: Path) -> Mapping[str, Any]:
    try:
        loaded = json.loads(path.read_bytes().decode("utf-8", "replace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}
