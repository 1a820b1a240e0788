# SPDX-License-Identifier: Apache-2.0
"""Summary of the counters of a phase, against values computed by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sonde.model.run import RecordedRun, read_recorded_run_folder
from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import TelemetryFile, TelemetrySample
from sonde.telemetry.phase_telemetry import PhaseTelemetry, describe_telemetry_gaps, summarize_phase_telemetry

EPOCH = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
GIB = 1 << 30


def write_record(folder: Path, op: str = "write", started: str = "2026-11-20T12:00:00.000000Z") -> RecordedRun:
    """A run of one phase from second 10 to second 20 that moved 1 GiB on node n1, with n2 as a node without samples."""
    disk = {"file_system": {"block_device": {"name": "sda"}}}
    lines: list[dict[str, Any]] = [
        {"type": "run", "t": 0, "schema": "sonde-record/2", "started": started, "tasks": 1, "nodes": 1, "plan": {}},
        {"type": "node", "t": 0, "node": 0, "host": "n1", **disk},
        {"type": "phase_begin", "t": 10, "phase": "p", "op": op, "measured": True},
        {"type": "phase_end", "t": 20, "phase": "p"},
        {"type": "nodes", "t": 20, "phase": "p", "columns": ["node", "bytes", "user_s", "system_s"],
         "rows": [[0, GIB, 0.5, 1.7]]},
    ]  # fmt: skip
    (folder / "record.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_recorded_run_folder(folder)


def sample_device(
    read: float = 0, written: float = 0, busy: float = 0.0, queue: float = 0.0, idle: float = 20.0, steal: float = 0.0
) -> TelemetryData:
    """Counters that grow evenly from second 5 to 25, with samples at 9.5 and 20.5 (so by 55 % of each argument)."""
    disks = ("disk_reads", "disk_read_bytes", "disk_read_s", "disk_writes", "disk_written_bytes", "disk_write_s",
             "disk_busy_s", "disk_queue_s")  # fmt: skip
    processors = ("cpu_busy_s", "cpu_idle_s", "cpu_iowait_s", "cpu_steal_s")
    disk_values = (1000.0, read, 10.0, 0.0, written, 0.0, busy, queue)
    processor_values = (20.0 - idle - steal, idle, 0.0, steal)
    samples = []
    for second in (5, 9.5, 20.5, 25):
        fraction = (second - 5) / 20
        samples += [
            TelemetrySample(EPOCH + second, "disks", {"sda": tuple(fraction * value for value in disk_values)}),
            TelemetrySample(
                EPOCH + second, "processors", {"all": tuple(fraction * value for value in processor_values)}
            ),
        ]
    columns = {"disks": disks, "processors": processors}
    return TelemetryData([TelemetryFile("t", "n1", "sampler", 1.0, columns, samples=samples)])


def summarize(run: RecordedRun, data: TelemetryData) -> PhaseTelemetry:
    summary = summarize_phase_telemetry(run, run.phases[0], data)
    assert summary is not None
    return summary


def test_device_numbers_cover_the_phase_only(tmp_path: Path) -> None:
    summary = summarize(write_record(tmp_path), sample_device(read=10240, written=GIB / 0.55, busy=10, queue=80))
    device = summary.device
    assert device is not None
    assert (device.read_bytes, device.written_bytes) == pytest.approx((5632, GIB))
    assert (device.busy_fraction, device.queue) == pytest.approx((0.5, 4))
    assert device.read_latency_s == pytest.approx(0.01)
    assert device.write_latency_s is None
    assert summary.run_share_of_device_bytes == pytest.approx(GIB / (GIB + 5632))
    assert summary.describe_in_sentences() == []


def test_other_processor_time_excludes_the_tasks_of_the_run(tmp_path: Path) -> None:
    summary = summarize(write_record(tmp_path), sample_device(idle=12.0))  # 0.55 of 20 s, of which 8 s busy
    assert summary.processor_fraction == pytest.approx(0.4)
    assert summary.other_processor_fraction == pytest.approx((4.4 - 2.2) / 11)


def test_busy_device_is_reported_as_the_limit_with_its_queue(tmp_path: Path) -> None:
    (sentence,) = summarize(
        write_record(tmp_path), sample_device(written=GIB / 0.55, busy=19.6, queue=640)
    ).describe_in_sentences()
    assert sentence.startswith("sda was busy 98\xa0% of the time with 32.0 requests outstanding: the device limits")


def test_foreign_traffic_is_reported_as_a_ratio(tmp_path: Path) -> None:
    (sentence,) = summarize(write_record(tmp_path), sample_device(written=3 * GIB / 0.55)).describe_in_sentences()
    assert "sda moved 3.22\xa0GB, 3.0 times the 1.07\xa0GB of this phase" in sentence


@pytest.mark.parametrize(("op", "ending"), [("read", "the rest came from memory"), ("write", "the rest stayed in")])
def test_bytes_that_never_reached_the_device_are_stated(tmp_path: Path, op: str, ending: str) -> None:
    (sentence,) = summarize(write_record(tmp_path, op), sample_device(written=GIB / 2)).describe_in_sentences()
    assert ending in sentence


def test_stolen_processor_time_is_stated(tmp_path: Path) -> None:
    data = sample_device(written=GIB / 0.55, idle=15, steal=2)
    (sentence,) = summarize(write_record(tmp_path), data).describe_in_sentences()
    assert sentence == "The hypervisor gave 10\xa0% of the processor time of n1 to other guests."


def test_record_without_exact_start_has_no_summary(tmp_path: Path) -> None:
    run = write_record(tmp_path, started="2026-11-20T12:00:00Z")
    assert summarize_phase_telemetry(run, run.phases[0], sample_device()) is None


def test_phase_that_samples_do_not_cover_has_no_summary(tmp_path: Path) -> None:
    run = write_record(tmp_path, started="2026-11-20T11:59:50.000000Z")
    assert summarize_phase_telemetry(run, run.phases[0], sample_device()) is None


def test_samples_far_from_the_ends_of_a_phase_give_no_summary(tmp_path: Path) -> None:
    run = write_record(tmp_path)
    far = TelemetryData(
        [
            TelemetryFile(
                "t",
                "n1",
                "sampler",
                1.0,
                {"processors": ("cpu_idle_s",)},
                samples=[
                    TelemetrySample(EPOCH + second, "processors", {"all": (second,)}) for second in (0, 5, 25, 30)
                ],
            )
        ]
    )
    assert summarize_phase_telemetry(run, run.phases[0], far) is None


def test_samples_of_a_host_outside_the_run_are_reported(tmp_path: Path) -> None:
    run = write_record(tmp_path)
    other = TelemetryData(
        [
            TelemetryFile(
                "t",
                "login1",
                "sampler",
                1.0,
                {"paging": ("major_faults",)},
                samples=[TelemetrySample(0, "paging", {"": (1,)})],
            )
        ]
    )
    assert summarize_phase_telemetry(run, run.phases[0], other) is None
    assert describe_telemetry_gaps(run, other) == ["Counters were sampled on login1, which is no node of this run."]
    assert describe_telemetry_gaps(run, sample_device()) == []
    assert describe_telemetry_gaps(run, TelemetryData([])) == []
