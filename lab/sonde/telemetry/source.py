# SPDX-License-Identifier: Apache-2.0
"""A source of telemetry that is sampled on the node where this process runs.

A source says which metrics it reports (its columns), opens what it reads, and returns the values of all its parts. A
source that does not exist on this machine reports the reason, and what to install or where to run it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ColumnValues = tuple[float | None, ...]  # in the order of the source's columns; None: this part does not report it
ReadingsByPart = dict[str, ColumnValues]  # part -> values

SourceLayer = Literal["node", "client", "server"]
"""Where the source exists: on every node, on clients of a parallel file system, or on its servers."""

_MAX_FILE_BYTES = 64 << 20  # job statistics of 10,000 jobs are 10 to 20 MiB


class UnavailableSourceError(Exception):
    """The source does not exist here: one sentence with the reason and the remedy."""


@dataclass
class SourceReader:
    """An opened source. `read` returns the current values of all parts and raises OSError when the source vanished."""

    read: Callable[[], ReadingsByPart]
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class LocalSource:
    """A source: its name, a description of what it counts, and its columns (names in `metrics.METRICS`).

    `open_reader` gets the root of the file system ("/" except in tests) and raises UnavailableSourceError.
    """

    name: str
    description: str
    layer: SourceLayer
    columns: tuple[str, ...]
    open_reader: Callable[[Path], SourceReader]


class ReopenedKernelFile:
    """A file of /proc or /sys that is opened once and read again for each sample: one system call."""

    def __init__(self, kernel_path: Path) -> None:
        self._file = kernel_path.open("rb", buffering=0)
        self._descriptor = self._file.fileno()

    def read_text(self) -> str:
        """The text now. Raises OSError when the kernel object behind the file is gone."""
        blocks = []
        offset = 0
        while offset < _MAX_FILE_BYTES:
            block = os.pread(self._descriptor, 1 << 16, offset)
            if not block:
                break
            blocks.append(block)
            offset += len(block)
        return b"".join(blocks).decode("ascii", "replace")

    def close(self) -> None:
        self._file.close()


def limit_reading_cost(reader: SourceReader, max_cost: float = 0.00025, allowance_s: float = 0.02) -> SourceReader:
    """The reader, called so rarely that it takes at most `max_cost` of one processor; the last values in between.

    The first reads may take `allowance_s` seconds more, so that short runs have several values.
    """
    last: ReadingsByPart = {}
    begin = time.monotonic()
    spent_s = 0.0

    def read_if_due() -> ReadingsByPart:
        nonlocal last, spent_s
        if not last or spent_s <= allowance_s + max_cost * (time.monotonic() - begin):
            start = time.thread_time()
            last = reader.read()
            spent_s += time.thread_time() - start
        return last

    return SourceReader(read_if_due, reader.close)


def open_kernel_files(
    file_system_root: Path,
    relative_paths: Sequence[str],
    parse_texts: Callable[[Mapping[str, str]], ReadingsByPart],
    remedy_sentence: str,
) -> SourceReader:
    """A reader of the existing files among `relative_paths` (relative to `file_system_root`); `parse_texts` gets their
    texts by path.

    Raises UnavailableSourceError when none exists or can be read.
    """
    files: dict[str, ReopenedKernelFile] = {}
    problem = ""
    for path in relative_paths:
        try:
            files[path] = ReopenedKernelFile(file_system_root / path)
        except OSError as error:
            problem = problem or f"/{path}: {error.strerror}"
    if not files:
        raise UnavailableSourceError(f"{problem}; {remedy_sentence}")

    def read_all_files() -> ReadingsByPart:
        return parse_texts({path: file.read_text() for path, file in files.items()})

    def close_all_files() -> None:
        for file in files.values():
            file.close()

    return SourceReader(read_all_files, close_all_files)
