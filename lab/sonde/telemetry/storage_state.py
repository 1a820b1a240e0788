# SPDX-License-Identifier: Apache-2.0
"""State of storage during a run, from counters: degraded arrays, lost paths, recovery, waits.

Each of these explains a slow run, and none is visible in the rate itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sonde.model.errors import UserError
from sonde.model.quantities import display_count_with_noun, display_percent, display_transferred_bytes
from sonde.model.run import RecordedRun
from sonde.telemetry.data import CounterKey, TelemetryData
from sonde.telemetry.phase_telemetry import find_run_interval

# Threads of GPFS that wait this long for I/O are named; IBM's advice for NSD servers begins at 10 s.
_MIN_LONG_WAIT_S = 10.0


def describe_storage_state(run: RecordedRun, telemetry: TelemetryData) -> list[str]:
    """Sentences about degraded or rebuilding arrays, missing paths, unhealthy Lustre targets and long waits of GPFS
    threads during the run; empty if there were none."""
    try:
        start, stop = find_run_interval(run)
    except UserError:
        return []
    state = _StorageState(telemetry, start, stop)
    return [*state.describe_arrays(), *state.describe_paths(), *state.describe_lustre(), *state.describe_waiters()]


class _StorageState:
    """The extremes of gauges between two times, one sample before and after included."""

    def __init__(self, telemetry: TelemetryData, start_time: float, stop_time: float) -> None:
        self._data = telemetry
        self._start = start_time
        self._stop = stop_time

    def describe_arrays(self) -> Iterator[str]:
        for key, failed in self._find_largest("raid_failed_disks"):
            if failed:
                disks = display_count_with_noun(failed, "disk")
                yield f"{key.part} on {key.host} lacked {disks}: reads may rebuild data from parity."
        for key, rate in self._find_largest("raid_sync_rate"):
            if rate:
                fraction = self._find_extreme_value(replace(key, metric="raid_sync_fraction"), finds_largest=False)
                done = "" if fraction is None else f", {display_percent(fraction)} done"
                yield (
                    f"{key.part} on {key.host} was checked or rebuilt at up to {display_transferred_bytes(rate)}/s "
                    "during this run"
                    f"{done}: its disks were shared with that."
                )

    def describe_paths(self) -> Iterator[str]:
        for key, failed in self._find_largest("device_failed_paths"):
            total = self._find_extreme_value(replace(key, metric="device_paths"), finds_largest=True)
            if failed:
                yield f"{failed:.0f} of {total or failed:.0f} paths to {key.part} on {key.host} did not work."

    def describe_lustre(self) -> Iterator[str]:
        for key, active in self._find_largest("recovery_active"):
            if active:
                yield f"{key.part} was in recovery during this run: its clients waited for it."
        for key in self._data.list_series_keys("healthy"):
            if self._find_extreme_value(key, finds_largest=False) == 0:
                yield f"{key.part or key.host} reported that it is not healthy."

    def describe_waiters(self) -> Iterator[str]:
        for key, seconds in self._find_largest("waiter_longest_s"):
            if key.part and seconds >= _MIN_LONG_WAIT_S:
                yield f"A thread of GPFS on {key.host} waited {seconds:.0f} s: {key.part}."

    def _find_largest(self, metric_name: str) -> Iterator[tuple[CounterKey, float]]:
        for key in self._data.list_series_keys(metric_name):
            value = self._find_extreme_value(key, finds_largest=True)
            if value is not None:
                yield key, value

    def _find_extreme_value(self, series_key: CounterKey, finds_largest: bool) -> float | None:
        """The largest or smallest value of a gauge around the interval; None without samples there."""
        series = self._data.find_series(series_key.metric, series_key.part, series_key.host)
        if series is None:
            return None
        first = max(0, int(np.searchsorted(series.times, self._start, side="right")) - 1)
        last = int(np.searchsorted(series.times, self._stop, side="left")) + 1
        values = series.values[first:last]
        if not values.size:
            return None
        return float(values.max() if finds_largest else values.min())
