# SPDX-License-Identifier: Apache-2.0
"""RAID, multipath, ZFS and Slingshot from files in the kernel's form; processes and page cache of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sonde.telemetry.source import LocalSource, SourceReader, UnavailableSourceError, limit_reading_cost
from sonde.telemetry.sources import multipath, page_cache, processes, raid, slingshot, zfs
from sonde.telemetry.sources.page_cache import measure_cached_and_dirty_bytes
from sonde.telemetry.sources.raid import parse_mdstat

MIB = 1 << 20
# Linux 5.14: a RAID 6 with a failed disk that recovers, and a RAID 1 at rest.
MDSTAT = """\
Personalities : [raid1] [raid6] [raid5] [raid4]
md0 : active raid6 sde[5] sdd[3] sdc[2] sdb[1](F) sda[0]
      5860270080 blocks super 1.2 level 6, 512k chunk, algorithm 2 [5/4] [U_UUU]
      [==>..................]  recovery = 12.5% (244177920/1953423360) finish=140.2min speed=203164K/sec
      bitmap: 3/15 pages [12KB], 65536KB chunk

md127 : active (auto-read-only) raid1 sdg1[1] sdf1[0]
      1953382464 blocks super 1.2 [2/2] [UU]

unused devices: <none>
"""
# OpenZFS 2.1.
ARCSTATS = """\
13 1 0x01 123 33456 6428347562 2234532434
name                            type data
hits                            4    1000
misses                          4    50
c                               4    8589934592
size                            4    4294967296
l2_hits                         4    7
l2_misses                       4    43
"""
OBJSET = """\
36 1 0x01 7 2160 6428347562 2234532434
name                            type data
dataset_name                    7    pool1/scratch data
writes                          4    30
nwritten                        4    31457280
reads                           4    20
nread                           4    20971520
nunlinks                        4    0
"""
POOL_IO = """\
12 3 0x00 1 80 6428347562 2234532434
nread    nwritten reads    writes   wtime    wlentime wupdate  rtime    rlentime rupdate  wcnt     rcnt
20971520 31457280 20 30 1 2 3 4 5 6 0 0
"""


def write_files(root: Path, files: dict[str, str]) -> None:
    """Writes files below the root of a file system."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def read_once(source: LocalSource, root: Path) -> dict[str, tuple[float | None, ...]]:
    """The readings of a source below a root."""
    reader = source.open_reader(root)
    readings = reader.read()
    reader.close()
    return readings


def test_mdstat_names_missing_disks_and_recovery(tmp_path: Path) -> None:
    expected = {"md0": (5, 1, 0.125, 203164 * 1024, None), "md127": (2, 0, 1, 0, None)}
    assert parse_mdstat(MDSTAT) == expected
    write_files(tmp_path, {"proc/mdstat": MDSTAT})
    assert read_once(raid.SOURCE, tmp_path) == expected


def test_mdstat_without_arrays_is_unavailable(tmp_path: Path) -> None:
    write_files(tmp_path, {"proc/mdstat": "Personalities : \nunused devices: <none>\n"})
    with pytest.raises(UnavailableSourceError, match="software RAID"):
        raid.SOURCE.open_reader(tmp_path)


def test_array_below_sys_has_mismatches_and_speed(tmp_path: Path) -> None:
    members = {"raid_disks": "5", "degraded": "1", "mismatch_cnt": "256", "sync_completed": "100 / 400"}
    folder = "sys/block/md0/md"
    write_files(tmp_path, {f"{folder}/{name}": f"{text}\n" for name, text in members.items()})
    write_files(tmp_path, {f"{folder}/sync_speed": "1000\n", "sys/block/md1/md/raid_disks": "3\n"})
    write_files(tmp_path, {"sys/block/md1/md/sync_completed": "none\n"})
    assert read_once(raid.SOURCE, tmp_path) == {
        "md0": (5, 1, 0.25, 1024000, 256 * 512),
        "md1": (3, None, 1, 0, None),
    }


def test_paths_that_do_not_work_are_counted(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "sys/block/dm-0/dm/name": "mpatha\n",
            "sys/block/dm-0/dm/uuid": "mpath-3600508b400105e210000900000490000\n",
            "sys/block/dm-0/slaves/sda/device/state": "running\n",
            "sys/block/dm-0/slaves/sdb/device/state": "transport-offline\n",
            "sys/block/dm-1/dm/uuid": "LVM-abc\n",
        },
    )
    assert read_once(multipath.SOURCE, tmp_path) == {"mpatha": (2, 1)}


