# SPDX-License-Identifier: Apache-2.0
"""The hdf5 backend with a wrong library, another MPI or a broken file."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import h5py  # type: ignore[import-untyped]
import numpy as np
import pytest
import start_ranks
from hdf5_plans import make_plan, read_record, read_sentence

pytestmark = pytest.mark.mpi
RunPlan = Callable[..., "subprocess.CompletedProcess[str]"]


def test_missing_library_is_one_sentence(run_plan: RunPlan, tmp_path: Path) -> None:
    result = run_plan(2, make_plan(tmp_path), SONDE_HDF5_LIBRARY="/no/such/library.so")
    assert result.returncode == 3
    sentence = read_sentence(result)
    assert "SONDE_HDF5_LIBRARY" in sentence
    assert "/no/such/library.so" in sentence
    assert not (tmp_path / "run").exists()


def test_library_without_mpi_is_refused(run_plan: RunPlan, tmp_path: Path) -> None:
    result = run_plan(1, make_plan(tmp_path), SONDE_HDF5_LIBRARY="libm.so.6")
    assert result.returncode == 3
    assert "libm.so.6 is built without MPI" in read_sentence(result)


@pytest.mark.parametrize("library", ["", "libhdf5_openmpi.so.103"])
def test_library_of_another_mpi_is_refused(hdf5_engine: str, tmp_path: Path, library: str) -> None:
    """Under MPICH, for which there is no HDF5 here: neither the search nor a forced name mixes two MPIs."""
    launcher = start_ranks.find_mpich()
    if launcher is None or start_ranks.find_built_program(launcher.module) is None:
        pytest.skip("needs the mpiexec of MPICH and a module for it")
    (tmp_path / "plan.json").write_text(json.dumps(make_plan(tmp_path)))
    variables = {"SONDE_HDF5_LIBRARY": library} if library else {}
    result = launcher.run(launcher.command(2, hdf5_engine, "run", f"{tmp_path}/plan.json", variables=variables))
    assert result.returncode == 3
    sentence = read_sentence(result)
    assert "no parallel HDF5 for the MPI here (libmpi_abi.so" in sentence
    assert ("is built for libmpi.so" in sentence) == bool(library)
    assert not (tmp_path / "run").exists()


def break_file(path: Path, damage: str) -> None:
    match damage:
        case "no hdf5":
            path.write_bytes(b"x" * 4096)
        case "truncated":
            os.truncate(path, path.stat().st_size // 2)
        case "missing":
            path.unlink()
        case "dataset":
            with h5py.File(path, "r+") as file:
                del file["Dataset-0000.0002"]
        case "size":
            with h5py.File(path, "r+") as file:
                del file["Dataset-0000.0000"]
                file["Dataset-0000.0000"] = np.zeros(64, dtype=np.int64)


@pytest.mark.parametrize(
    ("damage", "expected_sentence"),
    [
        ("no hdf5", "is not an HDF5 file"),
        ("truncated", "truncated file"),
        ("missing", "MPI_ERR_NO_SUCH_FILE"),
        ("dataset", "no dataset Dataset-0000.0002"),
        ("size", "holds 64 elements of 8 B"),
    ],
)
def test_broken_file_is_reported(run_plan: RunPlan, tmp_path: Path, damage: str, expected_sentence: str) -> None:
    plan = make_plan(tmp_path, verify="none")
    plan["phases"] = plan["phases"][:1]
    assert run_plan(2, plan).returncode == 0
    break_file(tmp_path / "run/data", damage)
    plan["target"]["use_existing"] = True
    plan["phases"] = [{"id": "r", "op": "read"}]
    result = run_plan(2, plan)
    assert result.returncode == 1, result.stderr
    assert expected_sentence in read_sentence(result)
    assert all(str(tmp_path / "run/data") in line["path"] for line in read_record(tmp_path, "error"))
    assert read_record(tmp_path, "error")
