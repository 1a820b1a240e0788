# SPDX-License-Identifier: Apache-2.0
"""Which target served what on a simulated machine: the record holds what the machine did, and names a slow target."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sonde.findings.served import answer_words, served, slow_answers
from sonde.launch.simulator import find_simulator
from sonde.model.record import PhaseRecord, read_record
from sonde.model.system import read_system

MIB = 1 << 20
MACHINE = """
schema = "sonde-system/1"
id = "small"
title = "eight targets of 100 MB/s"

[[nodes]]
id = "n[1-2]"
group = "all"
model = { call_cost = "1 us", copy_rate = "100 GB/s" }

[[servers]]
id = "oss"
roles = ["oss", "mds", "mgs"]
model = { create_cost = "1 ms", stat_cost = "1 ms", open_cost = "1 ms", remove_cost = "1 ms", threads = 16 }

[[targets]]
id = "t[0-7]"
kind = "ost"
index = 0
file_system = "fs"
server = "oss"
rate = "100 MB/s"

[[targets]]
id = "mdt"
kind = "mdt"
index = 0
file_system = "fs"
server = "oss"

[[file_systems]]
id = "fs"
kind = "lustre"
stripe = { size = "1 MiB", count = 8 }

[[mounts]]
id = "m"
file_system = "fs"
path = "/fs"
on = "all"
"""


def simulated(folder: Path, *words: str) -> PhaseRecord:
    (folder / "small.toml").write_text(MACHINE, encoding="utf-8")
    resolved = folder / "small.json"
    resolved.write_text(read_system(str(folder / "small.toml")).to_json(), encoding="utf-8")
    plan: dict[str, Any] = {
        "schema": "sonde-plan/1",
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
    command = [str(find_simulator()), "run", str(folder / "plan.json"), "--system", str(resolved)]
    record = folder / "record.ndjson"
    subprocess.run([*command, "--record", str(record), *words], check=True, capture_output=True)
    return read_record(record).phases["write"]


def test_a_simulated_record_gives_each_target_its_stripes(tmp_path: Path) -> None:
    phase = simulated(tmp_path)
    assert phase.targets is not None
    assert phase.targets.known_bytes == phase.targets.bytes == 2048 * MIB
    found = {one.target: (one.bytes, one.ops, one.single_ops) for one in served(phase.targets)}
    assert found == {f"t{at}": (256 * MIB, 256, 256) for at in range(8)}
    assert slow_answers(phase) == []


def test_a_target_twice_as_slow_is_named_in_a_file_that_lies_on_all_of_them(tmp_path: Path) -> None:
    phase = simulated(tmp_path, "--fault", "slow-target 3 2x")
    (slow,) = slow_answers(phase)
    assert slow.name == "t3"
    assert slow.factor == pytest.approx(2.0, rel=0.3)
    assert "target t3 took" in answer_words(phase)