def test_zfs_cache_and_data_sets_are_read(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {"proc/spl/kstat/zfs/arcstats": ARCSTATS, "proc/spl/kstat/zfs/pool1/objset-0x36": OBJSET},
    )
    assert read_once(zfs.CACHE_SOURCE, tmp_path) == {"": (1000, 50, 7, 43, 4294967296, 8589934592)}
    assert read_once(zfs.DATA_SETS_SOURCE, tmp_path) == {"pool1/scratch data": (20 * MIB, 30 * MIB, 20, 30)}


def test_zfs_pool_of_old_versions_is_read(tmp_path: Path) -> None:
    write_files(tmp_path, {"proc/spl/kstat/zfs/tank/io": POOL_IO})
    assert read_once(zfs.DATA_SETS_SOURCE, tmp_path) == {"tank": (20 * MIB, 30 * MIB, 20, 30)}


def test_slingshot_counters_have_a_time_behind_the_value(tmp_path: Path) -> None:
    folder = "sys/class/cxi/cxi0/device/telemetry"
    values = {"hni_sts_rx_ok_octets": "4096", "hni_sts_tx_ok_octets": "8192", "pct_spt_timeouts": "3"}
    write_files(tmp_path, {f"{folder}/{name}": f"{value}@1700000000.123456789\n" for name, value in values.items()})
    write_files(tmp_path, {f"{folder}/hni_sts_rx_bad_octets": "2@1700000000.1\n"})
    assert read_once(slingshot.SOURCE, tmp_path) == {"cxi0": (4096, 8192, 5)}


PROGRAM = """\
import os, sys
with open(sys.argv[1], "r+b", 0) as file:
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    file.write(b"x" * (2 << 20))
    file.seek(0)
    file.read(1 << 20)
    print("ready", flush=True)
    sys.stdin.read(1)
"""


def test_processes_and_files_of_a_child_are_counted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"y" * (4 * MIB))
    os.sync()
    reader = processes.SOURCE.open_reader(Path("/"))
    try:
        cache = page_cache.SOURCE.open_reader(Path("/"))
    except UnavailableSourceError:
        cache = None
    before = reader.read()[""]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        values = [(value or 0) - (earlier or 0) for value, earlier in zip(reader.read()[""], before, strict=True)]
        cached = cache.read() if cache else {}
        child.communicate(b"\n")
    assert 2 * MIB <= values[1] < 2.2 * MIB, "written by the child, and its word to us"
    assert values[0] >= MIB
    if cache is not None and str(data) in cached:
        resident, dirty, size = cached[str(data)]
        assert (size, 2 * MIB <= (resident or 0) <= 4 * MIB, (dirty or 0) <= 2 * MIB) == (4 * MIB, True, True)


LEASE_HOLDER = """
import fcntl, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open(sys.argv[1], "r+b", 0)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("ready", flush=True)
sys.stdin.read(1)
print(fcntl.fcntl(file, fcntl.F_GETLEASE) == fcntl.F_WRLCK, flush=True)
"""


def test_reading_the_page_cache_keeps_leases(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"y" * MIB)
    try:
        reader = page_cache.SOURCE.open_reader(Path("/"))
    except UnavailableSourceError as error:
        pytest.skip(str(error))
    with subprocess.Popen(
        [sys.executable, "-c", LEASE_HOLDER, str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert str(data) in reader.read()
        assert child.communicate(b"\n")[0] == b"True\n"


def test_cached_bytes_of_a_file_follow_its_reads(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"y" * (4 * MIB))
    with data.open("r+b", 0) as file:
        os.fsync(file.fileno())
        try:
            resident, dirty = measure_cached_and_dirty_bytes(file.fileno())
        except OSError as error:
            pytest.skip(f"cachestat(2) is not available: {error.strerror}")
        assert (resident, dirty) == (4 * MIB, 0)
        file.write(b"z" * MIB)
        resident, dirty = measure_cached_and_dirty_bytes(file.fileno())
        assert resident == 4 * MIB
        assert dirty == 0 or MIB <= dirty <= 4 * MIB, "a folio is dirty as a whole, or the kernel has written it"


def test_costly_source_is_read_rarely() -> None:
    calls = []

    def read() -> dict[str, tuple[float | None, ...]]:
        calls.append(time.monotonic())
        begin = time.thread_time()
        while time.thread_time() - begin < 0.02:
            pass
        return {"": (float(len(calls)),)}

    reader = limit_reading_cost(SourceReader(read), max_cost=0.1, allowance_s=0.02)
    start = time.monotonic()
    while time.monotonic() - start < 0.5:
        reader.read()
        time.sleep(0.001)
    assert 2 <= len(calls) <= 5, "20 ms at once, then 20 ms every 200 ms"
