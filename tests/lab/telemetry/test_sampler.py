# SPDX-License-Identifier: Apache-2.0
"""The sampler: what it writes, what it survives, and what a reader gets back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonde.conduct.sampling import describe_lost_sources
from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import encode_telemetry_lines, parse_telemetry_lines, read_telemetry_files
from sonde.telemetry.sampler import TelemetrySampler
from sonde.telemetry.source import LocalSource, ReadingsByPart, SourceReader, UnavailableSourceError

COLUMNS = ("disk_reads", "disk_read_bytes")


def counting_source(readings: list[ReadingsByPart]) -> LocalSource:
    """A source that returns the next of `readings` each time, then fails as a vanished device does."""
    remaining = iter(readings)

    def read() -> ReadingsByPart:
        try:
            return next(remaining)
        except StopIteration:
            raise OSError(19, "No such device") from None

    return LocalSource("disks", "counts", "node", COLUMNS, lambda root: SourceReader(read))


def absent_source() -> LocalSource:
    def open_reader(root: Path) -> SourceReader:
        raise UnavailableSourceError("/sys/class/infiniband: No such file or directory; this node has no InfiniBand.")

    return LocalSource("infiniband", "counts", "node", ("network_sent_bytes",), open_reader)


def sample(path: Path, sources: list[LocalSource], count: int) -> None:
    """`count` samples: one on entering, one on leaving, the others in between."""
    with TelemetrySampler(path, 3600, sources) as sampler:
        for _ in range(count - 2):
            sampler.take_sample()


def test_unchanged_parts_are_omitted_and_read_back_as_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.ndjson"
    readings: list[ReadingsByPart] = [
        {"sda": (1, 100), "sdb": (5, 50)},
        {"sda": (2, 200), "sdb": (5, 50)},
        {"sda": (3, 300), "sdb": (6, 60)},
    ]
    sample(path, [counting_source(readings)], 3)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("disks") for line in lines[1:]] == [
        {"sda": [1, 100], "sdb": [5, 50]},
        {"sda": [2, 200]},
        {"sda": [3, 300], "sdb": [6, 60]},
    ]
    times = [line["time"] for line in lines[1:]]
    data = TelemetryData(read_telemetry_files(tmp_path))
    assert data.compute_increase("disk_read_bytes", "sdb", times[0], times[1]) == 0
    assert data.compute_increase("disk_read_bytes", "sdb", times[1], times[2]) == pytest.approx(10)
    assert data.compute_increase("disk_read_bytes", "sda", times[0], times[2]) == pytest.approx(200)


def test_vanished_source_is_recorded_and_sampling_continues(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.ndjson"
    other = counting_source([{"x": (n, n)} for n in range(9)])
    lasting = LocalSource("paging", "counts", "node", COLUMNS, other.open_reader)
    sample(path, [counting_source([{"sda": (1, 1)}]), lasting], 4)
    (file,) = read_telemetry_files(tmp_path)
    assert "No such device" in file.lost["disks"]
    assert sum(entry.source == "paging" for entry in file.samples) == 4


def test_vanished_source_is_a_finding_of_the_run(tmp_path: Path) -> None:
    with TelemetrySampler(tmp_path / "telemetry.ndjson", 3600, [counting_source([{"sda": (1, 1)}])]) as sampler:
        assert describe_lost_sources(sampler) == []
        sampler.take_sample()
    (finding,) = describe_lost_sources(sampler)
    assert (finding["id"], finding["severity"]) == ("telemetry_lost", "info")
    assert finding["text"].startswith("The counters of disks on ")
    assert "disappeared during the run: " in finding["text"]
    assert "No such device" in finding["text"]
    assert describe_lost_sources(None) == []


def test_absent_source_gives_the_reason(tmp_path: Path) -> None:
    sample(tmp_path / "telemetry.ndjson", [counting_source([{}, {}]), absent_source()], 2)
    (file,) = read_telemetry_files(tmp_path)
    assert "InfiniBand" in file.unavailable["infiniband"]


def test_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    sample(tmp_path / "missing" / "telemetry.ndjson", [counting_source([{}, {}])], 2)
    assert read_telemetry_files(tmp_path) == []


def test_cut_file_keeps_the_complete_lines(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.ndjson"
    sample(path, [counting_source([{"sda": (n, n)} for n in range(5)])], 5)
    complete_text = path.read_bytes()
    path.write_bytes(complete_text[:-10])
    (file,) = read_telemetry_files(tmp_path)
    assert (len(file.samples), file.unreadable_lines) == (4, 1)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbage\n",
        b"\xff\xfe\n",
        b'{"type":"sample"}\n',
        b'{"type":"sample","time":NaN,"disks":{"sda":[1,2]}}\n',
        b'{"type":"sample","time":1e999,"disks":{}}\n',
        b'{"type":"sample","time":1,"disks":{"sda":["x",2]}}\n',
        b'{"type":"sample","time":1,"disks":[]}\n',
        b'{"type":"telemetry","schema":"sonde-telemetry/9","host":"h","sources":{}}\n',
        b"[" * 200_000 + b"\n",
    ],
)
def test_malformed_line_is_counted_and_skipped(line: bytes) -> None:
    header = b'{"type":"telemetry","schema":"sonde-telemetry/1","host":"h","sources":{"disks":["disk_reads","x"]}}\n'
    good = b'{"type":"sample","time":2,"disks":{"sda":[3,4]}}\n'
    file = parse_telemetry_lines("t", [header, line, good])
    assert file.unreadable_lines == 1
    assert [(entry.time, dict(entry.parts)) for entry in file.samples] == [(2.0, {"sda": (3.0, 4.0)})]


def test_written_file_reads_back_the_same(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.ndjson"
    sample(path, [counting_source([{"sda": (1, None)}, {"sda": (2, 7)}]), absent_source()], 3)
    (file,) = read_telemetry_files(tmp_path)
    again = parse_telemetry_lines(file.name, encode_telemetry_lines(file))
    assert again == file
