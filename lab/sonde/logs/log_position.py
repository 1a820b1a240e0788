# SPDX-License-Identifier: Apache-2.0
"""Where reading of a log ended, and the files that hold the lines since then, also after rotations.

The position is found by the inode of the file, or in copies and compressed files by the bytes before it.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from sonde.logs.log_file import OPENERS_BY_SUFFIX, READ_BUFFER_BYTES, READ_ERRORS, RotatedLog, strip_rotation_suffix
from sonde.logs.scan import make_rotation_sort_key

_GZIP_TIME_RESOLUTION_NS = (
    2_000_000_000  # a compressed file has the time of the original, in some tools to a second or two
)


@dataclass(frozen=True)
class LogPosition:
    """Behind the last line that was used. `lines` is its number; `before` are the bytes before it, as hexadecimal
    digits; `written_ns` is the time of the last change of the file that was read."""

    device: int = 0
    inode: int = 0
    offset: int = 0
    lines: int = 0
    before: str = ""
    written_ns: int = 0


@dataclass
class UnreadFile:
    """An open file with unread lines. `raw` is its RotatedLog where it is the log itself."""

    path: Path
    file: BinaryIO
    offset: int
    raw: RotatedLog | None = None

    def stat_file(self) -> os.stat_result:
        """Status of the file that is read now, which may be another one than at the begin."""
        return os.fstat(self.file.fileno())

    def get_offset(self, used_bytes: int, rest_bytes: int) -> int:
        """Where the last used line ends. `rest_bytes` were read and not used."""
        return (self.raw.next_byte if self.raw else self.offset + used_bytes) - rest_bytes


def open_unread_files(log_file: Path, log_position: LogPosition) -> tuple[list[UnreadFile], str]:
    """The files of the log that have lines behind the position, the oldest first, at their first unread byte, and a
    sentence when lines are lost. The caller closes the files.

    Raises OSError when the log cannot be opened for another reason than that it does not exist.
    """
    newest_first = _open_log_and_rotated_files(log_file)
    for index, unread in enumerate(newest_first):
        if _contains_position(unread, log_position):
            unread.offset = log_position.offset
            _close_files(newest_first[index + 1 :])
            return _sort_oldest_first_and_follow_rotation(log_file, newest_first[: index + 1]), ""
    newer = [
        unread
        for unread in newest_first
        if unread.path == log_file or unread.stat_file().st_mtime_ns > log_position.written_ns
    ]
    _close_files([unread for unread in newest_first if unread not in newer])
    problem = (
        f"{log_file} was rotated and the file that was read up to line {log_position.lines} is not next to it, so "
        "lines may be"
        " missing; `sonde event scan` reads it from another directory."
        if log_position.offset
        else ""
    )
    return _sort_oldest_first_and_follow_rotation(log_file, newer), problem


def _sort_oldest_first_and_follow_rotation(log_file: Path, newest_first: list[UnreadFile]) -> list[UnreadFile]:
    """Oldest first. Reading of a log continues in the file to which logrotate renamed it."""
    for unread in newest_first:
        unread.file.seek(unread.offset)
        if unread.path == log_file:
            unread.raw = RotatedLog(log_file, cast(io.FileIO, unread.file), unread.offset)
            unread.file = io.BufferedReader(unread.raw, READ_BUFFER_BYTES)
    return newest_first[::-1]


def _open_log_and_rotated_files(log_file: Path) -> list[UnreadFile]:
    """The log and its older files, the newest first, each once. The log is opened first, so that a rotation meanwhile
    hides none of them."""
    opened: list[UnreadFile] = []
    with contextlib.suppress(FileNotFoundError):
        opened.append(UnreadFile(log_file, log_file.open("rb", 0), 0))
    older = [
        sibling
        for sibling in log_file.parent.glob(f"{glob.escape(log_file.name)}[.-]*")
        if strip_rotation_suffix(sibling) == log_file.name and sibling.is_file()
    ]
    for sibling in sorted(older, key=make_rotation_sort_key, reverse=True):
        try:
            opener = OPENERS_BY_SUFFIX.get(sibling.suffix)
            unread = UnreadFile(sibling, opener(sibling, "rb") if opener else sibling.open("rb", 0), 0)
        except OSError:
            continue  # removed or renamed meanwhile, or of somebody else
        if any(os.path.samestat(unread.stat_file(), other.stat_file()) for other in opened):
            unread.file.close()
        else:
            opened.append(unread)
    return opened


def _contains_position(unread_file: UnreadFile, position: LogPosition) -> bool:
    status, before = unread_file.stat_file(), bytes.fromhex(position.before)
    if not position.offset:
        return (status.st_dev, status.st_ino) == (position.device, position.inode)
    if status.st_mtime_ns < position.written_ns - _GZIP_TIME_RESOLUTION_NS:
        return False  # written before the line that was read last
    try:
        unread_file.file.seek(position.offset - len(before))
        return unread_file.file.read(len(before)) == before
    except READ_ERRORS:
        return False


def _close_files(files: list[UnreadFile]) -> None:
    for unread in files:
        unread.file.close()
