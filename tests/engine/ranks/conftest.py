# SPDX-License-Identifier: Apache-2.0
"""Fixtures: programs that must have been built, launchers that may be absent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import start_ranks
from start_ranks import Launcher

FOUND: dict[str, Callable[[], Launcher | None]] = {"mpich": start_ranks.find_mpich, "openmpi": start_ranks.find_openmpi}


@pytest.fixture(scope="session")
def team_probe() -> str:
    path = start_ranks.find_built_program("team-probe")
    if path is None:
        pytest.skip("team-probe is not built: cmake --preset dev && cmake --build --preset dev, or set SONDE_BUILD")
    return str(path)


@pytest.fixture(scope="session")
def mpiio_probe() -> str:
    path = start_ranks.find_built_program("mpiio-probe")
    if path is None:
        pytest.skip("mpiio-probe is not built: cmake --preset dev && cmake --build --preset dev, or set SONDE_BUILD")
    return str(path)


@pytest.fixture(scope="session", params=sorted(FOUND))
def launcher(request: pytest.FixtureRequest) -> Launcher:
    """Each launcher of this machine, whether or not there is a module for its MPI."""
    launcher_found = FOUND[request.param]()
    if launcher_found is None:
        pytest.skip(f"no launcher of {request.param} here")
    return launcher_found


@pytest.fixture(scope="session")
def mpi_launcher(launcher: Launcher) -> Launcher:
    """A launcher whose MPI there is a module for."""
    if start_ranks.find_built_program(launcher.module) is None:
        pytest.skip(f"{launcher.module} is not built")
    return launcher


@pytest.fixture(scope="session", params=[*sorted(FOUND), "ssh"])
def node_launcher(request: pytest.FixtureRequest) -> Launcher:
    """Each way to start processes on several nodes: with MPI, where there is a module for it, and over ssh."""
    launcher_found = start_ranks.make_ssh_launcher() if request.param == "ssh" else FOUND[request.param]()
    if launcher_found is None or start_ranks.find_built_program(launcher_found.module) is None:
        pytest.skip(f"no launcher of {request.param} here, or no module for it")
    return launcher_found
