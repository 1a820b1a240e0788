# SPDX-License-Identifier: Apache-2.0
"""Records: whole, cut off anywhere, with lines nobody knows, from several stages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sonde.model import lines
from sonde.model.errors import RecordError
from sonde.model.line_decoding import LINE_TYPES, parse_record_line
from sonde.model.lines import PhaseEndLine, SeriesLine, UnknownLine
from sonde.model.record import RecordReader, merge_stage_records, read_record
from sonde.model.schemas import read_schema_text

FAKE_ENGINE_FILE = Path(__file__).parents[1] / "fake_engine.py"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A whole record of the fake engine."""
    folder = tmp_path_factory.mktemp("record")
    plan = {
        "id": "p",
        "target": {"path": "/x"},
        "data": {"access": {"transfer": "1MiB", "volume": "64MiB"}},
        "phases": [
            {"id": "write", "op": "write"},
            {"id": "read", "op": "read", "before": [{"kind": "sync"}]},
        ],
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    command = [
        sys.executable,
        str(FAKE_ENGINE_FILE),
        "run",
        str(folder / "plan.json"),
        "--record",
        str(folder / "r"),
        "--run-id",
        "x",
    ]
    environment = {**os.environ, "FAKE_MODE": "ok", "FAKE_SECONDS": "0.1"}
    subprocess.run(command, check=True, env=environment)
    return (folder / "r").read_bytes()


def test_complete_record_is_parsed(record: bytes) -> None:
    reader = RecordReader()
    lines = reader.parse_chunk(record) + reader.finish_input()
    assert len(lines) == record.count(b"\n")
    assert reader.status == "done"
    assert reader.problems == []
    assert list(reader.phases) == ["write", "read"]
    read = reader.phases["read"]
    assert read.treatments[0].kind == "sync"
    assert read.end is not None
    assert read.end.rates.total is not None
    assert read.end.rates.total.bytes_per_s == pytest.approx(1e9)
    assert read.end.latency["read"].p99_ns == 9000
    assert read.end.rates.stonewall is None, "absent is not zero"
    assert read.total_series is not None
    assert sum(read.total_series.bytes) > 0
    assert reader.nodes[0].file_system.type == "ext4"


def test_fake_engine_writes_records_that_follow_the_schema(record: bytes) -> None:
    """The other tests are worth nothing if the fake speaks another language."""
    validator = Draft202012Validator(json.loads(read_schema_text("record/record.schema.json")))
    for line in record.splitlines():
        assert [error.message for error in validator.iter_errors(json.loads(line))] == []


def test_each_line_type_of_the_schema_has_a_class() -> None:
    schema = json.loads(read_schema_text("record/record.schema.json"))
    line_types = {name.removeprefix("line_") for name in schema["$defs"] if name.startswith("line_")}
    assert line_types == set(LINE_TYPES)


def test_each_member_of_the_schema_is_read_or_excluded() -> None:
    """A member of the record that the lab does not read is lost in silence."""
    schema = json.loads(read_schema_text("record/record.schema.json"))
    # told apart by hand, read elsewhere, or of no use to the lab
    of_phase = ("phase_end", "series", "histogram", "nodes", "tasks", "targets", "layout")
    left_out = {name: {"index", "op"} for name in of_phase} | {"treatment": {"node"}}
    left_out["phase_end"] |= {"measured", "tasks"}
    for name, cls in LINE_TYPES.items():
        if name == "node":
            continue  # facts about machines, of which only some are for tables
        members = set(schema["$defs"][f"line_{name}"].get("properties", {}))
        known_members = {field.name for field in fields(cls)} | left_out.get(name, set()) | {"type", "t"}
        assert members <= known_members, f"{name}: {members - known_members}"


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 10**9), pieces=st.integers(1, 9))
def test_truncated_record_preserves_the_lines_before_the_cut(record: bytes, cut: int, pieces: int) -> None:
    part = record[: cut % (len(record) + 1)]
    reader = RecordReader()
    step = max(1, len(part) // pieces)
    line_count = 0
    for start in range(0, len(part), step):
        line_count += len(reader.parse_chunk(part[start : start + step]))
    line_count += len(reader.finish_input())
    complete_lines = part.count(b"\n")
    assert line_count in (complete_lines, complete_lines + 1)  # the last line may be whole without its end of line
    assert reader.status == ("done" if line_count == record.count(b"\n") else "lost")
    torn = part.rpartition(b"\n")[2]
    assert len(reader.problems) == (1 if torn.strip() and line_count == complete_lines else 0)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"3",
        b'{"t": 1}',
        b'{"type": 3}',
        b'{"type":"series","slice_s":"x"}',
        b"\xff\xfe",
        b'{"type":"end","exit_code":NaN}',
    ],
)
def test_meaningless_line_is_skipped_and_reported(record: bytes, line: bytes) -> None:
    first, _, remainder = record.partition(b"\n")
    reader = RecordReader()
    reader.parse_chunk(first + b"\n" + line + b"\n" + remainder)
    reader.finish_input()
    assert reader.status == "done"
    assert len(reader.problems) == 1
    assert reader.problems[0].startswith("Line 2 of the record")


