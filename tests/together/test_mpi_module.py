# SPDX-License-Identifier: Apache-2.0
"""An engine without the MPI module that it needs says so in one sentence, and the module can be made afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sonde.launch.engine import Engine
from sonde.launch.mpi_module import COMPILER_WRAPPERS, MODULE_NAME, build_mpi_module
from sonde.model.errors import MachineError

ROOT = Path(__file__).resolve().parents[2]
OPENMPI = ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "2"]


@pytest.fixture
def copied_engine(engine: Path, tmp_path: Path) -> Engine:
    """An engine in a folder of its own, with no module beside it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return Engine(Path(shutil.copy2(engine, folder)), "of the test")


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "SONDE_MPI_MODULE"}
    return subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, timeout=120
    )


def test_missing_mpi_module_error_suggests_building_it(copied_engine: Engine, tmp_path: Path) -> None:
    result = run([str(copied_engine.path), "ior", "-a", "MPIIO", "-o", "f"], tmp_path)
    assert result.returncode == 3
    assert result.stderr.count("\n") == 1
    assert "sonde doctor --build-mpi" in result.stderr


def test_a_module_of_another_mpi_is_a_sentence_and_no_abort(
    copied_engine: Engine, engine: Path, tmp_path: Path
) -> None:
    module = engine.parent / "sonde-mpi-abi.so"
    if shutil.which(OPENMPI[0]) is None or not module.exists():
        pytest.skip("needs mpiexec.openmpi and a module for the MPI standard ABI")
    shutil.copy2(module, copied_engine.path.parent)
    result = run([*OPENMPI, str(copied_engine.path), "ior", "-a", "MPIIO", "-o", "f"], tmp_path)
    ours = [line for line in result.stderr.splitlines() if line.startswith("sonde-engine: ")]
    assert result.returncode == 3
    assert len(ours) == 1
    assert "sonde doctor --build-mpi" in ours[0]
    assert "Abort" not in result.stderr


def test_built_mpi_module_is_discovered_and_used(copied_engine: Engine, tmp_path: Path) -> None:
    wrapper = shutil.which("mpicxx.openmpi")
    if wrapper is None or shutil.which(OPENMPI[0]) is None:
        pytest.skip("needs Open MPI's mpicxx.openmpi and mpiexec.openmpi")
    built = build_mpi_module(copied_engine, Path(wrapper))
    assert built.path == copied_engine.path.parent / MODULE_NAME
    assert sorted(path.name for path in copied_engine.path.parent.iterdir()) == [copied_engine.path.name, MODULE_NAME]
    result = run([*OPENMPI, str(copied_engine.path), "ior", "-a", "MPIIO", "-t", "4k", "-b", "8k", "-o", "f"], tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "tasks               : 2\n" in result.stdout


def test_failing_compiler_leaves_no_file(copied_engine: Engine, tmp_path: Path) -> None:
    wrapper = tmp_path / "mpicxx"
    wrapper.write_text("#!/bin/sh\necho 'mpi_module.cpp:1: error: no such thing' >&2\nexit 1\n")
    wrapper.chmod(0o755)
    with pytest.raises(MachineError, match=r"does not make the module: mpi_module.cpp:1: error: no such thing"):
        build_mpi_module(copied_engine, wrapper)
    assert [path.name for path in copied_engine.path.parent.iterdir()] == [copied_engine.path.name]


def test_doctor_reports_missing_compiler_wrappers(copied_engine: Engine, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "sonde", "doctor", "--build-mpi"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PATH": str(tmp_path),
            "SONDE_ENGINE": str(copied_engine.path),
            "PYTHONPATH": str(ROOT / "lab"),
        },
        timeout=120,
    )
    assert not any((tmp_path / name).exists() for name in COMPILER_WRAPPERS)
    assert result.returncode == 3
    assert result.stderr.startswith("sonde: There is no compiler wrapper of an MPI on PATH (mpicxx)")
    assert result.stderr.count("\n") == 1
