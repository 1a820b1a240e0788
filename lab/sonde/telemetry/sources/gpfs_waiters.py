# SPDX-License-Identifier: Apache-2.0
"""GPFS (IBM Storage Scale): threads that wait, from repeated ``date +%s; mmdiag --waiters``.

A line is ``Waiting 64.3890 sec since 17:55:45, monitored, thread 120655 NSDThread: for I/O completion``, with
``ignored`` for threads that always wait, and ``reason '...'`` at its end for some. Since 5.1 the address of a node may
follow. The form was taken from the tests of treydock/gpfs_exporter (1.3); this code has never run on a GPFS node.
"""

from __future__ import annotations

import re

from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat, split_output_at_time_lines

_COLUMNS = ("waiters", "waiter_longest_s")
_WAITER_LINE_PATTERN = re.compile(
    r"^Waiting (?P<seconds>[\d.]+) sec since [^,]+, (?P<kind>\w+), thread \d+ (?P<thread>\w+):? (?P<wait>.*)$"
)
_VARIABLE_TEXT_PATTERN = re.compile(r"0x[0-9A-Fa-f]+|\d+(?:\.\d+){3}\S*|\b\d+\b")
_OUTPUT_HEADING = "=== mmdiag: waiters ==="


def is_waiter_output(output_text: str) -> bool:
    """Whether a text has outputs of mmdiag --waiters."""
    return _OUTPUT_HEADING in output_text


def read_waiter_output(output_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """Number and longest time of the waiting threads: all, and by what they wait for; ignored threads do not count."""
    builder = TelemetryBuilder("mmdiag")
    for time, output in split_output_at_time_lines(output_text, telemetry_defaults.zone):
        waits: dict[str, list[float]] = {"": []}
        for line in output.splitlines():
            match = _WAITER_LINE_PATTERN.match(line.strip())
            if match is None:
                builder.unreadable_lines += line.startswith("Waiting")
            elif match["kind"] != "ignored":
                # Addresses and sockets differ from time to time; what is left says what the thread waits for.
                wait = " ".join(_VARIABLE_TEXT_PATTERN.sub("", match["wait"].partition(", reason")[0]).split())
                for part in ("", f"{match['thread']} {wait}"):
                    waits.setdefault(part, []).append(float(match["seconds"]))
        for part, seconds in waits.items():
            builder.add_sample(
                telemetry_defaults.host, "gpfs-waiters", _COLUMNS, time, part, (len(seconds), max(seconds, default=0.0))
            )
    return builder.build_files()


WAITER_FORMAT = TelemetryFormat(
    "mmdiag",
    "GPFS: mmdiag --waiters, repeated into one file, with `date +%s` before each",
    "mmdiag",
    "run it on a GPFS node; it is part of the package gpfs.base.",
    is_waiter_output,
    read_waiter_output,
)
