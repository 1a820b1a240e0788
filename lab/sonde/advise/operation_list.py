# SPDX-License-Identifier: Apache-2.0
"""Writes calls as lists of operations for the engine (`docs/reference/operations.md`), and the plan that replays them.

A file that the job reads before it writes it must exist: another list writes such files before the replay.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.advise.call_log import CallKind, CallLog, Calls, find_shared_files
from sonde.model.confined_files import open_atomic_replacement
from sonde.model.errors import MachineError, UserError

MAGIC, LIST_VERSION = b"SONDEOPS", 1
OPERATION_DTYPE = np.dtype(
    [
        *(("think_ns", "<u8"), ("offset", "<u8"), ("length", "<u4"), ("file", "<u4")),
        *(("handle", "<u2"), ("kind", "u1"), ("flags", "u1"), ("reserved", "<u4")),
    ]
)
_LIST_HEADER_DTYPE = np.dtype(
    [
        *(("magic", "S8"), ("version", "<u4"), ("tasks", "<u4"), ("files", "<u4"), ("handles", "<u4")),
        *(("largest", "<u4"), ("reserved", "<u4"), ("operations", "<u8"), ("file_bytes", "<u8"), ("end", "<u8", (2,))),
    ]
)
READS_FLAG, WRITES_FLAG, CREATES_FLAG, TRUNCATES_FLAG = 1, 2, 4, 8
_MAX_OPERATION_BYTES = 1 << 30  # of one operation, as the engine accepts
_LONGEST_THINK_NS = 86_400 * 10**9
_MAX_HANDLES = 1 << 15
_PREPARATION_WRITE_BYTES = 4 << 20

Operations = NDArray[Any]


@dataclass(frozen=True)
class OperationList:
    """Operations of each task, and the sizes of the files that they reach."""

    tasks: tuple[Operations, ...]
    sizes: NDArray[np.int64]
    handles: int
    notes: tuple[str, ...] = ()

    @property
    def operation_count(self) -> int:
        return sum(task.size for task in self.tasks)

    @property
    def longest_operation_bytes(self) -> int:
        """Bytes of the largest read or write of all tasks; 0 without operations."""
        return max((int(task["length"].max(initial=0)) for task in self.tasks), default=0)

    def to_bytes(self) -> bytes:
        """The list as the engine reads it."""
        header = np.zeros(1, _LIST_HEADER_DTYPE)
        header["magic"], header["version"] = MAGIC, LIST_VERSION
        header["tasks"], header["files"], header["handles"] = len(self.tasks), self.sizes.size, self.handles
        header["largest"], header["operations"] = self.longest_operation_bytes, self.operation_count
        header["file_bytes"] = int(self.sizes.sum())
        counts = np.array([task.size for task in self.tasks], dtype="<u8")
        parts = [header, counts, self.sizes.astype("<u8"), *self.tasks]
        return b"".join(part.tobytes() for part in parts)

    def write_file(self, folder: Path) -> Path:
        """Writes the list into a file that is named by its content. Raises MachineError when that fails."""
        content = self.to_bytes()
        path = folder / f"{hashlib.sha256(content).hexdigest()[:16]}.operations"
        try:
            with open_atomic_replacement(path) as file:
                file.write(content)
        except OSError as reason:
            raise MachineError(f"{path} cannot be written: {reason.strerror}.") from None
        return path


@dataclass
class _HandleTable:
    """Handles of one task: a call on a file uses the handle that was opened last."""

    free: list[int] = field(default_factory=list)
    used: int = 0
    stacks: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # file -> (handle, row of its open)

    def assign_handle(self, file_number: int, operation_row: int) -> int:
        handle = heapq.heappop(self.free) if self.free else self.used
        self.used = max(self.used, handle + 1)
        self.stacks.setdefault(file_number, []).append((handle, operation_row))
        return handle

    def release_handle(self, file_number: int) -> int:
        handle, _ = self.stacks[file_number].pop()
        heapq.heappush(self.free, handle)
        return handle


class _TaskOperationWriter:
    """Turns the calls of one task into operations."""

    def __init__(self) -> None:
        self._rows: list[list[int]] = []
        self._files = _HandleTable()
        self._end_s = 0.0
        self.implied_opens = 0

    def convert_calls(self, calls: Calls) -> tuple[Operations, int]:
        """Operations, and how many handles they use."""
        for begin, seconds, offset, length, file, kind in calls.tolist():
            think_ns = min(max(0, round((begin - self._end_s) * 1e9)), _LONGEST_THINK_NS)
            if self._add_call(CallKind(kind), think_ns, offset, length, file):
                self._end_s = max(self._end_s, begin + seconds)
        for file, stack in self._files.stacks.items():
            while stack:
                self._rows.append([0, 0, 0, file, self._files.release_handle(file), CallKind.CLOSE, 0, 0])
        return np.array([tuple(row) for row in self._rows], OPERATION_DTYPE), max(1, self._files.used)

    def _add_call(self, kind: CallKind, think_ns: int, file_offset: int, transfer_bytes: int, file_number: int) -> bool:
        """Adds one call. False when it has no effect: a close of a file that is not open."""
        stack = self._files.stacks.get(file_number)
        if kind is CallKind.OPEN:
            self._add_open(think_ns, file_number)
        elif kind is CallKind.CLOSE:
            if not stack:
                return False
            self._rows.append([think_ns, 0, 0, file_number, self._files.release_handle(file_number), kind, 0, 0])
        elif kind in (CallKind.STAT, CallKind.REMOVE):
            self._rows.append([think_ns, 0, 0, file_number, 0, kind, 0, 0])
        else:
            if not stack:
                self._add_open(think_ns, file_number)
                self.implied_opens += 1
                think_ns = 0
            self._add_transfer(kind, think_ns, file_offset, transfer_bytes, file_number)
        return True

    def _add_open(self, think_ns: int, file_number: int) -> None:
        handle = self._files.assign_handle(file_number, len(self._rows))
        self._rows.append([think_ns, 0, 0, file_number, handle, CallKind.OPEN, 0, 0])

    def _add_transfer(
        self, kind: CallKind, think_ns: int, file_offset: int, transfer_bytes: int, file_number: int
    ) -> None:
        handle, row = self._files.stacks[file_number][-1]
        # A trace does not say how a file was opened: as its calls need it.
        self._rows[row][6] |= READS_FLAG if kind is CallKind.READ else WRITES_FLAG | CREATES_FLAG
        done = 0
        while True:  # once, unless the call is longer than the engine's longest
            part = min(_MAX_OPERATION_BYTES, transfer_bytes - done)
            self._rows.append([think_ns, file_offset + done, part, file_number, handle, kind, 0, 0])
            done, think_ns = done + part, 0
            if done >= transfer_bytes:
                return


def build_operation_list(log: CallLog) -> OperationList:
    """The operations of a job. Raises UserError when a task has too many files open."""
    sizes = np.zeros(len(log.files), dtype=np.int64)
    tasks, handles, implied = [], 1, 0
    for calls in log.tasks:
        writer = _TaskOperationWriter()
        operations, used = writer.convert_calls(calls)
        opens = operations["kind"] == CallKind.OPEN
        operations["flags"][opens & (operations["flags"] == 0)] = READS_FLAG
        tasks.append(operations)
        handles, implied = max(handles, used), implied + writer.implied_opens
        np.maximum.at(sizes, operations["file"], (operations["offset"] + operations["length"]).astype(np.int64))
    if handles > _MAX_HANDLES:
        raise UserError(f"A task of {log.source} has {handles:,} files open at once, more than {_MAX_HANDLES:,}.")
    notes = (
        (f"{implied} opens were added before calls on files that the log does not show as open.",) if implied else ()
    )
    return OperationList(tuple(tasks), sizes, handles, notes)


def find_required_sizes(operations: OperationList) -> NDArray[np.int64]:
    """Bytes of each file that must exist before the replay: -1 if the file need not exist, 0 for an empty file."""
    required = np.full(operations.sizes.size, -1, dtype=np.int64)
    written = np.zeros(operations.sizes.size, dtype=np.int64)
    shared = set(find_shared_files(operations.tasks))
    for task in operations.tasks:
        created_files: set[int] = set()
        for _, offset, length, file, _, kind, flags, _ in task.tolist():
            if kind == CallKind.OPEN and flags & CREATES_FLAG and file not in shared:
                created_files.add(file)
            elif kind == CallKind.WRITE:
                written[file] = max(written[file], offset + length)
            elif kind == CallKind.READ and (file in shared or offset + length > written[file]):
                required[file] = max(required[file], offset + length)
            elif kind in (CallKind.OPEN, CallKind.STAT) and file not in created_files:
                required[file] = max(required[file], 0)
    return required


def find_bytes_read_before_written(log: CallLog, file_numbers: Sequence[int]) -> dict[int, int]:
    """How much of each file the job reads before any of its tasks has written it, by the time of the calls."""
    calls = np.concatenate(log.tasks)
    calls = calls[np.isin(calls["file"], file_numbers) & (calls["kind"] <= CallKind.WRITE)]
    written: dict[int, int] = {}
    unwritten: dict[int, int] = {}
    for _, _, offset, length, file, kind in calls[np.argsort(calls["begin"], kind="stable")].tolist():
        if kind == CallKind.WRITE:
            written[file] = max(written.get(file, 0), offset + length)
        elif offset + length > written.get(file, 0):
            unwritten[file] = max(unwritten.get(file, 0), offset + length)
    return unwritten


def build_preparation_operations(operations: OperationList, log: CallLog | None = None) -> OperationList | None:
    """Writes the files that must exist before the replay, distributed over the tasks; None when there are none.

    With `log`, what the tasks of a shared file write before they read it stays a hole, so that the replay allocates it
    as the job did. Such a file only gets its size: tasks do not wait for one another, and a read may come early.
    """
    required = find_required_sizes(operations)
    files = np.flatnonzero(required >= 0)
    if not files.size:
        return None
    contents = required.copy()
    if log is not None:
        shared = find_shared_files(operations.tasks)
        unwritten = find_bytes_read_before_written(log, shared)
        for file in shared:
            contents[file] = min(unwritten.get(file, 0), required[file])
    count = len(operations.tasks)
    rows: list[list[tuple[int, ...]]] = [[] for _ in range(count)]
    for index, file in enumerate(files.tolist()):
        task_rows = rows[index % count]
        task_rows.append((0, 0, 0, file, 0, CallKind.OPEN, WRITES_FLAG | CREATES_FLAG, 0))
        size = int(contents[file])
        for offset in range(0, size, _PREPARATION_WRITE_BYTES):
            task_rows.append((0, offset, min(_PREPARATION_WRITE_BYTES, size - offset), file, 0, CallKind.WRITE, 0, 0))
        if required[file] > size:
            task_rows.append((0, int(required[file]) - 1, 1, file, 0, CallKind.WRITE, 0, 0))
        task_rows.append((0, 0, 0, file, 0, CallKind.FSYNC, 0, 0))
        task_rows.append((0, 0, 0, file, 0, CallKind.CLOSE, 0, 0))
    tasks = tuple(np.array(task, OPERATION_DTYPE) for task in rows)
    return OperationList(tasks, operations.sizes, 1)
