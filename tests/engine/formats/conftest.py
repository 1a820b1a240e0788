# SPDX-License-Identifier: Apache-2.0
"""Fixtures: an engine under Open MPI, with the HDF5 that Debian builds for it."""

from __future__ import annotations

import ctypes.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ranks"))

import start_ranks

RunPlan = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def hdf5_engine() -> str:
    path = start_ranks.find_built_program("sonde-engine")
    if path is None or start_ranks.find_built_program("sonde-mpi-site.so") is None:
        pytest.skip("the engine or sonde-mpi-site.so is not built")
    if ctypes.util.find_library("hdf5_openmpi") is None:
        pytest.skip("HDF5 for Open MPI is not installed: tools/system-packages tests")
    return str(path)


@pytest.fixture(scope="session")
def pnetcdf_engine(hdf5_engine: str) -> str:
    if ctypes.util.find_library("pnetcdf") is None:
        pytest.skip("PnetCDF is not installed: tools/system-packages tests")
    return hdf5_engine


@pytest.fixture(scope="session")
def openmpi_launcher() -> start_ranks.Launcher:
    launcher = start_ranks.find_openmpi()
    if launcher is None:
        pytest.skip("Open MPI is not installed: tools/system-packages tests")
    return launcher


@pytest.fixture
def run_engine(hdf5_engine: str, openmpi_launcher: start_ranks.Launcher) -> RunPlan:
    """Runs the engine with arguments by so many tasks under Open MPI."""

    def run(tasks: int, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = openmpi_launcher.command(tasks, hdf5_engine, *arguments, variables=variables)
        return openmpi_launcher.run(command)

    return run


@pytest.fixture
def run_plan(run_engine: RunPlan, tmp_path: Path) -> RunPlan:
    """Runs a plan with so many tasks; its files stay in tmp_path/run, its record in tmp_path/record."""

    def run(tasks: int, plan: dict[str, Any], **variables: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        (tmp_path / "record").unlink(missing_ok=True)
        return run_engine(tasks, "run", f"{tmp_path}/plan.json", "--record", f"{tmp_path}/record", **variables)

    return run
