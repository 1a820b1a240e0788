# SPDX-License-Identifier: Apache-2.0
"""IOR's options for buffers in GPU memory, with a driver and a cuFile of our own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from engine_under_test import DONE

SIZE = 1 << 20
WORK = "-w -r -R -G 7 -l o -F -t 64k -b 1m -o f"


def run_ior(engine: Path, options: str, folder: Path, environment: dict[str, str]) -> str:
    """Standard output of two tasks that write 1 MiB each, read and verify it."""
    command = [str(engine), "ior", *WORK.split(), *options.split(), "--sonde-processes=2"]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == DONE, done.stderr
    return done.stdout


@pytest.mark.parametrize(("gpus", "megabytes"), [("1", [0, 0, 4, 4]), ("0@1", [2, 2, 2, 2])])
def test_ior_buffers_are_on_the_gpus(
    engine_path: Path, gpu_environment: dict[str, str], tmp_path: Path, gpus: str, megabytes: list[int]
) -> None:
    """To a GPU: what is written and what is read. From it: what is written and what is verified."""
    log = tmp_path / "log"
    environment = {**gpu_environment, "FAKE_CUDA_LOG": str(log)}
    output = run_ior(engine_path, f"-O allocateBufferOnGPU=1 -O GPUid={gpus}", tmp_path, environment)
    assert "memoryBuffer        : GPU-device" in output
    rows = [[int(number) for number in line.split()] for line in log.read_text().splitlines()]
    assert [sum(row[column] for row in rows) for column in range(4)] == [SIZE * number for number in megabytes]


def test_ior_with_gpudirect_uses_cufile(engine_path: Path, gpu_environment: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = {**gpu_environment, "FAKE_CUFILE_LOG": str(log)}
    output = run_ior(engine_path, "-O allocateBufferOnGPU=3 -O GPUid=0 --gpuDirect", tmp_path, environment)
    assert "GPUDirect           : 1" in output
    rows = [[int(number) for number in line.split()] for line in log.read_text().splitlines()]
    assert [sum(row[column] for row in rows) for column in (0, 1)] == [2 * SIZE, 2 * SIZE]
