# SPDX-License-Identifier: Apache-2.0
"""The record under faults: it holds whole lines only, and a run that could not write it says so."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import (
    DONE,
    ENVIRONMENT,
    Engine,
    Plan,
    Running,
    find_schema_errors,
    list_tree,
    parse_record,
    write_plan,
)
from file_systems import tmpfs

LONG: list[Plan] = [{"id": "first", "op": "write"}, {"id": "long", "op": "rewrite", "stop": {"time": "60s"}}]


@pytest.mark.parametrize("record_path", ["no-such-folder/record", "folder"])
def test_a_record_that_cannot_be_written_is_noticed_before_the_run(
    engine: Engine, target: Path, record_path: str
) -> None:
    (engine.folder / "folder").mkdir()
    result = engine.ask("run", str(engine.plan_file(write_plan(target))), "--record", str(engine.folder / record_path))
    assert result.code == ENVIRONMENT
    assert f"cannot write the record {engine.folder / record_path}: " in result.only_sentence
    assert list_tree(target) == []


@pytest.mark.parametrize("existing", ["", '{"type":"end","t":1.0,"status":"done"}\n'])
def test_plan_that_fails_before_the_start_does_not_touch_the_record(
    engine: Engine, target: Path, existing: str
) -> None:
    record = engine.folder / "record.ndjson"
    if existing:
        record.write_text(existing, encoding="utf-8")
    result = engine.run(write_plan(target / "absent"))
    assert result.code == 2
    assert (record.read_text(encoding="utf-8") if record.exists() else "") == existing


def test_a_record_is_appended_to(engine: Engine, target: Path) -> None:
    first = engine.run(write_plan(target))
    second = engine.run(write_plan(target))
    assert (first.code, second.code) == (DONE, DONE)
    record = parse_record((engine.folder / "record.ndjson").read_text(encoding="utf-8"))
    assert [line["type"] for line in record].count("end") == 2
    assert len(record) == len(first.lines) + len(second.lines)


def test_record_on_standard_output_contains_only_record_lines(engine: Engine, target: Path) -> None:
    plan = write_plan(target, {"id": "w", "op": "write", "stop": {"time": "300ms"}}, observe={"progress": "1ms"})
    result = engine.ask("run", str(engine.plan_file(plan)), "--record", "-")
    assert result.code == DONE
    assert result.err == ""
    lines = parse_record(result.out)
    assert lines[0]["type"] == "run"
    assert lines[-1]["type"] == "end"
    assert any(line["type"] == "progress" for line in lines)


@pytest.mark.root
def test_record_on_full_file_system_has_only_complete_lines(engine: Engine, target: Path, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "tiny", 1) as folder:
        (folder / "ballast").write_bytes(bytes((1 << 20) - 4096))
        result = engine.run(write_plan(target), record=folder / "record.ndjson")
        assert result.code == ENVIRONMENT
        assert result.only_sentence.startswith(
            f"a line of the record {folder}/record.ndjson could not be written: No sp"
        )
        assert result.lines[0]["type"] == "run"
        assert list_tree(target) == []


@pytest.mark.root
def test_record_continues_when_space_is_available_again(engine: Engine, target: Path, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "tiny", 1) as folder:
        (folder / "ballast").write_bytes(bytes((1 << 20) - 4096))
        room: Plan = {"kind": "command", "command": f"rm {folder}/ballast", "need": "required"}
        plan = write_plan(target, {"id": "w", "op": "write"}, {"id": "r", "op": "read", "before": [room]})
        result = engine.run(plan, record=folder / "record.ndjson")
        assert result.code == ENVIRONMENT
        assert "could not be written" in result.only_sentence
        assert result.finished("r")["stopped_by"] == "volume"
        assert result.end["status"] == "done"


def test_partially_written_line_is_removed_from_the_record(engine: Engine, target: Path) -> None:
    # The size limit of the process ends in the middle of a line of the record.
    record = engine.folder / "record.ndjson"
    limit_kib = 71680
    with record.open("wb") as file:
        file.truncate((limit_kib << 10) - 6000)
        file.seek(0, 2)
        file.write(b"\n")
    size = record.stat().st_size
    limited_engine = ["bash", "-c", f'ulimit -f {limit_kib}; exec "$@"', "limited", str(engine.path), "run"]
    command = [*limited_engine, str(engine.plan_file(write_plan(target))), "--record", str(record)]
    with Running(command, record, {}) as running:
        result = running.result()
    assert result.code == ENVIRONMENT
    assert "could not be written: File too large" in result.only_sentence
    assert size < record.stat().st_size <= limit_kib << 10  # equal where a line ends at the limit
    with record.open("rb") as file:
        file.seek(-1, 2)
        assert file.read() == b"\n"
    assert result.lines[0]["type"] == "run"


def test_partial_line_of_killed_process_is_removed(engine: Engine, target: Path) -> None:
    plan = write_plan(target, *LONG, observe={"progress": "0s"})
    with engine.start(plan) as running:
        running.wait_for('"phase":"long"')
        time.sleep(0.1)
        assert running.record is not None
        with running.record.open("ab") as file:
            file.write(b'{"type":"series","t":1.0,"by' + b"0," * 3000)
        running.process.kill()
        result = running.result()
    assert result.end["status"] == "lost"
    assert not result.of("series")[1:]


def test_a_killed_run_without_progress_lines_has_an_end_as_well(engine: Engine, target: Path) -> None:
    plan = write_plan(target, *LONG, observe={"progress": "0s"})
    with engine.start(plan) as running:
        running.wait_for('"phase":"long"')
        time.sleep(0.1)
        running.process.send_signal(signal.SIGKILL)
        result = running.result()
    assert result.end["status"] == "lost"
    assert result.of("progress") == []
    assert find_schema_errors(result.end) == []


ENDINGS: list[tuple[str, Plan]] = [
    ("done", {}),
    ("error", {"data": {"backend": "paced", "paced": {"rate": "1MB/s", "fail_after": 3}}}),
    ("time limit", {"limits": {"time": "200ms"}, "phases": [{"id": "w", "op": "write", "stop": {"time": "9s"}}]}),
    ("odd name", {"data": {"files": {"name": 'q"\\ \n\tü'}}}),
]


@pytest.mark.parametrize("members", [case[1] for case in ENDINGS], ids=[case[0] for case in ENDINGS])
def test_every_record_line_follows_the_schema_at_any_end(engine: Engine, target: Path, members: dict[str, Any]) -> None:
    plan = {**write_plan(target), **members, "observe": {"progress": "20ms"}}
    result = engine.run(plan)
    assert result.lines
    for line in result.lines:
        assert find_schema_errors(line) == [], line
    assert result.end


def test_target_path_with_control_characters_is_escaped(engine: Engine, target: Path) -> None:
    # The kernel allows any byte but / and NUL in a name; the record stays valid text and the name can be restored.
    odd = Path(str(target) + "/line\nbreak-and-\x1b[31mcolor")
    odd.mkdir()
    result = engine.run(write_plan(odd / "absent"))
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "\x1b" not in result.err
    assert engine.run(write_plan(odd)).code == DONE
