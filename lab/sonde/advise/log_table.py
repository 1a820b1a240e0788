# SPDX-License-Identifier: Apache-2.0
"""A folder of Parquet files with one row for each log of a fleet, so that each log is read once."""

from __future__ import annotations

import os
import queue
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as dataset

from sonde.advise.advice import advise_job, build_job_identity_document
from sonde.advise.darshan_log import read_darshan_job
from sonde.advise.job_io import DirectionIo, FileIo, JobIo
from sonde.advise.job_logs import find_darshan_logs
from sonde.advise.reader_process import IsolatedLogReader
from sonde.advise.settings import ReadySetting
from sonde.advise.storage_rates import StorageRates
from sonde.model.errors import UserError
from sonde.model.trace import SIZE_CLASSES
from sonde.store.tableformat import write_table

_ROWS_PER_FILE = 1000
_LOG_READ_TIMEOUT_S = 60.0
# Shares of calls from which a file counts as accessed in strides or at random.
_MIN_STRIDED_SHARE = _RANDOM_SHARE = 0.2
_JOB_STORAGE_NAME = "large calls of each job"

_GAIN_TYPE = pa.struct(
    [
        ("change", pa.string()),
        ("codes", pa.list_(pa.string())),
        *((name, pa.float64()) for name in ("low_s", "value_s", "high_s")),
        ("is_bound", pa.bool_()),
        ("settings", pa.list_(pa.string())),  # kinds of ready settings; of the environment the names of variables
    ]
)
_ACCESS_TYPE = pa.struct(
    [
        ("direction", pa.string()),
        ("interface", pa.string()),
        ("is_shared", pa.bool_()),
        ("order", pa.string()),
        ("size_class", pa.string()),
        *((name, pa.int64()) for name in ("files", "calls", "bytes")),
        ("seconds", pa.float64()),
    ]
)
# One row is one log at the time of its modification. Seconds of `io_s` are those of the slowest rank.
LOG_TABLE_SCHEMA = pa.schema(
    [
        ("log", pa.string()),
        ("log_bytes", pa.int64()),
        ("log_modified_ns", pa.int64()),
        ("refused", pa.string()),  # why the log cannot be read; then all members below are null
        ("storage", pa.string()),  # what the gains refer to
        *((name, pa.string()) for name in ("format", "program", "job", "user")),
        *((name, pa.float64()) for name in ("started_unix_s", "seconds", "io_s", "mean_io_s")),
        *((name, pa.int64()) for name in ("processes", "nodes", "files", "calls", "small_calls", "unaligned_calls")),
        *((name, pa.int64()) for name in ("random_calls", "read_bytes", "written_bytes")),
        ("gains", pa.list_(_GAIN_TYPE)),
        ("accesses", pa.list_(_ACCESS_TYPE)),
    ]
)


