# SPDX-License-Identifier: Apache-2.0
"""A slow SSU of a described machine, from the run to every surface: terminal, JSON, page, tables."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.model.run import read_recorded_run_folder
from sonde.model.system import read_system
from sonde.model.system.parents import add_target_parents

Sonde = Callable[..., "subprocess.CompletedProcess[str]"]
MACHINE = """
schema = "sonde-system/2"
id = "six"
title = "six SSUs of two servers with two targets each, 100 MB/s a target"

[[nodes]]
id = "n[1-2]"
group = "all"
model = { call_cost = "1 us", copy_rate = "100 GB/s" }

[[servers]]
id = "oss[00-11]"
roles = ["oss", "mds", "mgs"]
model = { create_cost = "1 ms", stat_cost = "1 ms", open_cost = "1 ms", remove_cost = "1 ms", threads = 16 }

[[targets]]
id = "t[00-23]"
kind = "ost"
index = 0
file_system = "fs"
server = "oss[00-11]"
rate = "100 MB/s"

[[targets]]
id = "mdt"
kind = "mdt"
index = 0
file_system = "fs"
server = "oss00"

[[units]]
id = "ssu[1-6]"
kind = "SSU"
file_system = "fs"
targets = "t[00-23]"

[[file_systems]]
id = "fs"
kind = "lustre"
stripe = { size = "1 MiB", count = 24 }

[[mounts]]
id = "m"
file_system = "fs"
path = "/fs"
on = "all"
"""
PLAN: dict[str, Any] = {
    "schema": "sonde-plan/2",
    "id": "units",
    "target": {"path": "/fs"},
    "tasks": {"processes": 2},
    "data": {
        "files": {"mapping": "shared"},
        "access": {"transfer": "1MiB", "block": "1536MiB"},
        "io": {"direct": True},
    },
    "phases": [{"id": "write", "op": "write"}],
}
FAULTS = [word for index in range(8, 12) for word in ("--fault", f"slow-target {index} 2x")]


def test_half_speed_ssu_is_reported_on_every_surface(simulator: Path, tmp_path: Path, sonde: Sonde) -> None:
    (tmp_path / "six.toml").write_text(MACHINE, encoding="utf-8")
    (tmp_path / "plan.json").write_text(json.dumps(PLAN), encoding="utf-8")
    done = sonde("simulate", "plan.json", "--system", "six.toml", *FAULTS)
    assert done.returncode == 0, done.stderr
    assert "SSU ssu3 answered writes at 0.5" in " ".join(done.stdout.split())
    (document,) = json.loads(sonde("show", "last", "--json").stdout)
    (phase,) = document["phases"]
    assert [unit["unit"] for unit in phase["units"]["SSU"]] == [f"ssu{index}" for index in range(1, 7)]
    assert {unit["bytes"] for unit in phase["units"]["SSU"]} == {512 << 20}
    assert {unit["bytes"] for unit in phase["units"]["OSS"]} == {256 << 20}
    slow, sound = (phase["units"]["SSU"][index]["mean_ns"] for index in (2, 4))
    assert slow / sound == pytest.approx(2.0, rel=0.3)
    assert phase["assessment"]["slow_units"].count("SSU ssu3") == 1
    assert {target["target"]: target["bytes"] for target in phase["targets"]} == {
        f"t{index:02}": 128 << 20 for index in range(24)
    }
    page = (tmp_path / sonde("report", "last").stdout.strip()).read_text(encoding="utf-8")
    assert "SSU over time" in page
    assert "OSS over time" in page
    assert sonde("export", "targets.csv", "last", "--table", "targets").returncode == 0
    with (tmp_path / "targets.csv").open(encoding="utf-8") as file:
        rows = {row["target"]: row for row in csv.DictReader(file)}
    assert (rows["t09"]["server"], rows["t09"]["unit"], rows["t09"]["bytes"]) == ("oss04", "ssu3", str(128 << 20))
    query_result = sonde("query", "SELECT unit, sum(bytes) AS moved FROM targets GROUP BY unit ORDER BY unit", "--json")
    assert str(512 << 20) in query_result.stdout, query_result.stderr
    wrong = sonde("export", "all.tar", "last", "--table", "targets")
    assert wrong.returncode == 2
    # Described afterwards, the run says the same.
    (folder,) = tmp_path.glob("sonde-archive/20*/*")
    summary = json.loads((folder / "run.json").read_text())
    parents = summary.pop("parents")
    (folder / "run.json").write_text(json.dumps(summary))
    run = read_recorded_run_folder(folder)
    assert not run.parents
    assert add_target_parents(run, read_system(str(tmp_path / "six.toml"))).parents.levels["SSU"] == {
        unit: tuple(names) for unit, names in parents["levels"]["SSU"].items()
    }
    assert "ssu3" in sonde("show", "last", "--system", "six.toml").stdout
    assert "ssu3" not in sonde("show", "last").stdout
    # A run without the fault is faster on these targets, and on no others.
    assert sonde("simulate", "plan.json", "--system", "six.toml").returncode == 0
    comparison_result = sonde("compare", folder.name, "last", "--json", "--system", "six.toml")
    compared = json.loads(comparison_result.stdout)["numbers"][0]["targets"]["levels"]
    faster = [{change["name"] for change in level["parts"] if change["verdict"] == "faster"} for level in compared]
    assert faster[0] <= {f"t{index:02}" for index in range(8, 12)}
    assert faster[2] == {"ssu3"}
