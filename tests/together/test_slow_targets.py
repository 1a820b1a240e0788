# SPDX-License-Identifier: Apache-2.0
"""A slow target of a simulated machine is named in short and long phases, by volume and by time, also when it hangs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sonde.findings.target_operations import find_slow_targets_by_latency
from sonde.launch.simulator import find_simulator
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import MachineError
from sonde.model.record import read_record
from sonde.model.system import read_system

try:
    SIMULATOR = find_simulator()
except MachineError as reason:  # a tree without C++ programs
    pytest.skip(str(reason), allow_module_level=True)

SYSTEM, MOUNT, NODES, TASKS = "edison", "fs1", 24, 96
HANGING_FACTOR = 1_000_000  # one request takes longer than the phase
SEGMENTS = {"short": 48, "long": 160}  # MiB of each task
STOP_TIMES = {"short": "1s", "long": "8s"}


@pytest.fixture(scope="module")
def system_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("system") / "system.json"
    file.write_text(read_system(find_system_file(SYSTEM)).to_json(), encoding="utf-8")
    return file


def build_plan(length: str, stop: str) -> dict[str, Any]:
    """One file per task, each on a different target; written, then read by another node."""
    limit = {"stop": {"time": STOP_TIMES[length]}} if stop == "time" else {}
    segments = SEGMENTS[length] if stop == "volume" else 4096
    read = {"id": "read", "op": "read", "shift": {"by": "nodes", "n": 1}}
    return {
        "schema": "sonde-plan/2",
        "id": "slow-targets",
        "target": {"path": "/scratch"},
        "tasks": {"processes": TASKS},
        "data": {"access": {"transfer": "1MiB", "block": "1MiB", "segments": segments}, "io": {"direct": True}},
        "phases": [{"id": "write", "op": "write", **limit}, {**read, **limit}],
    }


def name_slow_targets(folder: Path, system_file: Path, plan: dict[str, Any], run: int, factor: int) -> list[set[str]]:
    """The slow targets that each phase of one simulated run names; factor 1 is a sound machine."""
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    record = folder / f"{run}.ndjson"
    command = [str(SIMULATOR), "run", str(folder / "plan.json"), "--system", str(system_file), "--mount", MOUNT]
    command += ["--nodes", str(NODES), "--seed", str(run + 1), "--record", str(record)]
    command += ["--fault", f"slow-target {name_target(run)} {factor}x"] if factor > 1 else []
    subprocess.run(command, check=True, capture_output=True)
    phases = read_record(record).phases.values()
    return [{target.name for target in find_slow_targets_by_latency(phase)} for phase in phases]


def name_target(run: int) -> str:
    return f"{MOUNT}-ost{(3 + 7 * run) % TASKS:03d}"


def count_names(
    folder: Path, system_file: Path, length: str, stop: str, factor: int, runs: int
) -> tuple[int, int, int]:
    """Phases, phases that name the slow target, and phases that name another one."""
    plan = build_plan(length, stop)
    names_by_run = [
        (name_target(run) if factor > 1 else "", names)
        for run in range(runs)
        for names in name_slow_targets(folder, system_file, plan, run, factor)
    ]
    named_count = sum(slow in names for slow, names in names_by_run)
    return len(names_by_run), named_count, sum(bool(names - {slow}) for slow, names in names_by_run)


def test_target_that_hangs_in_a_long_phase_is_identified(tmp_path: Path, system_file: Path) -> None:
    phases, named_count, wrong_count = count_names(tmp_path, system_file, "long", "time", HANGING_FACTOR, runs=1)
    assert (named_count, wrong_count) == (phases, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("stop", ["volume", "time"])
@pytest.mark.parametrize("length", ["short", "long"])
def test_slow_targets_are_identified_without_false_positives(
    length: str, stop: str, tmp_path: Path, system_file: Path
) -> None:
    factors = (2, 5, 10, 100, *((HANGING_FACTOR,) if stop == "time" else ()))
    for factor in factors:
        phases, named_count, wrong_count = count_names(tmp_path, system_file, length, stop, factor, runs=10)
        assert named_count >= 0.95 * phases, (length, stop, factor)
        assert wrong_count <= 0.01 * phases, (length, stop, factor)
    phases, _, wrong_count = count_names(tmp_path, system_file, length, stop, 1, runs=20)
    assert wrong_count <= 0.01 * phases
