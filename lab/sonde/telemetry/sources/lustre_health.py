# SPDX-License-Identifier: Apache-2.0
"""Health of a Lustre server (`health_check`) and recovery of its targets (`recovery_status`).

`health_check` is ``healthy``, or lines such as ``device fs1-OST0000 reported unhealthy`` and ``NOT HEALTHY``.
`recovery_status` begins with ``status: COMPLETE``, INACTIVE, RECOVERING or WAITING; while a target recovers it has
``time_remaining: 118`` and ``connected_clients: 3/5``.
"""

from __future__ import annotations

import re
from pathlib import Path

from sonde.telemetry.source import ColumnValues, LocalSource, ReadingsByPart, SourceReader, UnavailableSourceError
from sonde.telemetry.sources.lustre_files import find_lustre_files, open_lustre_files

HEALTH_COLUMNS = ("healthy",)
RECOVERY_COLUMNS = (
    "recovery_active", "recovery_remaining_s", "recovery_expected_clients", "recovery_connected_clients",
)  # fmt: skip
_ACTIVE_RECOVERY_STATES = ("RECOVERING", "WAITING", "WAITING_FOR_CLIENTS")
_MEMBER_LINE_PATTERN = re.compile(r"^(\w+):\s*(\S+)", re.MULTILINE)


def parse_health_check(health_check_text: str) -> ReadingsByPart:
    """The part "" is the server; devices that are not healthy are parts of their own."""
    readings: ReadingsByPart = {"": (1.0 if health_check_text.strip() == "healthy" else 0.0,)}
    for device in re.findall(r"^device (\S+) reported unhealthy", health_check_text, re.MULTILINE):
        readings[device] = (0.0,)
    return readings


def parse_recovery_status(recovery_status_text: str) -> ColumnValues:
    """The values of a target in the order of RECOVERY_COLUMNS. Raises ValueError without a status."""
    members = dict(_MEMBER_LINE_PATTERN.findall(recovery_status_text))
    if "status" not in members:
        raise ValueError("it has no status")
    is_active = members["status"] in _ACTIVE_RECOVERY_STATES
    clients = members.get("connected_clients" if is_active else "completed_clients", "")
    connected, _, expected = clients.partition("/")
    remaining = members.get("time_remaining", "")
    return (
        float(is_active),
        float(remaining) if is_active and remaining.isdigit() else 0.0,
        float(expected) if expected.isdigit() else None,
        float(connected) if connected.isdigit() else None,
    )


def _open_health_reader(file_system_root: Path) -> SourceReader:
    path = next(
        (
            file_system_root / base / "health_check"
            for base in ("sys/fs/lustre", "proc/fs/lustre")
            if (file_system_root / base / "health_check").is_file()
        ),
        None,
    )
    if path is None:
        raise UnavailableSourceError("No /sys/fs/lustre/health_check; sample it on an OSS or MDS.")
    file = open_lustre_files({"": path}, "sample it as root.")[""]
    return SourceReader(lambda: parse_health_check(file.read_text()), file.close)


def _open_recovery_reader(file_system_root: Path) -> SourceReader:
    paths = find_lustre_files(file_system_root, ("obdfilter/*/recovery_status", "mdt/*/recovery_status"))
    if not paths:
        raise UnavailableSourceError(
            "No obdfilter/*/recovery_status below /proc/fs/lustre; sample it on an OSS or MDS."
        )
    files = open_lustre_files(paths, "sample it as root.")

    def close_recovery_files() -> None:
        for file in files.values():
            file.close()

    return SourceReader(
        lambda: {part: parse_recovery_status(file.read_text()) for part, file in files.items()}, close_recovery_files
    )


HEALTH_SOURCE = LocalSource(
    "lustre-health", "whether this Lustre server is healthy", "server", HEALTH_COLUMNS, _open_health_reader
)
RECOVERY_SOURCE = LocalSource(
    "lustre-recovery", "recovery of the OSTs and MDTs of this server", "server", RECOVERY_COLUMNS, _open_recovery_reader
)
