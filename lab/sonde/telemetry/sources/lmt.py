# SPDX-License-Identifier: Apache-2.0
"""LMT, the Lustre Monitoring Tool: rows of its database, and the text of its cerebro module.

Rows: ``TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES`` (a join of OST_DATA, OST_INFO and TIMESTAMP_INFO of schema 1.1;
other columns may stand between). Text: ``ost: 2;HOST;cpu%;mem%;NAME;inodes free;inodes total;kB free;kB total;read
bytes;write bytes;…`` as ``lmtmetric -m ost`` prints it, with a time in front (``date +%s``).
"""

from __future__ import annotations

import csv
import io
import re

from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat, parse_local_time

_COLUMNS = ("target_read_bytes", "target_written_bytes")
_SERVER_COLUMNS = ("server_cpu_fraction",)
_REQUIRED_COLUMNS = {"TIMESTAMP", "OST_NAME", "READ_BYTES", "WRITE_BYTES"}
_CEREBRO_LINE_PATTERN = re.compile(
    r"^(?P<time>\d+(?:\.\d+)?|\d{4}-\d\d-\d\d[T ][\d:.]+\S*)\s+(?:ost: )?(?P<version>2;.*)$"
)
_HEAD, _PER_TARGET = 4, 15  # members before the first target: version, host, cpu, memory; members of each target


def is_lmt_table(output_text: str) -> bool:
    """Whether the first line names the columns of OST rows."""
    return set(output_text.partition("\n")[0].strip().upper().split(",")) >= _REQUIRED_COLUMNS


def read_lmt_table(output_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """Rows of OSTs with a header line. The times are ISO 8601 or seconds since 1970-01-01 UTC."""
    builder = TelemetryBuilder("LMT")
    reader = csv.DictReader(io.StringIO(output_text))
    reader.fieldnames = [name.strip().upper() for name in reader.fieldnames or ()]
    for row in reader:
        try:
            time = _parse_sample_time(row["TIMESTAMP"], telemetry_defaults)
            values = (float(row["READ_BYTES"]), float(row["WRITE_BYTES"]))
            host = row.get("HOSTNAME") or telemetry_defaults.host
        except (TypeError, ValueError):
            builder.unreadable_lines += 1
            continue
        builder.add_sample(host, "lustre-targets", _COLUMNS, time, row["OST_NAME"], values)
    return builder.build_files()


def is_cerebro_output(output_text: str) -> bool:
    """Whether the first line is a time and an OST string of version 2."""
    return bool(_CEREBRO_LINE_PATTERN.match(output_text.partition("\n")[0].strip()))


def read_cerebro_output(output_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """Lines of a time and an OST string."""
    builder = TelemetryBuilder("cerebro")
    for line in output_text.splitlines():
        match = _CEREBRO_LINE_PATTERN.match(line.strip())
        members = match["version"].rstrip(";").split(";") if match else []
        if match is None or len(members) < _HEAD + 7:
            builder.unreadable_lines += bool(line.strip())
            continue
        try:
            time = _parse_sample_time(match["time"], telemetry_defaults)
            host = members[1]
            builder.add_sample(host, "server", _SERVER_COLUMNS, time, "", (float(members[2]) / 100,))
            for start in range(_HEAD, len(members) - 6, _PER_TARGET):
                target = members[start : start + _PER_TARGET]
                builder.add_sample(
                    host, "lustre-targets", _COLUMNS, time, target[0], (float(target[5]), float(target[6]))
                )
        except ValueError:
            builder.unreadable_lines += 1
    return builder.build_files()


def _parse_sample_time(time_text: str, telemetry_defaults: TelemetryDefaults) -> float:
    try:
        return float(time_text)
    except ValueError:
        return parse_local_time(time_text, telemetry_defaults.zone)


ROWS_FORMAT = TelemetryFormat(
    "LMT",
    "LMT: rows of OST_DATA joined with OST_NAME and TIMESTAMP, as CSV",
    "",
    "export them from the database of LMT, on its management server (package lmt-server).",
    is_lmt_table,
    read_lmt_table,
)
CEREBRO_FORMAT = TelemetryFormat(
    "cerebro",
    "LMT: lines of `date +%s` and the output of `lmtmetric -m ost`",
    "lmtmetric",
    "run it on an OSS; it is part of the package lmt-server-agent.",
    is_cerebro_output,
    read_cerebro_output,
)
