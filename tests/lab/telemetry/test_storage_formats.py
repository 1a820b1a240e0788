# SPDX-License-Identifier: Apache-2.0
"""Counters of GPFS, BeeGFS, Ceph and Gluster: texts in the form of their programs against values read by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonde.model.errors import UserError
from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.foreign_files import read_foreign_telemetry
from sonde.telemetry.imports import TelemetryDefaults

# mmdiag of Spectrum Scale 5.0: forms as in the tests of treydock/gpfs_exporter.
WAITERS = """\
1700000000

=== mmdiag: waiters ===
Waiting 6861.7395 sec since 11:04:20, ignored, thread 19428 FsckClientReaperThread: on ThCond 0x7F138008EC10 \
(FsckReaperCondvar), reason 'Waiting to reap fsck pointer'
Waiting 40.5 sec since 13:08:39, monitored, thread 120656 EventsExporterSenderThread: for poll on sock 1379
Waiting 64.25 sec since 17:55:45, monitored, thread 120655 NSDThread: for I/O completion
Waiting 44.5 sec since 17:55:45, monitored, thread 120656 NSDThread: for I/O completion
Waiting soon
1700000010

=== mmdiag: waiters ===
"""
# beegfs-ctl 7 --serverstats, of all servers together and of each.
SERVER_HISTORY = """\
Total results for 2 nodes:
 time_index write_KiB  read_KiB   reqs   qlen bsy
 1700000000      2048         0     12      0   1
 1700000001      4096      1024     30      5   8

"""
SERVERS = """\

===== time index: 1700000000 (values show last second only) =====

nodeID write_KiB  read_KiB   reqs   qlen bsy name
     1      2048       512     12      3   4 storage01
     2         0         0      0      0   0 storage02

"""
META_SERVERS = """\
===== time index: 1700000000 =====

nodeID   reqs   qlen bsy
     7    900     11   6
"""
CLIENTS = """\
1700000000
====== 10 s ======
Sum:             61 [sum]  3 [ops-rd]  12 [MiB-rd/s]  46 [ops-wr]  184 [MiB-wr/s]
192.168.1.10     61 [sum]  3 [ops-rd]  12 [MiB-rd/s]  46 [ops-wr]  184 [MiB-wr/s]
"""
GLUSTER = """\
1700000000
Brick: server1:/export/brick1
-----------------------------
Cumulative Stats:
   Block Size:               4096b+              131072b+
 No. of Reads:                    1                    99
No. of Writes:                    0                   200
 %-latency   Avg-latency   Min-Latency   Max-Latency   No. of calls         Fop
 ---------   -----------   -----------   -----------   ------------        ----
      0.00       0.00 us       0.00 us       0.00 us             50      FORGET
      1.00     100.00 us      10.00 us     300.00 us             20      LOOKUP
     40.00     500.00 us      50.00 us    9000.00 us            100        READ
     59.00    1500.00 us      90.00 us    9900.00 us            200       WRITE

    Duration: 1200 seconds
   Data Read: 12980224 bytes
Data Written: 26214400 bytes

Interval 3 Stats:
   Data Read: 7 bytes
Data Written: 7 bytes

Brick: server2:/export/brick1
-----------------------------
Cumulative Stats:
   Data Read: 0 bytes
