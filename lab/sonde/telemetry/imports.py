# SPDX-License-Identifier: Apache-2.0
"""The type of an imported format, and the conversion of its rows to telemetry files."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from sonde.telemetry.file_format import TelemetryFile, TelemetrySample
from sonde.telemetry.source import ColumnValues


@dataclass(frozen=True)
class TelemetryDefaults:
    """Defaults for facts that a file lacks: its host, and the zone of times without one."""

    host: str = ""
    zone: tzinfo = UTC


@dataclass(frozen=True)
class TelemetryFormat:
    """A format of other programs: whether the beginning of a text looks like it, and the files in the whole text.

    `read` skips lines that it cannot read, and counts them; it raises ValueError with a part of a sentence when nothing
    in the text can be used.
    """

    name: str
    description: str  # the program, and how to make such a file
    program: str  # that prints it, "" when it is a service or a file
    remedy: str  # where to run it, and what installs it
    matches: Callable[[str], bool]
    read: Callable[[str, TelemetryDefaults], Sequence[TelemetryFile]]

    def find_problem(self, find_program: Callable[[str], str | None]) -> str:
        """Why such a file cannot be made on this machine, and the remedy; "" when it can."""
        if self.program and find_program(self.program):
            return ""
        return f"{self.program} is not installed here; {self.remedy}" if self.program else f"{self.remedy}"


@dataclass
class TelemetryBuilder:
    """Collects rows of several hosts and sources into one telemetry file per host."""

    origin: str
    unreadable_lines: int = 0
    _columns: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    _rows: dict[tuple[str, str], dict[float, dict[str, ColumnValues]]] = field(default_factory=dict)

    def add_sample(
        self,
        host_name: str,
        source_name: str,
        column_names: tuple[str, ...],
        sample_time: float,
        part_name: str,
        values: ColumnValues,
    ) -> None:
        """Adds the values of a part at a time, seconds since 1970-01-01 UTC. Values that are not finite are unknown."""
        if not math.isfinite(sample_time):
            self.unreadable_lines += 1
            return
        key = host_name, source_name
        self._columns.setdefault(key, column_names)
        finite = tuple(None if value is None or not math.isfinite(value) else value for value in values)
        self._rows.setdefault(key, {}).setdefault(sample_time, {})[part_name] = finite

    def build_files(self) -> list[TelemetryFile]:
        """One file for each host, its samples in the order of time. Raises ValueError when there is no row."""
        if not self._rows:
            raise ValueError("it holds no counters that can be read")
        files: dict[str, TelemetryFile] = {}
        for (host, source), rows in self._rows.items():
            file = files.setdefault(host, TelemetryFile(f"{self.origin}-{host}", host, self.origin))
            file.columns[source] = self._columns[host, source]
            file.samples += [TelemetrySample(time, source, rows[time]) for time in sorted(rows)]
        for file in files.values():
            file.samples.sort(key=lambda sample: sample.time)
            file.unreadable_lines = self.unreadable_lines
        return list(files.values())


def parse_local_time(time_text: str, default_zone: tzinfo) -> float:
    """Seconds since 1970-01-01 UTC of an ISO 8601 time; `default_zone` holds where the text names none. Raises
    ValueError."""
    moment = datetime.fromisoformat(time_text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=default_zone)).timestamp()


def cut_files_to_interval(
    telemetry_files: Iterable[TelemetryFile], start_time: float, stop_time: float
) -> list[TelemetryFile]:
    """The files with the samples of the interval only, and one sample before and after it where there is one."""
    cut = []
    for file in telemetry_files:
        by_source: dict[str, list[TelemetrySample]] = {}
        for sample in file.samples:
            by_source.setdefault(sample.source, []).append(sample)
        chosen = []
        for samples in by_source.values():
            first = max((index for index, sample in enumerate(samples) if sample.time <= start_time), default=0)
            last = min(
                (index for index, sample in enumerate(samples) if sample.time >= stop_time), default=len(samples) - 1
            )
            chosen += samples[first : last + 1]
        if any(start_time <= sample.time <= stop_time for sample in chosen) or len(chosen) >= 2:
            chosen.sort(key=lambda sample: sample.time)
            cut.append(
                TelemetryFile(
                    file.name,
                    file.host,
                    file.origin,
                    file.interval_s,
                    file.columns,
                    file.unavailable,
                    file.lost,
                    chosen,
                )
            )
    return cut


_TIME_LINE_PATTERN = re.compile(r"^(\d{9,11}(?:\.\d+)?|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*)[ \t]*$", re.MULTILINE)


def has_time_lines(output_text: str) -> bool:
    """Whether a line of the text is only a time."""
    return _TIME_LINE_PATTERN.search(output_text) is not None


def split_output_at_time_lines(output_text: str, default_zone: tzinfo) -> Iterator[tuple[float, str]]:
    """Outputs of a program that prints no time, each after a line with one: seconds since 1970, or ISO 8601.

    Raises ValueError when there is no such line.
    """
    marks = list(_TIME_LINE_PATTERN.finditer(output_text))
    if not marks:
        raise ValueError("no line says when it was printed; put `date +%s` before each output")
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(output_text)], strict=True):
        yield parse_unix_or_local_time(mark[1], default_zone), output_text[mark.end() : end]


def parse_unix_or_local_time(time_text: str, default_zone: tzinfo) -> float:
    """Seconds since 1970-01-01 UTC of such a number or of an ISO 8601 time. Raises ValueError."""
    try:
        return float(time_text)
    except ValueError:
        return parse_local_time(time_text, default_zone)
