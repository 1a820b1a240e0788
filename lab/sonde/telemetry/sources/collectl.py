# SPDX-License-Identifier: Apache-2.0
"""collectl: its plot format, ``collectl -P -scdmnD -i1`` or ``collectl -P -p FILE.raw.gz``.

A line ``#Date Time [CPU]User% … [DSK:sda]RKBytes`` names the columns, lines below have a date and a time of the zone
of the node, and rates over the interval before it. Tested against collectl 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat, parse_local_time

_KIB = 1024
_HEADER_LINE_PATTERN = re.compile(r"^#Date Time (?=\[)", re.MULTILINE)
_HOST_LINE_PATTERN = re.compile(r"^# Host:\s+(\S+)", re.MULTILINE)
_DISK_COLUMN_TITLE_PATTERN = re.compile(r"\[DSK:([^\]]+)\]")
# Source, part, and for each metric the columns that are added up, and the factor to its unit.
_Columns = Mapping[str, tuple[tuple[str, ...], float]]
_DISK_COLUMNS: _Columns = {
    "disk_read_rate": (("RKBytes",), _KIB),
    "disk_write_rate": (("WKBytes",), _KIB),
    "disk_busy_fraction": (("Util",), 0.01),
    "disk_queue": (("QueLen",), 1.0),
}
_ALL_DISKS_COLUMNS: _Columns = {
    "disk_read_rate": (("[DSK]ReadKBTot",), _KIB),
    "disk_write_rate": (("[DSK]WriteKBTot",), _KIB),
}
_INTERFACE_COLUMNS: _Columns = {
    "network_receive_rate": (("[NET]RxKBTot",), _KIB),
    "network_send_rate": (("[NET]TxKBTot",), _KIB),
}
_PROCESSOR_COLUMNS: _Columns = {
    "cpu_busy_fraction": (("[CPU]User%", "[CPU]Nice%", "[CPU]Sys%", "[CPU]Irq%", "[CPU]Soft%"), 0.01),
    "cpu_iowait_fraction": (("[CPU]Wait%",), 0.01),
}
_MEMORY_COLUMNS: _Columns = {
    "memory_cached_bytes": (("[MEM]Cached",), _KIB),
    "memory_dirty_bytes": (("[MEM]Dirty",), _KIB),
}
_COLUMNS_OF_NODE = {
    "all-disks": _ALL_DISKS_COLUMNS,
    "all-interfaces": _INTERFACE_COLUMNS,
    "processors": _PROCESSOR_COLUMNS,
    "memory": _MEMORY_COLUMNS,
}


def is_collectl_output(output_text: str) -> bool:
    """Whether a text is collectl's plot format."""
    return _HEADER_LINE_PATTERN.search(output_text) is not None


def read_collectl_output(output_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """Rates of disks and interfaces, processor shares and memory; the header may come again with other columns."""
    builder = TelemetryBuilder("collectl")
    host_line = _HOST_LINE_PATTERN.search(output_text)
    host = host_line[1] if host_line else telemetry_defaults.host
    titles: list[str] = []
    for line in output_text.splitlines():
        if line.startswith("#Date Time "):
            titles = line.removeprefix("#").split()
        elif titles and line[:1].isdigit():
            row, time = _parse_row(titles, line.split(), telemetry_defaults)
            if time is None:
                builder.unreadable_lines += 1
                continue
            _add_row(builder, host, time, row)
    return builder.build_files()


def _parse_row(
    column_titles: list[str], row_fields: list[str], telemetry_defaults: TelemetryDefaults
) -> tuple[dict[str, float], float | None]:
    """The numbers of a row by title, and its time; no time when the row does not fit its header."""
    if len(row_fields) != len(column_titles):
        return {}, None
    row = {}
    try:
        for title, value in zip(column_titles[2:], row_fields[2:], strict=True):
            if not title.endswith("Name"):  # the only columns of text
                row[title] = float(value)
        date = (
            f"{row_fields[0][:4]}-{row_fields[0][4:6]}-{row_fields[0][6:8]}"
            if row_fields[0].isdigit()
            else row_fields[0]
        )
        return row, parse_local_time(f"{date}T{row_fields[1]}", telemetry_defaults.zone)
    except ValueError:
        return {}, None


def _add_row(
    builder: TelemetryBuilder, host_name: str, sample_time: float, values_by_title: Mapping[str, float]
) -> None:
    for source, columns in _COLUMNS_OF_NODE.items():
        values = _select_columns_with_prefix(values_by_title, columns, "")
        if any(value is not None for value in values):
            builder.add_sample(host_name, source, tuple(columns), sample_time, "", values)
    disks = dict.fromkeys(match[1] for title in values_by_title if (match := _DISK_COLUMN_TITLE_PATTERN.match(title)))
    for disk in disks:
        builder.add_sample(
            host_name,
            "disks",
            tuple(_DISK_COLUMNS),
            sample_time,
            disk,
            _select_columns_with_prefix(values_by_title, _DISK_COLUMNS, f"[DSK:{disk}]"),
        )


def _select_columns_with_prefix(
    values_by_title: Mapping[str, float], columns: _Columns, column_prefix: str
) -> tuple[float | None, ...]:
    return tuple(
        sum(values_by_title[column_prefix + name] for name in names) * factor
        if all(column_prefix + name in values_by_title for name in names)
        else None
        for names, factor in columns.values()
    )


COLLECTL_FORMAT = TelemetryFormat(
    "collectl",
    "collectl: collectl -P -scdmnD, or collectl -P -p FILE.raw.gz",
    "collectl",
    "run it on any node; it is in the package collectl.",
    is_collectl_output,
    read_collectl_output,
)
