# SPDX-License-Identifier: Apache-2.0
"""The mpiio backend under each launcher: what it wrote is looked at without MPI, by mpiio-probe itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import start_ranks
from engine_under_test import DONE, Engine
from start_ranks import Launcher

sys.path.insert(0, str(Path(__file__).parents[1] / "truth"))

from test_training import make_training_plan

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [1, 3])
def test_all_kinds_of_access(mpi_launcher: Launcher, mpiio_probe: str, tmp_path: Path, ranks: int) -> None:
    result = mpi_launcher.run(mpi_launcher.command(ranks, mpiio_probe, str(tmp_path)))
    assert result.returncode == 0, result.stderr
    assert "ok mpi (" in result.stdout


def test_mpi_io_works_without_a_launcher(mpiio_probe: str, tmp_path: Path) -> None:
    if start_ranks.find_built_program("sonde-mpi-abi.so") is None or start_ranks.find_mpich() is None:
        pytest.skip("sonde-mpi-abi.so is not built")
    result = start_ranks.run_command([mpiio_probe, str(tmp_path)])
    assert result.returncode == 0, result.stderr


def test_missing_mpi_module_is_reported_with_the_reason(mpiio_probe: str, tmp_path: Path) -> None:
    result = start_ranks.run_command([mpiio_probe, str(tmp_path)], env={"SONDE_MPI_MODULE": "/no/such/module.so"})
    assert result.returncode == 1
    assert "the MPI module that was asked for cannot be used" in result.stderr


@pytest.mark.parametrize("mapping", [{"mapping": "many", "count": 3}, {"mapping": "shared"}])
def test_training_epoch_reads_all_samples(
    mpi_launcher: Launcher, engine_path: Path, target: Path, tmp_path: Path, mapping: dict[str, object]
) -> None:
    plan = make_training_plan(target, {"batch_size": 2, "compute_time": "1ms"}, tasks=1, backend="mpiio", files=mapping)
    del plan["data"]["paced"]
    plan["data"]["access"] = {"transfer": "4KiB", "block": "32KiB", "segments": 4}
    module = str(start_ranks.find_built_program(mpi_launcher.module))
    start = [*mpi_launcher.start, *mpi_launcher.command(3)]
    result = Engine(engine_path, tmp_path).run(plan, "--mpi-module", module, launch_prefix=start)
    assert result.code == DONE, result.err
    volume = result.finished("write")["bytes"]["written"]
    end = result.finished("epoch0")
    assert end["bytes"]["read"] == volume
    assert (end["training"]["samples"], end["training"]["accelerators"]) == (volume // 32768, 3)
    assert 0 < end["training"]["utilization"] <= 1
