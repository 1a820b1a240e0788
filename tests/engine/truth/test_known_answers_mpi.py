# SPDX-License-Identifier: Apache-2.0
"""The same truths when a launcher starts the tasks: joined by shared memory, and by MPI."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from engine_under_test import ROOT, Engine
from schedule import schedule_task
from test_known_answers import MIB, STEPPED, check_latency, check_phase_end, plan_of


def find_mpiexec() -> str | None:
    """mpiexec of the Python package mpich, whose library the engine's module for the MPI standard ABI loads."""
    places = [Path(sys.prefix) / "bin" / "mpiexec", ROOT / ".venv" / "bin" / "mpiexec"]
    program = next((str(path) for path in places if path.exists()), None)
    return program or shutil.which("mpiexec.hydra")


@pytest.mark.parametrize("launch_mode", ["node", "mpi"])
@pytest.mark.parametrize(("ranks", "threads"), [(1, 1), (2, 1), (4, 2)])
def test_known_answers_under_a_launcher(
    engine: Engine, target: Path, launch_mode: str, ranks: int, threads: int
) -> None:
    start = find_mpiexec()
    if start is None:
        pytest.skip("no mpiexec: pip install 'mpich>=5.0.2' into the environment of the tests")
    if launch_mode == "mpi" and not (engine.path.parent / "sonde-mpi-abi.so").exists():
        pytest.skip("this engine was built without the module for the MPI standard ABI")
    slow = {str(ranks * threads - 1): 10}
    plan = plan_of(target, STEPPED, threads=threads, paced={"latency": "1ms", "slow_tasks": slow})
    result = engine.run(plan, "--launch", launch_mode, launch_prefix=[start, "-n", str(ranks)])
    numbers = range(ranks * threads)
    truth = [
        schedule_task(256, MIB, STEPPED, latency_s=1e-3, slowdown=10 if n == ranks * threads - 1 else 1)
        for n in numbers
    ]
    line = check_phase_end(result, truth)
    check_latency(line, truth)
    assert result.of("run")[0]["launch"].startswith(launch_mode if ranks > 1 or launch_mode == "mpi" else "single")
    assert line["imbalance"]["slowest"][0]["task"] == ranks * threads - 1
