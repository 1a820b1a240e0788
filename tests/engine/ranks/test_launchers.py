# SPDX-License-Identifier: Apache-2.0
"""Teams as launchers start them: on one node without MPI, with MPI, and over several nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import many_nodes
import pytest
import start_ranks
from start_ranks import Launcher

pytestmark = pytest.mark.mpi


def parse_root_line(result: Any) -> dict[str, Any]:
    """The line that the root printed; launchers may print more around it."""
    assert result.returncode == 0, result.stderr
    lines = [text for text in result.stdout.splitlines() if text.startswith("{")]
    assert len(lines) == 1, result.stdout + result.stderr
    document: dict[str, Any] = json.loads(lines[0])
    return document


def list_clock_offsets(reduced: str) -> list[tuple[str, int, int]]:
    """(node, offset, error) in the order in which the reduction joined them."""
    rows = [part.split() for part in reduced.split("|")]
    return [(node, int(offset), int(error)) for node, offset, error in rows]


@pytest.mark.parametrize("ranks", [1, 2, 4, 16])
def test_one_node_needs_no_mpi(launcher: Launcher, team_probe: str, ranks: int) -> None:
    # A module that cannot be loaded: whoever tries MPI fails.
    description = parse_root_line(
        launcher.run(launcher.command(ranks, team_probe, "--threads", "2"), env={"SONDE_MPI_MODULE": "/none"})
    )
    assert description["ok"]
    assert description["description"] == ("single" if ranks == 1 else f"node ({description['description'][6:-1]})")
    assert description["processes"] == ranks
    assert description["nodes"] == 1
    assert description["node_of"] == [0] * ranks


@pytest.mark.parametrize("ranks", [1, 2, 4, 16])
def test_launch_option_mpi_connects_ranks_by_mpi(mpi_launcher: Launcher, team_probe: str, ranks: int) -> None:
    probe_command = [team_probe, "--launch", "mpi", "--threads", "2"]
    description = parse_root_line(mpi_launcher.run(mpi_launcher.command(ranks, *probe_command)))
    assert description["ok"]
    assert description["description"].startswith("mpi (")
    assert (description["processes"], description["nodes"]) == (ranks, 1)


def test_mpi_without_a_launcher_is_one_process(team_probe: str) -> None:
    if start_ranks.find_built_program("sonde-mpi-abi.so") is None or start_ranks.find_mpich() is None:
        pytest.skip("sonde-mpi-abi.so is not built")
    description = parse_root_line(start_ranks.run_command([team_probe, "--launch", "mpi"]))
    assert (description["ok"], description["processes"]) == (True, 1)


def test_a_single_rank_may_fork(launcher: Launcher, team_probe: str) -> None:
    description = parse_root_line(launcher.run(launcher.command(1, team_probe, "--processes", "3")))
    assert (description["ok"], description["description"], description["processes"]) == (True, "forked", 3)


def test_64_ranks_on_one_node_connect(launcher: Launcher, team_probe: str) -> None:
    assert parse_root_line(launcher.run(launcher.command(64, team_probe)))["ok"]


@pytest.mark.parametrize("layout", [[2, 2, 1], [1, 1], [1] * 7, [1, 3]])
def test_ranks_connect_across_pretended_nodes(mpi_launcher: Launcher, team_probe: str, layout: list[int]) -> None:
    """Several nodes without the rights to make any: messages, the tree, and clocks that are in truth the same."""
    segments = [
        mpi_launcher.command(ranks, team_probe, "--launch", "mpi", variables={"SONDE_PRETEND_NODE": f"host{node}"})
        for node, ranks in enumerate(layout)
    ]
    description = parse_root_line(mpi_launcher.run(*segments))
    assert description["ok"]
    assert description["nodes"] == len(layout)
    assert description["node_of"] == [node for node, ranks in enumerate(layout) for _ in range(ranks)]
    clocks = list_clock_offsets(description["reduced"])
    assert [name for name, _, _ in clocks] == [f"{node}@host{node}" for node in range(len(layout))]
    assert clocks[0][1:] == (0, 0)
    for _, offset, error in clocks[1:]:
        assert abs(offset) <= error


def test_a_module_for_another_mpi_is_refused(mpi_launcher: Launcher, team_probe: str) -> None:
    """Ranks that do not see each other must not run side by side as if each were the whole run."""
    other = "sonde-mpi-site.so" if mpi_launcher.name == "mpich" else "sonde-mpi-abi.so"
    module = start_ranks.find_built_program(other)
    if module is None:
        pytest.skip(f"{other} is not built")
    result = mpi_launcher.run(
        mpi_launcher.command(2, team_probe, "--launch", "mpi"),
        env={"SONDE_MPI_MODULE": str(module)},
    )
    assert result.returncode != 0
    assert "started 2 processes, but" in result.stderr or "MPI" in result.stderr
    assert '"ok": true' not in result.stdout


def test_launch_mpi_with_processes_option_suggests_mpiexec(team_probe: str) -> None:
    result = start_ranks.run_command([team_probe, "--launch", "mpi", "--processes", "3"])
    assert result.returncode == 3
    assert "mpiexec -n 3" in result.stderr


def test_ranks_connect_across_network_namespaces(team_probe: str, tmp_path: Path) -> None:
    """Network namespaces: different host names, addresses and /proc/self/ns/net, so real nodes to everything but the
    hardware. Here the wire works: progress and stop flags travel while nobody is at a barrier."""
    with make_nodes(3, tmp_path) as cluster:
        mpiexec = Path(find_mpich_with_module().start[0])
        description = parse_root_line(
            start_ranks.run_command(cluster.mpiexec(mpiexec, 2, team_probe, "--threads", "2"))
        )
        assert (description["ok"], description["nodes"], description["node_of"]) == (True, 3, [0, 0, 1, 1, 2, 2])
        clocks = list_clock_offsets(description["reduced"])
        assert [name for name, _, _ in clocks] == ["0@n1", "1@n2", "2@n3"]
        assert all(abs(offset) <= error for _, offset, error in clocks)

        news = parse_root_line(start_ranks.run_command(cluster.mpiexec(mpiexec, 2, team_probe, "--do", "stop")))
        assert news["stop"] == 1
        assert news["slowest_ms"] < 10_000  # the probe's own limit: the flag never came
        assert (news["heard"], news["bytes"], news["operations"]) == (2, 4000, 4)


@pytest.mark.parametrize("victim", [0, 2, 3])
def test_several_nodes_learn_of_a_death(team_probe: str, tmp_path: Path, victim: int) -> None:
    """Processes that the launcher leaves alive leave the barrier and report a lost process."""
    with make_nodes(2, tmp_path) as cluster:
        mpiexec = Path(find_mpich_with_module().start[0])
        command = cluster.mpiexec(
            mpiexec, 2, team_probe, "--do", "lose", "--victim", str(victim), "--folder", str(tmp_path)
        )
        position = command.index(str(mpiexec))
        command.insert(position + 1, "-disable-auto-cleanup")
        assert start_ranks.run_command(command).returncode != 0
    reports = {
        rank: json.loads((tmp_path / str(rank)).read_text()) for rank in range(4) if (tmp_path / str(rank)).exists()
    }
    # hydra goes on to kill other ranks, sooner or later: any of the dead may be the one that was noticed first.
    assert reports
    assert victim not in reports
    assert all(report["lost"] in set(range(4)) - set(reports) for report in reports.values())
    assert all((report["stop"], report["all"]) == (3, False) for report in reports.values())


def find_mpich_with_module() -> Launcher:
    launcher_found = start_ranks.find_mpich()
    if launcher_found is None or start_ranks.find_built_program(launcher_found.module) is None:
        pytest.skip("needs the Python package mpich and sonde-mpi-abi.so")
    return launcher_found


def make_nodes(node_count: int, folder: Path) -> many_nodes.ManyNodes:
    reason = many_nodes.explain_unavailability()
    if reason:
        pytest.skip(reason)
    return many_nodes.ManyNodes(node_count, folder)
