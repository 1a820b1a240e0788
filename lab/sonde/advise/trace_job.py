# SPDX-License-Identifier: Apache-2.0
"""A trace of the preload library as `JobIo`. A process counts as a rank, in the order of the trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sonde.advise.job_io import DirectionIo, FileIo, FileListLimiter, JobIo
from sonde.model.shell import quote_command
from sonde.model.trace import Trace, TracedFile, TransferCounters, read_trace


def read_trace_job(trace_or_folder: Path) -> JobIo:
    """Reads the trace of one process or all traces in a folder. Raises UserError when there is none."""
    return convert_trace_to_job_io(read_trace(trace_or_folder), trace_or_folder)


def convert_trace_to_job_io(trace: Trace, trace_path: Path) -> JobIo:
    """Converts a trace that was read."""
    first = min(trace.processes, key=lambda process: float(process["started_unix_s"]))
    folder = FileListLimiter()
    files = folder.sort_files_by_time(
        {number: _convert_to_file_io(file) for number, file in enumerate(trace.files.values())}
    )
    job = JobIo(
        source=str(trace_path),
        format="Sonde trace",
        program=quote_command(first.get("command", [])),
        job_id="",
        user="",
        started_unix_s=float(first["started_unix_s"]),
        seconds=trace.duration_seconds,
        processes=len(trace.processes),
        modules=("POSIX",),
        files=files,
        folded_files=folder.count,
        hosts=tuple(sorted({str(process["host"]) for process in trace.processes if process.get("host")})),
    )
    for file in files:
        job.read.add(file.read)
        job.write.add(file.write)
        job.unaligned += file.unaligned
    # The trace sums the time of each file over processes, so every process gets the same share.
    total = sum(file.call_seconds for file in files)
    job.rank_seconds = np.full(job.processes, total / job.processes)
    job.missing = [f"{name} ends in the middle: its process was killed while it wrote." for name in trace.damaged_files]
    if job.processes > 1:
        job.missing.append("Traces are summed over processes: imbalance between processes is not known.")
    if trace.untraced_calls:
        job.missing.append(f"{trace.untraced_calls} calls of C library streams, pipes and sockets are only counted.")
    job.missing.append("The trace does not see MPI-IO: whether calls were collective is not known.")
    return job


def _convert_to_file_io(traced_file: TracedFile) -> FileIo:
    return FileIo(
        path=traced_file.path,
        is_shared=traced_file.processes > 1,
        opens=traced_file.calls.get("open", 0),
        meta_s=traced_file.meta_s,
        read=_convert_to_direction_io(traced_file.read),
        write=_convert_to_direction_io(traced_file.write),
        unaligned=traced_file.file_unaligned,
    )


def _convert_to_direction_io(counters: TransferCounters) -> DirectionIo:
    return DirectionIo(
        calls=counters.calls,
        bytes=counters.bytes,
        consecutive=counters.consecutive,
        sequential=counters.sequential,
        end_offset=max(0, counters.highest),
        seconds=counters.s,
        sizes=list(counters.sizes),
    )
