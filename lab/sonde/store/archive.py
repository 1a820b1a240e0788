# SPDX-License-Identifier: Apache-2.0
"""The folder of runs.

::

    sonde-archive/
    ├── 2026-11/                         the runs of a month
    │   └── 20261121T204501Z-quick-ab12cd34/ one run: record.ndjson plan.json run.json *.parquet report.html
    ├── reports/                         reports over several runs
    ├── jobs/                            what was submitted to a scheduler
    ├── experiments/GROUP/               an experiment that was run: what was asked, and what was not run and why
    ├── .index/                          a cache of all run.json; may be deleted at any time
    ├── .incoming-20261121T210000Z-…/    a run that is being written, or was when its writer died
    ├── .importing-…/                    results of other tools that are being brought in
    └── .removed-20261121T204501Z-…/     a run that is being removed, or was when its remover died
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sonde.model.errors import MachineError, RecordError
from sonde.model.record import RecordReader, join_stages, read_record
from sonde.model.series import site_facts
from sonde.store import durable, owner, tables
from sonde.store.shards import folder_of, list_shard, place_of, stamps
from sonde.store.summary import NAME as SUMMARY
from sonde.store.summary import Summary, read_summary, summarize

VARIABLE = "SONDE_ARCHIVE"
DEFAULT = "sonde-archive"
RECORD, PLAN, REPORT = "record.ndjson", "plan.json", "report.html"
JOB = "SONDE_JOB"  # set in what `sonde submit` submits
JOB_END = "SONDE_JOB_END"  # likewise: when the job ends, seconds since 1970-01-01 UTC
_FACTS = ".facts.json"
IMPORTING = ".importing-"
_INCOMING, _REMOVED = ".incoming-", ".removed-"


def new_id(name: str) -> str:
    """An id that sorts by time: 20261121T204501Z-quick-ab12cd34.

    32 random bits: among a thousand runs that begin in one second two have the same name once in ten thousand times.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:40] or "run"
    return f"{stamp}-{plain}-{secrets.token_hex(4)}"


def _job() -> dict[str, str]:
    """The batch job that this run is part of, if it is."""
    name = os.environ.get(JOB)
    return {"job": name} if name else {}