@dataclass(frozen=True)
class FleetPart:
    """Part `number` of `count`, from 1: the logs whose paths fall into it, for arrays of batch jobs."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, number_of_count: str) -> FleetPart:
        """Reads NUMBER/COUNT. Raises UserError."""
        number, _, count = number_of_count.partition("/")
        if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
            raise UserError(
                f'--part is "{number_of_count}"; write NUMBER/COUNT, such as 3/100, with a number from 1 to the count.'
            )
        return cls(int(number), int(count))

    def contains_log(self, log_path: str) -> bool:
        """Whether the log with this path, relative to the folder of logs, belongs to the part."""
        return zlib.crc32(os.fsencode(log_path)) % self.count == self.number - 1


@dataclass(frozen=True)
class ExtractedLogCounts:
    """Logs of a part: `unchanged` have a row already; `added` and `refused` were read now."""

    unchanged: int
    added: int
    refused: int

    @property
    def all_logs(self) -> int:
        """All of them."""
        return self.unchanged + self.added + self.refused


def extract_logs_to_table(
    logs_folder: Path,
    table_folder: Path,
    fleet_part: FleetPart = FleetPart(),
    storage_rates: StorageRates | None = None,
    worker_count: int | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> ExtractedLogCounts:
    """Adds a row to the table for each log of the part that has none or has changed.

    `on_progress` gets the number of logs read and to be read. After an interrupt the finished rows are in the table.
    Raises UserError when there are no logs, or when the table was made for another storage.
    """
    if not logs_folder.is_dir():
        raise UserError(f"--fleet {logs_folder} is not a folder.")
    paths = [
        path for path in find_darshan_logs(logs_folder) if fleet_part.contains_log(str(path.relative_to(logs_folder)))
    ]
    if not paths and fleet_part.count == 1:
        raise UserError(f"There is no Darshan log (*.darshan) below {logs_folder}.")
    if table_folder.exists() and not table_folder.is_dir():
        raise UserError(f"--table {table_folder} is not a folder; name one for the rows, or one that can be made.")
    storage = storage_rates.source if storage_rates else _JOB_STORAGE_NAME
    states = _read_file_states(table_folder, storage)
    waiting = [path for path in paths if states.get(str(path)) != _get_size_and_mtime(path)]
    refused = 0
    with _RowWriter(table_folder) as writer:
        for row in _read_rows_in_worker_threads(
            waiting, partial(_make_log_row, storage_rates=storage_rates), worker_count or _count_processors()
        ):
            row["storage"] = storage
            refused += row["refused"] is not None
            writer.add_row(row)
            on_progress(writer.count, len(waiting))
    return ExtractedLogCounts(len(paths) - len(waiting), writer.count - refused, refused)


def open_log_table(table_folder: Path) -> dataset.Dataset | None:
    """The rows of all parts; None when there are none. Raises UserError when a file of the folder is no such table."""
    files = sorted(str(path) for path in table_folder.glob("*.parquet")) if table_folder.is_dir() else []
    if not files:
        return None
    try:
        return dataset.dataset(files, schema=LOG_TABLE_SCHEMA, format="parquet")
    except (pa.ArrowInvalid, OSError) as reason:
        raise _make_unreadable_table_error(table_folder, reason) from None


def _make_unreadable_table_error(table_folder: Path, error: Exception) -> UserError:
    return UserError(f"{table_folder} is not a table of logs: {str(error).splitlines()[0]}")


def _read_file_states(table_folder: Path, storage_name: str) -> dict[str, tuple[int, int]]:
    rows = open_log_table(table_folder)
    if rows is None:
        return {}
    try:
        columns = rows.to_table(["log", "log_bytes", "log_modified_ns", "storage"]).to_pylist()
    except (pa.ArrowInvalid, OSError) as reason:
        raise _make_unreadable_table_error(table_folder, reason) from None
    others = {str(row["storage"]) for row in columns} - {storage_name}
    if others:
        raise UserError(
            f"The gains in {table_folder} refer to {min(others)}, not to {storage_name};"
            " name another folder with --table."
        )
    return {row["log"]: (row["log_bytes"], row["log_modified_ns"]) for row in columns}


def _get_size_and_mtime(log_path: Path) -> tuple[int, int] | None:
    """Size and time of modification; None if the file no longer exists."""
    try:
        status = log_path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _count_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_rows_in_worker_threads(
    paths: list[Path], make_row: Callable[[Path], dict[str, Any]], worker_count: int
) -> Iterator[dict[str, Any]]:
    """The rows in the order in which they are finished. Each worker starts one process, which reads its logs."""
    with ExitStack() as stack:
        idle: queue.SimpleQueue[IsolatedLogReader] = queue.SimpleQueue()
        for _ in range(min(worker_count, len(paths))):
            idle.put(stack.enter_context(IsolatedLogReader(_LOG_READ_TIMEOUT_S)))
        pool = stack.enter_context(ThreadPoolExecutor(worker_count))
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        remaining, running = iter(paths), set[Future[dict[str, Any]]]()
        for path in remaining:
            running.add(pool.submit(_read_row_in_reader_process, idle, make_row, path))
            if len(running) >= 4 * worker_count:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        yield from (future.result() for future in wait(running).done)


def _read_row_in_reader_process(
    idle_readers: queue.SimpleQueue[IsolatedLogReader], make_row: Callable[[Path], dict[str, Any]], log_path: Path
) -> dict[str, Any]:
    process = idle_readers.get()
    state = _get_size_and_mtime(log_path)
    try:
        row = process.read_in_process(make_row, log_path)
    except UserError as reason:
        row = dict.fromkeys(LOG_TABLE_SCHEMA.names) | {"refused": str(reason)}
    finally:
        idle_readers.put(process)
    size, modified_ns = state or (None, None)
    return row | {"log": str(log_path), "log_bytes": size, "log_modified_ns": modified_ns}


class _RowWriter:
    """Writes rows to new files of the table, a thousand to a file, and the rest at the end, also after an interrupt."""

    def __init__(self, table_folder: Path) -> None:
        self._table = table_folder
        self._rows: list[Mapping[str, Any]] = []
        self.count = 0

    def add_row(self, row: Mapping[str, Any]) -> None:
        self._rows.append(row)
        self.count += 1
        if len(self._rows) >= _ROWS_PER_FILE:
            self._write_block()

    def _write_block(self) -> None:
        if self._rows:
            write_table(pa.Table.from_pylist(self._rows, LOG_TABLE_SCHEMA), self._table / f"logs-{uuid4().hex}.parquet")
            self._rows = []

    def __enter__(self) -> _RowWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._write_block()


def _make_log_row(log_path: Path, storage_rates: StorageRates | None) -> dict[str, Any]:
    """Reads a log and its advice. Runs in a reader process."""
    job = read_darshan_job(log_path)
    moves = (job.read, job.write)
    return {
        "refused": None,
        **build_job_identity_document(job),
        "io_s": job.io_seconds,
        "mean_io_s": job.mean_io_seconds,
        "nodes": len(job.hosts) or None,
        "files": job.file_count,
        "calls": sum(move.calls for move in moves),
        "small_calls": sum(move.small_calls for move in moves),
        "unaligned_calls": job.unaligned,
        "random_calls": sum(max(0, move.random_calls) for move in moves),
        "read_bytes": job.read.bytes,
        "written_bytes": job.write.bytes,
        "gains": [
            {
                "change": item.effect.value,
                "codes": sorted(pattern.code for pattern in item.patterns),
                "low_s": item.gain.low,
                "value_s": item.gain.value,
                "high_s": item.gain.high,
                "is_bound": item.gain.is_bound,
                "settings": sorted({_label_setting(setting) for setting in item.settings}),
            }
            for item in advise_job(job, storage_rates).advice
        ],
        "accesses": _count_accesses(job),
    }


def _label_setting(setting: ReadySetting) -> str:
    return setting.text.partition("=")[0] if setting.kind == "environment" else setting.kind


def _count_accesses(job: JobIo) -> list[dict[str, Any]]:
    """The files of a job, counted by how they are accessed."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for file in job.files:
        for direction, move in (("read", file.read), ("write", file.write)):
            if move.calls:
                key = _classify_access(file, direction, move)
                names = ("direction", "interface", "is_shared", "order", "size_class")
                zero = {"files": 0, "calls": 0, "bytes": 0, "seconds": 0.0}
                group = groups.setdefault(key, dict(zip(names, key, strict=True)) | zero)
                group["files"] += 1
                group["calls"] += move.calls
                group["bytes"] += move.bytes
                group["seconds"] += move.seconds
    return list(groups.values())


def _classify_access(file: FileIo, direction_name: str, direction_io: DirectionIo) -> tuple[Any, ...]:
    """The first call after each open follows no other, so it counts neither as strided nor as random."""
    followers = max(1, direction_io.calls - file.opens)
    if (direction_io.random_calls - file.opens) / followers > _RANDOM_SHARE:
        order = "random"
    else:
        strided = direction_io.sequential - direction_io.consecutive - file.opens
        order = "strided" if strided / followers > _MIN_STRIDED_SHARE else "consecutive"
    size_class = (
        SIZE_CLASSES[max(range(len(direction_io.sizes)), key=direction_io.sizes.__getitem__)]
        if any(direction_io.sizes)
        else "unknown"
    )
    return direction_name, "MPI-IO" if file.is_mpi_io else "POSIX", file.has_several_ranks, order, size_class
