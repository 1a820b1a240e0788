# SPDX-License-Identifier: Apache-2.0
"""Time per call on a storage, measured by short replays there, and an estimate of the time of a log's calls.

Each phase of a calibration issues calls of one kind and size, by as many tasks as the job has, on files of their own or
on one file for all: tasks that write to one file wait for each other. New bytes and bytes that exist already are
written in phases of their own, because only new bytes need pages and blocks. Between the measured sizes the cost is
interpolated on logarithmic scales; smaller calls cost what the smallest size costs, larger ones what the largest one
costs for each byte. No phase transfers more than the job: the first use of memory costs more than its use again, and
much data may be written back while calls run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.advise.call_log import CallKind, CallLog, Calls, find_shared_files, make_blank_calls
from sonde.advise.operation_list import build_operation_list, find_required_sizes
from sonde.model.record import RecordReader

CALL_SIZES = (512, 4096, 32768, 262144, 4194304)
_CALIBRATION_PHASE_BYTES = 32 << 20  # of all tasks
_MIN_SIZES, _MAX_CALLS, _SYNC_CALLS_PER_PHASE = 2, 1000, 4  # of each task
_NEW_FILES, _MIN_NEW_FILES = 200, 5  # of all tasks, of each task
_TRANSFER_CALL_KINDS = ("new", "again", "read")  # the same bytes: written, written again, read


@dataclass(frozen=True)
class CalibrationPhase:
    """Calls of one kind and size. `kind`: new, again, read, open, fsync; `size` is in bytes."""

    kind: str
    size: int
    is_shared: bool
    calls: CallLog

    @property
    def phase_id(self) -> str:
        """Id of the phase in the plan."""
        return f"{self.kind}-{'shared' if self.is_shared else 'own'}-{self.size}"


def make_calibration_phases(call_log: CallLog) -> list[CalibrationPhase]:
    """The phases of a calibration for the tasks and bytes of a job, in their order. All have the same files."""
    tasks = len(call_log.tasks)
    most_bytes = min(_CALIBRATION_PHASE_BYTES, sum(int(calls["length"].sum()) for calls in call_log.tasks)) // tasks
    shares = (False, True) if tasks > 1 else (False,)
    sizes = [size for index, size in enumerate(CALL_SIZES) if index < _MIN_SIZES or size <= most_bytes]
    pairs = [(size, is_shared) for is_shared in shares for size in sizes]
    first_new_file = sum(1 if is_shared else tasks for _, is_shared in pairs)
    new_files = max(_MIN_NEW_FILES, _NEW_FILES // tasks)
    names = [f"/calibration/{number}" for number in range(first_new_file + new_files * tasks)]
    phases, first_file = [], 0
    for size, is_shared in pairs:
        for kind in _TRANSFER_CALL_KINDS:
            calls = tuple(
                _make_transfer_calls(kind, (size, most_bytes // size), first_file, (task, tasks), is_shared)
                for task in range(tasks)
            )
            phases.append(CalibrationPhase(kind, size, is_shared, CallLog("calibration", "", "", names, calls)))
        first_file += 1 if is_shared else tasks
    for kind in ("create", "open"):
        calls = tuple(
            _make_open_and_close_calls(kind, first_new_file + new_files * task, new_files) for task in range(tasks)
        )
        phases.append(CalibrationPhase(kind, 0, False, CallLog("calibration", "", "", names, calls)))
    calls = tuple(_make_sync_calls(first_new_file + new_files * task) for task in range(tasks))
    phases.append(CalibrationPhase("fsync", 0, False, CallLog("calibration", "", "", names, calls)))
    return phases


def _make_transfer_calls(
    call_kind: str,
    size_and_count: tuple[int, int],
    first_file: int,
    task_and_task_count: tuple[int, int],
    is_shared: bool,
) -> Calls:
    """Consecutive calls on a file of the task, or every n-th of n tasks on one file."""
    (size, count), (task, tasks) = size_and_count, task_and_task_count
    count = max(1, min(_MAX_CALLS, count))
    file = first_file if is_shared else first_file + task
    calls = make_blank_calls(count, CallKind.READ if call_kind == "read" else CallKind.WRITE, file)
    numbers = np.arange(count, dtype=np.int64)
    calls["offset"] = (numbers * tasks + task if is_shared else numbers) * size
    calls["length"] = size
    return calls


def _make_open_and_close_calls(call_kind: str, first_file: int, file_count: int) -> Calls:
    """Opens and closes; a file that is created gets one byte, since a file that is only read is not created."""
    parts = []
    for file in range(first_file, first_file + file_count):
        parts.append(make_blank_calls(1, CallKind.OPEN, file))
        if call_kind == "create":
            write = make_blank_calls(1, CallKind.WRITE, file)
            write["length"] = 1
            parts.append(write)
        parts.append(make_blank_calls(1, CallKind.CLOSE, file))
        parts.append(make_blank_calls(1, CallKind.STAT, file))
    return np.concatenate(parts)


def _make_sync_calls(file_number: int) -> Calls:
    parts = []
    for number in range(_SYNC_CALLS_PER_PHASE):
        write = make_blank_calls(1, CallKind.WRITE, file_number)
        write["offset"], write["length"] = number << 20, 1 << 20
        parts += [write, make_blank_calls(1, CallKind.FSYNC, file_number)]
    return np.concatenate(parts)


@dataclass(frozen=True)
class CallCosts:
    """Seconds of calls on one storage. Transfers by (kind, shared): seconds at each of `sizes`; others by kind."""

    sizes: tuple[int, ...]
    transfers: Mapping[tuple[str, bool], NDArray[np.float64]]
    others: Mapping[str, float]

    def estimate_seconds(self, log: CallLog) -> float:
        """Seconds inside all calls of a log, summed over tasks, with the opens and closes that a replay adds."""
        operations = build_operation_list(log)
        exists = find_required_sizes(operations)
        shared = np.zeros(len(log.files), dtype=bool)
        shared[find_shared_files(operations.tasks)] = True
        return sum(self._sum_costs_of_task(task, exists, shared) for task in operations.tasks)

    def _sum_costs_of_task(
        self, task_calls: NDArray[Any], file_existed: NDArray[np.int64], file_is_shared: NDArray[np.bool_]
    ) -> float:
        kinds, files, lengths = task_calls["kind"], task_calls["file"], task_calls["length"].astype(np.int64)
        is_new = find_new_writes(task_calls, file_existed)
        seconds = 0.0
        for (name, is_shared), costs in self.transfers.items():
            is_kind = kinds == CallKind.READ if name == "read" else (kinds == CallKind.WRITE)
            if name != "read":
                is_kind &= is_new == (name == "new")
            seconds += float(
                self._interpolate_transfer_costs(lengths[is_kind & (file_is_shared[files] == is_shared)], costs).sum()
            )
        is_created = find_first_opens(task_calls) & (file_existed[files] < 0)
        for is_kind, name in (
            (is_created, "create"),
            ((kinds == CallKind.OPEN) & ~is_created, "open"),
            *((kinds == kind, kind.name.lower()) for kind in (CallKind.CLOSE, CallKind.STAT, CallKind.FSYNC)),
        ):
            seconds += int(is_kind.sum()) * self.others[name]
        return seconds

    def _interpolate_transfer_costs(
        self, transfer_bytes: NDArray[np.int64], costs_by_size: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        logarithms = np.log(np.array(self.sizes, dtype=np.float64))
        inside = np.exp(np.interp(np.log(np.maximum(transfer_bytes, 1)), logarithms, np.log(costs_by_size)))
        return np.asarray(inside * np.maximum(1.0, transfer_bytes / self.sizes[-1]))


def find_first_opens(task_operations: NDArray[Any]) -> NDArray[np.bool_]:
    """Marks the operations that open a file for the first time in their task."""
    opens = np.flatnonzero(task_operations["kind"] == CallKind.OPEN)
    _, first = np.unique(task_operations["file"][opens], return_index=True)
    is_first = np.zeros(task_operations.size, dtype=bool)
    is_first[opens[first]] = True
    return is_first


def find_new_writes(task_operations: NDArray[Any], file_existed: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Marks the operations that write beyond the bytes that the task wrote before, in files that the replay does not
    prepare."""
    ends = dict(enumerate(file_existed.tolist()))
    is_new = np.zeros(task_operations.size, dtype=bool)
    for index in np.flatnonzero(task_operations["kind"] == CallKind.WRITE).tolist():
        file, end = (
            int(task_operations["file"][index]),
            int(task_operations["offset"][index]) + int(task_operations["length"][index]),
        )
        if end > ends[file]:
            is_new[index], ends[file] = True, end
    return is_new


