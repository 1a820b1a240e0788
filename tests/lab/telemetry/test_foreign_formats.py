# SPDX-License-Identifier: Apache-2.0
"""Counters of other programs, from recorded samples of their output, against values read by hand."""

from __future__ import annotations

import json
from datetime import UTC, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import UserError
from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import TelemetryFile, encode_telemetry_lines
from sonde.telemetry.foreign_files import read_foreign_telemetry
from sonde.telemetry.imports import TelemetryDefaults, cut_files_to_interval
from sonde.telemetry.list import TELEMETRY_FORMATS
from sonde.telemetry.sources.lustre import parse_stats_file, summarize_client, summarize_target

STATS_1_8 = """\
snapshot_time             1284241188.775657 secs.usecs
read_bytes                1023683 samples [bytes] 0 1048576 471987441490
write_bytes               100 samples [bytes] 4096 1048576 104857600 10009909738331963392
get_page                  1123783 samples [usec] 0 273229 411988283 2328085303377
cache_access              115230000 samples [pages] 1 1 115230000
"""
STATS_2_15 = """\
snapshot_time             1672531200.123456789 secs.nsecs
start_time                1672530000.000000000 secs.nsecs
elapsed_time              1200.123456789 secs.nsecs
read_bytes                1705491 samples [bytes] 4096 4194304 7153090166784 29999999999999999999
write_bytes               10 samples [bytes] 4096 4096 40960 167772160
read                      1705491 samples [usecs] 966 411413 3265635927 10987721691189
write                     10 samples [usecs] 100 200 1500 230000
mkdir                     320034 samples [usecs] 61 3758761 115926351 177867624572835
statfs                    5 samples [usecs] 1 2 7 11
statfs                    9 samples [usecs] 1 2 7 11
"""
CEREBRO = (
    "1284241188 ost: 2;oss1;0.184;13.33;lflood-OST0001;5037062071;5283366970;1034824137728;1085362510848;1788336930816;"
    "1786842710016;3409706;129;0;1;2;0;0;COMPLETE 129/129 0s remaining;"
    "lflood-OST0002;1;2;3;4;500;600;7;129;0;1;2;0;0;COMPLETE 129/129 0s remaining;\n"
)
MMPMON = (
    "_fs_io_s_ _n_ 199.18.1.8 _nn_ node1 _rc_ 0 _t_ 1066660148 _tu_ 407431 _cl_ cl.x _fs_ gpfs2 _d_ 2 _br_ 6291456 "
    "_bw_ 314572800 _oc_ 10 _cc_ 16 _rdc_ 101 _wc_ 300 _dir_ 7 _iu_ 2\n"
)


def read_text(tmp_path: Path, text: str, host: str = "server", **defaults: Any) -> list[TelemetryFile]:
    """The files in a text, as the command reads them."""
    path = tmp_path / "foreign"
    path.write_text(text, encoding="utf-8")
    return read_foreign_telemetry(path, TelemetryDefaults(host, **defaults))


def test_stats_of_lustre_1_8_have_no_request_latencies() -> None:
    stats = parse_stats_file(STATS_1_8)
    assert stats.time == 1284241188.775657
    assert summarize_target(stats) == (471987441490, 104857600, 1023683, 100, None, None, 0, None)


def test_stats_of_lustre_2_15_have_latencies_in_microseconds() -> None:
    values = summarize_target(parse_stats_file(STATS_2_15))
    assert values[:6] == pytest.approx((7153090166784, 40960, 1705491, 10, 3265.635927, 0.0015))
    assert values[6:] == pytest.approx((320034 + 5, 115.926351 + 7e-6))


def test_line_of_a_client_counts_calls_on_names() -> None:
    stats = parse_stats_file(
        "snapshot_time 1.5 secs.usecs\nread_bytes 3 samples [bytes] 1 2 5\nopen 7 samples [regs]\n"
        "close 7 samples [regs]\nioctl 9 samples [regs]\n"
    )
    assert summarize_client(stats) == (5, 0, 3, 0, 14)


def test_repeated_lctl_output_becomes_series(tmp_path: Path) -> None:
    later = STATS_1_8.replace("1284241188.77", "1284241198.77").replace("471987441490", "471988490066")
    text = "".join(f"obdfilter.fs1-OST0003.stats=\n{block}" for block in (STATS_1_8, later))
    text += "llite.fs1-ffff8881ac3e8000.stats=\nsnapshot_time 1284241188.0 secs.usecs\nopen 2 samples [regs]\n"
    text += "obdfilter.fs1-OST0004.stats=\ngarbage\n"
    (file,) = read_text(tmp_path, text, host="oss1")
    data = TelemetryData([file])
    grown = data.compute_increase("target_read_bytes", "fs1-OST0003", 1284241188.775657, 1284241198.775657, "oss1")
    assert grown == pytest.approx(471988490066 - 471987441490)
    assert file.columns.keys() == {"lustre-targets", "lustre-client"}
    assert file.unreadable_lines == 1


def test_cerebro_line_holds_every_target(tmp_path: Path) -> None:
    (file,) = read_text(tmp_path, CEREBRO + "1284241193 ost: 2;oss1;broken\n")
    assert (file.host, file.unreadable_lines) == ("oss1", 1)
    by_source = {sample.source: sample for sample in file.samples}
    assert by_source["server"].parts[""] == pytest.approx((0.00184,))
    assert by_source["lustre-targets"].parts == {
        "lflood-OST0001": (1788336930816, 1786842710016),
        "lflood-OST0002": (500, 600),
    }


