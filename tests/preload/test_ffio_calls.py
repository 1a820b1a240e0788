# SPDX-License-Identifier: Apache-2.0
"""C and C++ programs with the FFIO calls of ffio.h: their bytes, their buffer, and space that is allocated ahead."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from preload_under_test import LIMIT_S, RUNNER, Preload

from sonde.advise.buffers import convert_ffio_specification
from sonde.cli.main import main

SOURCE = Path(__file__).resolve().parent / "programs" / "ffio_records.c"
DATA = b"".join(bytes([number % 100]) * 1000 for number in range(4000))
READ_AHEAD_BYTES = 32 << 20


@pytest.fixture(params=["c", "c++"])
def compiled_program(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The program, compiled with the flags that the verb prints, and with all warnings as errors."""
    assert main(["iobuf", "--cflags"]) == 0
    flags = shlex.split(capsys.readouterr().out)
    variable, default = ("SONDE_TEST_CC", "cc") if request.param == "c" else ("SONDE_TEST_CXX", "c++")
    compiler = os.environ.get(variable, default).split()
    target = tmp_path / "ffio_records"
    subprocess.run(
        [*compiler, "-x", request.param, *flags, "-Wall", "-Wextra", "-Werror", "-o", str(target), str(SOURCE)],
        check=True,
    )
    return target


def run_plain(program: Path, folder: Path, **variables: str) -> list[int]:
    """Bytes and allocated bytes before the close, and after it."""
    done = subprocess.run([*RUNNER, str(program), "data"], cwd=folder, env={**os.environ, **variables}, text=True,
                          capture_output=True, timeout=LIMIT_S, check=False)  # fmt: skip
    assert done.returncode == 0, done
    return [int(text) for text in done.stdout.split()]


def test_records_are_written_and_read(compiled_program: Path, tmp_path: Path) -> None:
    size, _, closed_size, _ = run_plain(compiled_program, tmp_path)
    assert size == closed_size == len(DATA)
    assert (tmp_path / "data").read_bytes() == DATA


def test_space_is_preallocated_and_released_at_close(compiled_program: Path, tmp_path: Path) -> None:
    """While the file grows it has the space for more; its size is that of its data; after the close it has no more."""
    probe = tmp_path / "probe"
    with probe.open("wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, 1 << 20)
        except OSError:
            pytest.skip("this file system cannot allocate space")
    size, allocated, closed_size, closed_allocated = run_plain(
        compiled_program, tmp_path, SONDE_FFIO_AHEAD=str(READ_AHEAD_BYTES)
    )
    assert size == closed_size == len(DATA)
    assert allocated >= READ_AHEAD_BYTES
    assert closed_allocated < len(DATA) + (1 << 20)
    assert (tmp_path / "data").read_bytes() == DATA


def test_assign_options_determine_the_buffering(compiled_program: Path, tmp_path: Path, preload: Preload) -> None:
    """4,000 records of 1,000 bytes become writes of 2 MiB, with and without space ahead."""
    settings = convert_ffio_specification("assign -F cachea:4096:8:8 f:data")
    for variables in ({}, {"SONDE_FFIO_AHEAD": str(READ_AHEAD_BYTES)}):
        done = preload.run([compiled_program, "data"], tmp_path, IOBUF_PARAMS=f"{settings}:verbose", **variables)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "data").read_bytes() == DATA
        assert "write  program 4000 calls, 4.000 MB -> storage 2 calls, 4.000 MB" in done.stderr, done.stderr
