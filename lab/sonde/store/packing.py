# SPDX-License-Identifier: Apache-2.0
"""Runs as one file to carry elsewhere, a tar or a zip, and back.

Coming back is idempotent: a run that is there already stays as it is, and one of the same name with other content is
refused with a sentence. What a pack holds beside runs is not looked at.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from sonde.model.errors import MachineError, RecordError, UserError
from sonde.store import durable, owner
from sonde.store.archive import RECORD, Archive
from sonde.store.shards import place_of
from sonde.store.summary import NAME as SUMMARY
from sonde.store.summary import read_summary

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".zip")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")
_MODES = {".tar": "w", ".gz": "w:gz", ".tgz": "w:gz", ".xz": "w:xz"}
Step = Callable[[int, int], None]


@dataclass
class Brought:
    """What an import did."""

    added: list[Path] = field(default_factory=list)
    known: int = 0  # runs that were there already
    complaints: list[str] = field(default_factory=list)


def is_pack(path: Path) -> bool:
    """Whether the name says that the file is a pack."""
    return path.name.lower().endswith(SUFFIXES)


def pack(folders: Sequence[Path], out: Path, step: Step) -> list[str]:
    """Writes the files of these runs into `out`, which appears when it is whole. Returns a sentence for each run or
    file that could not be read. Raises MachineError when `out` cannot be written."""
    beside = out.with_name(f".{out.name}.{secrets.token_hex(3)}.part")
    complaints: list[str] = []
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with _writer(out, beside) as add:
            for done, folder in enumerate(folders):
                for path in _readable(folder, complaints):
                    add(path, f"{folder.name}/{path.name}")
                step(done + 1, len(folders))
        beside.replace(out)
    except OSError as reason:
        raise MachineError(f"{out} cannot be written: {reason.strerror or reason}.") from None
    finally:
        beside.unlink(missing_ok=True)
    return complaints


def _readable(folder: Path, complaints: list[str]) -> Iterator[Path]:
    """The files of a run that can be read."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError as reason:
        complaints.append(f"{folder} cannot be read ({reason.strerror}); it was left out.")
        return
    for path in paths:
        try:
            path.open("rb").close()
        except OSError as reason:
            complaints.append(f"{path} cannot be read ({reason.strerror}); it was left out.")
        else:
            yield path


@contextmanager
def _writer(out: Path, beside: Path) -> Iterator[Callable[[Path, str], object]]:
    if out.name.lower().endswith(".zip"):
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as packed:
            yield packed.write
    else:
        mode = _MODES[out.suffix.lower()]
        with tarfile.open(beside, mode) as tape:  # type: ignore[call-overload]
            yield lambda path, name: tape.add(path, name, recursive=False)


def unpack(archive: Archive, path: Path, step: Step) -> Brought:
    """Brings the runs of a pack into the archive. Raises UserError when the file is none."""
    brought = Brought()
    incoming = _Incoming(archive, path.name, brought)
    try:
        members = _of_zip(path) if zipfile.is_zipfile(path) else _of_tar(path)
        for number, (name, content) in enumerate(members):
            incoming.file(name, content)
            step(number + 1, number + 1)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError, OSError) as reason:
        incoming.forget()
        if not brought.added and not brought.known:
            raise UserError(f"{path} is no pack of runs that can be read: {reason}.") from None
        brought.complaints.append(f"{path} breaks off or is damaged ({reason}); the runs before that were taken.")
    else:
        incoming.finish()
    return brought


def _of_tar(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path, "r|*") as tape:
        for member in tape:
            content = tape.extractfile(member) if member.isreg() else None
            if content is not None:
                yield member.name, content


def _of_zip(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as packed:
        for member in packed.infolist():
            if not member.is_dir():
                with packed.open(member) as content:
                    yield member.filename, content


def copy_runs(archive: Archive, folders: Iterable[Path], where: str, step: Step) -> Brought:
    """Brings runs that lie in folders elsewhere into the archive."""
    brought = Brought()
    incoming = _Incoming(archive, where, brought)
    chosen = list(folders)
    for done, folder in enumerate(chosen):
        try:
            for path in sorted(folder.iterdir()):
                if path.is_file() and not path.name.startswith("."):
                    with path.open("rb") as content:
                        incoming.file(f"{folder.name}/{path.name}", content)
            incoming.finish()
        except OSError as reason:
            incoming.forget()
            brought.complaints.append(f"{folder} cannot be read ({reason.strerror}); it was skipped.")
        step(done + 1, len(chosen))
    return brought


class _Incoming:
    """Gathers the files of one run after the other and makes each run visible when it is whole."""

    def __init__(self, archive: Archive, where: str, brought: Brought) -> None:
        self._archive = archive
        self._where = where
        self._brought = brought
        self._run = ""
        self._folder: Path | None = None

    def file(self, name: str, content: IO[bytes]) -> None:
        """Takes one file; names that are not `run/file` are none of ours."""
        parts = [part for part in PurePosixPath(name).parts if part != "."]
        if len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
            return
        if parts[0] != self._run:
            self.finish()
            self._begin(parts[0])
        assert self._folder is not None
        if parts[1] != owner.NAME:
            with (self._folder / parts[1]).open("wb") as file:
                shutil.copyfileobj(content, file, 1 << 20)

    def _begin(self, run: str) -> None:
        self._run = run
        self._folder = self._archive.root / f".incoming-{run}~{secrets.token_hex(3)}"
        try:
            self._folder.mkdir(parents=True)
            owner.claim(self._folder, [os.getpid()])
        except OSError as reason:
            raise MachineError(
                f"The archive {self._archive.root} cannot be written: {reason.strerror}; name another with --archive."
            ) from None

    def finish(self) -> None:
        """The run has all its files."""
        folder, run = self._folder, self._run
        if folder is None:
            return
        try:
            found = read_summary(folder)
            if found.id != run:
                raise RecordError(f"says that it is {found.id}")
        except RecordError as reason:
            self._brought.complaints.append(f"{run} in {self._where} {reason}; it was skipped.")
            self.forget()
            return
        there = place_of(self._archive.root, run)
        if there.exists():
            if _digest(there) == _digest(folder):
                self._brought.known += 1
            else:
                self._brought.complaints.append(
                    f"The archive has another run of the name {run} as {self._where}; the one in the archive stays."
                )
            self.forget()
            return
        for path in folder.iterdir():
            durable.sync_file(path)
        (folder / owner.NAME).unlink()
        durable.sync_folder(folder)
        self._brought.added.append(self._archive.publish(folder, run))
        self._run, self._folder = "", None

    def forget(self) -> None:
        """What there is of the current run is not wanted."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._run, self._folder = "", None


def _digest(folder: Path) -> str:
    """What a run measured: its record, or where it has none its summary. Tags and reports may differ."""
    file = folder / RECORD if (folder / RECORD).is_file() else folder / SUMMARY
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
