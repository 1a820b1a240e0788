# SPDX-License-Identifier: Apache-2.0
"""A run folder, whole and with parts missing or damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import ReportError
from sonde.model.run import make_recorded_run, read_recorded_run_folder

PLAN = {"id": "p", "data": {"io": {"direct": True, "fsync": "end"}}, "phases": [{"id": "w", "io": {"fsync": "none"}}]}
HEAD: dict[str, Any] = {"type": "run", "t": 0.0, "schema": "sonde-record/2", "tasks": 6}
NODE: dict[str, Any] = {"type": "node", "t": 0.0, "node": 0, "host": "a", "color": "red"}
BEGIN: dict[str, Any] = {"type": "phase_begin", "t": 1.0, "phase": "w", "index": 0, "op": "write", "tasks": 6}
END: dict[str, Any] = {"type": "end", "t": 9.0, "status": "done"}


def finding(phase: str | None) -> dict[str, Any]:
    line = {"type": "finding", "t": 2.0, "id": "x", "claim": "c", "text": "t", "level": "note"}
    return line if phase is None else {**line, "phase": phase}


def error(phase: str) -> dict[str, Any]:
    return {"type": "error", "t": 2.0, "phase": phase, "text": "no space"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def record(folder: Path, *lines: Any) -> Path:
    text = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    (folder / "record.ndjson").write_text(text, encoding="utf-8")
    return folder


def test_complete_run_folder_gives_plan_nodes_and_status(folder: Path) -> None:
    (folder / "plan.json").write_text(json.dumps(PLAN), encoding="utf-8")
    (folder / "run.json").write_text('{"note": 1}', encoding="utf-8")
    twice = {**NODE, "color": "blue"}
    run = read_recorded_run_folder(record(folder, HEAD, NODE, twice, BEGIN, finding("w"), finding(None), END))
    assert (run.status, run.tasks, run.title, run.end.status) == ("done", 6, "p", "done")
    assert [node.host for node in run.nodes] == ["a"]
    assert [dict(raw_node)["color"] for raw_node in run.raw_nodes] == ["red"]
    assert [phase.id for phase in run.phases] == ["w"]
    assert run.notes == {"note": 1}
    assert run.damage == ()
    assert len(run.phases[0].findings) == 1
    assert len(run.record.findings) == 1
    assert len(run.record.all_findings) == 2


def test_setting_is_from_the_phase_or_else_the_plan(folder: Path) -> None:
    run = read_recorded_run_folder(record(folder, {**HEAD, "plan": PLAN}, BEGIN))
    assert run.find_setting("w", "io", "fsync") == "none"
    assert run.find_setting("w", "io", "direct") is True
    assert run.find_setting("other", "io", "fsync") == "end"
    assert run.find_setting("w", "io", "never") is None
    assert run.find_planned_phase("other") == {}


def test_errors_belong_to_their_phase_or_to_the_run(folder: Path) -> None:
    run = read_recorded_run_folder(record(folder, HEAD, BEGIN, error("w"), error("gone")))
    assert [error.phase for error in run.run_errors] == ["gone"]
    assert [error.phase for error in run.phases[0].errors] == ["w"]


def test_record_without_first_or_end_line_is_damaged_or_lost(folder: Path) -> None:
    run = read_recorded_run_folder(record(folder, BEGIN))
    assert (run.status, run.tasks, run.title) == ("lost", 1, folder.name)
    assert run.damage == ("The record has no first line: what was run, and when, is not known.",)
    assert (run.run_line.tasks, run.end.status) == (None, "")


def test_unknown_record_version_and_bad_lines_are_damage(folder: Path) -> None:
    run = read_recorded_run_folder(record(folder, {**HEAD, "schema": "sonde-record/9"}, *(["{\n"] * 7), END))
    assert run.damage[0].startswith("The record says it is sonde-record/9; this report knows sonde-record/2")
    assert len(run.damage) == 1 + 5 + 1
    assert run.damage[-1] == "2 more lines of the record were skipped."
    five = read_recorded_run_folder(record(folder, HEAD, *(["{\n"] * 5), END))
    assert len(five.damage) == 5


def test_folder_without_a_record_gets_a_one_sentence_error(folder: Path) -> None:
    with pytest.raises(ReportError, match=r"holds no record\.ndjson"):
        read_recorded_run_folder(folder)
    (folder / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ReportError, match="numbers of another tool"):
        read_recorded_run_folder(folder)
    with pytest.raises(ReportError, match="no line that can be read"):
        read_recorded_run_folder(record(folder, "{\n"))


def test_damaged_notes_and_plan_count_as_absent(folder: Path) -> None:
    for text in ("[1]", "{", "[" * 100_000):
        (folder / "run.json").write_text(text, encoding="utf-8")
        (folder / "plan.json").write_text(text, encoding="utf-8")
        run = read_recorded_run_folder(record(folder, HEAD, BEGIN, '{"type": "node"\n'))
        assert (run.notes, run.plan, run.raw_nodes) == ({}, {}, ())


def test_recorded_run_can_be_built_from_a_record_only(folder: Path) -> None:
    run = make_recorded_run(read_recorded_run_folder(record(folder, {**HEAD, "plan": PLAN}, BEGIN)).record)
    assert (run.title, run.tasks, run.raw_nodes, run.notes) == ("p", 6, (), {})
