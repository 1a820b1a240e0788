# SPDX-License-Identifier: Apache-2.0
"""The series of each node against storage whose schedule is known, when ranks of one machine play several nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_under_test import Engine
from schedule import schedule_task
from test_known_answers import EXACT_TOLERANCE, MIB, STEPPED, check_phase_end, find_series_line, plan_of
from test_known_answers_mpi import find_mpiexec

pytestmark = pytest.mark.mpi

NODES, RANKS = 3, 2  # ranks of each node
# Each rank gets its node number in an environment variable.
AS_NODES = 'export SONDE_PRETEND_NODE="node$((PMI_RANK / 2))"; exec "$@"'


def test_each_node_has_a_series_and_the_series_add_up(engine: Engine, target: Path) -> None:
    start = find_mpiexec()
    if start is None:
        pytest.skip("no mpiexec: pip install 'mpich>=5.0.2' into the environment of the tests")
    if not (engine.path.parent / "sonde-mpi-abi.so").exists():
        pytest.skip("this engine was built without the module for the MPI standard ABI")
    slow = {"2": 4, "3": 2}  # both tasks of the second node
    plan = plan_of(target, STEPPED, paced={"latency": "1ms", "slow_tasks": slow})
    before = [start, "-n", str(NODES * RANKS), "bash", "-c", AS_NODES, "as-nodes"]
    result = engine.run(plan, "--launch", "mpi", launch_prefix=before)
    truth = [
        schedule_task(256, MIB, STEPPED, latency_s=1e-3, slowdown=slow.get(str(number), 1))
        for number in range(NODES * RANKS)
    ]
    check_phase_end(result, truth)
    assert result.of("run")[0]["nodes"] == NODES
    node_lines = [line for line in result.of("series") if line["scope"] == "node"]
    assert [line["node"] for line in node_lines] == list(range(NODES))
    for line in node_lines:
        node_tasks = truth[RANKS * line["node"] :][:RANKS]
        volume = sum(len(task.ends) * task.transfer for task in node_tasks)
        slice_s = line["slice_s"]
        assert slice_s == find_series_line(result)["slice_s"]
        assert sum(line["bytes"]) == volume
        assert sum(line["ops"]) == 256 * RANKS
        for index, moved in enumerate(line["bytes"]):
            exact = sum(
                task.bytes_until((index + 1) * slice_s) - task.bytes_until(index * slice_s) for task in node_tasks
            )
            assert moved == pytest.approx(exact, rel=0.02, abs=8 + 2 * EXACT_TOLERANCE * volume / len(line["bytes"])), (
                index
            )
            at_work = sum(task.ends[-1] > index * slice_s for task in node_tasks)
            assert line["active"][index] == at_work
    job_series = find_series_line(result)
    for name in ("bytes", "ops", "active"):
        columns = [line[name] + [0] * (len(job_series[name]) - len(line[name])) for line in node_lines]
        assert [sum(values) for values in zip(*columns, strict=True)] == job_series[name]


def test_single_node_has_only_the_total_series(engine: Engine, target: Path) -> None:
    result = engine.run(plan_of(target, STEPPED, threads=2, processes=2))
    assert [line["scope"] for line in result.of("series")] == ["all"]
