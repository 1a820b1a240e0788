# SPDX-License-Identifier: Apache-2.0
"""Reads and names the telemetry files of a run: NDJSON, ``schema/telemetry/README.md``.

Invalid lines are counted and skipped, so that all lines before the cut of a truncated file are used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.model.confined_files import open_file
from sonde.model.documents import parse_json

TELEMETRY_FORMAT = "sonde-telemetry/1"
SAMPLED_FILE = "telemetry.ndjson"
_FILE_PATTERN = "telemetry*.ndjson"
_MAX_LINE_BYTES = 16 << 20
_MAX_FILES = 1000


@dataclass(frozen=True)
class TelemetrySample:
    """The values of one source at one time (seconds since 1970-01-01 UTC). Parts that did not change are absent."""

    time: float
    source: str
    parts: Mapping[str, tuple[float | None, ...]]


@dataclass
class TelemetryFile:
    """One file: the samples of one host."""

    name: str
    host: str = ""
    origin: str = ""  # "sampler", or the format that was imported
    interval_s: float | None = None
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)  # source -> names of metrics
    unavailable: dict[str, str] = field(default_factory=dict)  # source -> why it was not sampled
    lost: dict[str, str] = field(default_factory=dict)  # source -> why it ended during the run
    samples: list[TelemetrySample] = field(default_factory=list)
    unreadable_lines: int = 0


def find_telemetry_files(run_folder: Path) -> list[Path]:
    """The telemetry files in the folder of a run."""
    return sorted(run_folder.glob(_FILE_PATTERN))[:_MAX_FILES]


def read_telemetry_files(run_folder: Path) -> list[TelemetryFile]:
    """The telemetry of a run; empty when it has none. Files that are no telemetry are skipped."""
    files = []
    for path in find_telemetry_files(run_folder):
        try:
            with open_file(path) as stream:
                file = parse_telemetry_lines(path.name, _read_lines(stream))
        except OSError:
            continue
        if file.columns:
            files.append(file)
    return files


def _read_lines(telemetry_stream: Any) -> Iterator[bytes]:
    while line := telemetry_stream.readline(_MAX_LINE_BYTES):
        yield line


def parse_telemetry_lines(file_name: str, raw_lines: Iterable[bytes]) -> TelemetryFile:
    """The telemetry in the lines of a file. Never raises: invalid lines are counted."""
    file = TelemetryFile(file_name)
    for line in raw_lines:
        try:
            _add_telemetry_line(file, parse_json(line.decode("utf-8")))
        except (ValueError, KeyError, TypeError, AttributeError):
            file.unreadable_lines += 1
    return file


def _add_telemetry_line(telemetry_file: TelemetryFile, json_line: Any) -> None:
    kind = json_line["type"]
    if kind == "telemetry":
        if json_line["schema"] != TELEMETRY_FORMAT:
            raise ValueError
        telemetry_file.host, telemetry_file.origin = str(json_line["host"]), str(json_line.get("origin", ""))
        telemetry_file.interval_s = json_line.get("interval_s")
        telemetry_file.columns = {
            str(source): tuple(str(column) for column in columns) for source, columns in json_line["sources"].items()
        }
        telemetry_file.unavailable = {
            str(source): str(text) for source, text in json_line.get("unavailable", {}).items()
        }
    elif kind == "sample":
        time = _require_number(json_line["time"])
        for source, columns in telemetry_file.columns.items():
            if source in json_line:
                parts = {
                    str(part): tuple(None if value is None else _require_number(value) for value in values)
                    for part, values in json_line[source].items()
                    if len(values) == len(columns)
                }
                telemetry_file.samples.append(TelemetrySample(time, source, parts))
    elif kind == "lost":
        telemetry_file.lost[str(json_line["source"])] = str(json_line["text"])


def _require_number(json_value: Any) -> float:
    if isinstance(json_value, bool) or not isinstance(json_value, int | float) or not math.isfinite(json_value):
        raise ValueError
    return float(json_value)


def encode_telemetry_lines(telemetry_file: TelemetryFile) -> Iterator[bytes]:
    """The lines of a telemetry file."""
    header = {
        "type": "telemetry",
        "schema": TELEMETRY_FORMAT,
        "host": telemetry_file.host,
        "origin": telemetry_file.origin,
        **({"interval_s": telemetry_file.interval_s} if telemetry_file.interval_s else {}),
        "sources": {source: list(columns) for source, columns in telemetry_file.columns.items()},
        "unavailable": telemetry_file.unavailable,
    }
    yield _encode_json_line(header)
    for sample in telemetry_file.samples:
        yield _encode_json_line({"type": "sample", "time": sample.time, sample.source: dict(sample.parts)})
    for source, text in telemetry_file.lost.items():
        yield _encode_json_line({"type": "lost", "source": source, "text": text})


def _encode_json_line(json_line: Mapping[str, Any]) -> bytes:
    return json.dumps(json_line, separators=(",", ":"), allow_nan=False).encode() + b"\n"
