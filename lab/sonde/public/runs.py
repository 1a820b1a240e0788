# SPDX-License-Identifier: Apache-2.0
"""Public classes for an archive, its runs and their phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sonde.findings.assessment import assess
from sonde.model.record import read_record
from sonde.model.run import RecordedRun as Record
from sonde.model.run import read_run, to_recorded_run
from sonde.store.archive import RECORD, Archive
from sonde.store.selection import Selection, moment
from sonde.store.summary import Summary, read_summary
from sonde.store.tags import read_tags


@dataclass(frozen=True)
class Phase:
    """One phase of a run. What is not known is None.

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
    document: Mapping[str, Any]
    """All that run.json says about it."""

    @property
    def is_storage(self) -> bool:
        """Whether the number is one of storage, at least for a moment, and nothing speaks against it."""
        return self.classification in ("storage", "burst") and self.validity == "good"


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
    document: Mapping[str, Any]
    """All of run.json."""

    def phase(self, name: str) -> Phase:
        """The phase of that id. Raises KeyError when there is none."""
        for phase in self.phases:
            if phase.id == name:
                return phase
        raise KeyError(name)

    def record(self) -> Record:
        """Everything that was measured: series, histograms, tables of tasks and nodes.

        Raises ReportError for results of other tools, which have no record.
        """
        return read_run(self.folder)


class Runs:
    """An archive that was opened. Nothing is locked; each call sees what is there then."""

    def __init__(self, archive: str | Path | None = None) -> None:
        self._archive = Archive.from_option(str(archive) if archive is not None else None)

    @property
    def root(self) -> Path:
        """The folder of the archive."""
        return self._archive.root

    def runs(
        self,
        *,
        plan: str = "",
        on: str = "",
        system: str = "",
        source: str = "",
        status: str = "",
        validity: str = "",
        tag: str | Sequence[str] = (),
        finding: str = "",
        since: str = "",
        until: str = "",
        last: int | None = None,
    ) -> list[Run]:
        """Runs that fulfill everything that is said, the oldest first; filters mean what they mean for `sonde list`.

        `since` and `until` are days, times (UTC) or spans like "7d". Calibrations of checks are left out. Raises
        UserError for a time that is none.
        """
        selection = _build_selection(plan, on, system, source, status, validity, tag, finding, since, until)
        # pyarrow takes a while to import: who only asks for the version does not pay
        from sonde.store.catalog import Catalog

        rows = Catalog(self.root).find(["folder", "problem"], selection, last).table.to_pylist()
        return [_to_run(read_summary(self.root / row["folder"])) for row in rows if not row["problem"]]

    def run(self, name: str = "last") -> Run:
        """One run: an id, a unique beginning of one, a folder, or "last". Raises UserError unless it is exactly one."""
        folders = self._archive.find(name)
        return _to_run(read_summary(folders[-1]))

    def query(self, sql: str, allow_files: bool = False) -> Any:
        """The answer to SQL over the tables `runs`, `phases`, `series` and `tasks`, as a pyarrow table.

        The statement reaches no other file unless `allow_files` is true. Raises UserError with the reason when it
        cannot be answered.
        """
        from sonde.store import sql as database
        from sonde.store.catalog import Catalog

        return database.ask(Catalog(self.root), Selection(), sql, allow_files).table


def _build_selection(
    plan: str,
    on: str,
    system: str,
    source: str,
    status: str,
    validity: str,
    tag: str | Sequence[str],
    finding: str,
    since: str,
    until: str,
) -> Selection:
    return Selection(
        plan=plan,
        target=on,
        system=system,
        source=source,
        status=status,
        validity=validity,
        tags=(tag,) if isinstance(tag, str) else tuple(tag),
        finding=finding,
        since_s=moment(since, "since") if since else None,
        until_s=moment(until, "until") if until else None,
    )


def _to_run(summary: Summary) -> Run:
    return Run(
        id=summary.id,
        folder=summary.folder,
        started=_parse_time(summary.started),
        status=summary.status,
        plan=summary.plan,
        target=summary.target,
        tags=tuple(read_tags(summary.folder)),
        phases=tuple(_to_phase(summary, document) for document in summary.phases),
        document=summary.document,
    )


def _to_phase(summary: Summary, document: Mapping[str, Any]) -> Phase:
    classification, text, validity = (
        document.get(name) for name in ("classification", "classification_text", "validity")
    )
    if classification is None and (summary.folder / RECORD).exists():
        # kept before the summary said what a number is about: the record still says it
        run = to_recorded_run(read_record(summary.folder / RECORD), summary.folder)
        assessment = next((assess(run, phase) for phase in run.phases if phase.id == document.get("phase")), None)
        values = assessment.as_json() if assessment else {}
        names = ("classification", "classification_text", "validity")
        classification, text, validity = (values.get(name) for name in names)
    return Phase(
        id=str(document.get("phase") or ""),
        op=str(document.get("op") or ""),
        bytes=document.get("bytes"),
        ops=document.get("ops"),
        seconds=document.get("seconds"),
        bytes_per_s=document.get("bytes_per_s"),
        ops_per_s=document.get("ops_per_s"),
        classification=classification,
        classification_text=str(text or ""),
        validity=validity,
        document=document,
    )


def _parse_time(started: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(started)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
