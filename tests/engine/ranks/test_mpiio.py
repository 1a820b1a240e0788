# SPDX-License-Identifier: Apache-2.0
"""The mpiio backend under each launcher: what it wrote is looked at without MPI, by mpiio-probe itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import start_ranks
from engine_under_test import DONE, Engine, write_plan
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
    result = Engine(engine_path, tmp_path).run(plan, "--mpi-module", module, before=start)
    assert result.code == DONE, result.err
    volume = result.finished("write")["bytes"]["written"]
    end = result.finished("epoch0")
    assert end["bytes"]["read"] == volume
    assert (end["training"]["samples"], end["training"]["accelerators"]) == (volume // 32768, 3)
    assert 0 < end["training"]["utilization"] <= 1


def test_concurrent_calls_are_requested_for_several_threads_only(
    mpi_launcher: Launcher, engine_path: Path, target: Path, tmp_path: Path
) -> None:
    """A higher level of MPI_Init_thread costs locks in each call."""
    compiler = shutil.which("cc")
    assert compiler, "the tests need a C compiler, as the build does"
    library, log = tmp_path / "init_thread_log.so", tmp_path / "log"
    source = Path(__file__).with_name("init_thread_log.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    variables = ["env", f"LD_PRELOAD={library}", f"INIT_THREAD_LOG={log}"]
    module = str(start_ranks.built(mpi_launcher.module))
    for threads in (1, 2):
        data = {"backend": "mpiio", "access": {"transfer": "4KiB", "block": "32KiB"}}
        plan = write_plan(target, {"id": "w", "op": "write"}, data=data, tasks={"threads": threads})
        start = [*mpi_launcher.start, *mpi_launcher.command(1, *variables)]
        result = Engine(engine_path, tmp_path).run(plan, "--mpi-module", module, before=start)
        assert result.code == DONE, result.err
    serialized, multiple = (int(line) for line in log.read_text().splitlines())
    assert serialized < multiple
