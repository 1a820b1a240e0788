# SPDX-License-Identifier: Apache-2.0
"""The mpiio backend under each launcher: what it wrote is looked at without MPI, by mpiio-probe itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import start_ranks
from start_ranks import Launcher

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [1, 3])
def test_all_kinds_of_access(mpi_launcher: Launcher, mpiio_probe: str, tmp_path: Path, ranks: int) -> None:
    result = mpi_launcher.run(mpi_launcher.command(ranks, mpiio_probe, str(tmp_path)))
    assert result.returncode == 0, result.stderr
    assert "ok mpi (" in result.stdout


def test_without_a_launcher(mpiio_probe: str, tmp_path: Path) -> None:
    if start_ranks.built("sonde-mpi-abi.so") is None or start_ranks.mpich() is None:
        pytest.skip("sonde-mpi-abi.so is not built")
    result = start_ranks.run([mpiio_probe, str(tmp_path)])
    assert result.returncode == 0, result.stderr


def test_without_a_module_the_reason_is_given(mpiio_probe: str, tmp_path: Path) -> None:
    result = start_ranks.run([mpiio_probe, str(tmp_path)], env={"SONDE_MPI_MODULE": "/no/such/module.so"})
    assert result.returncode == 1
    assert "the MPI module that was asked for cannot be used" in result.stderr
