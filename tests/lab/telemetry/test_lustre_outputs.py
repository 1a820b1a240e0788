# SPDX-License-Identifier: Apache-2.0
"""Lustre jobs, histograms, health, recovery: texts in the form of Lustre 2.10 to 2.15, values read by hand."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.foreign_files import read_foreign_telemetry
from sonde.telemetry.imports import TelemetryDefaults
from sonde.telemetry.sources import lustre_health, lustre_histograms, lustre_jobs
from sonde.telemetry.sources.lustre_health import parse_health_check, parse_recovery_status
from sonde.telemetry.sources.lustre_histograms import parse_histograms, parse_outstanding_requests
from sonde.telemetry.sources.lustre_jobs import parse_job_stats_and_snapshot_time

# An OST of 2.10, and one of 2.15 with times, sums of squares and a histogram.
JOBS_2_10 = """\
job_stats:
- job_id:          24
  snapshot_time:   1510782606
  read_bytes:      { samples:         125, unit: bytes, min:    4096, max:    4096, sum:          512000 }
  write_bytes:     { samples:           0, unit: bytes, min:       0, max:       0, sum:               0 }
  getattr:         { samples:           7, unit:  reqs }
  punch:           { samples:           2, unit:  reqs }
- job_id:          cp.1000
  snapshot_time:   1510782610
  write_bytes:     { samples:           3, unit: bytes, min: 1048576, max: 1048576, sum:         3145728 }
"""
JOBS_2_15 = """\
job_stats:
- job_id:          "a b:c"
  snapshot_time   : 1682000000.123456789 secs.nsecs
  start_time      : 1681990000.000000000 secs.nsecs
  elapsed_time    : 10000.123456789 secs.nsecs
  read_bytes:      { samples: 5, unit: bytes, min: 4096, max: 1048576, sum: 1060864, sumsq: 1099595653120, \
hist: { 4K: 3, 1M: 1 } }
  read:            { samples: 5, unit: usecs, min: 10, max: 400, sum: 800, sumsq: 190000 }
  open:            { samples: 11, unit: usecs, min: 10, max: 400, sum: 800, sumsq: 190000 }
- job_id:
  snapshot_time   : 1682000001.000000000 secs.nsecs
  close:           { samples: 1, unit: usecs, min: 1, max: 1, sum: 1, sumsq: 1 }
"""
BRW_STATS = """\
snapshot_time:         1676461573.435653200 (secs.nsecs)

                           read      |     write
pages per bulk r/w     rpcs  % cum % |  rpcs        % cum %
1:                      108   1   1  |    39   0   0
256:                  10000  99 100  |  8000  99 100

                           read      |     write
disk I/Os in flight    ios   % cum % |  ios         % cum %

                           read      |     write
disk I/O size          ios   % cum % |  ios         % cum %
4K:                       3   0   0  |     7   0   0
1M:                   10000  99 100  |  8000 100 100
"""
RPC_STATS = """\
snapshot_time:         1422989137.651397 (secs.usecs)
read RPCs in flight:  2
write RPCs in flight: 6
pending write pages:  1244
pending read pages:   0

                        read                    write
pages per rpc         rpcs   % cum % |       rpcs   % cum %
1:                       0   0   0   |         12   0   0
256:                   850 100 100   |      18346  99 100

                        read                    write
