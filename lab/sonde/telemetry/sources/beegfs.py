# SPDX-License-Identifier: Apache-2.0
"""BeeGFS: repeated outputs of ``beegfs-ctl --serverstats`` and ``beegfs-ctl --clientstats``.

Server statistics are a table with a title line. It has a column ``time_index`` (seconds since 1970), or with
``--perserver`` a line ``===== time index: SECONDS =====`` before it and a column ``nodeID``. Values are those of one
second. Client statistics are lines ``CLIENT  61 [sum]  3 [ops-rd]  12 [MiB-rd/s] …`` below ``date +%s``. Forms follow
the source of beegfs-ctl 7 (ModeIOStat.cpp); this code has never run on a BeeGFS.
"""

from __future__ import annotations

import re

from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat, split_output_at_time_lines

_KIB, _MIB = 1024, 1 << 20
_SERVER_COLUMNS = (
    "server_read_rate", "server_write_rate", "server_request_rate", "server_queue", "server_busy_threads",
)  # fmt: skip
_CLIENT_COLUMNS = ("client_read_rate", "client_write_rate", "client_request_rate")
_TABLE_TITLE_PATTERN = re.compile(
    r"^[ \t]*(time_index|nodeID)[ \t]+((?:\w+_KiB[ \t]+)*reqs[ \t]+qlen[ \t]+bsy(?:[ \t]+name)?)[ \t]*$", re.MULTILINE
)
_TIME_INDEX_PATTERN = re.compile(r"^===== time index: (\d+)")
_VALUE_AND_NAME_PATTERN = re.compile(r"(?<!\d)(\d+(?:\.\d+)?) \[([^\[\]\n]+)\]")


def is_serverstats_output(output_text: str) -> bool:
    """Whether a text has a table of beegfs-ctl --serverstats."""
    return _TABLE_TITLE_PATTERN.search(output_text) is not None


def read_serverstats_output(output_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """Rates, queue and busy threads of each server, or of all together (part "")."""
    builder = TelemetryBuilder("beegfs-servers")
    titles: list[str] = []
    time_index: float | None = None
    for line in output_text.splitlines():
        if match := _TIME_INDEX_PATTERN.match(line):
            time_index = float(match[1])
        elif match := _TABLE_TITLE_PATTERN.match(line):
            titles = [match[1], *match[2].split()]
        elif titles and (fields := line.split()) and fields[0].isdigit():
            row = dict(zip(titles, fields, strict=False))
            time = float(row["time_index"]) if "time_index" in row else time_index
            if time is None or len(row) < len(titles):
                builder.unreadable_lines += 1
                continue
            values = (
                _scale_number(row.get("read_KiB"), _KIB),
                _scale_number(row.get("write_KiB"), _KIB),
                *(_scale_number(row[title]) for title in ("reqs", "qlen", "bsy")),
            )
            part = row.get("name") or row.get("nodeID", "")
            builder.add_sample(telemetry_defaults.host, "beegfs-servers", _SERVER_COLUMNS, time, part, values)
    return builder.build_files()


def is_clientstats_output(output_text: str) -> bool:
    """Whether a text has lines of beegfs-ctl --clientstats."""
    return "[sum]" in output_text and _VALUE_AND_NAME_PATTERN.search(output_text) is not None


def read_clientstats_output(output_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """Rates of each client; part "" is the sum that beegfs-ctl prints. Metadata servers report requests only."""
    builder = TelemetryBuilder("beegfs-clients")
    for time, output in split_output_at_time_lines(output_text, telemetry_defaults.zone):
        for line in output.splitlines():
            statistics = {name: float(value) for value, name in _VALUE_AND_NAME_PATTERN.findall(line)}
            if "sum" not in statistics:
                continue
            client = line.split()[0].rstrip(":")
            values = (
                _scale_number(statistics.get("MiB-rd/s"), _MIB),
                _scale_number(statistics.get("MiB-wr/s"), _MIB),
                statistics["sum"],
            )
            part = "" if client == "Sum" else client
            builder.add_sample(telemetry_defaults.host, "beegfs-clients", _CLIENT_COLUMNS, time, part, values)
    return builder.build_files()


def _scale_number(number_text: str | float | None, unit_factor: int = 1) -> float | None:
    return None if number_text is None else float(number_text) * unit_factor


_INSTALL_REMEDY = "run it on a BeeGFS client or server; it is part of the package beegfs-utils."
SERVER_FORMAT = TelemetryFormat(
    "beegfs-servers",
    "BeeGFS: beegfs-ctl --serverstats --nodetype=storage --perserver --names --interval=1",
    "beegfs-ctl",
    _INSTALL_REMEDY,
    is_serverstats_output,
    read_serverstats_output,
)
CLIENT_FORMAT = TelemetryFormat(
    "beegfs-clients",
    "BeeGFS: beegfs-ctl --clientstats --nodetype=storage --interval=0, repeated, with `date +%s` before each",
    "beegfs-ctl",
    _INSTALL_REMEDY,
    is_clientstats_output,
    read_clientstats_output,
)
