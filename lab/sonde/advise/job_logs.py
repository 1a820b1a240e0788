# SPDX-License-Identifier: Apache-2.0
"""Finds out what a log is and reads it as `JobIo`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sonde.advise.darshan_log import read_darshan_job
from sonde.advise.dftracer_trace import is_dftracer_trace, read_dftracer_job
from sonde.advise.job_io import JobIo
from sonde.advise.reader_process import LOG_READ_TIMEOUT_S, IsolatedLogReader
from sonde.advise.trace_job import read_trace_job
from sonde.model.confined_files import open_file
from sonde.model.errors import UserError
from sonde.model.trace import is_trace

DARSHAN_SUFFIX = ".darshan"
_DARSHAN_MAGIC = 6567223  # after the version of the format, in the byte order of the writer


def read_job_log(log_path: Path, reader_process: IsolatedLogReader) -> JobIo:
    """Reads a Darshan log or a trace of Sonde or DFTracer. Raises UserError when it is neither, or damaged."""
    if is_darshan_log(log_path):
        return reader_process.read_in_process(read_darshan_job, log_path)
    if is_dftracer_trace(log_path):
        return read_dftracer_job(log_path)
    if log_path.exists() and is_trace(log_path):
        return read_trace_job(log_path)
    if not log_path.exists():
        raise UserError(f"There is no log {log_path}.")
    raise UserError(
        f"{log_path} is neither a Darshan log (*{DARSHAN_SUFFIX}, version 3.0 or later) nor a trace of `sonde trace` or"
        " DFTracer (*.pfw, *.pfw.gz)."
    )


def read_jobs_and_refusals(
    paths: Sequence[Path], on_log: Callable[[Path], None], timeout_s: float = LOG_READ_TIMEOUT_S
) -> tuple[list[JobIo], list[str]]:
    """Reads several logs. Returns the jobs, and the reason for each log that cannot be read.

    Calls `on_log` before each log. Raises UserError when no log can be read.
    """
    jobs, refused = [], []
    with IsolatedLogReader(timeout_s) as process:
        for path in paths:
            on_log(path)
            try:
                jobs.append(read_job_log(path, process))
            except UserError as reason:
                if len(paths) == 1:
                    raise
                refused.append(str(reason))
    if not jobs:
        raise UserError(f"None of the {len(paths)} logs can be read; the first reason: {refused[0]}")
    return jobs, refused


def is_darshan_log(file_path: Path) -> bool:
    """Whether the file begins as a Darshan log does."""
    if not file_path.is_file():
        return False
    try:
        with open_file(file_path) as stream:
            head = stream.read(16)
    except OSError as reason:
        raise UserError(f"{file_path} cannot be read: {reason.strerror}.") from None
    return any(int.from_bytes(head[8:16], order) == _DARSHAN_MAGIC for order in ("little", "big"))


def find_darshan_logs(logs_folder: Path) -> list[Path]:
    """All Darshan logs below a folder, in the order of their paths."""
    return sorted(path for path in logs_folder.rglob(f"*{DARSHAN_SUFFIX}") if path.is_file())
