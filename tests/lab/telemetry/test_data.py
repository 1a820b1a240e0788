# SPDX-License-Identifier: Apache-2.0
"""Increases and means over intervals, against values worked out by hand."""

from __future__ import annotations

import pytest

from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import TelemetryFile, TelemetrySample


def counters(*points: tuple[float, float], metric: str = "disk_read_bytes") -> TelemetryData:
    """One series of the part "sda" on host "n1"."""
    samples = [TelemetrySample(time, "disks", {"sda": (value,)}) for time, value in points]
    return TelemetryData([TelemetryFile("t", "n1", "sampler", 1.0, {"disks": (metric,)}, samples=samples)])


def test_increase_between_samples_is_interpolated() -> None:
    data = counters((10, 0), (20, 100), (30, 400))
    assert data.compute_increase("disk_read_bytes", "sda", 10, 30) == pytest.approx(400)
    assert data.compute_increase("disk_read_bytes", "sda", 15, 25) == pytest.approx(50 + 150)


def test_interval_outside_of_the_samples_is_unknown() -> None:
    data = counters((10, 0), (20, 100))
    assert data.compute_increase("disk_read_bytes", "sda", 5, 15) is None
    assert data.compute_increase("disk_read_bytes", "sda", 15, 21) is None
    assert data.compute_increase("disk_read_bytes", "sda", 15, 15) is None
    assert data.compute_increase("disk_read_bytes", "sdb", 12, 15) is None
    assert data.compute_increase("disk_read_bytes", "sda", 12, 15, host_name="n2") is None


def test_restarted_counter_counts_on_from_zero() -> None:
    data = counters((0, 1000), (10, 1100), (20, 30), (30, 130))
    assert data.compute_increase("disk_read_bytes", "sda", 0, 30) == pytest.approx(100 + 30 + 100)


def test_small_fall_of_a_counter_counts_as_no_change() -> None:
    data = counters((0, 1000), (10, 999), (20, 1009), metric="cpu_iowait_s")
    assert data.compute_increase("cpu_iowait_s", "sda", 0, 20) == pytest.approx(10)


def test_gauge_may_fall_and_is_averaged_over_time() -> None:
    data = counters((0, 10), (10, 30), (20, 30), metric="memory_dirty_bytes")
    assert data.compute_mean("memory_dirty_bytes", "sda", 0, 20) == pytest.approx(25)
    assert data.compute_mean("memory_dirty_bytes", "sda", 5, 15) == pytest.approx(27.5)


def test_samples_out_of_order_are_sorted() -> None:
    data = counters((20, 100), (10, 0), (30, 150))
    assert data.compute_increase("disk_read_bytes", "sda", 10, 30) == pytest.approx(150)


def test_unknown_metric_of_a_newer_version_is_omitted() -> None:
    assert not counters((0, 1), (1, 2), metric="flux_capacity_s")
