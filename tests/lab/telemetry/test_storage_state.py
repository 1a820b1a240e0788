# SPDX-License-Identifier: Apache-2.0
"""What the counters say about arrays, paths, Lustre and GPFS during a run, against states known beforehand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sonde.model.run import RecordedRun, read_recorded_run_folder
from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import TelemetryFile, TelemetrySample
from sonde.telemetry.source import ColumnValues
from sonde.telemetry.storage_state import describe_storage_state

EPOCH = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
RAID = ("raid_disks", "raid_failed_disks", "raid_sync_fraction", "raid_sync_rate", "raid_mismatch_bytes")


@pytest.fixture
def run(tmp_path: Path) -> RecordedRun:
    """A run of 20 s that begins at EPOCH."""
    started = "2026-11-20T12:00:00.000000Z"
    lines: list[dict[str, Any]] = [
        {"type": "run", "t": 0, "schema": "sonde-record/2", "started": started, "tasks": 1, "nodes": 1, "plan": {}},
        {"type": "phase_begin", "t": 1, "phase": "p", "op": "write", "measured": True},
        {"type": "phase_end", "t": 20, "phase": "p"},
    ]
    (tmp_path / "record.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_recorded_run_folder(tmp_path)


def make_gauge_samples(
    source: str, columns: tuple[str, ...], part: str, *values: tuple[float, ColumnValues]
) -> TelemetryData:
    """Samples of a part of the host n1 at seconds of the run."""
    samples = [TelemetrySample(EPOCH + second, source, {part: row}) for second, row in values]
    return TelemetryData([TelemetryFile("t", "n1", "sampler", 1.0, {source: columns}, samples=samples)])


def test_degraded_array_and_its_recovery_are_reported(run: RecordedRun) -> None:
    data = make_gauge_samples("raid", RAID, "md0", (0, (5, 1, 0.1, 2e8, 0)), (20, (5, 1, 0.3, 1e8, 0)))
    missing, recovery = (text.replace("\xa0", " ").replace("\u202f", " ") for text in describe_storage_state(run, data))
    assert missing == "md0 on n1 lacked 1 disk: reads may rebuild data from parity."
    assert recovery.startswith("md0 on n1 was checked or rebuilt at up to 200 MB/s during this run, 10 % done")


def test_state_after_the_run_is_not_reported(run: RecordedRun) -> None:
    sound, broken = (5.0, 0.0, 1.0, 0.0, 0.0), (5.0, 2.0, 1.0, 0.0, 0.0)
    samples = [(second, sound) for second in (-5.0, 0.0, 10.0, 25.0)]
    assert describe_storage_state(run, make_gauge_samples("raid", RAID, "md0", *samples, (99.0, broken))) == []


def test_lost_paths_are_counted(run: RecordedRun) -> None:
    columns = ("device_paths", "device_failed_paths")
    data = make_gauge_samples("multipath", columns, "mpatha", (0, (4, 0)), (10, (4, 1)), (20, (4, 0)))
    assert describe_storage_state(run, data) == ["1 of 4 paths to mpatha on n1 did not work."]


def test_lustre_recovery_and_health_are_reported(run: RecordedRun) -> None:
    columns = ("recovery_active", "recovery_remaining_s")
    data = make_gauge_samples("lustre-recovery", columns, "fs1-OST0000", (0, (1, 60)), (20, (0, 0)))
    assert describe_storage_state(run, data) == [
        "fs1-OST0000 was in recovery during this run: its clients waited for it."
    ]
    unhealthy = make_gauge_samples("lustre-health", ("healthy",), "", (0, (1,)), (20, (0,)))
    assert describe_storage_state(run, unhealthy) == ["n1 reported that it is not healthy."]


@pytest.mark.parametrize(("seconds", "sentences"), [(9.0, 0), (64.0, 1)])
def test_only_long_gpfs_waits_are_reported(run: RecordedRun, seconds: float, sentences: int) -> None:
    wait = "NSDThread for I/O completion"
    data = make_gauge_samples("gpfs-waiters", ("waiters", "waiter_longest_s"), wait, (0, (2, seconds)), (20, (0, 0)))
    assert len(describe_storage_state(run, data)) == sentences
