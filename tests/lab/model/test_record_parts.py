# SPDX-License-Identifier: Apache-2.0
"""Lines of a record that come twice, late, or for an unknown phase or node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import ReportError
from sonde.model.lines import NodeLine, PhaseBeginLine, PhaseEndLine, RunLine, SeriesLine, TableLine, TreatmentLine
from sonde.model.record import PhaseRecord, RecordReader, merge_stage_records, read_record
from sonde.model.run import RecordedRun, make_recorded_run, read_recorded_run_folder


def read_record_lines(*lines: dict[str, Any]) -> RecordReader:
    record = RecordReader()
    record.parse_chunk("".join(json.dumps(line) + "\n" for line in lines).encode())
    return record


BEGIN = {"type": "phase_begin", "phase": "p"}


def make_phase_with_residencies(*shares: float | None, end_residency: float | None = None) -> PhaseRecord:
    """A phase before which treatments found so much in the page cache, one after the other."""
    treatments = [TreatmentLine(phase="p", residency_after=share) for share in shares]
    return PhaseRecord(PhaseBeginLine(phase="p"), PhaseEndLine(residency=end_residency), treatments)


def test_residency_falls_back_to_the_last_measuring_treatment() -> None:
    assert make_phase_with_residencies(0.5, 0.25, None, end_residency=0.125).residency == 0.125
    assert make_phase_with_residencies(0.5, end_residency=0.0).residency == 0.0
    assert make_phase_with_residencies(0.5, 0.25, None).residency == 0.25
    assert make_phase_with_residencies(0.5, 0.0).residency_after_treatments == 0.0
    assert make_phase_with_residencies(0.5, 0.25, end_residency=0.125).residency_after_treatments == 0.25
    assert make_phase_with_residencies(None).residency is None
    assert make_phase_with_residencies().residency is None
    assert PhaseRecord(PhaseBeginLine(phase="p"), treatments=[TreatmentLine(residency_after=0.5)]).residency == 0.5


def test_the_series_of_a_phase_is_the_first_over_all_tasks() -> None:
    series = [SeriesLine(scope=scope, slice_s=index) for index, scope in enumerate(("node", "all", "all"))]
    assert PhaseRecord(PhaseBeginLine(phase="p"), series=series).total_series == series[1]
    assert PhaseRecord(PhaseBeginLine(phase="p"), series=series[:1]).total_series is None


def test_task_times_include_only_tasks_that_worked() -> None:
    """Of five rows, one has no start, one no end, and one ends at its start. A missing node is the first node."""
    rows = ((1.0, 3.0, 7), (None, 3.0, 1), (1.0, None, 1), (2.0, 2.0, 1), (0.0, 0.5, None))
    phase = PhaseRecord(PhaseBeginLine(phase="p"), tasks=[TableLine(columns=("start_s", "end_s", "node"), rows=rows)])
    assert phase.task_times == ([2.0, 0.5], [7, 0])
    phase.tasks.append(TableLine(columns=("start_s", "end_s"), rows=((1.0, 3.0),)))
    assert phase.task_times == ([], [])
    assert PhaseRecord(PhaseBeginLine(phase="p")).task_times == ([], [])


def test_duplicate_lines_keep_the_first_run_and_the_last_end() -> None:
    record = read_record_lines(
        {"type": "run", "id": "a"}, {"type": "run", "id": "b"},
        {"type": "node", "node": 0, "host": "x"}, {"type": "node", "node": 0, "host": "y"},
        {"type": "node", "node": 1, "host": "z"},
        {"type": "end", "status": "failed"}, {"type": "end", "status": "done"},
    )  # fmt: skip
    assert record.run is not None
    assert (record.run.id, [node.host for node in record.nodes], record.status) == ("a", ["x", "z"], "done")
    assert RecordReader().status == "lost"


def test_each_line_of_a_phase_is_stored_in_its_member() -> None:
    kinds = ("series", "histogram", "nodes", "tasks", "layout", "targets", "phase_end", "progress")
    lines_of_phase = (
        {"type": "progress", "phase": "p", "ops": 2}, {"type": "finding", "phase": "p", "id": "f"},
        {"type": "error", "phase": "p", "text": "e"}, {"type": "finding", "phase": "q", "id": "g"},
        {"type": "finding", "id": "h"}, {"type": "error", "phase": "q", "text": "i"}, {"type": "weather"},
    )  # fmt: skip
    record = read_record_lines(BEGIN, *({"type": kind, "phase": "p"} for kind in kinds), *lines_of_phase)
    phase = record.phases["p"]
    assert phase.id == "p"
    assert [len(lines) for lines in (phase.series, phase.histograms, phase.nodes, phase.tasks)] == [1, 1, 1, 1]
    assert phase.layout is not None
    assert phase.targets is not None
    assert phase.end is not None
    assert phase.progress is not None
    assert phase.progress.ops == 2, "the latest"
    assert [finding.id for finding in phase.findings] == ["f"]
    assert [error.text for error in phase.errors] == ["e"]
    assert [finding.id for finding in record.findings] == ["g", "h"]
    assert [finding.id for finding in record.all_findings] == ["g", "h", "f"]
    assert [error.text for error in record.errors] == ["e", "i"]
    assert record.problems == []


@pytest.mark.parametrize(
    "line_type", ["series", "histogram", "nodes", "tasks", "layout", "targets", "phase_end", "progress"]
)
def test_line_of_a_phase_that_never_began_is_reported(line_type: str) -> None:
    record = read_record_lines({"type": "run"}, {"type": line_type, "phase": "ghost"})
    assert record.problems == ['Line 2 of the record belongs to a phase "ghost" that never began.']


def test_the_current_phase_is_the_last_that_has_not_ended() -> None:
    record = read_record_lines(BEGIN, {**BEGIN, "phase": "q"})
    assert record.current_phase is record.phases["q"]
    record.parse_chunk(b'{"type": "phase_end", "phase": "q"}\n')
    assert record.current_phase is record.phases["p"]
    record.parse_chunk(b'{"type": "phase_end", "phase": "p"}\n')
    assert record.current_phase is None


def test_truncated_last_line_is_reported_and_blank_lines_ignored() -> None:
    record = read_record_lines()
    assert record.parse_chunk(b'\n  \n{"type": "end"}\n{"type": "no') == [("end", record.end)]
    assert record.finish_input() == []
    assert record.problems == ["The record breaks off in the middle of its last line."]
    assert record.finish_input() == [], "only once"
    assert len(record.problems) == 1
    complete = read_record_lines()
    complete.parse_chunk(b'[]\n{"type": "end"}')
    assert complete.finish_input() == [("end", complete.end)]
    assert complete.problems == ["Line 1 of the record has no type; it was skipped."]
    blank = read_record_lines()
    blank.parse_chunk(b"   ")
    assert blank.finish_input() == []
    assert blank.problems == []


def test_treatments_belong_to_their_phase_even_before_it_begins() -> None:
    record = read_record_lines(
        {"type": "treatment", "phase": "q", "kind": "a"},
        {"type": "treatment", "phase": "p", "kind": "b"},
        BEGIN,
        {"type": "treatment", "phase": "p", "kind": "c"},
        {**BEGIN, "phase": "q"},
    )
    assert [treatment.kind for treatment in record.phases["p"].treatments] == ["b", "c"]
    assert [treatment.kind for treatment in record.phases["q"].treatments] == ["a"]


def stage(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_stages_become_one_record_with_one_clock() -> None:
    """The second record's run line, known nodes and meaningless lines are omitted."""
    first = stage(
        {"type": "run", "t": 0.0}, {"type": "node", "node": 0}, {"type": "x", "t": 1}, {"type": "end", "t": 2}
    )
    node = {"type": "node", "node": 1, "t": 0.5}
    second = stage(
        {"type": "run"}, {"type": "node", "node": 0}, node, {"type": "ä", "t": 0.25}, {"type": "end", "t": 1}
    )
    joined = merge_stage_records([first, second + b'[]\n{"type": "z", "t": "?"}\n{"t": 1}\n{"torn'], [0.0, 10.0])
    assert (
        joined
        == (
            '{"type":"run","t":0.0}\n{"type":"node","node":0,"t":0.0}\n{"type":"x","t":1.0}\n'
            '{"type":"node","node":1,"t":10.5}\n{"type":"ä","t":10.25}\n{"type":"end","t":11.0}\n'
        ).encode()
    )
    assert merge_stage_records([], []) == b""
    assert merge_stage_records([stage({"type": "x", "t": 0.1})], [0.2]) == b'{"type":"x","t":0.3}\n'


