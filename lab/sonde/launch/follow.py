# SPDX-License-Identifier: Apache-2.0
"""Reads a file that another process is still writing."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

_PIECE = 1 << 20


class Follower:
    """Hands out what was added to a file since the last call. The file need not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def read(self) -> bytes:
        """New bytes; empty when there are none."""
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return b""
        pieces = []
        while piece := self._file.read(_PIECE):
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Closes the file; read() would start again at its beginning."""
        if self._file is not None:
            self._file.close()
            self._file = None