Data Written: 26214400 bytes
"""


def read_text(tmp_path: Path, text: str) -> TelemetryFile:
    """The file of the host "admin" in a text, as the command reads it."""
    (tmp_path / "foreign").write_text(text, encoding="utf-8")
    (file,) = read_foreign_telemetry(tmp_path / "foreign", TelemetryDefaults("admin"))
    return file


def values_at(file: TelemetryFile, time: float) -> dict[str, tuple[float | None, ...]]:
    """The values of all parts at a time."""
    return {part: values for sample in file.samples if sample.time == time for part, values in sample.parts.items()}


def test_waiters_are_counted_by_wait_reason(tmp_path: Path) -> None:
    file = read_text(tmp_path, WAITERS)
    assert values_at(file, 1700000000) == {
        "": (3, 64.25),
        "EventsExporterSenderThread for poll on sock": (1, 40.5),
        "NSDThread for I/O completion": (2, 64.25),
    }
    assert values_at(file, 1700000010) == {"": (0, 0)}
    assert file.unreadable_lines == 1


def test_beegfs_servers_report_rates_and_queue(tmp_path: Path) -> None:
    history = read_text(tmp_path, SERVER_HISTORY)
    assert values_at(history, 1700000001) == {"": (1 << 20, 4 << 20, 30, 5, 8)}
    servers = read_text(tmp_path, SERVERS)
    assert values_at(servers, 1700000000) == {
        "storage01": (512 << 10, 2 << 20, 12, 3, 4),
        "storage02": (0, 0, 0, 0, 0),
    }
    assert values_at(read_text(tmp_path, META_SERVERS), 1700000000) == {"7": (None, None, 900, 11, 6)}


def test_beegfs_clients_report_rates(tmp_path: Path) -> None:
    rates = (12 << 20, 184 << 20, 61)
    assert values_at(read_text(tmp_path, CLIENTS), 1700000000) == {"": rates, "192.168.1.10": rates}


def test_gluster_bricks_report_cumulative_counters(tmp_path: Path) -> None:
    bricks = values_at(read_text(tmp_path, GLUSTER), 1700000000)
    assert bricks["server1:/export/brick1"] == pytest.approx((12980224, 26214400, 100, 200, 0.05, 0.3, 20, 0.002))
    assert bricks["server2:/export/brick1"][:2] == (0, 26214400)


def ceph_counters(read: int, written: int) -> str:
    """A part of the perf dump of an OSD (Ceph 18)."""
    latency = {"avgcount": 4, "sum": 0.5, "avgtime": 0.125}
    counters = {"op": 9, "op_r": 4, "op_w": 5, "op_r_out_bytes": read, "op_w_in_bytes": written}
    return json.dumps({"bluefs": {}, "osd": {**counters, "op_r_latency": latency, "op_w_latency": latency}}, indent=4)


def test_ceph_counters_belong_to_their_osd(tmp_path: Path) -> None:
    text = "".join(
        f"{when}\nosd.0\n{ceph_counters(read, 7)}\nosd.3\n{ceph_counters(0, read)}\n"
        for when, read in ((1700000000, 100), (1700000010, 300))
    )
    data = TelemetryData([read_text(tmp_path, text)])
    assert data.compute_increase("target_read_bytes", "osd.0", 1700000000, 1700000010) == 200
    assert data.compute_increase("target_written_bytes", "osd.3", 1700000000, 1700000010) == 200
    assert data.compute_increase("target_write_s", "osd.3", 1700000000, 1700000010) == 0


@pytest.mark.parametrize("wrapped", [False, True], ids=["before 14", "since 14"])
def test_ceph_latencies_are_seconds(tmp_path: Path, wrapped: bool) -> None:
    infos = {"osd_perf_infos": [{"id": 4, "perf_stats": {"commit_latency_ms": 2, "apply_latency_ms": 64}}]}
    document = {"osdstats": infos} if wrapped else infos
    file = read_text(tmp_path, f"1700000000\n{json.dumps(document)}\n")
    assert values_at(file, 1700000000) == {"osd.4": (0.002, 0.064)}


@pytest.mark.parametrize("text", [WAITERS, CLIENTS, GLUSTER, f"1700000000\n{ceph_counters(1, 2)}"])
def test_output_without_a_time_suggests_a_remedy(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match=r"date \+%s"):
        read_text(tmp_path, text.replace("1700000000\n", "").replace("1700000010\n", ""))


@pytest.mark.parametrize("text", [WAITERS, SERVERS, CLIENTS, GLUSTER, f"1700000000\nosd.1\n{ceph_counters(1, 2)}"])
def test_truncated_output_is_refused_or_read(tmp_path: Path, text: str) -> None:
    for length in range(0, len(text), 7):
        try:
            read_text(tmp_path, text[:length])
        except UserError:
            continue
