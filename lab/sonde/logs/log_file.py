# SPDX-License-Identifier: Apache-2.0
"""Opens logs for reading: compressed ones, and ones that logrotate renames or truncates while they are read."""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)
OPENERS_BY_SUFFIX: dict[str, Callable[[Path, str], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_ROTATION_SUFFIX_PATTERN = re.compile(r"([.-]\d{1,10})?(\.(gz|xz|bz2))?$")
READ_BUFFER_BYTES = 1 << 16
_TAIL_BYTES = 4096
_COMPARED_BYTES = 64


def open_log_files(log_files: Sequence[Path]) -> list[BinaryIO | OSError]:
    """Opens the files of one log, the oldest first, before any of them is read, so that a rotation moves none away.

    Plain logs are read over rotations if they are the last; the others are complete. gzip, xz and bzip2 are
    decompressed.
    """
    opened: list[BinaryIO | OSError] = []
    for path in log_files:
        try:
            opened.append(_open_log(path, path == log_files[-1] and not has_rotation_suffix(path)))
        except OSError as error:
            opened.append(error)
    return opened


def has_rotation_suffix(log_file: Path) -> bool:
    """Whether a file is an older part of a log, like messages.2.gz or messages-20260301."""
    return strip_rotation_suffix(log_file) != log_file.name


def strip_rotation_suffix(log_file: Path) -> str:
    """The name of the log that a file is a part of."""
    return _ROTATION_SUFFIX_PATTERN.sub("", log_file.name)


def _open_log(log_file: Path, is_newest: bool) -> BinaryIO:
    if opener := OPENERS_BY_SUFFIX.get(log_file.suffix):
        return cast(BinaryIO, opener(log_file, "rb"))
    return io.BufferedReader(RotatedLog(log_file), READ_BUFFER_BYTES) if is_newest else log_file.open("rb")


class RotatedLog(io.RawIOBase):
    """A plain log. When it is rotated while it is read, reading continues where the lines went.

    After `rename` the renamed file is read to its end, then the new file of this name. After `copytruncate` the copy is
    read from the same position, then the truncated file from its begin.
    """

    def __init__(self, log_file: Path, file: io.FileIO | None = None, begin_byte: int = 0) -> None:
        """`file` is the log where it is open already; reading begins at `begin_byte`."""
        super().__init__()
        self._path = log_file
        self._file = file or log_file.open("rb", 0)
        self._position = self._file.seek(begin_byte)
        self._size = os.fstat(self._file.fileno()).st_size
        self._tail = b""  # the last bytes that were read

    @property
    def next_byte(self) -> int:
        """Where the next byte of the present file is read."""
        return self._position

    def fileno(self) -> int:
        return self._file.fileno()

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        if self._was_truncated():
            self._switch_to_file(self._find_copytruncate_copy(), self._position)
        count = self._file.readinto(buffer) or 0
        while not count and self._open_newer_file():
            count = self._file.readinto(buffer) or 0
        self._position += count
        self._tail = (self._tail + bytes(memoryview(buffer)[max(0, count - _TAIL_BYTES) : count]))[-_TAIL_BYTES:]
        return count

    def _was_truncated(self) -> bool:
        """Whether the file became shorter, or has other bytes than those that were read last."""
        size, known_bytes = os.fstat(self._file.fileno()).st_size, self._tail[-_COMPARED_BYTES:]
        if size < self._size:
            return True
        self._size = size
        start = self._position - len(known_bytes)
        return os.pread(self._file.fileno(), len(known_bytes), start) != known_bytes

    def _open_newer_file(self) -> bool:
        """At the end of a file: opens the file that has the name now. Returns whether it is another one."""
        try:
            newer = self._path.open("rb", 0)
        except FileNotFoundError:
            return False
        if os.path.samestat(os.fstat(newer.fileno()), os.fstat(self._file.fileno())):
            newer.close()
            return False
        self._switch_to_file(newer, 0)
        return True

    def _switch_to_file(self, file: io.FileIO, begin_byte: int) -> None:
        self._file.close()
        self._file, self._position, self._size, self._tail = file, file.seek(begin_byte), begin_byte, b""

    def _find_copytruncate_copy(self) -> io.FileIO:
        """Finds the copy that `copytruncate` made: a file whose name begins with the name of the log and that contains
        the bytes that were read last.

        Raises OSError when there is none.
        """
        start = self._position - len(self._tail)
        for path in sorted(self._path.parent.glob(f"{glob.escape(self._path.name)}[.-]*")):
            try:
                file = path.open("rb", 0)
            except OSError:
                continue
            if os.fstat(file.fileno()).st_size >= self._position:
                file.seek(start)
                if file.read(len(self._tail)) == self._tail:
                    return file
            file.close()
        raise OSError(0, "it was truncated while it was read, and its copy is not next to it; scan the copy too")
