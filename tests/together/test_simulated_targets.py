# SPDX-License-Identifier: Apache-2.0
"""Which target served what on a simulated machine: the record holds what the machine did, and names a slow target."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from small_machine import resolved, small_machine

from sonde.findings.target_operations import (
    describe_slow_operations,
    find_slow_targets_by_latency,
    read_target_operations,
)
from sonde.model.record import PhaseRecord, read_record

MIB = 1 << 20


def simulated(simulator: Path, folder: Path, *arguments: str) -> PhaseRecord:
    machine = small_machine(targets=8, nodes=2, server_threads=16, stripe='{ size = "1 MiB", count = 8 }')
    plan: dict[str, Any] = {
        "schema": "sonde-plan/2",
        "id": "targets",
        "target": {"path": "/fs"},
        "tasks": {"processes": 2},
        "data": {
            "files": {"mapping": "shared"},
            "access": {"transfer": "1MiB", "block": "1GiB"},
            "io": {"direct": True},
        },
        "phases": [{"id": "write", "op": "write"}],
    }
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    command = [str(simulator), "run", str(folder / "plan.json"), "--system", str(resolved(folder, machine))]
    record = folder / "record.ndjson"
    subprocess.run([*command, "--record", str(record), *arguments], check=True, capture_output=True)
    return read_record(record).phases["write"]


def test_a_simulated_record_gives_each_target_its_stripes(simulator: Path, tmp_path: Path) -> None:
    phase = simulated(simulator, tmp_path)
    assert phase.targets is not None
    assert phase.targets.known_bytes == phase.targets.bytes == 2048 * MIB
    operations = {
        operation.target: (operation.bytes, operation.ops, operation.single_ops)
        for operation in read_target_operations(phase.targets)
    }
    assert operations == {f"t{index}": (256 * MIB, 256, 256) for index in range(8)}
    assert find_slow_targets_by_latency(phase) == []


def test_slow_target_is_identified_in_a_file_striped_over_all(simulator: Path, tmp_path: Path) -> None:
    phase = simulated(simulator, tmp_path, "--fault", "slow-target 3 2x")
    (slow,) = find_slow_targets_by_latency(phase)
    assert slow.name == "t3"
    assert slow.factor == pytest.approx(2.0, rel=0.3)
    assert "target t3 took" in describe_slow_operations(phase)