def read_call_costs(record: RecordReader, phases: Sequence[CalibrationPhase]) -> CallCosts:
    """The mean costs of the calls in one run of a calibration."""
    transfers: dict[tuple[str, bool], list[float]] = {}
    others: dict[str, float] = {}
    for phase in phases:
        means = {
            line.kind: (line.sum_ns or 0.0) * 1e-9 / max(1, line.count)
            for line in record.phases[phase.phase_id].histograms
        }
        if phase.kind in _TRANSFER_CALL_KINDS:
            cost = max(means["read" if phase.kind == "read" else "write"], 1e-9)
            transfers.setdefault((phase.kind, phase.is_shared), []).append(cost)
        elif phase.kind == "fsync":
            others["fsync"] = means["fsync"]
        else:
            others[phase.kind] = means["open"]
            others |= {name: means[name] for name in ("close", "stat")}
    costs = {key: np.array(values) for key, values in transfers.items()}
    for kind in _TRANSFER_CALL_KINDS:  # one task shares with nobody
        costs.setdefault((kind, True), costs[kind, False])
    sizes = tuple(sorted({phase.size for phase in phases if phase.kind in _TRANSFER_CALL_KINDS}))
    return CallCosts(sizes, costs, others)


def compute_lower_quartile_costs(calibrations: Sequence[CallCosts]) -> CallCosts:
    """The lower quartile of each cost over several calibrations: other programs only make calls slower, and a
    calibration that they disturb says little about the runs that it is compared with."""
    transfers = {
        key: np.quantile([costs.transfers[key] for costs in calibrations], 0.25, axis=0)
        for key in calibrations[0].transfers
    }
    others = {
        name: float(np.quantile([costs.others[name] for costs in calibrations], 0.25))
        for name in calibrations[0].others
    }
    return CallCosts(calibrations[0].sizes, transfers, others)


def predict_saved_fraction(call_costs: CallCosts, original_log: CallLog, changed_log: CallLog) -> float:
    """The fraction of the time in calls that a change saves."""
    return 1 - call_costs.estimate_seconds(changed_log) / call_costs.estimate_seconds(original_log)
