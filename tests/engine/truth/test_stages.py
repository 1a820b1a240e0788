# SPDX-License-Identifier: Apache-2.0
"""Phases in processes of their own: what a later stage knows of an earlier one is what is on the target, and the record
reads as if there had been one process.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, ENVIRONMENT, FAILED, MISMATCH, Engine, Plan, Result, list_tree, write_plan

SEPARATE = {"process": "separate"}


def make_staged_plan(target: Path, tasks: int = 1, **read: Any) -> Plan:
    """Write in a first process, rewrite the same files in a second, read and verify in a third."""
    return write_plan(
        target,
        {"id": "write", "op": "write"},
        {"id": "again", "op": "rewrite", **SEPARATE},
        {"id": "read", "op": "read", "verify": "on_read", "shift": {"by": "tasks", "n": 1}, **SEPARATE, **read},
        data={"access": {"transfer": "64KiB", "block": "1MiB", "segments": 2}},
        tasks={"threads": tasks},
    )


def check_all_stages(result: Result, target: Path) -> None:
    """All three phases are there once, in order, on one time axis, and nothing is left behind."""
    assert result.code == DONE, result.err
    begins = [line["phase"] for line in result.of("phase_begin")]
    assert begins == ["write", "again", "read"]
    assert result.finished("read")["verify"]["mismatches"] == 0
    assert result.finished("read")["verify"]["checked_bytes"] == result.finished("write")["bytes"]["written"]
    times = [line["t"] for line in result.lines if line["type"] in ("phase_begin", "phase_end")]
    assert times == sorted(times), "a later stage begins after the one before it"
    assert list_tree(target) == []


@pytest.mark.parametrize("tasks", [1, 4])
def test_one_command_runs_all_stages(engine: Engine, target: Path, tasks: int) -> None:
    check_all_stages(engine.run(make_staged_plan(target, tasks)), target)


def test_a_launcher_may_start_each_stage(engine: Engine, target: Path) -> None:
    plan = make_staged_plan(target, 2)
    codes = []
    for stage in range(3):
        part = engine.run(plan, "--stage", str(stage), "--run-id", "one-run")
        codes.append(part.code)
        assert [line["phase"] for line in part.of("phase_end")] == [["write", "again", "read"][stage]]
        if stage < 2:
            assert list_tree(target), "the files of a stage wait for the next one"
    assert codes == [DONE, DONE, DONE]
    assert list_tree(target) == []
    record_text = (engine.folder / "record.ndjson").read_text(encoding="utf-8")
    ends = [json.loads(line) for line in record_text.splitlines() if '"phase_end"' in line]
    assert ends[-1]["verify"]["mismatches"] == 0
    times = [line["t"] for line in ends]
    assert times == sorted(times), "one time axis for all stages"


def test_later_stage_detects_damage_between_stages(engine: Engine, target: Path) -> None:
    """Damage between two stages is found by the next, which has never seen the right bytes."""
    plan = make_staged_plan(target)
    for stage in range(2):
        assert engine.run(plan, "--stage", str(stage), "--run-id", "r").code == DONE
    [data] = [path for path in target.rglob("data*") if path.is_file()]
    with data.open("r+b") as file:
        file.seek(300_000)
        byte = file.read(1)[0]
        file.seek(300_000)
        file.write(bytes([byte ^ 1]))
    result = engine.run(plan, "--stage", "2", "--run-id", "r")
    assert result.code == MISMATCH
    [error] = result.of("error")
    assert error["offset"] == 300_000
    assert "generation 2" in error["text"]
    assert list_tree(target) == []


def test_old_data_between_stages_is_reported_as_stale(engine: Engine, target: Path) -> None:
    plan = make_staged_plan(target)
    assert engine.run(plan, "--stage", "0", "--run-id", "r").code == DONE
    [data] = [path for path in target.rglob("data*") if path.is_file()]
    before = data.read_bytes()
    assert engine.run(plan, "--stage", "1", "--run-id", "r").code == DONE
    assert data.read_bytes() != before
    data.write_bytes(before)
    result = engine.run(plan, "--stage", "2", "--run-id", "r")
    assert result.code == MISMATCH
    assert all("an older version" in error["text"] for error in result.of("error"))


def test_stage_without_the_previous_stage_is_rejected(engine: Engine, target: Path) -> None:
    result = engine.run(make_staged_plan(target), "--stage", "1")
    assert result.code == ENVIRONMENT
    assert "continues an earlier stage" in result.only_sentence
    assert list_tree(target) == []


def test_stage_with_another_task_count_is_rejected_without_cleanup(engine: Engine, target: Path) -> None:
    assert engine.run(make_staged_plan(target, 2), "--stage", "0", "--run-id", "r").code == DONE
    files_before = list_tree(target)
    result = engine.run(make_staged_plan(target, 3), "--stage", "1", "--run-id", "r")
    assert result.code in (BAD_PLAN, ENVIRONMENT)
    assert "as many tasks as the stage before" in result.only_sentence
    assert set(files_before) <= set(list_tree(target)), "somebody may still want to run it rightly"
    code, _ = engine.clean(target)
    assert code == DONE
    assert list_tree(target) == []


def test_after_a_failed_stage_no_other_is_started(engine: Engine, target: Path) -> None:
    plan = make_staged_plan(target)
    plan["phases"][1]["before"] = [{"kind": "command", "command": "exit 7", "need": "required"}]
    result = engine.run(plan)
    assert result.code in (FAILED, ENVIRONMENT)
    assert [line["phase"] for line in result.of("phase_end")] == ["write"]
    assert list_tree(target) == []


def test_separate_duplex_phase_is_verified_against_both_halves(engine: Engine, target: Path) -> None:
    """Each half has a process of its own, too, and a preparation is no half."""
    streams = [{"id": "out", "op": "write", "file": 0}, {"id": "in", "op": "read", "file": 1}]
    plan = write_plan(
        target,
        {"id": "prepare", "op": "write", "measure": False},
        {"id": "half_write", "op": "rewrite", **SEPARATE},
        {"id": "half_read", "op": "read", **SEPARATE},
        # until a time, so that both streams are surely at work together
        {"id": "both", "op": "duplex", "streams": streams, "stop": {"time": "300ms"}, **SEPARATE},
        data={
            "files": {"mapping": "many", "count": 2},
            "access": {"transfer": "64KiB", "block": "1MiB", "segments": 2},
        },
    )
    for stage in range(4):
        result = engine.run(plan, "--stage", str(stage), "--run-id", "r")
        assert result.code == DONE, result.err
    both = result.finished("both")["duplex"]
    record_text = (engine.folder / "record.ndjson").read_text(encoding="utf-8")
    ends = {
        line["phase"]: line for line in map(json.loads, record_text.splitlines()) if line.get("type") == "phase_end"
    }
    halves = [ends[name]["rates"]["transfer"]["bytes_per_s"] for name in ("half_write", "half_read")]
    assert both["efficiency"] == pytest.approx(both["bytes_per_s"] / sum(halves), rel=1e-6)
    assert "duplex" not in ends["half_read"]