def test_a_large_record_is_read_in_pieces_that_break_lines(tmp_path: Path) -> None:
    file = tmp_path / "record.ndjson"
    lines = [{"type": "finding", "id": f"f{index}", "text": "x" * 1000} for index in range(2500)]
    file.write_bytes(stage(*lines) + b'{"type": "end", "status": "done"}')
    record_read = read_record(file)
    assert [finding.id for finding in record_read.findings] == [f"f{index}" for index in range(2500)]
    assert record_read.status == "done"


def test_title_of_a_run_is_from_its_plan_or_folder() -> None:
    def make_run_of_plan(**plan: Any) -> RecordedRun:
        record = RecordReader()
        record.run = RunLine(plan=plan)
        return make_recorded_run(record, Path("/archive/folder"))

    assert make_run_of_plan(title="A title", id="an-id").title == "A title"
    assert make_run_of_plan(title="", id="an-id").title == "an-id"
    assert make_run_of_plan().title == "folder"
    assert (make_recorded_run(RecordReader()).plan, make_recorded_run(RecordReader()).tasks) == ({}, 1)
    assert make_recorded_run(RecordReader(), summary_document={"a": 1}).notes == {"a": 1}


def test_recorded_run_exposes_members_of_its_record() -> None:
    record = RecordReader()
    record.nodes = [NodeLine(node=3)]
    record.run = RunLine(tasks=5, plan={"phases": [{"id": "a", "x": 1}, {"id": "b", "x": None}], "data": {"x": 7}})
    run = make_recorded_run(record)
    assert (run.run_line, run.nodes, run.tasks, run.status) == (record.run, record.nodes, 5, "lost")
    assert run.find_planned_phase("a") == {"id": "a", "x": 1}
    assert (run.find_setting("a", "x"), run.find_setting("b", "x"), run.find_setting("c", "x")) == (1, 7, 7)
    assert not run.parents
    recorded_run = make_recorded_run(
        record, summary_document={"parents": {"system": "s", "levels": {"OSS": {"oss0": ["OST0000"]}}}}
    )
    assert recorded_run.parents.find_server_of_target("OST0000") == "oss0"


