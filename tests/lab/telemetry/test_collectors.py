# SPDX-License-Identifier: Apache-2.0
"""Counters that other collectors stored: collectl, InfluxDB line protocol, scrapes of exporters; known values."""

from __future__ import annotations

from datetime import timedelta, timezone
from pathlib import Path

import pytest

from sonde.model.errors import UserError
from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.foreign_files import read_foreign_telemetry
from sonde.telemetry.imports import TelemetryDefaults
from sonde.telemetry.metrics import COUNTER_METRICS
from sonde.telemetry.sources.prometheus_names import METRIC_ALIASES

# collectl 4.3 -P -scmnd and -P -sD, some columns left out.
COLLECTL = """\
################################################################################
# Collectl:   V4.3.20.1-1  HiRes: 1  Options: -scdmn -P
# Host:       n7  DaemonOpts:
################################################################################
#Date Time [CPU]User% [CPU]Nice% [CPU]Sys% [CPU]Wait% [CPU]Irq% [CPU]Soft% [MEM]Cached [MEM]Dirty [NET]RxKBTot \
[NET]TxKBTot [DSK]ReadKBTot [DSK]WriteKBTot
20261123 23:49:27 1 2 3 10 0 1 1000 20 8 16 4 1860
20261123 23:49:28 1 2 3 10 0
"""
COLLECTL_DISKS = """\
#Date Time [DSK:vda]Name [DSK:vda]Reads [DSK:vda]RMerge [DSK:vda]RKBytes [DSK:vda]WaitR [DSK:vda]Writes \
[DSK:vda]WMerge [DSK:vda]WKBytes [DSK:vda]WaitW [DSK:vda]Request [DSK:vda]QueLen [DSK:vda]Wait [DSK:vda]SvcTim \
[DSK:vda]Util
20261123 23:49:36 vda 0 0 10 0 317 0 1940 0 6 4 0 0 25
"""
# Telegraf 1.28, outputs.file.
TELEGRAF = """\
diskio,host=n\\ 7,name=sda io_time=400i,read_bytes=1024i,read_time=30i,reads=2i,weighted_io_time=500i,\
write_bytes=2048i,write_time=70i,writes=3i 1700000000000000000
diskio,host=n\\ 7,name=sda io_time=900i,read_bytes=5120i,read_time=30i,reads=3i,weighted_io_time=500i,\
write_bytes=2048i,write_time=70i,writes=3i 1700000010000000000
net,host=n\\ 7,interface=ib0 bytes_recv=10i,bytes_sent=20i,speed=-1i 1700000000000000000
lustre2,host=oss1,name=fs1-OST0000 read_bytes=100i,read_calls=4i,write_bytes=200i,write_calls=5i 1700000000000000000
lustre2,host=oss1,name=fs1-OST0000,jobid=24 jobstats_read_bytes=1i 1700000000000000000
cpu,cpu=cpu0,host=n\\ 7 usage_idle=99.5 1700000000000000000
system,host=n\\ 7 uptime_format="1, day" 1700000000000000000
not a line
"""
EXPORTER = """\
# HELP node_disk_read_bytes_total The total number of bytes read successfully.
# TYPE node_disk_read_bytes_total counter
node_disk_read_bytes_total{device="sda"} READ
node_disk_io_time_seconds_total{device="sda"} 1.5
node_pressure_io_waiting_seconds_total 2.5
node_load1 0.5
lustre_job_read_bytes_total{component="ost",jobid="24",target="fs1-OST0000"} 4096
lustre_read_kibibytes_total{component="ost",target="fs1-OST0000"} 3 1700000000500
"""


def read_text(tmp_path: Path, text: str, **defaults: timezone) -> dict[str, TelemetryFile]:
    """The files in a text by host, as the command reads them."""
    (tmp_path / "foreign").write_text(text, encoding="utf-8")
    files = read_foreign_telemetry(tmp_path / "foreign", TelemetryDefaults("n1", **defaults))
    return {file.host: file for file in files}


def test_collectl_rates_are_bytes_a_second(tmp_path: Path) -> None:
    file = read_text(tmp_path, COLLECTL, zone=timezone(timedelta(hours=1)))["n7"]
    values = {sample.source: sample.parts[""] for sample in file.samples}
    assert values == {
        "all-disks": (4096, 1860 * 1024),
        "all-interfaces": (8192, 16384),
        "processors": pytest.approx((0.07, 0.1)),
        "memory": (1000 * 1024, 20 * 1024),
    }
    assert {sample.time for sample in file.samples} == {1795474167.0}, "22:49:27 UTC"
    assert file.unreadable_lines == 1


def test_collectl_disks_are_parts(tmp_path: Path) -> None:
    (sample,) = read_text(tmp_path, COLLECTL_DISKS)["n1"].samples
    assert sample.parts == {"vda": (10240, 1940 * 1024, 0.25, 4)}


def test_line_protocol_becomes_counters(tmp_path: Path) -> None:
    files = read_text(tmp_path, TELEGRAF)
    data = TelemetryData(list(files.values()))
    assert set(files) == {"n 7", "oss1"}
    assert data.compute_increase("disk_read_bytes", "sda", 1700000000, 1700000010, "n 7") == 4096
    assert data.compute_increase("disk_busy_s", "sda", 1700000000, 1700000010, "n 7") == pytest.approx(0.5)
    (sample,) = files["oss1"].samples
    assert dict(sample.parts) == {"fs1-OST0000": (100, 200, 4, 5)}
    assert files["oss1"].unreadable_lines == 1


def test_scrapes_of_an_exporter_become_counters(tmp_path: Path) -> None:
    scrapes = ((1700000000, "1e+06"), (1700000005, "2.5e+06"))
    text = "".join(f"{when}\n{EXPORTER.replace('READ', value)}" for when, value in scrapes)
    file = read_text(tmp_path, text)["n1"]
    data = TelemetryData([file])
    assert data.compute_increase("disk_read_bytes", "sda", 1700000000, 1700000005) == 1.5e6
    parts = {(sample.source, part): values for sample in file.samples for part, values in sample.parts.items()}
    expected = {
        ("lustre-jobs:job_read_bytes", "fs1-OST0000 24"): (4096,),
        ("lustre-targets:target_read_bytes", "fs1-OST0000"): (3072,),
        ("pressure:pressure_some_s", "io"): (2.5,),
    }
    assert {key: parts[key] for key in expected} == expected
    assert 1700000000.5 in {sample.time for sample in file.samples}, "a time of the exporter counts"


def test_every_alias_stands_for_a_metric() -> None:
    assert {alias.metric for alias in METRIC_ALIASES.values()} <= set(COUNTER_METRICS)


@pytest.mark.parametrize("text", [COLLECTL, COLLECTL_DISKS, TELEGRAF, "1700000000\n" + EXPORTER])
def test_truncated_collection_is_refused_or_read(tmp_path: Path, text: str) -> None:
    for length in range(0, len(text), 7):
        try:
            read_text(tmp_path, text[:length])
        except UserError:
            continue
