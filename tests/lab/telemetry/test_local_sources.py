# SPDX-License-Identifier: Apache-2.0
"""Parsers of the kernel's counters against recorded files, and the sources against this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sonde.telemetry.list import LOCAL_SOURCES
from sonde.telemetry.metrics import COUNTER_METRICS
from sonde.telemetry.source import LocalSource, UnavailableSourceError
from sonde.telemetry.sources import cgroup, infiniband, lustre
from sonde.telemetry.sources.disks import parse_diskstats
from sonde.telemetry.sources.memory import parse_meminfo, parse_vmstat
from sonde.telemetry.sources.network import parse_net_dev, parse_tcp_segments
from sonde.telemetry.sources.nfs import parse_mountstats
from sonde.telemetry.sources.pressure import parse_pressure
from sonde.telemetry.sources.processors import parse_processor_times

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
# Linux 6.1 (20 columns), 4.18 (18 columns), and 2.6.32 as on a Lustre 1.8 server (14 columns).
DISKSTATS = """\
 259       0 nvme0n1 1204 31 96512 402 8821 4410 1731584 90211 3 61244 90613 12 0 4096 7 55 12
   8      16 sdb 100 0 800 50 200 0 1600 150 0 120 200 0 0 0 0
   8      17 sdb1 1 2 3 4 5 6 7 8 9 10 11
 garbage
   8      32 sdc one two
