# SPDX-License-Identifier: Apache-2.0
"""Reads a file while another process appends to it."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from sonde.model.confined_files import open_file

_READ_BLOCK_BYTES = 1 << 20  # bytes


class GrowingFile:
    """Returns what was appended to a file since the last call. The file need not exist yet. Methods raise OSError when
    a link or a pipe has its name."""

    def __init__(self, file_path: Path) -> None:
        self._path = file_path
        self._file: BinaryIO | None = None

    def read_appended_bytes(self) -> bytes:
        """The bytes appended since the last call."""
        if self._file is None:
            try:
                self._file = open_file(self._path)
            except FileNotFoundError:
                return b""
        blocks = []
        while block := self._file.read(_READ_BLOCK_BYTES):
            blocks.append(block)
        return b"".join(blocks)

    def close(self) -> None:
        """Closes the file; the next read() starts at its beginning."""
        if self._file is not None:
            self._file.close()
            self._file = None
