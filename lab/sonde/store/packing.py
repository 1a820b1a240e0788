# SPDX-License-Identifier: Apache-2.0
"""Runs as one file to carry elsewhere, a tar or a zip, and back.

Unpacking is idempotent: a run that the archive has already stays unchanged, and a run of the same name with other
content is rejected with a sentence. Files of a pack that belong to no run are ignored.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import shutil
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from sonde.model.confined_files import ConfinedDirectory, open_atomic_replacement, open_file
from sonde.model.errors import MachineError, RecordError, UserError
from sonde.store import owner
from sonde.store.archive import RECORD, Archive
from sonde.store.packs import UNREADABLE_PACK_ERRORS, iterate_pack_members
from sonde.store.shards import locate_run_folder, open_shard_of_run
from sonde.store.summary import SUMMARY_FILE, read_summary

_MAX_PACK_COMPLAINTS = 1000
PACK_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".zip")
_SAFE_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")
_TAR_MODES = {".tar": "w", ".gz": "w:gz", ".tgz": "w:gz", ".xz": "w:xz"}
ProgressCallback = Callable[[int, int], None]


@dataclass
class UnpackResult:
    """Result of an import: added runs, number of duplicates, and problems."""

    added: list[Path] = field(default_factory=list)
    duplicates: int = 0  # runs that were there already
    complaints: list[str] = field(default_factory=list)

    def add_complaint(self, sentence: str) -> None:
        """Adds a sentence, of the first thousand: a pack may hold millions of things that are not taken."""
        if len(self.complaints) < _MAX_PACK_COMPLAINTS:
            self.complaints.append(sentence)


def is_pack_file_name(file_path: Path) -> bool:
    """Whether the name says that the file is a pack."""
    return file_path.name.lower().endswith(PACK_SUFFIXES)


def pack_runs(run_folders: Sequence[Path], pack_file: Path, on_progress: ProgressCallback) -> list[str]:
    """Writes the files of these runs into `pack_file`, which appears when it is whole. Returns a sentence for each run
    or file that could not be read or is no regular file. Raises MachineError when `pack_file` cannot be written."""
    complaints: list[str] = []
    try:
        with (
            open_atomic_replacement(pack_file, creates_directory=True) as file,
            _open_pack_writer(pack_file, file) as add,
        ):
            for done, folder in enumerate(run_folders):
                for name, content in _iterate_run_files(folder, complaints):
                    add(f"{folder.name}/{name}", content)
                on_progress(done + 1, len(run_folders))
    except OSError as reason:
        raise MachineError(f"{pack_file} cannot be written: {reason.strerror or reason}.") from None
    return complaints


def _iterate_run_files(
    run_folder: Path, complaints: list[str], complaint_end: str = "it was left out"
) -> Iterator[tuple[str, BinaryIO]]:
    """Name and content of the regular files of a run; links are not followed. `complaint_end` ends each complaint."""
    try:
        with open_shard_of_run(run_folder) as shard, shard.open_subdirectory(run_folder.name) as directory:
            for name in directory.list_names():
                if name.startswith(".") or stat.S_ISDIR(directory.stat_entry(name).st_mode):
                    continue
                try:
                    content = directory.open_file(name)
                except OSError as reason:
                    complaints.append(f"{run_folder / name} cannot be read ({reason.strerror}); {complaint_end}.")
                    continue
                with content:
                    status = os.fstat(content.fileno())
                    if status.st_nlink > 1 and status.st_uid != directory.stat_directory().st_uid:
                        complaints.append(f"{run_folder / name} is a link to a file of another user; {complaint_end}.")
                        continue
                    yield name, content
    except OSError as reason:
        complaints.append(f"{run_folder} cannot be read ({reason.strerror}); {complaint_end}.")


@contextmanager
def _open_pack_writer(pack_file: Path, output_file: BinaryIO) -> Iterator[Callable[[str, BinaryIO], None]]:
    if pack_file.name.lower().endswith(".zip"):
        with zipfile.ZipFile(output_file, "w", zipfile.ZIP_DEFLATED) as packed:
            yield functools.partial(_add_to_zip, packed)
    else:
        with tarfile.open(fileobj=output_file, mode=_TAR_MODES[pack_file.suffix.lower()]) as tape:  # type: ignore[call-overload]
            yield functools.partial(_add_to_tar, tape)


def _add_to_zip(zip_file: zipfile.ZipFile, member_name: str, run_file: BinaryIO) -> None:
    status = os.fstat(run_file.fileno())
    member = zipfile.ZipInfo(member_name, max(time.localtime(status.st_mtime)[:6], (1980, 1, 1, 0, 0, 0)))
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = (status.st_mode & 0xFFFF) << 16
    member.file_size = status.st_size
    with zip_file.open(member, "w") as target:
        shutil.copyfileobj(run_file, target, 1 << 20)


def _add_to_tar(tar_file: tarfile.TarFile, member_name: str, run_file: BinaryIO) -> None:
    member = tar_file.gettarinfo(arcname=member_name, fileobj=run_file)
    member.type, member.linkname, member.size = tarfile.REGTYPE, "", os.fstat(run_file.fileno()).st_size
    tar_file.addfile(member, run_file)


def unpack_runs(archive: Archive, pack_file: Path, on_progress: ProgressCallback) -> UnpackResult:
    """Brings the runs of a pack into the archive. Raises UserError when the file is none."""
    brought = UnpackResult()
    incoming = _IncomingRuns(archive, pack_file.name, brought)
    try:
        for number, member in enumerate(iterate_pack_members(pack_file)):
            if member.problem:
                brought.add_complaint(f"{member.name} in {pack_file} {member.problem}; it was left out.")
            else:
                incoming.store_member(member.name, member.content)
            on_progress(number + 1, number + 1)
    except UNREADABLE_PACK_ERRORS as reason:
        incoming.discard_current_run()
        if not brought.added and not brought.duplicates:
            raise UserError(f"{pack_file} is no pack of runs that can be read: {reason}.") from None
        brought.add_complaint(f"{pack_file} breaks off or is damaged ({reason}); the runs before that were taken.")
    else:
        incoming.finish_run()
    return brought


def copy_runs(
    target_archive: Archive, run_folders: Iterable[Path], source_description: str, on_progress: ProgressCallback
) -> UnpackResult:
    """Copies runs from folders outside the archive into `target_archive`."""
    brought = UnpackResult()
    incoming = _IncomingRuns(target_archive, source_description, brought)
    chosen = list(run_folders)
    for done, folder in enumerate(chosen):
        complaints: list[str] = []
        try:
            for name, content in _iterate_run_files(folder, complaints, "the run was skipped"):
                incoming.store_member(f"{folder.name}/{name}", content)
        except OSError as reason:
            complaints.append(f"{folder} cannot be copied ({reason.strerror}); the run was skipped.")
        if complaints:  # a run comes whole or not at all
            incoming.discard_current_run()
            brought.add_complaint(complaints[0])
        else:
            incoming.finish_run()
        on_progress(done + 1, len(chosen))
    return brought


class _IncomingRuns:
    """Gathers the files of one run after the other and makes each run visible when it is whole."""

    def __init__(self, archive: Archive, pack_origin: str, unpack_result: UnpackResult) -> None:
        self._archive = archive
        self._where = pack_origin
        self._brought = unpack_result
        self._run = ""
        self._directory: ConfinedDirectory | None = None

    def store_member(self, member_name: str, member_file: IO[bytes]) -> None:
        """Takes one file; names that are not `run/file` are none of ours."""
        parts = [part for part in PurePosixPath(member_name).parts if part != "."]
        if len(parts) != 2 or not all(_SAFE_NAME_PATTERN.fullmatch(part) for part in parts):
            return
        if parts[0] != self._run:
            self.finish_run()
            self._begin_run(parts[0])
        assert self._directory is not None
        if parts[1] != owner.OWNER_FILE:
            self._directory.remove_file(parts[1], missing_ok=True)
            with self._directory.create_file(parts[1]) as file:
                shutil.copyfileobj(member_file, file, 1 << 20)

    def _begin_run(self, run_id: str) -> None:
        self._run = run_id
        try:
            with ConfinedDirectory.open(self._archive.root, create_if_absent=True) as root:
                self._directory = root.create_directory(f".incoming-{run_id}~{secrets.token_hex(3)}")
            owner.record_writers_of_directory(self._directory, [os.getpid()])
        except OSError as reason:
            raise MachineError(
                f"The archive {self._archive.root} cannot be written: {reason.strerror}; name another with --archive."
            ) from None

    def finish_run(self) -> None:
        """The run has all its files."""
        directory, run = self._directory, self._run
        if directory is None:
            return
        folder = directory.path
        try:
            summary = read_summary(folder)
            if summary.id != run:
                raise RecordError(f"says that it is {summary.id}")
        except RecordError as reason:
            self._brought.add_complaint(f"{run} in {self._where} {reason}; it was skipped.")
            self.discard_current_run()
            return
        there = locate_run_folder(self._archive.root, run)
        if there.exists():
            if _hash_measurement(there) == _hash_measurement(folder):
                self._brought.duplicates += 1
            else:
                self._brought.add_complaint(
                    f"The archive has another run of the name {run} as {self._where}; the one in the archive stays."
                )
            self.discard_current_run()
            return
        for name in directory.list_names():
            directory.fsync_file(name)
        directory.remove_file(owner.OWNER_FILE)
        directory.fsync_directory()
        self._brought.added.append(self._archive.publish_run(folder, run))
        self._close_run()

    def discard_current_run(self) -> None:
        """Discards the partial run."""
        if self._directory is not None:
            with suppress(OSError), ConfinedDirectory.open(self._archive.root) as root:
                root.remove_tree(self._directory.path.name, files_removed_last=(owner.OWNER_FILE,))
        self._close_run()

    def _close_run(self) -> None:
        if self._directory is not None:
            self._directory.close()
        self._run, self._directory = "", None


def _hash_measurement(run_folder: Path) -> bytes:
    """Hash of a run's record, or of its summary without a record. Tags and reports do not count."""
    file = run_folder / RECORD if (run_folder / RECORD).is_file() else run_folder / SUMMARY_FILE
    digest = hashlib.sha256()
    with open_file(file) as content:
        while piece := content.read(1 << 20):
            digest.update(piece)
    return digest.digest()
