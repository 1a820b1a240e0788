# SPDX-License-Identifier: Apache-2.0
"""Answers questions about intervals of time: how much a counter grew, what a gauge was.

Times are seconds since 1970-01-01 UTC. A value between two samples is interpolated; outside of the samples nothing is
known, and the answer is None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sonde.telemetry.file_format import TelemetryFile, find_telemetry_files, read_telemetry_files
from sonde.telemetry.metrics import COUNTER_METRICS


@dataclass(frozen=True)
class CounterKey:
    """Key of a series: one metric of one part on one host."""

    host: str
    source: str
    part: str
    metric: str


@dataclass(frozen=True)
class CounterSeries:
    """A counter or a gauge over time. Counters have no resets any more: `values` never fall."""

    times: NDArray[np.float64]
    values: NDArray[np.float64]

    def covers_interval(self, start_time: float, stop_time: float) -> bool:
        """Whether there are samples before and after the interval."""
        return bool(self.times.size >= 2 and self.times[0] <= start_time < stop_time <= self.times[-1])

    def find_nearest_sample_time(self, time_s: float) -> float:
        """Time of the sample that is nearest to `time_s`."""
        return float(self.times[np.argmin(np.abs(self.times - time_s))])

    def compute_increase(self, start_time: float, stop_time: float) -> float | None:
        """How much the counter grew in the interval; None outside of the samples."""
        if not self.covers_interval(start_time, stop_time):
            return None
        first, last = np.interp([start_time, stop_time], self.times, self.values)
        return float(last - first)

    def compute_increase_bounds(self, start_time: float, stop_time: float) -> tuple[float, float] | None:
        """Least and most by which the counter can have grown in the interval; None outside of the samples.

        The least is between the samples inside the interval, the most between those around it.
        """
        if not self.covers_interval(start_time, stop_time):
            return None
        inside = self.values[(self.times >= start_time) & (self.times <= stop_time)]
        before = self.values[np.searchsorted(self.times, start_time, side="right") - 1]
        after = self.values[np.searchsorted(self.times, stop_time, side="left")]
        return float(inside[-1] - inside[0]) if inside.size else 0.0, float(after - before)

    def compute_mean(self, start_time: float, stop_time: float) -> float | None:
        """Mean of the gauge over the time of the interval; None outside of the samples."""
        if not self.covers_interval(start_time, stop_time):
            return None
        inside = (self.times > start_time) & (self.times < stop_time)
        times = np.concatenate(([start_time], self.times[inside], [stop_time]))
        values = np.interp(times, self.times, self.values)
        return float(np.trapezoid(values, times) / (stop_time - start_time))


class TelemetryData:
    """All series of a run."""

    def __init__(self, telemetry_files: Iterable[TelemetryFile]) -> None:
        self._series: dict[CounterKey, CounterSeries] = {}
        self.hosts: tuple[str, ...] = ()
        for file in telemetry_files:
            if file.host not in self.hosts:
                self.hosts += (file.host,)
            for key, series in _iterate_series_of_file(file):
                self._series.setdefault(key, series)

    def list_series_keys(self, metric_name: str, host_name: str | None = None) -> list[CounterKey]:
        """The series of a metric, of all parts, in their order of appearance."""
        return [key for key in self._series if key.metric == metric_name and host_name in (None, key.host)]

    def find_series(self, metric_name: str, part_name: str, host_name: str | None = None) -> CounterSeries | None:
        """The series of a part; of the first host when none is named."""
        return next(
            (self._series[key] for key in self.list_series_keys(metric_name, host_name) if key.part == part_name), None
        )

    def compute_increase(
        self, metric_name: str, part_name: str, start_time: float, stop_time: float, host_name: str | None = None
    ) -> float | None:
        """How much the counter of a part grew in the interval; None when unknown."""
        series = self.find_series(metric_name, part_name, host_name)
        return series.compute_increase(start_time, stop_time) if series else None

    def compute_mean(
        self, metric_name: str, part_name: str, start_time: float, stop_time: float, host_name: str | None = None
    ) -> float | None:
        """Mean of the gauge of a part; None when unknown."""
        series = self.find_series(metric_name, part_name, host_name)
        return series.compute_mean(start_time, stop_time) if series else None

    def __bool__(self) -> bool:
        return bool(self._series)


def load_telemetry(run_folder: Path) -> TelemetryData:
    """The telemetry in the folder of a run; empty without any. Cached until a file of it changes."""
    try:
        versions = tuple(
            (path, path.stat().st_mtime_ns, path.stat().st_size) for path in find_telemetry_files(run_folder)
        )
    except OSError:
        versions = ()
    return _load_telemetry_of_version(run_folder, versions) if versions else TelemetryData(())


@lru_cache(maxsize=8)
def _load_telemetry_of_version(run_folder: Path, file_versions: tuple[tuple[Path, int, int], ...]) -> TelemetryData:
    return TelemetryData(read_telemetry_files(run_folder))


def _iterate_series_of_file(telemetry_file: TelemetryFile) -> Iterator[tuple[CounterKey, CounterSeries]]:
    for source, columns in telemetry_file.columns.items():
        samples = [sample for sample in telemetry_file.samples if sample.source == source]
        samples.sort(key=lambda sample: sample.time)
        points: dict[str, list[tuple[float, tuple[float | None, ...]]]] = defaultdict(list)
        previous_time: float | None = None
        for sample in samples:
            for part, values in sample.parts.items():
                rows = points[part]
                if rows and previous_time is not None and rows[-1][0] < previous_time:
                    rows.append((previous_time, rows[-1][1]))  # it did not change until the sample before this one
                rows.append((sample.time, values))
            previous_time = sample.time
        for part, rows in points.items():
            if previous_time is not None and rows[-1][0] < previous_time:
                rows.append((previous_time, rows[-1][1]))
            for index, column in enumerate(columns):
                if column in COUNTER_METRICS:
                    series = _make_counter_series(rows, index, COUNTER_METRICS[column].kind == "counter")
                    if series is not None:
                        yield CounterKey(telemetry_file.host, source, part, column), series


def _make_counter_series(
    sample_rows: list[tuple[float, tuple[float | None, ...]]], column_index: int, is_counter: bool
) -> CounterSeries | None:
    times: list[float] = []
    values: list[float] = []
    for time, row in sample_rows:
        value = row[column_index]
        if value is not None and (not times or time > times[-1]):
            times.append(time)
            values.append(value)
    if not times:
        return None
    array = np.array(values)
    return CounterSeries(np.array(times), _remove_counter_resets(array) if is_counter else array)


def _remove_counter_resets(counter_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The counter without restarts of its source: after a decrease, later increases are added to the value before it.

    A fall to more than half counts as no change: the kernel corrects its idle times downwards (proc(5), iowait).
    """
    steps = np.diff(counter_values, prepend=counter_values[0])
    restarted = counter_values < 0.5 * (counter_values - steps)
    steps = np.where(steps < 0, np.where(restarted, counter_values, 0.0), steps)
    steps[0] = counter_values[0]
    return np.cumsum(steps)
