# SPDX-License-Identifier: Apache-2.0
"""Somebody on the network of the nodes sends to the ports of a run: the numbers stay right, the run ends as it would
have, and the record says what was ignored. The hub listens on the address of the job's host list and nowhere else.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import many_nodes
import pytest
import start_ranks
from engine_over_nodes import EngineOverNodes
from engine_under_test import DONE, Plan, write_plan
from many_nodes import ManyNodes
from start_ranks import Launcher

pytestmark = [pytest.mark.mpi, pytest.mark.root]

# Datagrams of every wrong kind, to one port: other keys in the size of a report, too short, too long, empty.
INTRUDER = """
import os, socket, sys
address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(count):
    size = (80, 79, 81, 48, 0)[number % 5]
    out.sendto(os.urandom(size), (address, port))
"""


@pytest.fixture
def mpich() -> Launcher:
    if reason := many_nodes.explain_unavailability():
        pytest.skip(reason)
    launcher = start_ranks.find_mpich()
    if launcher is None or start_ranks.find_built_program(launcher.module) is None:
        pytest.skip("needs the mpiexec of the Python package mpich and a module for it")
    return launcher


def run_in_network(nodes: ManyNodes, node_name: str, *arguments: str) -> str:
    command = ["nsenter", f"--net=/run/netns/{nodes.prefix}{node_name}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def list_udp_sockets(nodes: ManyNodes, node_name: str) -> list[tuple[str, int]]:
    """Local addresses and ports of the UDP sockets in the network of a node."""
    lines = (
        run_in_network(nodes, node_name, "cat", "/proc/net/udp").splitlines()[1:]
        + run_in_network(nodes, node_name, "cat", "/proc/net/udp6").splitlines()[1:]
    )
    locals_ = [line.split()[1].split(":") for line in lines]
    return [
        (".".join(str(byte) for byte in reversed(bytes.fromhex(address))), int(port, 16)) for address, port in locals_
    ]


def make_timed_plan(target: Path, seconds: int) -> Plan:
    """Two tasks write 1 MiB each, which is the known answer, and then write it again and again."""
    phases: list[Plan] = [
        {"id": "first", "op": "write"},
        {"id": "timed", "op": "rewrite", "stop": {"time": f"{seconds}s"}},
    ]
    return write_plan(target, *phases, tasks={"threads": 2}, observe={"progress": "50ms"})


def test_flood_of_foreign_datagrams_changes_no_number(
    engine_path: Path, mpich: Launcher, target: Path, tmp_path: Path
) -> None:
    count = 100_000
    with ManyNodes(2, tmp_path) as nodes:
        engine = EngineOverNodes(engine_path, tmp_path, nodes, mpich)
        with engine.start(make_timed_plan(target, 5), env={"SONDE_NODE_PATIENCE": "2"}) as running:
            running.wait_for('"nodes_seen":2')
            (hub,) = list_udp_sockets(nodes, "n1")
            (other,) = list_udp_sockets(nodes, "n2")
            for address, port in (hub, other):
                run_in_network(nodes, "head", sys.executable, "-c", INTRUDER, address, str(port), str(count // 2))
            result = running.result()
    assert hub[0] == "10.94.0.1"
    assert other[0] == "10.94.0.2"
    assert result.code == DONE, result.err
    assert result.finished("first")["bytes"]["transferred"] == 2 << 20
    assert result.finished("timed")["stopped_by"] == "time"
    assert not [line for line in result.of("finding") if line["id"] in ("slow_node", "node_lost")]
    (finding,) = [line for line in result.of("finding") if line["id"] == "rejected_messages"]
    assert finding["severity"] == "info"
    assert finding["evidence"]["foreign"] > 100
    assert finding["evidence"]["repeated"] == 0
    assert finding["text"].startswith(f"the nodes ignored {finding['evidence']['foreign']} datagrams without the key")


def test_undisturbed_run_has_no_rejected_messages_finding(
    engine_path: Path, mpich: Launcher, target: Path, tmp_path: Path
) -> None:
    with ManyNodes(2, tmp_path) as nodes:
        result = EngineOverNodes(engine_path, tmp_path, nodes, mpich).run(write_plan(target, tasks={"threads": 2}))
    assert result.code == DONE, result.err
    assert not [line for line in result.of("finding") if line["id"] == "rejected_messages"]


def test_run_on_one_node_opens_no_udp_socket(engine_path: Path, mpich: Launcher, target: Path, tmp_path: Path) -> None:
    plan = make_timed_plan(target, 2)
    plan["tasks"] = {"threads": 1, "processes": 2}
    with (
        ManyNodes(1, tmp_path) as nodes,
        EngineOverNodes(engine_path, tmp_path, nodes, mpich).start(plan) as running,
    ):
        running.wait_for('"type":"progress"')
        assert list_udp_sockets(nodes, "n1") == []
        result = running.result()
    assert result.code == DONE, result.err
    assert result.of("run")[0]["nodes"] == 1
