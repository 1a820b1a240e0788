# SPDX-License-Identifier: Apache-2.0
"""The folder of runs.

::

    sonde-archive/
    ├── 20261121T204501Z-quick-ab12/     one run: record.ndjson plan.json run.json *.parquet report.html
    ├── reports/                         reports over several runs
    └── .incoming-20261121T210000Z-…/    a run that is being written, or was when its writer died
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sonde.model.errors import MachineError, RecordError, UserError, suggestion
from sonde.model.record import RecordReader, join_stages, read_record
from sonde.model.series import site_facts
from sonde.store import durable, owner, tables
from sonde.store.summary import NAME as SUMMARY
from sonde.store.summary import Summary, read_summary, summarize

VARIABLE = "SONDE_ARCHIVE"
DEFAULT = "sonde-archive"
RECORD, PLAN, REPORT, REPORTS = "record.ndjson", "plan.json", "report.html", "reports"
_FACTS = ".facts.json"
_INCOMING = ".incoming-"


def new_id(name: str) -> str:
    """An id that sorts by time: 20261121T204501Z-quick-ab12."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:40] or "run"
    return f"{stamp}-{plain}-{secrets.token_hex(2)}"


@dataclass(frozen=True)
class Draft:
    """A run that is being written. `commit` makes it part of the archive."""

    id: str
    folder: Path
    facts: Mapping[str, Any]

    @property
    def plan_file(self) -> Path:
        return self.folder / PLAN

    def claim(self, *pids: int) -> None:
        """Says which processes are at work, so that nobody finishes the run while they are."""
        owner.claim(self.folder, [os.getpid(), *pids])


class Archive:
    """A folder of runs. Nothing is created before the first run is."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def at(cls, option: str | None) -> Archive:
        """`option`, else $SONDE_ARCHIVE, else ./sonde-archive."""
        return cls(Path(option or os.environ.get(VARIABLE) or DEFAULT).expanduser())

    def begin(self, name: str, plan_text: str, facts: Mapping[str, Any]) -> Draft:
        """Opens a new run. `facts` go into run.json; the plan is written as the engine will read it."""
        run_id = new_id(name)
        folder = self.root / f"{_INCOMING}{run_id}"
        started = datetime.now(UTC).isoformat(timespec="seconds")
        complete = {"id": run_id, "started": started, "site": site_facts(), **facts}
        try:
            folder.mkdir(parents=True)
            durable.write_json(folder / _FACTS, complete)
            durable.write_text(folder / PLAN, plan_text)
            draft = Draft(run_id, folder, complete)
            draft.claim()
        except OSError as reason:
            raise MachineError(
                f"The archive {self.root} cannot be written: {reason.strerror}; name another with --archive DIR."
            ) from None
        return draft

    def commit(self, draft: Draft, reader: RecordReader, exit_code: int | None, text: str) -> Path:
        """Completes a run and makes it visible. Returns its folder."""
        folder = draft.folder
        try:
            tables.write_tables(folder, draft.id, reader)
            durable.write_json(folder / SUMMARY, summarize(reader, draft.facts, exit_code, text))
            for name in (owner.NAME, _FACTS):
                (folder / name).unlink(missing_ok=True)
            messages = folder / "messages.txt"
            if messages.exists() and messages.stat().st_size == 0:
                messages.unlink()
            for path in folder.iterdir():
                durable.sync_file(path)
            durable.sync_folder(folder)
            final = self.root / draft.id
            folder.rename(final)
            durable.sync_folder(self.root)
        except OSError as reason:
            raise MachineError(
                f"The run could not be added to the archive: {reason.strerror}; what there is of it is in {folder}."
            ) from None
        return final

    def discard(self, draft: Draft) -> None:
        """Forgets a run that never began (its engine wrote no record)."""
        for path in draft.folder.iterdir():
            path.unlink()
        draft.folder.rmdir()

    def recover(self) -> list[Path]:
        """Brings in runs whose writers died. What they measured is kept; their status is "lost" or as they left it."""
        recovered = []
        for folder in sorted(self.root.glob(f"{_INCOMING}*")):
            try:
                if folder.is_dir() and not owner.alive(folder):
                    recovered += self._recover(folder)
            except (OSError, MachineError):
                continue  # somebody else recovers it, or nobody may: it stays where it is
        return recovered

    def _recover(self, folder: Path) -> list[Path]:
        run_id = folder.name.removeprefix(_INCOMING)
        stages = sorted(folder.glob("stage-*.ndjson"))
        if stages and not (folder / RECORD).exists():
            durable.write_text(
                folder / RECORD, join_stages([one.read_bytes() for one in stages], [0.0] * len(stages)).decode()
            )
        facts = durable.read_json(folder / _FACTS) or {"id": run_id}
        draft = Draft(run_id, folder, facts)
        if not (folder / RECORD).exists():
            self.discard(draft)
            return []
        reader = read_record(folder / RECORD)
        code = reader.end.exit_code if reader.end else None
        text = reader.end.text if reader.end else "The run was lost: its processes were killed before it ended."
        return [self.commit(draft, reader, code, text)]

    def runs(self) -> tuple[list[Summary], list[str]]:
        """All runs, oldest first, and one sentence for each folder that is not one."""
        found, complaints = [], []
        try:
            entries = sorted(self.root.iterdir())
        except FileNotFoundError:
            return [], []
        except OSError as reason:
            raise MachineError(f"The archive {self.root} cannot be read: {reason.strerror}.") from None
        for folder in entries:
            if folder.name.startswith(".") or folder.name == REPORTS or not folder.is_dir():
                continue
            try:
                found.append(read_summary(folder))
            except RecordError as reason:
                complaints.append(f"{folder} {reason}; it was skipped.")
        return found, complaints

    def find(self, name: str) -> list[Path]:
        """Folders of what `name` means: a path, a run, a group of runs, a unique beginning of either, or "last"."""
        as_path = Path(name).expanduser()
        if (as_path / RECORD).is_file() or (as_path / SUMMARY).is_file():
            return [as_path]
        runs, _ = self.runs()
        if not runs:
            raise UserError(f"There are no runs in the archive {self.root}; `sonde check DIR` makes some.")
        if name == "last":
            last = max(runs, key=lambda run: run.id)
            return self._members(runs, last.group) if last.group else [last.folder]
        return self._named(runs, name)

    def _named(self, runs: Sequence[Summary], name: str) -> list[Path]:
        exact = [run.folder for run in runs if run.id == name]
        if exact:
            return exact
        groups = sorted({run.group for run in runs if run.group and run.group.startswith(name)})
        singles = [run for run in runs if run.id.startswith(name)]
        names = sorted({*groups, *(run.id for run in singles if run.group not in groups)})
        if len(names) == 1:
            return self._members(runs, names[0]) if groups else [singles[0].folder]
        if not names:
            near = suggestion(name, [run.id for run in runs])
            raise UserError(f'There is no run "{name}" in the archive {self.root}; `sonde list` shows them.{near}')
        shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
        raise UserError(f'"{name}" could mean {len(names)} runs ({shown}); give more of the name.')

    def _members(self, runs: Sequence[Summary], group: str) -> list[Path]:
        return [run.folder for run in runs if run.group == group and run.role != "calibration"]
