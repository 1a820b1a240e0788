# SPDX-License-Identifier: Apache-2.0
"""Single calls of Darshan logs in each version of the DXT modules, and calls made up where they are unknown."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import darshan
import pytest
from darshan_builder import DarshanBuilder

from sonde.advise.call_log import CallKind, CallLog
from sonde.advise.call_sources import read_call_log
from sonde.advise.darshan_library import open_darshan_log
from sonde.advise.darshan_log import read_darshan_job
from sonde.model.errors import UserError

SAMPLES = Path(darshan.__file__).parent
RECORDED = [
    SAMPLES / "examples" / "example_logs" / "dxt.darshan",
    SAMPLES / "tests" / "input" / "sample-dxt-simple.darshan",
    SAMPLES / "examples" / "example_logs" / "ior_hdf5_example.darshan",
]
WRITES = [(10 * k, 10, 0.1 * k, 0.1 * k + 0.05) for k in range(3)]
READS = [(0, 30, 1.0, 1.5)]
# Where the header has the regions of these modules: of the recorded logs (format 3.21), and of those made here.
RECORDED_PLACES = {"DXT_POSIX": 40 + 16 * 9, "DXT_MPIIO": 40 + 16 * 10}
PLACE = 48 + 16 * 10


def write_log(folder: Path, version: int, has_calls: bool = True) -> Path:
    counters = {
        **{"WRITES": 3, "BYTES_WRITTEN": 30, "CONSEC_WRITES": 2, "MAX_BYTE_WRITTEN": 29, "F_WRITE_TIME": 0.15},
        **{"READS": 1, "BYTES_READ": 30, "MAX_BYTE_READ": 29, "F_READ_TIME": 0.5, "OPENS": 1},
    }
    log = DarshanBuilder(processes=1, dxt_version=version).counters("POSIX", "/lus/a", counters, rank=0)
    log.calls("/lus/a", 0, READS if has_calls else (), WRITES if has_calls else ())
    return log.write(folder / f"version-{version}.darshan")


def list_calls(log: CallLog) -> list[list[tuple[float, ...]]]:
    return [task.tolist() for task in log.tasks]


@pytest.mark.parametrize("version", [1, 2])
def test_calls_of_each_version_are_read(tmp_path: Path, version: int) -> None:
    log = read_call_log(write_log(tmp_path, version))
    (rows,) = list_calls(log)
    assert [(kind, offset, length) for _, _, offset, length, _, kind in rows] == [
        (CallKind.WRITE, 0, 10),
        (CallKind.WRITE, 10, 10),
        (CallKind.WRITE, 20, 10),
        (CallKind.READ, 0, 30),
    ]
    assert [row[1] for row in rows] == pytest.approx([0.05, 0.05, 0.05, 0.5])
    assert (log.format, log.is_exact) == ("Darshan DXT", True)


def test_unknown_version_falls_back_to_counters_with_a_note(tmp_path: Path) -> None:
    path = write_log(tmp_path, 3)
    log = read_call_log(path)
    totals = log.sum_calls_by_kind()
    assert (totals[CallKind.WRITE].calls, totals[CallKind.WRITE].bytes) == (3, 30)
    assert (totals[CallKind.READ].calls, totals[CallKind.READ].bytes) == (1, 30)
    assert (log.format, log.is_exact) == ("Darshan counters", False)
    sentence = "The log has single calls in version 3 of DXT_POSIX; versions up to 2 are read, so they are left out."
    assert log.notes[:2] == (sentence, "Calls were made up from the counters of each file:")
    job = read_darshan_job(path)
    assert sentence in job.missing
    assert not any("no single calls (DXT)" in text for text in job.missing)


def test_empty_module_gives_calls_from_counters(tmp_path: Path) -> None:
    builder = DarshanBuilder(processes=1).counters("POSIX", "/lus/a", {"WRITES": 2, "BYTES_WRITTEN": 20}, rank=0)
    builder._records["DXT_POSIX"] = [b""]
    log = read_call_log(builder.write(tmp_path / "a.darshan"))
    assert log.call_count == 2
    assert log.notes[0] == "The module for single calls (DXT_POSIX) is empty."


def with_threads(content: bytes) -> bytes:
    """Records of DXT with the number of a thread after each call."""
    result, position = b"", 0
    while position < len(content):
        writes, reads = struct.unpack_from("<2q", content, position + 88)
        calls = position + 104
        result += content[position:calls]
        position = calls + 32 * (writes + reads)
        result += b"".join(content[call : call + 32] + struct.pack("<Q", call) for call in range(calls, position, 32))
    return result


def read_recorded_module(content: bytes, module: str) -> bytes:
    offset, length = struct.unpack_from("<2Q", content, RECORDED_PLACES[module])
    result, region = b"", content[offset : offset + length]
    while region:  # one stream of each rank
        stream = zlib.decompressobj()
        result += stream.decompress(region)
        region = stream.unused_data
    return result


@pytest.mark.parametrize("path", RECORDED[1:], ids=lambda path: path.name)
def test_recorded_calls_are_the_same_in_newer_versions(tmp_path: Path, path: Path) -> None:
    builder = DarshanBuilder(dxt_version=2)
    with open_darshan_log(path) as log:
        modules = [module for module in RECORDED_PLACES if module in log.modules]
        builder._names = log.paths_by_file_id()
        expected = {
            module: [(part.file, part.rank, part.host, part.read.tolist(), part.write.tolist())
                     for part in log.iterate_call_records(module)]
            for module in modules
        }  # fmt: skip
    for module in modules:
        builder._records[module] = [with_threads(read_recorded_module(path.read_bytes(), module))]
    with open_darshan_log(builder.write(tmp_path / "newer.darshan")) as log:
        assert [log.modules[module]["ver"] for module in modules] == [2, 3][: len(modules)]
        for module in modules:
            received = [(part.file, part.rank, part.host, part.read.tolist(), part.write.tolist())
                        for part in log.iterate_call_records(module)]  # fmt: skip
            assert received == expected[module] != []
    newer, recorded = read_call_log(tmp_path / "newer.darshan"), read_call_log(path)
    assert list_calls(newer) == list_calls(recorded)
    assert newer.files == recorded.files


def test_streams_of_several_ranks_are_joined(tmp_path: Path) -> None:
    path = write_log(tmp_path, 2)
    expected = list_calls(read_call_log(path))
    content = path.read_bytes()
    offset, length = struct.unpack_from("<2Q", content, PLACE)
    records = zlib.decompress(content[offset : offset + length])
    replace_module(path, zlib.compress(records[:100]) + zlib.compress(records[100:]))
    assert list_calls(read_call_log(path)) == expected


def test_damaged_calls_of_new_version_are_refused(tmp_path: Path) -> None:
    path = write_log(tmp_path, 2)
    replace_module(path, b"no stream of zlib")
    with pytest.raises(UserError, match="is damaged: its single calls cannot be decompressed"):
        read_call_log(path)


def with_wider_calls(content: bytes, call_bytes: int) -> bytes:
    """Records of DXT with 16 more bytes in front of each call, as a modified Darshan writes them."""
    result, position = b"", 0
    while position < len(content):
        writes, reads = struct.unpack_from("<2q", content, position + 88)
        calls = position + 104
        result += content[position:calls]
        position = calls + call_bytes * (writes + reads)
        ends = range(calls, position, call_bytes)
        result += b"".join(bytes(16) + content[call : call + call_bytes] for call in ends)
    return result


@pytest.mark.parametrize(("version", "call_bytes"), [(1, 32), (2, 40)])
def test_calls_of_unknown_form_are_ignored(tmp_path: Path, version: int, call_bytes: int) -> None:
    """The library begins again at the end of a module, so a reader that has lost its place never ends."""
    builder = DarshanBuilder(processes=2, dxt_version=version)
    for rank in range(2):
        builder.counters("POSIX", "/lus/a", {"WRITES": 3, "BYTES_WRITTEN": 30}, rank=rank)
        builder.calls("/lus/a", rank, (), WRITES)
    path = builder.write(tmp_path / "wider.darshan")
    content = path.read_bytes()
    offset, length = struct.unpack_from("<2Q", content, PLACE)
    records = zlib.decompress(content[offset : offset + length])
    replace_module(path, zlib.compress(with_wider_calls(records, call_bytes)))
    job = read_darshan_job(path)
    assert (job.write.calls, job.write.bytes) == (6, 60)
    assert not job.calls.write
    assert sum("The single calls of the log are not in Darshan's own form (a " in text for text in job.missing) == 1
    log = read_call_log(path)
    assert (log.format, log.notes[0]) == ("Darshan counters", next(text for text in job.missing if "form" in text))


def replace_module(path: Path, region: bytes) -> None:
    """Appends the compressed bytes of DXT_POSIX to a log and lets the header name them."""
    content = bytearray(path.read_bytes())
    struct.pack_into("<2Q", content, PLACE, len(content), len(region))
    path.write_bytes(content + region)


def test_calls_equal_pydarshan_calls() -> None:
    """PyDarshan's report of the same log is the reference."""
    report = darshan.DarshanReport(str(RECORDED[0]), read_all=False)
    report.mod_read_all_dxt_records("DXT_POSIX")
    expected = sorted(
        (record["rank"], kind, call["offset"], call["length"], call["start_time"], call["end_time"])
        for record in report.records["DXT_POSIX"]
        for kind in ("read", "write")
        for call in record[f"{kind}_segments"]
    )
    with open_darshan_log(RECORDED[0]) as log:
        received = sorted(
            (part.rank, kind, *row)
            for part in log.iterate_call_records("DXT_POSIX")
            for kind, calls in (("read", part.read), ("write", part.write))
            for row in calls.tolist()
        )
    assert received == expected
    assert len(received) > 1000


def test_incomplete_record_gives_the_calls_it_has(tmp_path: Path) -> None:
    path = write_log(tmp_path, 2)
    content = path.read_bytes()
    offset, length = struct.unpack_from("<2Q", content, PLACE)
    records = zlib.decompress(content[offset : offset + length])
    replace_module(path, zlib.compress(records[: 104 + 2 * 40 + 7]))
    assert read_call_log(path).sum_calls_by_kind()[CallKind.WRITE].bytes == 20
