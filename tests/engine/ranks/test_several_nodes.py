# SPDX-License-Identifier: Apache-2.0
"""Runs of two to eight nodes by MPICH, Open MPI and ssh: truth as on one node, also where clocks disagree."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import many_nodes
import pytest
from many_nodes import ManyNodes
from start_ranks import Launcher

sys.path.insert(0, str(Path(__file__).parents[1] / "truth"))

from engine_over_nodes import EngineOverNodes
from engine_under_test import Line, Result
from schedule import schedule_task
from test_known_answers import MIB, STEPPED, check_latency, check_phase_end, get_byte_rate, plan_of
from test_training import EXACT_TOLERANCE, RATE, follow_queue, make_training_plan

pytestmark = [pytest.mark.mpi, pytest.mark.root]
HALF_S, PPM = 500_000_000, 100


@pytest.fixture(autouse=True)
def _nodes_can_be_made() -> None:
    if reason := many_nodes.explain_unavailability():
        pytest.skip(reason)


def list_lines_by_node(result: Result, phase: str = "p") -> list[Line]:
    line = next(line for line in result.of("nodes") if line["phase"] == phase)
    return [dict(zip(line["columns"], row, strict=True)) for row in line["rows"]]


@pytest.mark.parametrize("node_count", [2, 8])
def test_tasks_on_several_nodes_match_the_paced_truth(
    node_count: int, engine_path: Path, node_launcher: Launcher, target: Path, tmp_path: Path
) -> None:
    plan = plan_of(target, STEPPED, threads=node_count, paced={"latency": "1ms", "slow_tasks": {"1": 10}})
    with ManyNodes(node_count, tmp_path) as nodes:
        result = EngineOverNodes(engine_path, tmp_path, nodes, node_launcher).run(plan)
    truth = [schedule_task(256, MIB, STEPPED, latency_s=1e-3, slowdown=10 if n == 1 else 1) for n in range(node_count)]
    check_latency(check_phase_end(result, truth), truth)
    assert result.of("run")[0]["nodes"] == node_count
    assert [row["host"] for row in list_lines_by_node(result)] == nodes.names


@pytest.mark.parametrize("node_count", [2, 8])
def test_training_on_several_nodes_matches_the_queue(
    node_count: int, engine_path: Path, node_launcher: Launcher, target: Path, tmp_path: Path
) -> None:
    plan = make_training_plan(target, {"batch_size": 2, "compute_time": "60ms", "prefetch": 2}, tasks=node_count)
    with ManyNodes(node_count, tmp_path) as nodes:
        result = EngineOverNodes(engine_path, tmp_path, nodes, node_launcher).run(plan)
    training = result.finished("epoch0")["training"]
    utilization, first, _ = follow_queue(6, 2 * 2 * MIB / RATE, 60e-3, prefetch=2)
    assert training["utilization"] == pytest.approx(utilization, rel=EXACT_TOLERANCE)
    assert training["lowest_utilization"] == pytest.approx(utilization, rel=EXACT_TOLERANCE)
    assert training["first_batch_s"] == pytest.approx(first, rel=EXACT_TOLERANCE)
    assert (training["accelerators"], training["samples"]) == (node_count, node_count * 12)
    assert [row["host"] for row in list_lines_by_node(result, "epoch0")] == nodes.names


def compile_library(folder: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler for the library of another clock")
    library_file = folder / "other_clock.so"
    source = Path(__file__).with_name("other_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library_file), str(source), "-ldl"], check=True)
    return library_file


def test_clock_offset_and_drift_are_recorded_and_change_no_rate(
    engine_path: Path, node_launcher: Launcher, target: Path, tmp_path: Path
) -> None:
    """Half a second ahead and fast, half a second behind and slow; the storage keeps its schedule in real time, so that
    times are really compared. The best of six tries, as waking up late is no fault of the clocks."""
    plan = plan_of(target, [(0.0, 100e6)], threads=3, access={"block": 128 * MIB})
    plan["data"]["paced"]["virtual_clock"] = False
    elapsed = 128 * MIB / 100e6
    errors: list[float] = []
    clock = compile_library(tmp_path)
    with ManyNodes(3, tmp_path) as nodes:
        for name, sign in (("n2", 1), ("n3", -1)):
            names = {"CLOCK_AHEAD_NS": sign * HALF_S, "CLOCK_PPM": sign * PPM, "CLOCK_ORIGIN_NS": time.monotonic_ns()}
            settings = " ".join(f"{key}={value}" for key, value in names.items())
            nodes.differs(name, f"export {settings} LD_PRELOAD={clock}")
        engine = EngineOverNodes(engine_path, tmp_path, nodes, node_launcher)
        while len(errors) < 6 and min(errors, default=1.0) >= 0.01:
            result = engine.run(plan, record=tmp_path / f"try-{len(errors)}.ndjson")
            line = result.finished("p")
            truths = {"total": 300e6, "transfer": 300e6, "task_sum": 300e6, "first_done": 300e6}
            errors.append(max(abs(get_byte_rate(line, name) / truth - 1) for name, truth in truths.items()))
    assert min(errors) < 0.01, errors
    node_lines = result.of("node")
    assert [node["host"] for node in node_lines] == ["n1", "n2", "n3"]
    for node, row, sign in zip(node_lines, list_lines_by_node(result), (0, 1, -1), strict=True):
        drift_ns = sign * PPM * 1e-6 * elapsed * 1e9
        for times in (node, row):  # since the origin, less than 50 s ago
            assert abs(times["clock_offset_ns"] + sign * HALF_S) <= times["clock_error_ns"] + 50 * PPM * 1000
        assert abs(row["clock_drift_ns"] + drift_ns) <= row["clock_drift_error_ns"] + 0.3 * abs(drift_ns)
        assert row["clock_error_ns"] < HALF_S / 10
    assert not [finding for finding in result.of("finding") if finding["id"].startswith("clock")]
