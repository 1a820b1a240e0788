# SPDX-License-Identifier: Apache-2.0
"""An experiment over pools of one and of two directories: files of tasks lie in each of them, and none is left."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

EXPERIMENT = """
schema = "sonde-experiment/2"
id = "pools"
[clients]
per_target = 1
launcher = "fork"
[storage]
pool = "P1"
[plan.data]
files = { mapping = "per_task" }
access = { transfer = "64KiB", block = "256KiB", segments = 1 }
[[plan.phases]]
id = "write"
op = "write"
[[plan.phases]]
id = "read"
op = "read"
process = "separate"
data_of = "write"
before = [{ kind = "command", need = "required", command = "cat LISTED > /dev/null; ls -R ROOT >> LISTED" }]
[[sweep]]
paths = ["storage.pool", "storage.units", "storage.targets"]
values = [["P1", 1, 1], ["P2", 2, 2]]
[repeat]
min = 2
"""


def test_tasks_of_a_pool_of_two_write_into_both_directories(
    sonde: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    root, listing, file = tmp_path / "disks", tmp_path / "listed", tmp_path / "pools.toml"
    listing.touch()
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
    file.write_text(EXPERIMENT.replace("LISTED", str(listing)).replace("ROOT", str(root)))
    a, b = root / "a", root / "b"
    done = sonde("run", str(file), "--pool", f"P1={a},P2={a},{b}", "--json", "--no-report")
    assert done.returncode == 0, done.stderr
    cells = {(cell["axis_values"]["pool"], cell["phase"]) for cell in json.loads(done.stdout)["cells"]}
    assert cells == {("P1", "write"), ("P1", "read"), ("P2", "write"), ("P2", "read")}
    # of both runs of P2: the files of two tasks, one in each directory, also for a read in a process of its own
    lines_listed = listing.read_text().splitlines()
    in_b = [index for index, line in enumerate(lines_listed) if line.startswith(f"{b}/sonde-")]
    assert [lines_listed[index + 1] for index in in_b] == ["data.t00000001"] * 2
    assert lines_listed.count("data.t00000000") == 2 + 2
    assert list(a.iterdir()) == list(b.iterdir()) == [], "nothing is left"
