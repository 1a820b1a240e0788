# SPDX-License-Identifier: Apache-2.0
"""A runner that is killed at any moment loses no finished run, and whoever takes it up runs only what is missing."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import sonde
from sonde.experiments.results import read_group_results
from sonde.store.archive import Archive

KILLS = 20
# Imports once and then forks a runner for each line it reads: it dies in its so-and-so-many-th call that changes the
# archive; 0 lets it finish. Its runs are played: what is tested is the runner, and no engine dies as quickly.
RUNNERS = """
import os, signal, sys
from pathlib import Path
from fake_executor import FakeExecutor, build_request
from sonde.experiments.request import resume_request
from sonde.experiments.runner import ExperimentRunner, RunnerObserver
from sonde.store.archive import Archive
from sonde.store.pandas_discovery import declare_command_process
from sonde.store.tables import make_arrow_schema
import pyarrow.parquet, sonde.store.names

root, target = Path(sys.argv[1]), sys.argv[2]
DOCUMENT = {
    "id": "killed",
    "plan": {"data": {"access": {"transfer": "4KiB", "volume": "1MiB"}}, "phases": [{"id": "write", "op": "write"}]},
    "sweep": [{"paths": "data.access.transfer", "values": ["4KiB", "8KiB"]}],
    "treatments": [{"kind": "sync", "when": "experiment", "undo": f"echo undone >> {target}/undone"}],
    "repeat": {"min": 5, "max": 8, "interval": 0.05, "warmup": 1, "seed": 9},
}

def truth(attempt):
    place = attempt.facts["experiment"]
    noise = 0.3 if place["cell"] == "transfer=8KiB" else 0.001
    return {"write": 1e9 * (1 + noise * (place["repeat"] * 5 % 7 - 3) / 3)}

def work():
    store = Archive(root)
    store.recover_unfinished_runs()
    asked = resume_request(store, build_request(DOCUMENT, target), is_required=False)
    ExperimentRunner(asked, store, FakeExecutor(store, truth), RunnerObserver()).run_all_cells()

def dying(calls):
    left = [calls]

    def counted(name, call):
        def instead(*arguments, **options):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            # a process that dies takes nothing along that it wrote: waiting for the storage would only take time
            return None if name == "fsync" else call(*arguments, **options)
        return instead

    for name in ("fsync", "rename", "replace", "mkdir", "unlink"):
        setattr(os, name, counted(name, getattr(os, name)))

declare_command_process()
make_arrow_schema({})
build_request(DOCUMENT, target)  # imports what reads plans
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        dying(int(line))
        work()
        os._exit(0)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


def test_killed_runner_loses_no_runs(tmp_path: Path) -> None:
    pick, helpers, lab = random.Random(13), Path(__file__).resolve().parents[1], Path(sonde.__file__).parents[1]

    def turns(name: str, lives: list[int]) -> tuple[Counter[tuple[str, int, bool]], list[int]]:
        target = tmp_path / f"{name}-target"
        target.mkdir()
        runners = subprocess.Popen(
            [sys.executable, "-c", RUNNERS, str(tmp_path / name), str(target)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(str(path) for path in (helpers, lab))},
        )  # fmt: skip
        output, _ = runners.communicate("".join(f"{life}\n" for life in lives), timeout=300)
        results = read_group_results(Archive(tmp_path / name), "g")
        counts = Counter((run.cell, run.repeat, run.warm_up) for run in results.runs)
        document = json.loads((results.folder / "experiment.json").read_text())
        assert document["seed"] == 9
        assert not (results.folder / "undo.json").exists()
        half_done = [path.parent for path in (tmp_path / name).glob(".incoming-*/record.ndjson")]
        assert not half_done, "what was measured is brought in"
        assert (target / "undone").exists()
        return counts, [int(code) for code in output.split()]

    undisturbed, codes = turns("undisturbed", [0])
    assert codes == [0]
    disturbed, codes = turns("disturbed", [*(pick.randint(1, 30) for _ in range(KILLS)), 0])
    assert codes == [9] * KILLS + [0]
    assert disturbed == undisturbed
    assert max(disturbed.values()) == 1
    assert disturbed[("transfer=8KiB", 7, False)] == 1
    assert ("transfer=4KiB", 5, False) not in disturbed
