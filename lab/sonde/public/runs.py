# SPDX-License-Identifier: Apache-2.0
"""Public classes for runs and their phases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from sonde.findings.assessment import assess_phase_rate
from sonde.model.errors import RecordError, UserError
from sonde.model.record import read_record
from sonde.model.run import RecordedRun as Record
from sonde.model.run import make_recorded_run
from sonde.public.records import (
    Histogram,
    PhaseSeries,
    RunFindings,
    find_phase_histograms,
    find_phase_series,
    read_recorded_run,
    read_stored_findings,
)
from sonde.public.tables import MAX_DISPLAYED_ROWS, Table
from sonde.store.archive import RECORD
from sonde.store.selection import Selection
from sonde.store.summary import Summary, read_summary
from sonde.store.tags import read_tags

if TYPE_CHECKING:
    from sonde.store.catalog import Catalog

_RUN_TABLE_COLUMNS = ("run", "started", "status", "plan", "target", "write_bytes_per_s", "read_bytes_per_s", "validity")
_PHASE_TABLE_COLUMNS = ("id", "op", "bytes", "seconds", "bytes_per_s", "ops_per_s", "classification", "validity")


@dataclass(frozen=True)
class Phase:
    """One phase of a run. Unknown values are None.

    Rates are the total rate: everything from the first open to the last close of any task.
    """

    id: str
    op: str
    bytes: int | None
    ops: int | None
    seconds: float | None
    bytes_per_s: float | None
    ops_per_s: float | None
    classification: str | None
    """What the number is about: storage, burst, short, cache, memory, synthetic, simulated, unknown, invalid or failed
    (docs/concepts/classification); None for results of other tools."""
    classification_text: str
    """The classification in a sentence; empty for results of other tools."""
    validity: str | None
    """good, doubtful or invalid."""
    document: Mapping[str, Any] = field(repr=False)
    """All that run.json says about it."""
    run: str = ""
    """The id of its run."""
    folder: Path = field(default=Path(), repr=False)
    """The folder of its run."""

    @property
    def is_storage(self) -> bool:
        """Whether the number is a storage number (also `burst`) without caveats."""
        return self.classification in ("storage", "burst") and self.validity == "good"

    def _repr_html_(self) -> str:
        """The charts of the report, for notebooks."""
        from sonde.public.drawing import render_charts_of_phase
        from sonde.public.html_table import render_notebook_table

        if (self.folder / RECORD).is_file():
            return render_charts_of_phase(self.folder, self.id)
        return render_notebook_table(_PHASE_TABLE_COLUMNS, [[getattr(self, name) for name in _PHASE_TABLE_COLUMNS]], 1)

    def series(self) -> PhaseSeries | None:
        """The rate in time, all tasks together; None if the record has none, like a result of another tool."""
        return find_phase_series(self.folder, self.id)

    def histograms(self) -> dict[str, Histogram]:
        """The latency histograms by kind of operation: read, write, open, …"""
        return find_phase_histograms(self.folder, self.id)


@dataclass(frozen=True)
class Run:
    """One run that was kept, or one result of another tool that was imported."""

    id: str
    folder: Path
    started: datetime | None
    status: str
    plan: str
    target: str
    tags: tuple[str, ...]
    phases: tuple[Phase, ...]
    document: Mapping[str, Any] = field(repr=False)
    """All of run.json."""

    @cached_property
    def findings(self) -> RunFindings:
        """The findings about the run and its phases."""
        return read_stored_findings(self.folder, self.document)

    def _repr_html_(self) -> str:
        """The report of the run, for notebooks; of a result of another tool a table."""
        from sonde.public.drawing import render_report_of_runs
        from sonde.public.html_table import render_notebook_table

        if (self.folder / RECORD).is_file():
            return render_report_of_runs([self.folder])
        rows = [[getattr(phase, name) for name in _PHASE_TABLE_COLUMNS] for phase in self.phases]
        return render_notebook_table(_PHASE_TABLE_COLUMNS, rows, len(rows))

    def phase(self, name: str) -> Phase:
        """The phase of that id. Raises UserError when there is none."""
        for phase in self.phases:
            if phase.id == name:
                return phase
        there = ", ".join(phase.id for phase in self.phases) or "none"
        raise UserError(f'The run {self.id} has no phase "{name}"; its phases are {there}.')

    def series(self) -> Table:
        """All series of the run as rows: of all tasks, of nodes and of storage targets (column `scope`)."""
        return Table(lambda: _read_parquet_tables([self.folder], "series"))

    def tasks(self) -> Table:
        """One row for each task of each phase."""
        return Table(lambda: _read_parquet_tables([self.folder], "tasks"))

    def record(self) -> Record:
        """Everything that was measured: series, histograms, tables of tasks and nodes.

        Raises ReportError for results of other tools, which have no record.
        """
        return read_recorded_run(self.folder)


class RunList(Table, Sequence[Run]):
    """Runs of an archive, the oldest first.

    As a sequence it has `Run` objects, each read when it is accessed; as a table one row for each run, from the index
    of the archive. Nothing is read before it is needed.
    """

    def __init__(self, open_catalog: Callable[[], Catalog], selection: Selection, last: int | None = None) -> None:
        super().__init__(self._read_rows)
        self._open_catalog = open_catalog
        self._selection = selection
        self._last = last

    @cached_property
    def _catalog(self) -> Catalog:
        return self._open_catalog()

    @cached_property
    def _folders(self) -> list[str]:
        rows = self._catalog.find_runs(["folder", "problem"], self._selection, self._last).table
        return rows.filter(rows["problem"].is_null())["folder"].to_pylist()  # type: ignore[no-any-return]

    def _read_rows(self) -> Any:
        from sonde.store.index import RUN_SCHEMA

        names = [name for name in RUN_SCHEMA.names if name != "changed_ns"]
        rows = self._catalog.find_runs(names, self._selection, self._last).table
        return rows.filter(rows["problem"].is_null()).drop_columns(["problem"])

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> RunList: ...
    def __getitem__(self, index: int | slice) -> Run | RunList:
        if isinstance(index, slice):
            ids = tuple(Path(folder).name for folder in self._folders[index])
            return RunList(lambda: self._catalog, replace(self._selection, ids=ids))
        return load_run(self._catalog.root / self._folders[index])

    def __len__(self) -> int:
        return len(self._folders)

    def __iter__(self) -> Iterator[Run]:
        return (load_run(self._catalog.root / folder) for folder in self._folders)

    def __repr__(self) -> str:
        return f"<{len(self)} runs of {self._catalog.root}>"

    def _repr_html_(self) -> str:
        """The last runs, for notebooks."""
        from sonde.public.html_table import render_notebook_table

        last = self[-MAX_DISPLAYED_ROWS:].to_arrow().select(list(_RUN_TABLE_COLUMNS)).to_pydict() if len(self) else {}
        return render_notebook_table(_RUN_TABLE_COLUMNS, list(zip(*last.values(), strict=True)), len(self))

    def phases(self) -> Table:
        """One row for each phase of the runs, from the index."""
        return Table(self._read_phases)

    def _read_phases(self) -> Any:
        from sonde.store import sql

        selection = self._selection
        if self._last is not None:
            selection = replace(selection, ids=tuple(Path(folder).name for folder in self._folders))
        query = "SELECT * FROM phases ORDER BY started_s, run, position"
        return sql.execute_query(self._catalog, selection, query).table

    def series(self) -> Table:
        """All series of the runs as rows. One file is read for each run, so select the runs first."""
        return Table(lambda: _read_parquet_tables([self._catalog.root / folder for folder in self._folders], "series"))

    def tasks(self) -> Table:
        """One row for each task of each phase of the runs. One file is read for each run, so select the runs first."""
        return Table(lambda: _read_parquet_tables([self._catalog.root / folder for folder in self._folders], "tasks"))


def load_run(folder: Path) -> Run:
    """Returns the run of a folder. Raises UserError if it holds none."""
    try:
        return _make_run(read_summary(folder))
    except RecordError as reason:
        raise UserError(f"{folder} {reason}; it is no run that can be read.") from None


def _read_parquet_tables(run_folders: Sequence[Path], file_stem: str) -> Any:
    """Returns the rows of one Parquet file of each run. Runs without the file have no rows. Raises UserError if a file
    cannot be read."""
    import pyarrow as pa
    from pyarrow import parquet

    from sonde.model.confined_files import open_file
    from sonde.store import tables

    name = {"series": tables.SERIES_FILE, "tasks": tables.TASKS_FILE}[file_stem]
    pieces = [tables.make_empty_table(name)]
    for folder in run_folders:
        try:
            with open_file(folder / name) as file:
                pieces.append(parquet.read_table(file))
        except FileNotFoundError:
            continue
        except (OSError, pa.ArrowException) as reason:
            raise UserError(f"{folder / name} cannot be read ({' '.join(str(reason).split())[:200]}).") from None
    return pa.concat_tables(pieces, promote_options="permissive")


def _make_run(summary: Summary) -> Run:
    return Run(
        id=summary.id,
        folder=summary.folder,
        started=_parse_time(summary.started),
        status=summary.status,
        plan=summary.plan,
        target=summary.target,
        tags=tuple(read_tags(summary.folder)),
        phases=tuple(_make_phase(summary, document) for document in summary.phases),
        document=summary.document,
    )


def _make_phase(summary: Summary, phase_document: Mapping[str, Any]) -> Phase:
    classification, text, validity = (
        phase_document.get(name) for name in ("classification", "classification_text", "validity")
    )
    if classification is None and (summary.folder / RECORD).exists():
        # kept before the summary said what a number is about: the record still says it
        run = make_recorded_run(read_record(summary.folder / RECORD), summary.folder)
        assessment = next(
            (assess_phase_rate(run, phase) for phase in run.phases if phase.id == phase_document.get("phase")), None
        )
        values = assessment.to_json() if assessment else {}
        names = ("classification", "classification_text", "validity")
        classification, text, validity = (values.get(name) for name in names)
    return Phase(
        id=str(phase_document.get("phase") or ""),
        op=str(phase_document.get("op") or ""),
        bytes=phase_document.get("bytes"),
        ops=phase_document.get("ops"),
        seconds=phase_document.get("seconds"),
        bytes_per_s=phase_document.get("bytes_per_s"),
        ops_per_s=phase_document.get("ops_per_s"),
        classification=classification,
        classification_text=str(text or ""),
        validity=validity,
        document=phase_document,
        run=summary.id,
        folder=summary.folder,
    )


def _parse_time(start_time_text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(start_time_text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
