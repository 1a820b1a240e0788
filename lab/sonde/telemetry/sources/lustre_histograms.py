# SPDX-License-Identifier: Apache-2.0
"""Histograms of Lustre: `brw_stats` of OSTs (`obdfilter` up to 2.3, `osd-*` later) and `rpc_stats` of clients.

A histogram is a title line ``pages per bulk r/w rpcs % cum % | rpcs % cum %`` and a line for each bin, ``256: 1 2 3 |
4 5 6``: requests, percent and cumulated percent of reads, then of writes. Bins are powers of two or sizes like 4K.
"""

from __future__ import annotations

import re
from pathlib import Path

from sonde.telemetry.source import (
    ColumnValues,
    LocalSource,
    ReadingsByPart,
    SourceReader,
    UnavailableSourceError,
    limit_reading_cost,
)
from sonde.telemetry.sources.lustre_files import find_lustre_files, open_lustre_files

COLUMNS = ("histogram_reads", "histogram_writes")
STATE_COLUMNS = ("client_outstanding_reads", "client_outstanding_writes")
_HISTOGRAM_TITLE_PATTERN = re.compile(r"^(?P<title>\S.*?)\s{2,}\w+\s+%\s+cum\s+%\s*\|")
_BIN_LINE_PATTERN = re.compile(r"^(?P<bin>\w+):\s+(?P<reads>\d+)\s+\d+\s+\d+\s*\|\s*(?P<writes>\d+)\s+\d+\s+\d+\s*$")
_OUTSTANDING_LINE_PATTERN = re.compile(r"^(read|write) RPCs in flight:\s*(\d+)", re.MULTILINE)


def parse_histograms(histograms_text: str) -> ReadingsByPart:
    """The requests of each bin, in the order of COLUMNS; the part is "HISTOGRAM BIN". Histograms may be empty."""
    readings: ReadingsByPart = {}
    title = ""
    for line in histograms_text.splitlines():
        if match := _HISTOGRAM_TITLE_PATTERN.match(line):
            title = match["title"].strip()
        elif title and (match := _BIN_LINE_PATTERN.match(line)):
            readings[f"{title} {match['bin']}"] = (float(match["reads"]), float(match["writes"]))
    return readings


def parse_outstanding_requests(rpc_stats_text: str) -> ColumnValues:
    """Requests of the client under way, in the order of STATE_COLUMNS; None in files of servers."""
    counts = {kind: float(count) for kind, count in _OUTSTANDING_LINE_PATTERN.findall(rpc_stats_text)}
    return counts.get("read"), counts.get("write")


def _open_histograms_reader(
    path_patterns: tuple[str, ...], remedy_sentence: str, file_system_root: Path
) -> SourceReader:
    paths = find_lustre_files(file_system_root, path_patterns)
    if not paths:
        raise UnavailableSourceError(
            f"No {path_patterns[0]} below /proc/fs/lustre or /sys/kernel/debug/lustre; {remedy_sentence}"
        )
    files = open_lustre_files(paths, remedy_sentence)

    def read_histogram_files() -> ReadingsByPart:
        return {
            f"{part} {name}": values
            for part, file in files.items()
            for name, values in parse_histograms(file.read_text()).items()
        }

    def close_histogram_files() -> None:
        for file in files.values():
            file.close()

    return limit_reading_cost(SourceReader(read_histogram_files, close_histogram_files))


SERVER_SOURCE = LocalSource(
    "lustre-brw",
    "requests of the OSTs of this server by size, fragmentation and time (brw_stats)",
    "server",
    COLUMNS,
    lambda root: _open_histograms_reader(("osd-*/*/brw_stats", "obdfilter/*/brw_stats"), "sample it on an OSS.", root),
)
CLIENT_SOURCE = LocalSource(
    "lustre-rpc",
    "requests of this client to each OST by size and number under way (rpc_stats)",
    "client",
    COLUMNS,
    lambda root: _open_histograms_reader(
        ("osc/*/rpc_stats",), "sample it on a Lustre client, as root from 2.12 on.", root
    ),
)
