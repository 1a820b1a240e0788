# SPDX-License-Identifier: Apache-2.0
"""Gluster: repeated ``date +%s; gluster volume profile VOLUME info``.

Each brick has a block ``Brick: HOST:/PATH`` with "Cumulative Stats:" and then "Interval N Stats:", which has the same
values for the time since the last call. A block has rows ``%-latency Avg-latency Min-Latency Max-Latency No. of calls
Fop`` with latencies in microseconds, and lines ``Data Read: 4096 bytes``. Only the cumulative statistics are read.
"""

from __future__ import annotations

import re

from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat, split_output_at_time_lines
from sonde.telemetry.source import ColumnValues

_COLUMNS = (
    "target_read_bytes", "target_written_bytes", "target_reads", "target_writes", "target_read_s", "target_write_s",
    "metadata_operations", "metadata_s",
)  # fmt: skip
_BRICK_LINE_PATTERN = re.compile(r"^Brick: (\S.*?)\s*$", re.MULTILINE)
_CALL_LATENCY_LINE_PATTERN = re.compile(
    r"^\s*[\d.]+\s+(?P<mean>[\d.]+) us\s+[\d.]+ us\s+[\d.]+ us\s+(?P<calls>\d+)\s+(?P<name>\w+)", re.MULTILINE
)
_DATA_LINE_PATTERN = re.compile(r"^\s*Data (Read|Written): (\d+) bytes", re.MULTILINE)
# Calls that are neither data nor names.
_IGNORED_CALLS = ("FORGET", "RELEASE", "RELEASEDIR", "READ", "WRITE", "INODELK", "FINODELK", "ENTRYLK", "LK")


def is_volume_profile_output(output_text: str) -> bool:
    """Whether a text has outputs of gluster volume profile."""
    return "Cumulative Stats:" in output_text and _BRICK_LINE_PATTERN.search(output_text) is not None


def read_volume_profile_output(output_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """The counters of every brick."""
    builder = TelemetryBuilder("gluster")
    for time, output in split_output_at_time_lines(output_text, telemetry_defaults.zone):
        bricks = list(_BRICK_LINE_PATTERN.finditer(output))
        for brick, end in zip(bricks, [*(brick.start() for brick in bricks[1:]), len(output)], strict=bool(bricks)):
            block = output[brick.end() : end].partition("Cumulative Stats:")[2].partition("\nInterval ")[0]
            if not block:
                builder.unreadable_lines += 1
                continue
            builder.add_sample(
                telemetry_defaults.host, "gluster-bricks", _COLUMNS, time, brick[1], _parse_brick_values(block)
            )
    return builder.build_files()


def _parse_brick_values(brick_text: str) -> ColumnValues:
    data = {kind: float(amount) for kind, amount in _DATA_LINE_PATTERN.findall(brick_text)}
    calls = {
        name: (float(count), float(mean) * 1e-6) for mean, count, name in _CALL_LATENCY_LINE_PATTERN.findall(brick_text)
    }
    reads, read_s = calls.get("READ", (0.0, 0.0))
    writes, write_s = calls.get("WRITE", (0.0, 0.0))
    names = [entry for name, entry in calls.items() if name not in _IGNORED_CALLS]
    return (
        data.get("Read"),
        data.get("Written"),
        reads,
        writes,
        reads * read_s,
        writes * write_s,
        sum(count for count, _ in names),
        sum(count * mean for count, mean in names),
    )


PROFILE_FORMAT = TelemetryFormat(
    "gluster",
    "Gluster: gluster volume profile VOLUME info, repeated, with `date +%s` before each; first gluster volume profile"
    " VOLUME start",
    "gluster",
    "run it on a Gluster server; it is part of the package glusterfs-cli.",
    is_volume_profile_output,
    read_volume_profile_output,
)
