# SPDX-License-Identifier: Apache-2.0
"""Drivers of GPUs for tests, compiled here, and plans that use them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent


def compile_library(source: str, path: Path) -> str:
    compiler = shutil.which("cc")
    assert compiler, "the tests need a C compiler, as the build does"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(path), str(SOURCES / source)]
    subprocess.run(command, check=True)
    return str(path)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Path of the compiled fake_cuda.c."""
    return compile_library("fake_cuda.c", tmp_path_factory.mktemp("driver") / "libcuda.so.1")


@pytest.fixture(scope="session")
def gpu_environment(driver: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables that name the driver and the compiled fake_cufile.c."""
    library = compile_library("fake_cufile.c", tmp_path_factory.mktemp("cufile") / "libcufile.so.0")
    return {"SONDE_CUDA_LIBRARY": driver, "SONDE_CUFILE_LIBRARY": library}