"""


def test_diskstats_of_three_kernels_are_read_in_bytes_and_seconds() -> None:
    devices = parse_diskstats(DISKSTATS)
    assert devices["nvme0n1"] == pytest.approx((1204, 96512 * 512, 0.402, 8821, 1731584 * 512, 90.211, 61.244, 90.613))
    assert devices["sdb"] == pytest.approx((100, 409600, 0.05, 200, 819200, 0.15, 0.12, 0.2))
    assert devices["sdb1"] == pytest.approx((1, 1536, 0.004, 5, 3584, 0.008, 0.010, 0.011))
    assert set(devices) == {"nvme0n1", "sdb", "sdb1"}


def test_partitions_are_excluded_from_the_disks(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/diskstats").write_text(DISKSTATS)
    (tmp_path / "sys/block/sdb").mkdir(parents=True)
    reader = LOCAL_SOURCES[0].open_reader(tmp_path)
    assert set(reader.read()) == {"sdb"}
    reader.close()


def test_pressure_totals_are_seconds() -> None:
    texts = {
        "proc/pressure/io": "some avg10=0.15 avg60=0.10 avg300=0.02 total=1500000\n"
        "full avg10=0.10 avg60=0.05 avg300=0.01 total=250000\n",
        "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=42\n",
        "proc/pressure/memory": "",
    }
    assert parse_pressure(texts) == {"io": (1.5, 0.25), "cpu": (42e-6, None)}


def test_meminfo_is_read_in_bytes() -> None:
    text = "MemTotal: 100 kB\nMemAvailable:     80 kB\nCached:   30 kB\nSwapCached: 7 kB\nDirty: 5 kB\n"
    assert parse_meminfo(text) == (80 * 1024, 30 * 1024, 5 * 1024, None)


def test_vmstat_counts_bytes_and_sums_both_scanners() -> None:
    text = (
        "nr_dirtied 10\nnr_written 4\npgpgin 100\npgpgout 200\npswpin 1\npswpout 2\npgmajfault 3\n"
        "pgscan_kswapd 20\npgscan_direct 30\npgscan_direct_throttle 99\nworkingset_nodes -1\n"
    )
    assert parse_vmstat(text) == (102400, 204800, 10 * PAGE, 4 * PAGE, PAGE, 2 * PAGE, 3, 50)


def test_missing_member_of_vmstat_is_unknown_not_zero() -> None:
    assert parse_vmstat("pgpgin 1\n") == (1024, None, None, None, None, None, None, None)


def test_processor_times_are_seconds() -> None:
    text = "cpu  100 20 30 400 50 6 4 7 0 0\ncpu0 60 10 20 200 25 3 2 7 0 0\nintr 999 1 2 3\nctxt 77\nbtime 1\n"
    readings = parse_processor_times({"proc/stat": text})
    expected = [value * TICK_S for value in (120, 40, 400, 50, 7, 160)]
    assert readings["all"] == pytest.approx((*expected, 77, 999))
    assert readings["cpu0"][5] == pytest.approx(95 * TICK_S)
    assert readings["cpu0"][0] is None


def test_interfaces_add_errors_and_drops() -> None:
    text = (
        "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes ...\n"
        "  eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n    lo:0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
    assert parse_net_dev(text) == {
        "eth0": (1000, 10, 3, 2000, 20, 7),
        "lo": (0, 0, 0, 0, 0, 0),
    }


def test_tcp_counters_are_parsed_by_name() -> None:
    text = "Ip: Forwarding\nIp: 1\nTcp: RtoMin MaxConn OutSegs RetransSegs\nTcp: 200 -1 5000 12\nUdp: A\nUdp: 1\n"
    assert parse_tcp_segments(text) == {"tcp": (5000.0, 12.0)}
    assert parse_tcp_segments("") == {}


@pytest.mark.parametrize("source", LOCAL_SOURCES, ids=lambda source: source.name)
def test_readings_here_have_one_value_per_column_or_a_reason(source: LocalSource) -> None:
    assert all(column in COUNTER_METRICS for column in source.columns)
    try:
        reader = source.open_reader(Path("/"))
    except UnavailableSourceError as unavailable:
        reason = str(unavailable)
    else:
        reason = ""
    if reason:
        assert reason.endswith(".")
        return
    readings = reader.read()
    reader.close()
    assert readings
    assert {len(values) for values in readings.values()} == {len(source.columns)}


@pytest.mark.parametrize("source", LOCAL_SOURCES, ids=lambda source: source.name)
def test_source_without_its_files_gives_the_reason(source: LocalSource, tmp_path: Path) -> None:
    with pytest.raises(UnavailableSourceError, match=r".+; .+\."):
        source.open_reader(tmp_path)


MOUNTSTATS = """\
device rootfs mounted on / with fstype rootfs
device server:/export mounted on /mnt/my data with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2
\tage:\t100
\tbytes:\t10 20 0 0 3000 4000 1 2
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 1 0
\t        READ: 10 12 0 2000 30000 5 250 260 0
\t       WRITE: 20 20 0 50000 2000 5 1500 1600 1
device tmpfs mounted on /run with fstype tmpfs
"""


def test_mountstats_of_an_nfs_mount_are_summed_over_operations() -> None:
    (entry,) = parse_mountstats(MOUNTSTATS).items()
    assert entry == ("/mnt/my data", (3000, 4000, 31, 2, 1.75))


def test_infiniband_four_byte_units_become_bytes(tmp_path: Path) -> None:
    counters = tmp_path / "sys/class/infiniband/mlx5_0/ports/1/counters"
    counters.mkdir(parents=True)
    values = {"port_rcv_data": 10, "port_xmit_data": 20, "symbol_error": 1, "port_rcv_errors": 2, "link_downed": 3}
    for name, value in values.items():
        (counters / name).write_text(f"{value}\n")
    reader = infiniband.SOURCE.open_reader(tmp_path)
    assert reader.read() == {"mlx5_0:1": (40, 80, 3, 3)}
    reader.close()


def test_io_stat_of_a_control_group_is_read_by_device(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("1:cpu:/x\n0::/user.slice/job\n")
    group = tmp_path / "sys/fs/cgroup/user.slice/job"
    group.mkdir(parents=True)
    (group / "io.stat").write_text("8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n259:0\n")
    reader = cgroup.SOURCE.open_reader(tmp_path)
    assert reader.read() == {"8:0": (1, 2, 3, 4)}
    reader.close()


def test_lustre_server_files_are_read_below_both_roots(tmp_path: Path) -> None:
    for path in ("proc/fs/lustre/obdfilter/fs1-OST0000/stats", "sys/kernel/debug/lustre/mdt/fs1-MDT0000/md_stats"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("snapshot_time 1.0 secs.nsecs\nread_bytes 2 samples [bytes] 1 3 4\n")
    reader = lustre.TARGETS_SOURCE.open_reader(tmp_path)
    assert {part: values[0] for part, values in reader.read().items()} == {"fs1-OST0000": 4, "fs1-MDT0000": 4}
    reader.close()


def test_names_of_metrics_end_in_their_unit() -> None:
    for metric in COUNTER_METRICS.values():
        if metric.unit in ("bytes", "s"):
            assert metric.name.endswith(f"_{metric.unit}"), metric.name
