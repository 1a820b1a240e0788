# SPDX-License-Identifier: Apache-2.0
"""The single calls of a job, task by task in their order, from any log that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class CallKind(IntEnum):
    """Kinds of calls, numbered as in a list of operations (`docs/reference/operations.md`)."""

    READ = 0
    WRITE = 1
    OPEN = 2
    FSYNC = 3
    CLOSE = 4
    STAT = 5
    REMOVE = 6


CALL_DTYPE = np.dtype(
    [("begin", "<f8"), ("seconds", "<f8"), ("offset", "<i8"), ("length", "<i8"), ("file", "<i4"), ("kind", "u1")]
)
"""One call: begin since the start of the job and duration in seconds, and which bytes of which file."""

Calls = NDArray[Any]


@dataclass(frozen=True)
class CallLog:
    """All calls of a job. `is_exact`: the log has each call; else they were made up from counters."""

    source: str
    format: str
    program: str
    files: Sequence[str]
    tasks: Sequence[Calls]
    is_exact: bool = True
    notes: Sequence[str] = field(default_factory=tuple)  # what is not as it was, and what was assumed

    @property
    def call_count(self) -> int:
        return sum(task.size for task in self.tasks)

    def sum_calls_by_kind(self) -> dict[CallKind, KindTotals]:
        """Number, bytes and seconds of the calls of each kind, over all tasks."""
        totals: dict[CallKind, KindTotals] = {}
        for kind in CallKind:
            parts = [task[task["kind"] == kind] for task in self.tasks]
            count = sum(part.size for part in parts)
            if count:
                amount = sum(int(part["length"].sum()) for part in parts)
                totals[kind] = KindTotals(count, amount, sum(float(part["seconds"].sum()) for part in parts))
        return totals


@dataclass(frozen=True)
class KindTotals:
    """Calls of one kind."""

    calls: int
    bytes: int
    seconds: float


class CallLogBuilder:
    """Collects calls in any order; files get numbers in the order in which they appear."""

    def __init__(self, top_folder: str = "") -> None:
        self._below = top_folder.rstrip("/")
        self._numbers: dict[str, int] = {}
        self._tasks: dict[int, list[Calls]] = {}
        self.left_out_files: set[str] = set()
        self.calls = 0

    def find_file_number(self, file_path: str) -> int | None:
        """The number of a file; None when it does not lie below the folder whose calls are wanted."""
        if self._below and not file_path.startswith(self._below + "/"):
            self.left_out_files.add(file_path)
            return None
        return self._numbers.setdefault(file_path, len(self._numbers))

    def add_task_calls(self, task_number: int, calls: Calls) -> None:
        """Adds calls of a task."""
        if calls.size:
            self._tasks.setdefault(task_number, []).append(calls)
            self.calls += calls.size

    def build_file_and_call_lists(self) -> tuple[list[str], list[Calls]]:
        """Files and, of each task that has calls, these in the order of their begin."""
        tasks = []
        for _, parts in sorted(self._tasks.items()):
            calls = np.concatenate(parts)
            tasks.append(calls[np.argsort(calls["begin"], kind="stable")])
        return list(self._numbers), tasks


def find_shared_files(task_calls: Sequence[Calls]) -> list[int]:
    """Numbers of the files that several tasks use, ascending. A task is any array with a member `file`."""
    files = [np.unique(task["file"]) for task in task_calls]
    numbers, users = np.unique(np.concatenate([*files, np.empty(0, np.int64)]), return_counts=True)
    return [int(number) for number in numbers[users > 1]]


def make_blank_calls(call_count: int, kind: CallKind, file_number: int) -> Calls:
    """`call_count` calls of one kind on a file; the other members are zero."""
    calls = np.zeros(call_count, CALL_DTYPE)
    calls["kind"], calls["file"] = kind, file_number
    return calls
