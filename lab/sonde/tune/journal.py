# SPDX-License-Identifier: Apache-2.0
"""The journal of changed settings: on storage before each change, so that a killed tuning can be undone.

``pending`` are settings that the running tuning may have changed; ``applied`` are those that an earlier one left
changed at the user's request. Both hold the values from before. There is one journal for each user and host.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, BinaryIO

from sonde.model.configuration import find_state_folder
from sonde.model.confined_files import ConfinedDirectory, open_file_to_append
from sonde.model.errors import MachineError, UserError
from sonde.model.escaping import escape_line
from sonde.tune.system_settings import ResolvedSetting, SettingError

_JOURNAL_FORMAT = "sonde-tune-journal/1"
LOCK_WAIT_S = 10.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


@dataclass(frozen=True)
class JournalEntry:
    """A setting and its values from before the change."""

    tunable: str
    setting: ResolvedSetting
    state: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        return {"tunable": self.tunable, "setting": self.setting.to_json(), "state": dict(self.state)}

    @classmethod
    def from_json(cls, entry_document: Mapping[str, Any]) -> JournalEntry:
        return cls(
            str(entry_document["tunable"]),
            ResolvedSetting.from_json(entry_document["setting"]),
            dict(entry_document["state"]),
        )


@dataclass
class ChangeJournal:
    """The journal, locked by this process. Use `open_journal`."""

    directory: ConfinedDirectory
    name: str
    pending: list[JournalEntry] = field(default_factory=list)
    applied: list[JournalEntry] = field(default_factory=list)

    def add_pending_change(self, entry: JournalEntry) -> None:
        """Stores the entry. It is on storage when this returns."""
        self.pending.append(entry)
        self._save_file()

    def mark_changes_applied(self, tunable_ids: set[str]) -> None:
        """Moves entries of these tunables to the applied ones; the first values from before stay."""
        for entry in [item for item in self.pending if item.tunable in tunable_ids]:
            self.pending.remove(entry)
            if not any(item.setting == entry.setting for item in self.applied):
                self.applied.append(entry)
        self._save_file()

    def restore_pending(self) -> list[str]:
        """Restores what the running tuning changed, the latest first. Returns what failed, one sentence each."""
        return self._restore_values(self.pending)

    def restore_all(self) -> list[str]:
        """Restores also what earlier tunings applied."""
        return [*self._restore_values(self.pending), *self._restore_values(self.applied)]

    def _restore_values(self, entries: list[JournalEntry]) -> list[str]:
        failures = []
        with block_stop_signals():
            for entry in reversed(entries[:]):
                try:
                    entry.setting.write_state(entry.state)
                except SettingError as reason:
                    failures.append(f"{entry.tunable} could not be restored: {reason}.")
                else:
                    entries.remove(entry)
            self._save_file()
        return failures

    def _save_file(self) -> None:
        """Replaces the file, on storage, or removes it when nothing is changed."""
        if not self.pending and not self.applied:
            self.directory.remove_file(self.name, missing_ok=True)
            self.directory.fsync_directory()
            return
        document = {
            "schema": _JOURNAL_FORMAT,
            "pid": os.getpid(),
            "pending": [entry.to_json() for entry in self.pending],
            "applied": [entry.to_json() for entry in self.applied],
        }
        self.directory.write_json_file(self.name, document)


@contextmanager
def block_stop_signals() -> Iterator[None]:
    """Signals that would interrupt a restore wait until it is done."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def find_journal_file() -> Path:
    """$XDG_STATE_HOME/sonde/tune-HOST.json, by default below ~/.local/state."""
    return find_state_folder() / f"tune-{socket.gethostname().replace('/', '_')}.json"


@contextmanager
def open_journal() -> Iterator[ChangeJournal]:
    """Locks and reads the journal. Raises MachineError when another tuning runs, UserError when it cannot be trusted
    or read."""
    path = find_journal_file()
    try:
        with ConfinedDirectory.open(path.parent, create_if_absent=True) as directory, _open_lock_file(path) as lock:
            directory.remove_write_permission_of_others()
            _wait_for_lock(lock, path)
            # Commands that set values inherit the lock: one that outlives a killed tuning must end before a restore.
            os.set_inheritable(lock.fileno(), True)
            yield _read_journal(directory, path)
    except OSError as reason:
        raise MachineError(f"The journal {path} cannot be used: {reason.strerror}.") from None


def _wait_for_lock(lock_file: BinaryIO, lock_path: Path) -> None:
    """Raises MachineError when another process holds the lock for longer than a command that sets a value takes."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            flock(lock_file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise MachineError(
                    f"Another `sonde tune` changes settings of this machine; wait until it ends ({lock_path})."
                ) from None
            time.sleep(0.05)
        else:
            return


def _open_lock_file(lock_path: Path) -> BinaryIO:
    return open_file_to_append(lock_path.with_suffix(".lock"), trusted_only=True)


def _read_journal(directory: ConfinedDirectory, journal_path: Path) -> ChangeJournal:
    journal = ChangeJournal(directory, journal_path.name)
    if not directory.has_entry(journal_path.name):
        return journal
    document = directory.read_json_file(journal_path.name, trusted_only=True) or {}
    try:
        if document["schema"] != _JOURNAL_FORMAT:
            raise KeyError("schema")
        journal.pending = [JournalEntry.from_json(entry) for entry in document["pending"]]
        journal.applied = [JournalEntry.from_json(entry) for entry in document["applied"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UserError(
            f"{escape_line(str(journal_path))} is no journal of `sonde tune`; restore what it holds by hand, then "
            "remove it."
        ) from None
    return journal
