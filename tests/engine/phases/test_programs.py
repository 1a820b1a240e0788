# SPDX-License-Identifier: Apache-2.0
"""A program as a cell of an experiment: a command before a phase, in the run directory, with its processor time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine_under_test import DONE, Engine

BUSY = "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done"


def plan_of(target: Path, *commands: str, need: str = "required") -> dict[str, Any]:
    before = [{"kind": "command", "need": need, "command": command} for command in commands]
    return {
        "schema": "sonde-plan/2",
        "id": "program",
        "target": {"path": str(target), "directory": "run", "min_free": 0},
        "data": {"access": {"transfer": "4KiB", "volume": "4KiB"}},
        "phases": [{"id": "program", "op": "write", "before": before}],
    }


def test_command_runs_in_run_directory_with_recorded_cpu_time(engine: Engine, target: Path) -> None:
    output_file = target / "seen"
    result = engine.run(plan_of(target, f'cd "$SONDE_DIRECTORY" && pwd > {output_file}', BUSY))
    assert result.code == DONE
    assert output_file.read_text(encoding="utf-8").strip() == str((target / "run").resolve())
    idle, busy = result.of("treatment")
    assert busy["user_s"] + busy["system_s"] > idle["user_s"] + idle["system_s"]
    assert busy["user_s"] + busy["system_s"] <= busy["seconds"] + 0.02  # ticks of the kernel's accounting


def test_failed_command_has_a_duration(engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, "echo no such thing >&2; exit 3", need="best_effort"))
    assert result.code == DONE
    (line,) = result.of("treatment")
    assert line["outcome"] == "failed"
    assert "no such thing" in line["text"]
    assert {"user_s", "system_s"} <= line.keys()
