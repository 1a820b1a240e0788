# SPDX-License-Identifier: Apache-2.0
"""Each limit of a reader: one sentence beyond it, and docs/concepts/safety.md states its value."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from make_record import write_run
from record_scene import Scene

from sonde.design.layout.live.saved_output import read_files
from sonde.design.layout.live.superblocks import parse_ext4_superblock
from sonde.launch.sites import read_sites
from sonde.model import documents, file_text, ranges, record
from sonde.model.confined_files import read_json_file
from sonde.model.documents import read_bounded_lines
from sonde.model.errors import UserError
from sonde.model.record import RecordReader, read_record
from sonde.model.trace import read_trace
from sonde.sources import csv_rows
from sonde.sources.columns import read_column_map
from sonde.sources.formats import read_result_file
from sonde.sources.import_defaults import ImportDefaults
from sonde.store import packs
from sonde.store.packs import PackLimitError, iterate_pack_members

Sonde = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20


def test_table_in_the_docs_states_each_limit() -> None:
    text = (ROOT / "docs" / "concepts" / "safety.md").read_text(encoding="utf-8")
    table = text.split("## Limits of what it reads")[1].split("\n## ")[0]
    values = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", table, re.MULTILINE))
    assert values == {
        "limit": "value",
        "Levels of a JSON, TOML or YAML document": f"{documents.MAX_NESTING_LEVELS}",
        "Digits of a whole number in it": f"{documents.MAX_DIGITS}",
        "Line of a record or a trace": f"{documents.MAX_LINE_BYTES // MIB} MiB",
        "JSON file in an archive": f"{documents.MAX_JSON_BYTES // MIB} MiB",
        "Plan or experiment": "16 MiB",
        "System file, events": "256 MiB",
        "Sites file, map of columns, ini file of IO500": f"{file_text.MAX_CONFIGURATION_BYTES // MIB} MiB",
        "Result or saved output of another tool": f"{file_text.MAX_OUTPUT_BYTES // MIB} MiB",
        "Names of a range in a system file": f"{ranges.MAX_EXPANDED_NAMES:,}",
        "Rows of a CSV file": f"{csv_rows.MAX_CSV_ROWS:,}",
        "Characters of a line of a CSV file": f"{csv_rows.MAX_LINE_CHARACTERS:,}",
        "Members of a pack": f"{packs.MAX_MEMBERS:,}",
        "Bytes of a pack, decompressed": f"{packs.MAX_UNPACKED_BYTES >> 30} GiB",
        "Decompressed to compressed size of a pack": f"{packs.MAX_COMPRESSION_RATIO}",
        "Name and attributes of a member of a tar": f"{packs.MAX_TAR_HEADER_BYTES // MIB} MiB",
        "List of members of a zip": f"{packs.MAX_ZIP_DIRECTORY_BYTES // MIB} MiB",
    }


def test_long_line_of_a_record_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MAX_LINE_BYTES", 1000)
    reader = RecordReader()
    for _ in range(50):
        reader.parse_chunk(b"x" * 100)
        assert len(reader._rest) <= 1100
    reader.parse_chunk(b'x\n{"type": "end", "status": "done"}\n')
    assert reader.status == "done"
    assert [problem[:37] for problem in reader.problems] == ["Line 1 of the record is longer than 0"]
    reader.parse_chunk(b"broken\n")
    assert reader.problems[1].startswith("Line 3 ")


def test_too_long_record_line_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_run(tmp_path, Scene())
    path = folder / "record.ndjson"
    lines = path.read_bytes().splitlines(keepends=True)
    monkeypatch.setattr(record, "MAX_LINE_BYTES", max(map(len, lines)))
    path.write_bytes(lines[0] + b"[" * (4 << 20) + b"\n" + b"".join(lines[1:]))
    reader = read_record(path)
    assert reader.status == "done"
    assert len(reader.problems) == 1


def test_long_lines_are_read_as_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_LINE_BYTES", 10)
    content = b"a\n" + b"b" * 9 + b"\n" + b"c" * 10 + b"\n" + b"d" * 100 + b"\ne\n" + b"f" * 35
    assert list(read_bounded_lines(io.BytesIO(content))) == [b"a\n", b"b" * 9 + b"\n", b"", b"", b"e\n", b""]


def test_trace_with_a_long_line_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = (ROOT / "schema" / "trace" / "example.ndjson").read_bytes()
    path = tmp_path / "trace.ndjson"
    path.write_bytes(example)
    assert read_trace(path).damaged_files == []
    monkeypatch.setattr(documents, "MAX_LINE_BYTES", 500)
    assert read_trace(path).damaged_files == ["trace.ndjson"]


def test_large_json_file_in_an_archive_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"a": 1}))
    assert read_json_file(path) == {"a": 1}
    os.truncate(path, documents.MAX_JSON_BYTES + 1)
    assert read_json_file(path) is None


@pytest.mark.parametrize(
    ("read", "most"),
    [
        (lambda path: read_sites([path]), file_text.MAX_CONFIGURATION_BYTES),
        (lambda path: read_column_map(path, []), file_text.MAX_CONFIGURATION_BYTES),
        (lambda path: read_files([path]), file_text.MAX_OUTPUT_BYTES),
        (lambda path: read_result_file(path, ImportDefaults()), file_text.MAX_OUTPUT_BYTES),
    ],
    ids=["sites", "columns", "output", "results"],
)
def test_large_text_is_refused(tmp_path: Path, read: Callable[[Path], object], most: int) -> None:
    path = tmp_path / "large.txt"
    path.touch()
    os.truncate(path, most + 1)
    with pytest.raises(UserError, match=f"larger than {most // MIB} MiB"):
        read(path)


def test_endless_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="larger than 1 MiB"):
        read_sites([Path("/dev/zero")])
    with pytest.raises(UserError, match="larger than 64 MiB"):
        read_files([Path("/dev/zero")])


def test_csv_beyond_its_rows_is_refused(sonde: Sonde, archive: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(csv_rows, "MAX_CSV_ROWS", 3)
    file = tmp_path / "rows.csv"
    columns = ("--map", "time=t", "--map", "rate=r GiB/s")
    file.write_text("t,r\n" + "".join(f"2026-01-0{day},1\n" for day in range(1, 4)))
    assert sonde("import", file, *columns).code == 0
    file.write_text("t,r\n" + "".join(f"2026-01-0{day},1\n" for day in range(1, 5)))
    result = sonde("import", file, *columns)
    assert (result.code, len(result.sentences)) == (2, 1)
    assert "more than 3 rows" in result.err


def test_csv_beyond_its_line_is_refused(sonde: Sonde, archive: Path, tmp_path: Path) -> None:
    file = tmp_path / "line.csv"
    for content in ("t,r\n" + "1" * (2 << 20), "t" * (2 << 20)):
        file.write_text(content)
        result = sonde("import", file, "--map", "time=t", "--map", "rate=r GiB/s")
        assert (result.code, len(result.sentences)) == (2, 1)
        assert "a line has more than 1,048,576 characters" in result.err


def test_zip_with_a_long_list_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for number in range(100):
            packed.writestr(f"{number:0100}/run.json", b"{}")
    assert len(list(iterate_pack_members(path))) == 100
    monkeypatch.setattr(packs, "MAX_ZIP_DIRECTORY_BYTES", 10_000)
    with pytest.raises(PackLimitError, match=r"list of members .* pack them as \.tar\.gz"):
        list(iterate_pack_members(path))


def test_tar_with_long_attributes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.tar"
    for length, is_accepted in ((MIB // 2, True), (2 * MIB, False)):
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tape:
            member = tarfile.TarInfo("run/file")
            member.size = 3 * MIB
            member.pax_headers = {"comment": "x" * length}
            tape.addfile(member, io.BytesIO(bytes(3 * MIB)))
        if is_accepted:
            assert [len(member.content.read()) for member in iterate_pack_members(path)] == [3 * MIB]
        else:
            with pytest.raises(PackLimitError, match="attributes of a member have more than 1 MiB"):
                list(iterate_pack_members(path))


def test_superblock_with_impossible_blocks_is_no_file_system() -> None:
    head = bytearray(1024)
    head[56:58] = b"\x53\xef"
    assert parse_ext4_superblock(bytes(head), "/dev/a") is not None
    head[24:28] = b"\xff\xff\xff\xff"  # blocks of 2^(2^32) KiB: a number of 512 MB
    assert parse_ext4_superblock(bytes(head), "/dev/a") is None