def test_unknown_types_and_members_are_ignored() -> None:
    kind, line = parse_record_line('{"type":"weather","t":2,"sun":true}')
    assert kind == "weather"
    assert line == UnknownLine(t=2.0, type="weather")
    _, end = parse_record_line('{"type":"end","t":1,"status":"done","mood":"good","exit_code":0.0,"text":null}')
    assert end == lines.EndLine(t=1.0, status="done", exit_code=0, text="")


def test_integral_floats_are_accepted_where_integers_belong() -> None:
    _, line = parse_record_line('{"type":"series","slice_s":1,"bytes":[1.0,2],"task_rate":{"p50":[null,3]}}')
    assert isinstance(line, SeriesLine)
    assert (line.slice_s, line.bytes, line.task_rate.p50) == (1.0, (1, 2), (None, 3.0))
    with pytest.raises(RecordError, match="bytes"):
        parse_record_line('{"type":"series","bytes":[1.5]}')
    with pytest.raises(RecordError, match="measured"):
        parse_record_line('{"type":"phase_begin","measured":1}')


def test_lines_of_a_phase_that_never_began_are_a_problem_not_a_crash() -> None:
    reader = RecordReader()
    reader.parse_chunk(
        b'{"type":"phase_end","t":1,"phase":"ghost"}\n{"type":"finding","t":1,"phase":"ghost","id":"x","text":"y"}\n'
    )
    assert len(reader.problems) == 1
    assert [finding.id for finding in reader.findings] == ["x"]


def test_treatments_before_a_phase_belong_to_it() -> None:
    reader = RecordReader()
    reader.parse_chunk(
        b'{"type":"treatment","t":1,"phase":"r","kind":"sync"}\n{"type":"phase_begin","t":2,"phase":"r","op":"read"}\n'
    )
    assert [treatment.kind for treatment in reader.phases["r"].treatments] == ["sync"]
    assert reader.current_phase is reader.phases["r"]


def test_stages_become_one_record(record: bytes) -> None:
    second = record.replace(b'"phase": "write"', b'"phase": "write2"').replace(b'"phase": "read"', b'"phase": "read2"')
    joined = merge_stage_records([record, second + b'{"torn'], [0.0, 100.0])
    reader = RecordReader()
    reader.parse_chunk(joined)
    assert reader.problems == []
    assert list(reader.phases) == ["write", "read", "write2", "read2"]
    kinds = [json.loads(line)["type"] for line in joined.splitlines()]
    assert kinds.count("run") == kinds.count("end") == kinds.count("node") == 1
    assert kinds[0] == "run"
    assert kinds[-1] == "end"
    assert reader.phases["write2"].begin.t >= 100
    assert reader.end is not None
    assert reader.end.t >= 100


def test_stage_without_end_line_does_not_end_the_record_twice(record: bytes) -> None:
    cut = b"\n".join(record.split(b"\n")[:4]) + b"\n"
    joined = merge_stage_records([record, cut], [0.0, 1.0])
    assert joined.count(b'"type":"end"') == 1


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_garbage_never_raises(pieces: list[bytes]) -> None:
    reader = RecordReader()
    for piece in pieces:
        reader.parse_chunk(piece)
    reader.finish_input()
    assert reader.status == "lost"


def test_a_file_is_read_in_pieces(record: bytes, tmp_path: Path) -> None:
    file = tmp_path / "record.ndjson"
    file.write_bytes(record * 1)
    reader = read_record(file)
    end: Any = reader.phases["write"].end
    assert isinstance(end, PhaseEndLine)
    assert reader.status == "done"