rpcs in flight        rpcs   % cum % |       rpcs   % cum %
8:                       1   0 100   |        500   5 100
"""
RECOVERING = """\
status: RECOVERING
recovery_start: 1682000000
time_remaining: 118
connected_clients: 3/5
req_replay_clients: 0
"""
COMPLETE = """\
status: COMPLETE
recovery_start: 1682000000
recovery_duration: 60
completed_clients: 129/130
replayed_requests: 0
"""


def read_text(tmp_path: Path, text: str) -> TelemetryFile:
    """The file of the host oss1 in a text, as the command reads it."""
    (tmp_path / "foreign").write_text(text, encoding="utf-8")
    (file,) = read_foreign_telemetry(tmp_path / "foreign", TelemetryDefaults("oss1"))
    return file


def test_jobs_of_both_versions_count_bytes_and_operations() -> None:
    assert parse_job_stats_and_snapshot_time(JOBS_2_10) == (
        1510782610,
        {"24": (512000, 0, 125, 0, 7), "cp.1000": (0, 3145728, 0, 3, 0)},
    )
    latest, jobs = parse_job_stats_and_snapshot_time(JOBS_2_15)
    assert latest == 1682000001
    assert jobs == {"a b:c": (1060864, 0, 5, 0, 11), "": (0, 0, 0, 0, 1)}


def make_job_stats(job_count: int) -> str:
    """The text of an OST that served this many jobs."""
    entry = JOBS_2_10.partition("- job_id:          cp")[0].removeprefix("job_stats:\n")
    idle = "".join(f"  {name}:  {{ samples:  0, unit: reqs }}\n" for name in ("setattr", "sync", "destroy", "create"))
    return "job_stats:\n" + "".join((entry + idle * 3).replace("24\n", f"{job}\n", 1) for job in range(job_count))


def test_ten_thousand_jobs_take_linear_time() -> None:
    def measure(text: str, times: int) -> float:
        start = time.process_time()
        for _ in range(times):
            parse_job_stats_and_snapshot_time(text)
        return time.process_time() - start

    large_text, small_text = make_job_stats(10_000), make_job_stats(500)
    ratios = [measure(large_text, 1) / measure(small_text, 20) for _ in range(3)]
    assert min(ratios) < 3
    _, jobs = parse_job_stats_and_snapshot_time(large_text)
    assert len(jobs) == 10_000
    assert set(jobs.values()) == {(512000, 0, 125, 0, 7)}


def test_repeated_job_stats_become_a_series_of_each_job(tmp_path: Path) -> None:
    later = JOBS_2_10.replace("sum:          512000", "sum:         1024000")
    text = "".join(
        f"{when}\nobdfilter.fs1-OST0003.job_stats=\n{block}"
        for when, block in ((1000000000, JOBS_2_10), (1000000010, later))
    )
    data = TelemetryData([read_text(tmp_path, text)])
    assert data.compute_increase("job_read_bytes", "fs1-OST0003 24", 1000000000, 1000000010) == 512000
    assert data.compute_increase("job_written_bytes", "fs1-OST0003 cp.1000", 1000000000, 1000000010) == 0


def test_histograms_of_a_target_have_a_value_for_each_bin() -> None:
    assert parse_histograms(BRW_STATS) == {
        "pages per bulk r/w 1": (108, 39),
        "pages per bulk r/w 256": (10000, 8000),
        "disk I/O size 4K": (3, 7),
        "disk I/O size 1M": (10000, 8000),
    }
    assert parse_histograms("snapshot_time: 1 (secs.usecs)\n") == {}


def test_histograms_of_a_client_and_its_open_requests(tmp_path: Path) -> None:
    file = read_text(tmp_path, f"osc.fs1-OST0000-osc-ffff8881.rpc_stats=\n{RPC_STATS}")
    parts = {part: values for sample in file.samples for part, values in sample.parts.items()}
    client = "fs1-OST0000-osc-ffff8881"
    values = [parts[name] for name in (f"{client} pages per rpc 256", f"{client} rpcs in flight 8", client)]
    assert values == [(850, 18346), (1, 500), (2, 6)]
    assert {sample.time for sample in file.samples} == {1422989137.651397}
    assert parse_outstanding_requests(BRW_STATS) == (None, None)


def test_health_names_the_device_that_is_not_healthy() -> None:
    assert parse_health_check("healthy\n") == {"": (1,)}
    unhealthy = "device fs1-OST0002 reported unhealthy\nNOT HEALTHY\n"
    assert parse_health_check(unhealthy) == {"": (0,), "fs1-OST0002": (0,)}


@pytest.mark.parametrize(
    ("text", "expected_values"),
    [(RECOVERING, (1, 118, 5, 3)), (COMPLETE, (0, 0, 130, 129)), ("status: INACTIVE\n", (0, 0, None, None))],
    ids=["recovering", "complete", "inactive"],
)
def test_lustre_recovery_status_is_parsed(text: str, expected_values: tuple[float | None, ...]) -> None:
    assert parse_recovery_status(text) == expected_values


def test_outputs_without_a_time_need_a_preceding_time_line(tmp_path: Path) -> None:
    recovery = f"obdfilter.fs1-OST0000.recovery_status=\n{RECOVERING}"
    text = f"health_check=healthy\n1682000000\nhealth_check=NOT HEALTHY\n{recovery}"
    file = read_text(tmp_path, text)
    assert file.unreadable_lines == 1, "the first has no time"
    assert [(sample.time, sample.source, dict(sample.parts)) for sample in file.samples] == [
        (1682000000, "lustre-health", {"": (0,)}),
        (1682000000, "lustre-recovery", {"fs1-OST0000": (1, 118, 5, 3)}),
    ]


def test_files_of_a_lustre_server_are_sampled(tmp_path: Path) -> None:
    files = {
        "proc/fs/lustre/obdfilter/fs1-OST0000/job_stats": JOBS_2_10,
        "proc/fs/lustre/osd-ldiskfs/fs1-OST0000/brw_stats": BRW_STATS,
        "proc/fs/lustre/obdfilter/fs1-OST0000/recovery_status": COMPLETE,
        "sys/fs/lustre/health_check": "healthy\n",
        "sys/kernel/debug/lustre/osc/fs1-OST0000-osc-ff/rpc_stats": RPC_STATS,
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    expected = {
        lustre_jobs.SOURCE: ("fs1-OST0000 24", (512000, 0, 125, 0, 7)),
        lustre_histograms.SERVER_SOURCE: ("fs1-OST0000 disk I/O size 1M", (10000, 8000)),
        lustre_health.RECOVERY_SOURCE: ("fs1-OST0000", (0, 0, 130, 129)),
        lustre_health.HEALTH_SOURCE: ("", (1,)),
        lustre_histograms.CLIENT_SOURCE: ("fs1-OST0000-osc-ff pages per rpc 256", (850, 18346)),
    }
    for source, (part, values) in expected.items():
        reader = source.open_reader(tmp_path)
        assert reader.read()[part] == values, source.name
        reader.close()
