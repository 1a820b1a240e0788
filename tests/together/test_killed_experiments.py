# SPDX-License-Identifier: Apache-2.0
"""An experiment that is killed at any moment, with the engine that works for it or without, is taken up with the same
command: the set of its runs is the same as without, and nothing is left on the storage.
`tests/lab/experiments/test_killed_runner.py` kills runners that play their runs; here everything is real."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAN = """
schema = "sonde-plan/2"
id = "killed"
[target]
path = "."
min_free = 0
[tasks]
threads = 2
[data]
access = { transfer = "4KiB", volume = "4MiB" }
[[phases]]
id = "write"
op = "write"
[[phases]]
id = "read"
op = "read"
process = "separate"
"""
KILLS = 20


def turns(archive: Path) -> Counter[tuple[str, int, bool]]:
    """Cell, repeat and kind of every run that came to its end."""
    runs = [json.loads(path.read_text()) for path in archive.glob("*/*/run.json")]
    done = [run["experiment"] for run in runs if run["status"] == "done"]
    return Counter((run["cell"], run["repeat"], run["warm_up"]) for run in done)


@pytest.mark.nightly
def test_an_experiment_that_was_killed_twenty_times_has_the_same_runs(engine: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    environment = {**os.environ, "SONDE_ENGINE": str(engine), "PYTHONPATH": str(ROOT / "lab")}

    def start(name: str) -> subprocess.Popen[str]:
        (tmp_path / name).mkdir(exist_ok=True)
        arguments = ["run", "plan.toml", "--sweep", "data.access.transfer=4KiB,16KiB", "--repeat", "3", "--warmup", "1",
                 "--on", str(tmp_path / name), "--archive", str(tmp_path / f"{name}-archive"), "--group", "g",
                 "--no-report", "--quiet"]  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "sonde", *arguments], cwd=tmp_path, env=environment, text=True,
            start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def finish(name: str) -> float:
        began = time.monotonic()
        runner = start(name)
        _, messages = runner.communicate(timeout=600)
        assert runner.returncode == 0, messages
        return time.monotonic() - began

    took = finish("undisturbed")
    pick, deaths = random.Random(13), 0
    for _ in range(KILLS):
        runner = start("disturbed")
        # a machine that others use takes its time, so moments are shares of what a whole run takes
        with contextlib.suppress(subprocess.TimeoutExpired):
            runner.communicate(timeout=pick.uniform(0.2, 0.9) * took)
        deaths += runner.poll() is None
        with contextlib.suppress(ProcessLookupError):
            # now and then the engine lives on and brings its run to the end
            (os.killpg if pick.random() < 0.7 else os.kill)(runner.pid, signal.SIGKILL)
        runner.communicate()
    finish("disturbed")
    assert deaths >= 2, "the machine was so uneven that the experiment came to its end before it was killed"
    counts = turns(tmp_path / "disturbed-archive")
    assert counts == turns(tmp_path / "undisturbed-archive")
    assert len(counts) == 2 * (3 + 1)
    assert max(counts.values()) == 1
    assert list((tmp_path / "disturbed").iterdir()) == [], "nothing is left on the storage"
