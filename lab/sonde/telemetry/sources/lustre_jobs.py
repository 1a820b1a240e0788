# SPDX-License-Identifier: Apache-2.0
"""Lustre job statistics: `job_stats` of OSTs and MDTs, bytes and operations of every batch job.

An entry is ``- job_id: ID`` and a line for each operation, ``read_bytes: { samples: 125, unit: bytes, min: 4096, max:
4096, sum: 512000 }``; newer versions add `start_time`, `sumsq` and `hist`. A server has thousands of jobs, so the text
is read with one expression for each entry and not as YAML. Jobs expire after `job_cleanup_interval`: their counters
vanish.
"""

from __future__ import annotations

import re
from pathlib import Path

from sonde.telemetry.source import LocalSource, ReadingsByPart, SourceReader, UnavailableSourceError, limit_reading_cost
from sonde.telemetry.sources.lustre import METADATA_CALLS
from sonde.telemetry.sources.lustre_files import find_lustre_files, open_lustre_files

COLUMNS = ("job_read_bytes", "job_written_bytes", "job_reads", "job_writes", "job_metadata_operations")
# Most lines are operations without samples, which are skipped. The line end in front makes the search 4 times as
# fast.
_OPERATION_LINE_PATTERN = re.compile(
    r"\n\s+(\w+):\s+\{ samples:\s*([1-9]\d*), unit:\s*\w+(?:, min:\s*\d+, max:\s*\d+, sum:\s*(\d+))?"
)
_SNAPSHOT_TIME_PATTERN = re.compile(r"snapshot_time\s*:\s*(\d+(?:\.\d+)?)")


def parse_job_stats_and_snapshot_time(job_stats_text: str) -> tuple[float | None, ReadingsByPart]:
    """The latest snapshot time, and the values of every job by its id in the order of COLUMNS.

    Entries of one id are added up. Ids may be empty, quoted, or hold any characters but line ends.
    """
    readings: ReadingsByPart = {}
    latest: float | None = None
    for entry in job_stats_text.split("- job_id:")[1:]:
        job, line_end, operations = entry.partition("\n")
        operations = line_end + operations
        job = job.strip().strip("\"'")
        if time := _SNAPSHOT_TIME_PATTERN.search(operations):
            latest = max(latest or 0.0, float(time[1]))
        read_bytes = written_bytes = reads = writes = calls = 0
        for name, samples, total in _OPERATION_LINE_PATTERN.findall(operations):
            if name == "read_bytes":
                read_bytes, reads = int(total or 0), int(samples)
            elif name == "write_bytes":
                written_bytes, writes = int(total or 0), int(samples)
            elif name in METADATA_CALLS:
                calls += int(samples)
        earlier = readings.get(job, (0.0,) * len(COLUMNS))
        values = (read_bytes, written_bytes, reads, writes, calls)
        readings[job] = tuple((old or 0.0) + new for old, new in zip(earlier, values, strict=True))
    return latest, readings


def _open_job_stats_reader(file_system_root: Path) -> SourceReader:
    patterns = ("obdfilter/*/job_stats", "mdt/*/job_stats")
    paths = find_lustre_files(file_system_root, patterns)
    if not paths:
        raise UnavailableSourceError(
            "No obdfilter/*/job_stats below /proc/fs/lustre; sample it on an OSS or MDS, with jobid_var set on clients."
        )
    files = open_lustre_files(paths, "sample it as root.")

    def read_job_stats() -> ReadingsByPart:
        return {
            f"{target} {job}": values
            for target, file in files.items()
            for job, values in parse_job_stats_and_snapshot_time(file.read_text())[1].items()
        }

    def close_job_stats() -> None:
        for file in files.values():
            file.close()

    return limit_reading_cost(SourceReader(read_job_stats, close_job_stats))


SOURCE = LocalSource(
    "lustre-jobs", "bytes and operations of every batch job on the OSTs and MDTs of this server", "server", COLUMNS,
    _open_job_stats_reader,
)  # fmt: skip