def test_lmt_rows_use_the_configured_zone(tmp_path: Path) -> None:
    text = "TIMESTAMP,OST_NAME,PCT_CPU,READ_BYTES,WRITE_BYTES\n2014-08-23 05:00:00,fs1-OST0000,1,10,20\nx,y,z,1,2\n"
    (file,) = read_text(tmp_path, text, zone=timezone(timedelta(hours=-7)))
    assert [(sample.time, dict(sample.parts)) for sample in file.samples] == [(1408795200.0, {"fs1-OST0000": (10, 20)})]
    assert file.unreadable_lines == 1


def test_lmt_rows_of_the_simulator_are_read(tmp_path: Path) -> None:
    text = "TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES\n1408795200.000,fs1-OST0000,0,0\n1408795205.000,fs1-OST0000,5,7\n"
    data = TelemetryData(read_text(tmp_path, text))
    assert data.compute_increase("target_written_bytes", "fs1-OST0000", 1408795200, 1408795205) == 7


def test_mmpmon_counts_bytes_and_calls_of_a_file_system(tmp_path: Path) -> None:
    failed = MMPMON.replace("_rc_ 0", "_rc_ 1")
    (file,) = read_text(tmp_path, "mmpmon node 199.18.1.8\n" + MMPMON + failed)
    (sample,) = file.samples
    assert (file.host, sample.time, sample.source) == ("node1", 1066660148.407431, "gpfs-file-systems")
    assert sample.parts == {"gpfs2": (6291456, 314572800, 101, 300, 10 + 16 + 7 + 2)}
    assert file.unreadable_lines == 1


def test_values_that_are_not_finite_are_unknown(tmp_path: Path) -> None:
    (file,) = read_text(
        tmp_path, MMPMON.replace("_bw_ 314572800", "_bw_ 1e999") + MMPMON.replace("_tu_ 4", "_tu_ 1e999 4")
    )
    assert [sample.parts["gpfs2"][:2] for sample in file.samples] == [(6291456, None)]
    assert b"".join(encode_telemetry_lines(file)).count(b"null") == 1


def sadf_document(**disk: Any) -> str:
    stamp = {"date": "2026-11-20", "time": "12:00:01", "tz": "UTC", "interval": 1}
    statistics = [
        {"timestamp": stamp},  # the first record often has nothing but its time
        {"timestamp": {**stamp, "time": "12:00:02"}, "disk": [{"disk-device": "sda", **disk}]},
    ]
    return json.dumps({"sysstat": {"hosts": [{"nodename": "n7", "statistics": statistics}]}})


@pytest.mark.parametrize(
    "disk",
    [
        {"rkB": 100.0, "wkB": 50.0, "aqu-sz": 2.5, "util-percent": 98.0},
        {"rd_sec": 200.0, "wr_sec": 100.0, "avgqu-sz": 2.5, "util-percent": 98.0},
    ],
    ids=["kibibytes", "sectors"],
)
def test_sadf_names_of_old_and_new_versions_agree(tmp_path: Path, disk: dict[str, float]) -> None:
    (file,) = read_text(tmp_path, sadf_document(**disk))
    (sample,) = file.samples
    assert file.host == "n7"
    assert sample.parts["sda"] == pytest.approx((102400, 51200, 0.98, 2.5))


def test_prometheus_aliases_give_one_metric(tmp_path: Path) -> None:
    series = [
        {"metric": {"__name__": name, "instance": "oss1:9169", "target": "fs1-OST0000"}, "values": [[10, a], [20, b]]}
        for name, a, b in (("lustre_read_kibibytes_total", "1", "3"), ("unknown_total", "0", "1"))
    ]
    document = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    (file,) = read_text(tmp_path, json.dumps(document))
    assert TelemetryData([file]).compute_increase("target_read_bytes", "fs1-OST0000", 10, 20, "oss1") == 2048
    assert file.unreadable_lines == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES\n",
        "obdfilter.x.stats=\n samples [",
        '{"status":"success","data":{"resultType":"vector"}}',
        '{"status":"success","data":{"resultType":"matrix","result":[{}]}}',
        '{"sysstat": {"hosts": 7}}',
        '{"sysstat": [',
        MMPMON.replace("_t_ 1066660148", "_t_ soon"),
        "[" * 100_000,
    ],
)
def test_unusable_file_is_refused_with_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError) as refusal:
        read_text(tmp_path, text)
    assert str(refusal.value).startswith(str(tmp_path / "foreign"))
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize("text", [STATS_1_8, CEREBRO, MMPMON, sadf_document(rkB=1.0)])
def test_truncated_file_never_raises_another_error(tmp_path: Path, text: str) -> None:
    text_with_head = f"obdfilter.fs1-OST0003.stats=\n{text}" if text is STATS_1_8 else text
    for length in range(0, len(text_with_head), 3):
        try:
            read_text(tmp_path, text_with_head[:length])
        except UserError:
            continue


def test_format_names_are_unique_and_begin_with_the_program() -> None:
    assert len({entry.name for entry in TELEMETRY_FORMATS}) == len(TELEMETRY_FORMATS)
    assert all(": " in entry.description for entry in TELEMETRY_FORMATS)


def test_cut_keeps_one_sample_before_and_after_the_interval(tmp_path: Path) -> None:
    rows = "".join(f"{time},a,{time},0\n" for time in range(0, 100, 10))
    files = read_text(tmp_path, "TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES\n" + rows, zone=UTC)
    (file,) = cut_files_to_interval(files, 35, 55)
    assert [sample.time for sample in file.samples] == [30, 40, 50, 60]
    assert TelemetryData([file]).compute_increase("target_read_bytes", "a", 35, 55) == pytest.approx(20)
