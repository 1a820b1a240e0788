# SPDX-License-Identifier: Apache-2.0
"""sysstat: the JSON of ``sadf -j -T FILE -- -d -r ALL``. Its values are rates over the interval before a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sonde.model.documents import parse_json
from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat, parse_local_time
from sonde.telemetry.source import ColumnValues

_DISK_COLUMNS = ("disk_read_rate", "disk_write_rate", "disk_busy_fraction", "disk_queue")
_MEMORY_COLUMNS = ("memory_available_bytes", "memory_cached_bytes", "memory_dirty_bytes")
_KIB = 1024
_SECTOR_BYTES = 512


def is_sadf_json(json_text: str) -> bool:
    """Whether the text begins like the JSON of sadf."""
    return json_text.lstrip().startswith("{") and '"sysstat"' in json_text[:200]


def read_sadf_json(json_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """Rates, busy time and queue of the disks, and memory, of every host in the file."""
    document = parse_json(json_text)
    builder = TelemetryBuilder("sar")
    for host in document["sysstat"]["hosts"]:
        name = str(host.get("nodename") or telemetry_defaults.host)
        for entry in host.get("statistics", ()):
            try:
                time = _parse_timestamp(entry["timestamp"], telemetry_defaults)
            except (KeyError, TypeError, ValueError):
                builder.unreadable_lines += 1
                continue
            for device, values in _iterate_disk_values(entry):
                builder.add_sample(name, "disks", _DISK_COLUMNS, time, device, values)
            memory = entry.get("memory")
            if isinstance(memory, Mapping) and "dirty" in memory:
                sizes = tuple(_scale_number(memory.get(key), _KIB) for key in ("avail", "cached", "dirty"))
                builder.add_sample(name, "memory", _MEMORY_COLUMNS, time, "", sizes)
    return builder.build_files()


def _parse_timestamp(timestamp_member: Mapping[str, Any], defaults: TelemetryDefaults) -> float:
    """`utc` is true if the times are UTC; files of old versions and of option -T have local times."""
    text = f"{timestamp_member['date']}T{timestamp_member['time']}"
    is_utc = bool(timestamp_member.get("utc")) or timestamp_member.get("tz") in ("UTC", "GMT")
    return parse_local_time(text + "+00:00" if is_utc else text, defaults.zone)


def _iterate_disk_values(statistics_entry: Mapping[str, Any]) -> Iterator[tuple[str, ColumnValues]]:
    """Sectors (`rd_sec`) of old versions, kibibytes (`rkB`) of new ones."""
    for disk in statistics_entry.get("disk", ()):
        read = _scale_number(disk.get("rkB"), _KIB)
        written = _scale_number(disk.get("wkB"), _KIB)
        if read is None:
            read, written = (
                _scale_number(disk.get("rd_sec"), _SECTOR_BYTES),
                _scale_number(disk.get("wr_sec"), _SECTOR_BYTES),
            )
        busy = _scale_number(disk.get("util-percent", disk.get("util")), 0.01)
        queue = _scale_number(disk.get("aqu-sz", disk.get("avgqu-sz")), 1)
        yield str(disk["disk-device"]), (read, written, busy, queue)


def _scale_number(json_value: Any, unit_factor: float) -> float | None:
    return float(json_value) * unit_factor if isinstance(json_value, int | float) else None


SADF_FORMAT = TelemetryFormat(
    "sar",
    "sysstat: sadf -j -T FILE -- -d -r ALL",
    "sadf",
    "run it on any node; it is in the package sysstat.",
    is_sadf_json,
    read_sadf_json,
)