def job_end() -> float | None:
    """When the batch job ends that this process is part of, seconds since 1970-01-01 UTC; None outside of one."""
    try:
        return float(os.environ[JOB_END])
    except (KeyError, ValueError):
        return None


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
        complete = {"id": run_id, "started": started, "site": site_facts(), **_job(), **facts}
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
        self._complete(draft, reader, exit_code, text)
        return place_of(self.root, draft.id)

    def _complete(self, draft: Draft, reader: RecordReader, exit_code: int | None, text: str) -> bool:
        """`commit`; false when somebody else found the run complete and made it visible first."""
        folder = draft.folder
        try:
            tables.write_tables(folder, draft.id, reader, draft.facts)
            messages = folder / "messages.txt"
            if messages.exists() and messages.stat().st_size == 0:
                messages.unlink()
            for path in folder.iterdir():
                durable.sync_file(path)
            durable.write_json(folder / SUMMARY, summarize(reader, draft.facts, exit_code, text))
            # From here on the run is complete: whoever finds it without an owner may make it visible.
            for name in (_FACTS, owner.NAME):
                (folder / name).unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError):  # it is visible already: then its name is made durable below
                durable.sync_folder(folder)
            return self._make_visible(folder, draft.id)
        except OSError as reason:
            raise MachineError(
                f"The run could not be added to the archive: {reason.strerror}; what there is of it is in {folder}."
            ) from None

    def publish(self, folder: Path, run_id: str) -> Path:
        """Makes a complete folder visible as a run, and durable. Raises OSError when a run of that id is there."""
        self._make_visible(folder, run_id)
        return place_of(self.root, run_id)

    def _make_visible(self, folder: Path, run_id: str) -> bool:
        """`publish`; false when somebody found the folder complete and was faster."""
        final = place_of(self.root, run_id)
        final.parent.mkdir(exist_ok=True)
        first = True
        try:
            folder.rename(final)
        except FileNotFoundError:
            if not (final / SUMMARY).is_file():
                raise
            first = False
        durable.sync_folder(final.parent)
        durable.sync_folder(self.root)
        return first

    def remove(self, folder: Path) -> None:
        """Takes a run out of the archive: it disappears at once, then its files go."""
        aside = self.root / f"{_REMOVED}{folder.name}-{secrets.token_hex(2)}"
        try:
            folder.rename(aside)
            shutil.rmtree(aside)
        except FileNotFoundError:
            return  # somebody else has removed it at the same time
        except OSError as reason:
            raise MachineError(f"The run {folder} cannot be removed: {reason.strerror}.") from None

    def discard(self, draft: Draft) -> None:
        """Forgets a run that never began (its engine wrote no record)."""
        for path in draft.folder.iterdir():
            path.unlink()
        draft.folder.rmdir()

    def recover(self) -> list[Path]:
        """Brings in runs whose writers died. What they measured is kept; their status is "lost" or as they left it.
        Returns the folders of those that this call brought in, and nobody else's."""
        recovered = []
        for folder in self.root.glob(f"{_REMOVED}*"):
            shutil.rmtree(folder, ignore_errors=True)
        for folder in self.root.glob(f"{IMPORTING}*"):
            if not owner.alive(folder):  # what it held comes again with the next import
                shutil.rmtree(folder, ignore_errors=True)
        for folder in sorted(self.root.glob(f"{_INCOMING}*")):
            try:
                if not folder.is_dir():
                    continue
                if (folder / SUMMARY).is_file() and not (folder / owner.NAME).exists():
                    if self._make_visible(folder, _id_of(folder)):
                        recovered.append(place_of(self.root, _id_of(folder)))
                elif not owner.alive(folder):
                    recovered += self._recover(self._take_over(folder))
            except (OSError, MachineError):
                continue  # somebody else recovers it, or nobody may: it stays where it is
        return recovered

    def _take_over(self, folder: Path) -> Path:
        """Of several that find the same dead run one gets it: the one whose rename succeeds. It is claimed before, too:
        under its new name it must never be seen with the dead owner, or somebody takes it over from us."""
        ours = self.root / f"{_INCOMING}{_id_of(folder)}~{secrets.token_hex(3)}"
        owner.claim(folder, [os.getpid()])
        folder.rename(ours)
        owner.claim(ours, [os.getpid()])
        return ours

    def _recover(self, folder: Path) -> list[Path]:
        run_id = _id_of(folder)
        stages = sorted(folder.glob("stage-*.ndjson"))
        if stages and not (folder / RECORD).exists():
            durable.write_text(
                folder / RECORD, join_stages([one.read_bytes() for one in stages], [0.0] * len(stages)).decode()
            )
        draft = Draft(run_id, folder, durable.read_json(folder / _FACTS) or {"id": run_id})
        if not (folder / RECORD).exists():
            self.discard(draft)
            return []
        reader = read_record(folder / RECORD)
        code = reader.end.exit_code if reader.end else None
        text = reader.end.text if reader.end else "The run was lost: its processes were killed before it ended."
        if summary := durable.read_json(folder / SUMMARY):  # its writer died between the summary and the end
            draft = replace(draft, facts=summary)
            code, text = summary.get("exit_code", code), str(summary.get("text") or text)
        return [place_of(self.root, run_id)] if self._complete(draft, reader, code, text) else []

    def under_way(self, group: str) -> list[Path]:
        """Runs of a group that processes of this machine are still writing: engines whose runner was killed."""
        found = (
            one
            for one in self.root.glob(f"{_INCOMING}*")
            if (durable.read_json(one / _FACTS) or {}).get("group") == group
        )
        return [one for one in found if owner.alive_here(one)]

    def runs(self) -> tuple[list[Summary], list[str]]:
        """All runs, oldest first, and one sentence for each folder that is not one. Reads every run.json: where there
        may be many, ask a `Catalog`."""
        found, complaints = [], []
        for folder in sorted(self.folders(), key=lambda one: one.name):
            try:
                found.append(read_summary(folder))
            except RecordError as reason:
                complaints.append(f"{folder} {reason}; it was skipped.")
        return found, complaints

    def folders(self) -> Iterator[Path]:
        """Everything that may be a run."""
        try:
            for shard in stamps(self.root):
                for name in list_shard(self.root, shard).changed_ns:
                    yield folder_of(self.root, shard) / name
        except FileNotFoundError:
            return
        except OSError as reason:
            raise MachineError(f"The archive {self.root} cannot be read: {reason.strerror}.") from None

    def find(self, name: str, calibrations: bool = False) -> list[Path]:
        """Folders of what `name` means: a path, a run, a group of runs, a unique beginning of either, or "last". The
        calibrations of a group are left out unless they are asked for."""
        as_path = Path(name).expanduser()
        if (as_path / RECORD).is_file() or (as_path / SUMMARY).is_file():
            return [as_path]
        whole = place_of(self.root, name)
        if re.fullmatch(r"[\w.-]+", name) and (whole / SUMMARY).is_file():
            return [whole]
        from sonde.store.names import find_folders

        return find_folders(self.root, name, calibrations)


def _id_of(folder: Path) -> str:
    return folder.name.removeprefix(_INCOMING).partition("~")[0]
