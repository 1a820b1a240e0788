# SPDX-License-Identifier: Apache-2.0
"""Advised changes as changes of the calls: what a replay after the change issues.

A change is expressed where the calls determine it: buffered calls, files that stay open, one file for all ranks or a
file for each, and the stripe count of new files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sonde.advise.advice import JobAdvice
from sonde.advise.call_log import CallKind, CallLog, Calls, find_shared_files
from sonde.advise.gains import GainEstimate
from sonde.advise.triggers import CostKind

REPLAY_BUFFER_BYTES = 4 << 20
ALL_TARGETS = -1


@dataclass(frozen=True)
class ReplayChange:
    """One change that a replay can express. `stripes` is a stripe count for new files; `predicted` is in seconds of
    the job, None where no advice of the job predicts this change."""

    name: str
    title: str
    after: CallLog
    predicted: GainEstimate | None
    stripes: int | None = None


def list_replay_changes(advice: JobAdvice, log: CallLog, has_stripes: bool) -> list[ReplayChange]:
    """The advised changes that change the calls of this log, each with the predicted gain."""
    predicted = {item.effect: item.gain for item in advice.advice}
    transfers = _sum_gains([predicted[effect] for effect in (CostKind.READS, CostKind.WRITES) if effect in predicted])
    transfers = transfers or predicted.get(CostKind.ALIGNMENT)
    changes = []
    if transfers is not None:
        after = merge_consecutive_calls(log, REPLAY_BUFFER_BYTES)
        if after.call_count < 0.9 * log.call_count:
            changes.append(
                ReplayChange("buffer", "calls that follow each other are gathered up to 4 MiB", after, transfers)
            )
        if has_stripes:
            changes.append(ReplayChange("stripes", "new files use all storage targets", log, transfers, ALL_TARGETS))
        if find_shared_files(log.tasks):
            changes.append(
                ReplayChange("file-per-rank", "each rank has its own file", split_shared_files_by_task(log), None)
            )
    metadata = predicted.get(CostKind.METADATA)
    if metadata is not None:
        after = remove_reopens(log)
        if after.call_count < log.call_count:
            changes.append(ReplayChange("keep-open", "each rank opens a file once", after, metadata))
        after = merge_files_of_all_tasks(log)
        if len(after.files) < len(log.files):
            changes.append(ReplayChange("shared-file", "one file for all ranks in place of one each", after, metadata))
    return changes


def merge_consecutive_calls(log: CallLog, buffer_bytes: int) -> CallLog:
    """Calls of a task that continue its last call of the same kind on the file become one, up to `buffer_bytes`. A
    gathered write happens at its last call, a gathered read at its first one; other calls on the file end it."""
    return replace(log, tasks=tuple(_merge_calls_of_task(calls, buffer_bytes) for calls in log.tasks))


def _merge_calls_of_task(calls: Calls, buffer_bytes: int) -> Calls:
    result = calls.copy()
    offset, length, file, kind = (calls[name].tolist() for name in ("offset", "length", "file", "kind"))
    is_removed = np.zeros(calls.size, dtype=bool)
    last: dict[int, int] = {}  # file -> index of the call that may be continued
    for index in range(calls.size):
        if kind[index] > CallKind.WRITE:
            if kind[index] != CallKind.STAT:
                last.pop(file[index], None)
            continue
        before = last.get(file[index])
        continues = (
            before is not None
            and kind[before] == kind[index]
            and offset[before] + length[before] == offset[index]
            and length[before] + length[index] <= buffer_bytes
        )
        if before is None or not continues:
            last[file[index]] = index
        elif kind[index] == CallKind.READ:
            length[before] += length[index]
            is_removed[index] = True
        else:
            offset[index], length[index] = offset[before], length[before] + length[index]
            is_removed[before] = True
            last[file[index]] = index
    result["offset"], result["length"] = offset, length
    return result[~is_removed]


def remove_reopens(log: CallLog) -> CallLog:
    """Only the first open of each file by a task remains; closes follow at the end of the task."""
    return replace(log, tasks=tuple(_drop_reopens_of_task(calls) for calls in log.tasks))


def _drop_reopens_of_task(calls: Calls) -> Calls:
    opens = np.flatnonzero(calls["kind"] == CallKind.OPEN)
    _, first = np.unique(calls["file"][opens], return_index=True)
    keep = (calls["kind"] != CallKind.OPEN) & (calls["kind"] != CallKind.CLOSE)
    keep[opens[first]] = True
    remaining: Calls = calls[keep]
    return remaining


def split_shared_files_by_task(log: CallLog) -> CallLog:
    """Every file that several tasks use becomes one for each task, from its first byte."""
    files = list(log.files)
    shared = find_shared_files(log.tasks)
    tasks = []
    for number, calls in enumerate(log.tasks):
        changed = calls.copy()
        for file in shared:
            is_file = calls["file"] == file
            if not is_file.any():
                continue
            changed["file"][is_file] = len(files)
            files.append(f"{log.files[file]}.{number}")
            moves = is_file & (calls["kind"] <= CallKind.WRITE)
            if moves.any():
                changed["offset"][moves] -= int(calls["offset"][moves].min())
        tasks.append(changed)
    return _drop_unused_files(replace(log, files=files, tasks=tuple(tasks)))


def merge_files_of_all_tasks(log: CallLog) -> CallLog:
    """The n-th file that only one task uses, of each task, becomes a part of one file for all tasks."""
    shared = set(find_shared_files(log.tasks))
    sizes = _find_file_sizes(log)
    tasks, files, parts = [], list(log.files), {}
    own_files = [[file for file in dict.fromkeys(calls["file"].tolist()) if file not in shared] for calls in log.tasks]
    for position in range(max(map(len, own_files), default=0)):
        begin, members = 0, [(task, names[position]) for task, names in enumerate(own_files) if len(names) > position]
        if len(members) < 2:
            continue
        for _, file in members:
            parts[file] = (len(files), begin)
            begin += sizes[file]
        files.append(f"joined file {position}")
    for calls in log.tasks:
        changed = calls.copy()
        for file in set(calls["file"].tolist()) & parts.keys():
            number, begin = parts[file]
            is_file = calls["file"] == file
            changed["file"][is_file] = number
            changed["offset"][is_file & (calls["kind"] <= CallKind.WRITE)] += begin
        tasks.append(changed)
    return _drop_unused_files(replace(log, files=files, tasks=tuple(tasks)))


def _find_file_sizes(log: CallLog) -> list[int]:
    sizes = np.zeros(len(log.files), dtype=np.int64)
    for calls in log.tasks:
        np.maximum.at(sizes, calls["file"], calls["offset"] + calls["length"])
    return [int(size) for size in sizes]


def _drop_unused_files(log: CallLog) -> CallLog:
    used = np.unique(np.concatenate([calls["file"] for calls in log.tasks]))
    tasks = []
    for calls in log.tasks:
        changed = calls.copy()
        changed["file"] = np.searchsorted(used, calls["file"])
        tasks.append(changed)
    return replace(log, files=[log.files[file] for file in used.tolist()], tasks=tuple(tasks))


def _sum_gains(gains: Sequence[GainEstimate]) -> GainEstimate | None:
    if not gains:
        return None
    return GainEstimate(
        sum(gain.low for gain in gains),
        sum(gain.value for gain in gains),
        sum(gain.high for gain in gains),
        any(gain.is_bound for gain in gains),
    )
