# SPDX-License-Identifier: Apache-2.0
"""Lustre: the `stats` files of targets on servers and of mounts on clients.

`lustre_outputs` reads what `lctl get_param` prints.
A line is ``name  N samples [unit] min max sum sumsq``; versions differ in units (usec, usecs), in the members after the
count, and in the header (`snapshot_time`, `start_time`, `elapsed_time`). Lines without samples are absent. Formats of
1.8, 2.5, 2.10, 2.12 and 2.15 are covered by recorded samples; this code has never run on a Lustre server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sonde.telemetry.source import (
    ColumnValues,
    LocalSource,
    ReadingsByPart,
    ReopenedKernelFile,
    SourceReader,
    UnavailableSourceError,
)

_STATS_LINE_PATTERN = re.compile(r"(?P<name>\S+)\s+(?P<samples>\d+) samples \[(?P<unit>\w+)\](?P<rest>[ \d]*)")
_STATS_ROOTS = ("proc/fs/lustre", "sys/kernel/debug/lustre")
# Seconds of one unit of a latency.
_SECONDS_BY_UNIT = {"usec": 1e-6, "usecs": 1e-6, "nsec": 1e-9, "nsecs": 1e-9, "msec": 1e-3, "sec": 1.0, "secs": 1.0}
# Calls that llite and md_stats count and that are neither data nor house-keeping.
METADATA_CALLS = frozenset(
    (
        *("open", "close", "mknod", "create", "link", "unlink", "symlink", "mkdir", "rmdir", "rename", "getattr"),
        *("setattr", "getxattr", "setxattr", "statfs", "readdir", "truncate", "alloc_inode", "inode_permission"),
        *("listxattr", "removexattr", "samedir_rename", "crossdir_rename", "sync"),
    )
)


@dataclass(frozen=True)
class StatsLine:
    """One line of a stats file. `total` is the sum in `unit`; None where the version prints the count only."""

    samples: int
    unit: str
    total: int | None


@dataclass(frozen=True)
class StatsFile:
    """A stats file. `time` is its snapshot time, seconds since 1970-01-01 UTC; None without one."""

    time: float | None
    lines: Mapping[str, StatsLine]

    def get_sample_count(self, line_name: str) -> float:
        line = self.lines.get(line_name)
        return float(line.samples) if line else 0.0

    def get_sum(self, line_name: str) -> float:
        """The sum of the values of a line; 0 without the line, for lines without samples are absent."""
        line = self.lines.get(line_name)
        return float(line.total or 0) if line else 0.0

    def get_latency_sum_s(self, line_name: str) -> float | None:
        """The sum of the latencies of a line; None where this version counts no latencies."""
        line = self.lines.get(line_name)
        return (
            line.total * _SECONDS_BY_UNIT[line.unit]
            if line and line.total is not None and line.unit in _SECONDS_BY_UNIT
            else None
        )


def parse_stats_file(stats_text: str) -> StatsFile:
    """The lines of one stats file. Ignores lines of another form; of two lines of one name the first counts."""
    time: float | None = None
    lines: dict[str, StatsLine] = {}
    for line in stats_text.splitlines():
        match = _STATS_LINE_PATTERN.match(line.strip())
        if match:
            numbers = [int(number) for number in match["rest"].split()]
            entry = StatsLine(int(match["samples"]), match["unit"], numbers[2] if len(numbers) >= 3 else None)
            lines.setdefault(match["name"], entry)
        elif line.startswith("snapshot_time"):
            fields = line.replace(":", " ").split()
            try:
                time = float(fields[1])
            except (IndexError, ValueError):
                continue
    return StatsFile(time, lines)


TARGET_COLUMNS = (
    "target_read_bytes", "target_written_bytes", "target_reads", "target_writes", "target_read_s", "target_write_s",
    "metadata_operations", "metadata_s",
)  # fmt: skip
CLIENT_COLUMNS = (
    "client_read_bytes", "client_written_bytes", "client_reads", "client_writes", "client_metadata_operations",
)  # fmt: skip


def summarize_target(stats_file: StatsFile) -> ColumnValues:
    """The values of an OST or MDT in the order of TARGET_COLUMNS."""
    names = [name for name in stats_file.lines if name in METADATA_CALLS]
    latencies = [seconds for name in names if (seconds := stats_file.get_latency_sum_s(name)) is not None]
    return (
        stats_file.get_sum("read_bytes"),
        stats_file.get_sum("write_bytes"),
        stats_file.get_sample_count("read_bytes"),
        stats_file.get_sample_count("write_bytes"),
        stats_file.get_latency_sum_s("read"),
        stats_file.get_latency_sum_s("write"),
        sum(stats_file.get_sample_count(name) for name in names),
        sum(latencies) if latencies else None,
    )


def summarize_client(stats: StatsFile) -> ColumnValues:
    """The values of a mount in the order of CLIENT_COLUMNS."""
    return (
        stats.get_sum("read_bytes"),
        stats.get_sum("write_bytes"),
        stats.get_sample_count("read_bytes"),
        stats.get_sample_count("write_bytes"),
        sum(stats.get_sample_count(name) for name in stats.lines if name in METADATA_CALLS),
    )


def _find_stats_files(file_system_root: Path, path_patterns: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    for base in _STATS_ROOTS:
        for pattern in path_patterns:
            for path in sorted((file_system_root / base).glob(pattern)):
                yield path.parent.name, path


def _open_target_reader(file_system_root: Path) -> SourceReader:
    return _open_stats_reader(
        file_system_root, ("obdfilter/*/stats", "mdt/*/md_stats"), summarize_target, "on an OSS or MDS"
    )


def _open_client_reader(file_system_root: Path) -> SourceReader:
    # The name of a mount ends in the address of its superblock: fs1-ffff8881ac3e8000.
    return _open_stats_reader(
        file_system_root, ("llite/*/stats",), summarize_client, "on a Lustre client, as root from 2.12 on"
    )


def _open_stats_reader(
    file_system_root: Path,
    path_patterns: tuple[str, ...],
    make_values: Callable[[StatsFile], ColumnValues],
    location_text: str,
) -> SourceReader:
    files: dict[str, ReopenedKernelFile] = {}
    problem = ""
    for part, path in _find_stats_files(file_system_root, path_patterns):
        try:
            files.setdefault(part, ReopenedKernelFile(path))
        except OSError as error:
            problem = f" ({path}: {error.strerror})"
    if not files:
        raise UnavailableSourceError(
            f"No {path_patterns[0]} below /proc/fs/lustre{problem}; sample it {location_text}."
        )

    def read_stats_files() -> ReadingsByPart:
        return {part: make_values(parse_stats_file(file.read_text())) for part, file in files.items()}

    def close_stats_files() -> None:
        for file in files.values():
            file.close()

    return SourceReader(read_stats_files, close_stats_files)


TARGETS_SOURCE = LocalSource(
    "lustre-targets", "bytes, requests and latencies of the OSTs and MDTs of this server", "server", TARGET_COLUMNS,
    _open_target_reader,
)  # fmt: skip
CLIENT_SOURCE = LocalSource(
    "lustre-client", "bytes and calls on the Lustre mounts of this client", "client", CLIENT_COLUMNS,
    _open_client_reader,
)  # fmt: skip
