# SPDX-License-Identifier: Apache-2.0
"""One node of a run vanishes, hangs, is slow, has another engine or sees another target: one sentence that names it,
what was finished is kept, and nobody waits without end.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import many_nodes
import pytest
import start_ranks
from engine_over_nodes import EngineOverNodes
from engine_under_test import (
    ENVIRONMENT,
    Line,
    Plan,
    Running,
    iterate_environments,
    list_tree,
    parse_record,
    write_plan,
)
from many_nodes import ManyNodes
from start_ranks import Launcher

pytestmark = [pytest.mark.mpi, pytest.mark.root]
PATIENCE = {"SONDE_NODE_PATIENCE": "2"}
LONG: list[Plan] = [{"id": "first", "op": "write"}, {"id": "long", "op": "rewrite", "stop": {"time": "300s"}}]


@pytest.fixture
def each_start(node_launcher: Launcher) -> Launcher:
    """MPICH, ssh, and Open MPI where it is installed: their daemons fail in different ways."""
    if reason := many_nodes.explain_unavailability():
        pytest.skip(reason)
    return node_launcher


STARTS = {"mpich": start_ranks.find_mpich, "openmpi": start_ranks.find_openmpi, "ssh": start_ranks.make_ssh_launcher}


@pytest.fixture(params=["mpich", "ssh", pytest.param("openmpi", marks=pytest.mark.nightly)])
def launcher(request: pytest.FixtureRequest) -> Launcher:
    """The same; of Open MPI at night only, for what does not depend on its daemons."""
    launcher_found = STARTS[request.param]()
    if reason := many_nodes.explain_unavailability():
        pytest.skip(reason)
    if launcher_found is None or start_ranks.find_built_program(launcher_found.module) is None:
        pytest.skip(f"needs the launcher of {request.param} and a module for it")
    return launcher_found


def list_processes_of_host(running: Running, host: str) -> list[int]:
    """The processes of this start on one node, found by their host name."""
    pids = [pid for pid, environment in iterate_environments() if running.token.encode() in environment]
    return [pid for pid in pids if read_host_name(pid) == host]


def read_host_name(pid: int) -> str:
    command = ["nsenter", f"--uts=/proc/{pid}/ns/uts", "hostname"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def unplug_node(nodes: ManyNodes, running: Running, node_name: str) -> None:
    nodes.unplug(node_name)


def stop_processes_of_node(nodes: ManyNodes, running: Running, node_name: str) -> None:
    for pid in list_processes_of_host(running, node_name):
        os.kill(pid, signal.SIGSTOP)


@pytest.mark.parametrize("fail", [unplug_node, stop_processes_of_node])
def test_vanished_or_hanging_node_is_reported_by_name(
    fail: Callable[[ManyNodes, Running, str], None],
    engine_path: Path, each_start: Launcher, target: Path, tmp_path: Path,
) -> None:  # fmt: skip
    plan = write_plan(target, *LONG, tasks={"threads": 6}, observe={"progress": "50ms"})
    with ManyNodes(3, tmp_path) as nodes:
        engine = EngineOverNodes(engine_path, tmp_path, nodes, each_start)
        with engine.start(plan, env=PATIENCE) as running:
            running.wait_for_phase("long")
            running.wait_for('"nodes_seen":3')
            fail(nodes, running, "n2")
            running.wait_for('"type":"end"')  # the launcher may wait for the lost node for longer
            lines = parse_record(running.text())
    end = lines[-1]
    assert (end["type"], end["status"], end["exit_code"]) == ("end", "failed", 1)
    assert end["text"].startswith("n2 was given up in phase long: nothing was heard of it")
    assert end["text"].endswith("finished phases are kept")
    done: dict[str, Line] = {line["phase"]: line for line in lines if line["type"] == "phase_end"}
    assert done["first"]["stopped_by"] == "volume"
    assert done["first"]["bytes"]["transferred"] == 6 << 20


def test_nodes_that_lose_the_root_end_by_themselves(
    engine_path: Path, launcher: Launcher, target: Path, tmp_path: Path
) -> None:
    plan = write_plan(target, *LONG, tasks={"threads": 2}, observe={"progress": "50ms"})
    with ManyNodes(2, tmp_path) as nodes:
        engine = EngineOverNodes(engine_path, tmp_path, nodes, launcher)
        with engine.start(plan, env=PATIENCE) as running:
            running.wait_for('"nodes_seen":2')
            survivors = list_processes_of_host(running, "n2")
            nodes.unplug("n1")
            running.wait_for('"type":"end"')  # the root gives n2 up as well
            wait_until_gone(survivors)


def wait_until_gone(processes: list[int]) -> None:
    engines = [pid for pid in processes if Path(f"/proc/{pid}/comm").exists() and name_of(pid) == "sonde-engine"]
    for pid in engines:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        with os.fdopen(descriptor) as file:
            assert select.select([file], [], [], 30)[0], f"process {pid} of the other node waits without end"


def name_of(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/comm").read_text().strip()
    except OSError:
        return ""


def test_slow_node_is_reported(engine_path: Path, launcher: Launcher, target: Path, tmp_path: Path) -> None:
    plan = write_plan(target, tasks={"threads": 6}, data={"backend": "paced"})
    plan["data"]["access"] = {"transfer": "1MiB", "block": "64MiB"}
    plan["data"]["paced"] = {"rate": "100MB/s", "slow_tasks": {"4": 10, "5": 10}}
    with ManyNodes(3, tmp_path) as nodes:
        result = EngineOverNodes(engine_path, tmp_path, nodes, launcher).run(plan)
    assert result.code == 0, result.err
    # A busy machine is a finding of its own.
    (finding,) = [line for line in result.of("finding") if line["id"].startswith("slow")]
    assert finding["id"] == "slow_node"
    assert finding["text"].startswith("all 2 tasks on n3 were slower, together 10.0 times,")
    assert finding["evidence"]["node"] == 2


def test_node_with_another_engine_is_reported_before_the_run(
    engine_path: Path, launcher: Launcher, target: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other-engine"
    version = subprocess.run([engine_path, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    other.write_bytes(engine_path.read_bytes().replace(f"{version}\0".encode(), f"{version[:-1]}9\0".encode()))
    other.chmod(0o755)
    with ManyNodes(2, tmp_path) as nodes:
        nodes.differs("n2", f"mount --bind {other} {engine_path}")
        result = EngineOverNodes(engine_path, tmp_path, nodes, launcher).start(write_plan(target, tasks={"threads": 4}))
        with result as running:
            ended = running.result()
    assert ended.code == ENVIRONMENT, ended.err
    other_host = "head" if launcher.name == "ssh" else "n1"
    assert ended.sentence.startswith(f"n2 would run engine {version[:-1]}9, and {other_host} engine {version}: ")
    assert (ended.lines, list_tree(target)) == ([], [])


@pytest.mark.parametrize("missing_directory", ["run directory", "in place"])
def test_node_with_another_target_is_reported_before_any_phase(
    missing_directory: str, engine_path: Path, launcher: Launcher, target: Path, tmp_path: Path
) -> None:
    plan = write_plan(target, tasks={"threads": 4})
    if missing_directory == "in place":
        plan["data"]["files"] = {"mapping": "shared", "paths": [str(target / "file")]}
        plan["target"]["use_existing"] = True
    with ManyNodes(2, tmp_path) as nodes:
        nodes.differs("n2", f"mount -t tmpfs none {target}")
        engine = EngineOverNodes(engine_path, tmp_path, nodes, launcher)
        with engine.start(plan) as running:
            ended = running.result()
    assert ended.code == ENVIRONMENT, ended.err
    assert ended.sentence.startswith("n2 sees another target than the root: ")
    assert (ended.lines, list_tree(target)) == ([], [])
