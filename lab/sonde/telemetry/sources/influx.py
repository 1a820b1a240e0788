# SPDX-License-Identifier: Apache-2.0
"""InfluxDB line protocol, as Telegraf writes it (``outputs.file``) and ``influxd inspect export-lp`` prints it.

A line is ``measurement,tag=value,… field=1i,field=2.5 TIME`` with the time in nanoseconds since 1970. Read are the
plugins diskio, net, mem, lustre2 and the counters of TCP in netstat; other lines are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat


@dataclass(frozen=True)
class _MeasurementMapping:
    """The source that a measurement becomes, the tag that names the part, and metric -> field and its factor."""

    source: str
    tag: str
    fields: Mapping[str, tuple[str, float]]


_MEASUREMENT_MAPPINGS = {
    "diskio": _MeasurementMapping(
        "disks",
        "name",
        {
            "disk_reads": ("reads", 1),
            "disk_read_bytes": ("read_bytes", 1),
            "disk_read_s": ("read_time", 1e-3),
            "disk_writes": ("writes", 1),
            "disk_written_bytes": ("write_bytes", 1),
            "disk_write_s": ("write_time", 1e-3),
            "disk_busy_s": ("io_time", 1e-3),
            "disk_queue_s": ("weighted_io_time", 1e-3),
        },
    ),
    "net": _MeasurementMapping(
        "interfaces",
        "interface",
        {"network_received_bytes": ("bytes_recv", 1), "network_sent_bytes": ("bytes_sent", 1)},
    ),
    "mem": _MeasurementMapping(
        "memory",
        "",
        {
            "memory_available_bytes": ("available", 1),
            "memory_cached_bytes": ("cached", 1),
            "memory_dirty_bytes": ("dirty", 1),
            "memory_writeback_bytes": ("write_back", 1),
        },
    ),
    "lustre2": _MeasurementMapping(
        "lustre-targets",
        "name",
        {
            "target_read_bytes": ("read_bytes", 1),
            "target_written_bytes": ("write_bytes", 1),
            "target_reads": ("read_calls", 1),
            "target_writes": ("write_calls", 1),
        },
    ),
}
_LINE_PROTOCOL_LINE_PATTERN = re.compile(
    r"^(?P<key>(?:\\.|[^\s\\])+) (?P<fields>(?:\"(?:\\.|[^\"\\])*\"|\\.|[^\s\"\\])+) (?P<time>-?\d+)$"
)
_UNESCAPED_COMMA_PATTERN = re.compile(r"(?<!\\),")
_NUMBER_TEXT_PATTERN = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?=[iu]?$)")


def is_influx_line_protocol(output_text: str) -> bool:
    """Whether one of the first lines is a measurement that is read here, in line protocol."""
    return any(
        (match := _LINE_PROTOCOL_LINE_PATTERN.match(line)) is not None
        and _UNESCAPED_COMMA_PATTERN.split(match["key"])[0] in _MEASUREMENT_MAPPINGS
        for line in output_text.splitlines()[:200]
    )


def read_influx_line_protocol(output_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """The counters of the measurements that are read; the host is the tag of that name."""
    builder = TelemetryBuilder("influx")
    for line in output_text.splitlines():
        match = _LINE_PROTOCOL_LINE_PATTERN.match(line)
        if match is None:
            builder.unreadable_lines += bool(line.strip()) and not line.startswith("#")
            continue
        name, *pairs = _UNESCAPED_COMMA_PATTERN.split(match["key"])
        measurement = _MEASUREMENT_MAPPINGS.get(name)
        if measurement is None:
            continue
        tags = {key: value.replace("\\", "") for key, _, value in (pair.partition("=") for pair in pairs)}
        fields = dict(pair.split("=", 1) for pair in _UNESCAPED_COMMA_PATTERN.split(match["fields"]) if "=" in pair)
        values = tuple(_parse_scaled_field(fields.get(field), factor) for field, factor in measurement.fields.values())
        part = tags.get(measurement.tag, "")
        # A part of a job (tag jobid) is no target of its own.
        if all(value is None for value in values) or "jobid" in tags:
            continue
        host, columns = tags.get("host", telemetry_defaults.host), tuple(measurement.fields)
        builder.add_sample(host, measurement.source, columns, int(match["time"]) / 1e9, part, values)
    return builder.build_files()


def _parse_scaled_field(field_text: str | None, unit_factor: float) -> float | None:
    number = _NUMBER_TEXT_PATTERN.match(field_text) if field_text else None
    return float(number[0]) * unit_factor if number else None


LINE_FORMAT = TelemetryFormat(
    "influx",
    "InfluxDB line protocol: files of Telegraf (outputs.file), or influxd inspect export-lp",
    "telegraf",
    "run it on each node (package telegraf of InfluxData), or export from the server of InfluxDB.",
    is_influx_line_protocol,
    read_influx_line_protocol,
)