def test_invalid_run_folders_have_exact_error_messages(tmp_path: Path) -> None:
    def problem_of(folder: Path) -> str:
        with pytest.raises(ReportError) as caught:
            read_recorded_run_folder(folder)
        return str(caught.value)

    assert problem_of(tmp_path) == f"{tmp_path} holds no record.ndjson: name the folder of a run."
    (tmp_path / "run.json").write_text("{}")
    assert problem_of(tmp_path) == (
        f"{tmp_path.name} holds numbers of another tool and no record, so there is no report of it; `sonde show` prints"
        " its numbers, `sonde trend -o FILE` and `sonde compare -o FILE` draw them."
    )
    record = tmp_path / "record.ndjson"
    record.mkdir()
    assert problem_of(tmp_path) == f"{record} cannot be read: it is not a regular file."
    record.rmdir()
    record.write_text("[]\n")
    assert problem_of(tmp_path) == f"{record} holds no line that can be read: it is not the record of a run."
    record.write_text('{"type": "end"}\n')
    assert read_recorded_run_folder(tmp_path).status == ""
    record.write_text('{"type": "phase_begin", "phase": "p"}\n')
    assert [phase.id for phase in read_recorded_run_folder(tmp_path).phases] == ["p"]


def test_plan_in_the_record_precedes_plan_json(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"id": "beside"}')
    record = tmp_path / "record.ndjson"
    record.write_text('{"type": "run", "plan": {"id": "inside"}}\n')
    assert read_recorded_run_folder(tmp_path).title == "inside"
    record.write_text('{"type": "run"}\n')
    assert read_recorded_run_folder(tmp_path).title == "beside"
    (tmp_path / "plan.json").write_text('["beside"]')
    assert read_recorded_run_folder(tmp_path).title == tmp_path.name


def test_first_raw_line_of_each_node_is_preserved(tmp_path: Path) -> None:
    lines = [{"type": "node", "node": 1, "x": 1}, {"type": "node", "node": 1, "x": 2}, {"type": "nodes", "node": 3},
             {"type": "node", "node": 2, "x": 3}]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "record.ndjson").write_text(f'{{"type": "run"}}\n{{"node"\n["node"]\n{text}')
    assert [node["x"] for node in read_recorded_run_folder(tmp_path).raw_nodes] == [1, 3]


def test_damage_lists_five_bad_lines_and_counts_more(tmp_path: Path) -> None:
    record = tmp_path / "record.ndjson"
    record.write_text('{"type": "run", "schema": "sonde-record/7"}\n' + "[]\n" * 6)
    assert read_recorded_run_folder(tmp_path).damage == (
        "The record says it is sonde-record/7; this report knows sonde-record/2 and may miss parts of it.",
        *(f"Line {index} of the record has no type; it was skipped." for index in range(2, 7)),
        "1 more lines of the record were skipped.",
    )
    for schema in ("", ', "schema": "sonde-record/2"'):
        record.write_text(f'{{"type": "run"{schema}}}\n')
        assert read_recorded_run_folder(tmp_path).damage == ()
