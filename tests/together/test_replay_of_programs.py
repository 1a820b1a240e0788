# SPDX-License-Identifier: Apache-2.0
"""A program with collective MPI-IO is traced and replayed: the same operations and bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLS, LENGTH = 50, 65536
# Two ranks write every other block of one file together, then each reads the blocks of the other.
PROGRAM = f"""
#include <mpi.h>
#include <string.h>
int main(int argc, char** argv) {{
    static char data[{LENGTH}];
    int rank, number;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(data, rank + 1, sizeof data);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (number = 0; number < {CALLS}; ++number)
        MPI_File_write_at_all(file, (MPI_Offset)(number * 2 + rank) * sizeof data, data, sizeof data, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    for (number = 0; number < {CALLS}; ++number)
        MPI_File_read_at_all(file, (MPI_Offset)(number * 2 + 1 - rank) * sizeof data, data, sizeof data, MPI_BYTE,
                             MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}}
"""
# The distribution's MPI: the one of the tests' environment needs no compiler and may be another.
COMPILER, LAUNCHER = Path("/usr/bin/mpicc"), Path("/usr/bin/mpiexec")
pytestmark = pytest.mark.skipif(
    not (COMPILER.exists() and LAUNCHER.exists()), reason="the system has no MPI with a compiler"
)


def run_sonde(folder: Path, *arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "sonde", *arguments], cwd=folder, capture_output=True, text=True, timeout=120,
        check=False, env={**os.environ, "PYTHONPATH": str(ROOT / "lab"), "SONDE_ARCHIVE": str(folder / "archive")},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


def count_calls(document: dict[str, Any], name: str) -> dict[str, tuple[int, int]]:
    """Calls and bytes of reads and writes; `name` is "original_" or empty."""
    return {row["kind"]: (row[f"{name}calls"], row[f"{name}bytes"]) for row in document["kinds"]
            if row["kind"] in ("read", "write")}  # fmt: skip


def test_collective_calls_are_replayed_exactly(engine: Path, library: Path, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run([COMPILER, "-O1", "-o", tmp_path / "program", tmp_path / "program.c"], check=True, timeout=120)
    data = tmp_path / "data"
    data.mkdir()
    launch = (str(LAUNCHER), "--oversubscribe", *(("--allow-run-as-root",) if os.geteuid() == 0 else ()), "-n", "2")
    run_sonde(tmp_path, "trace", "-o", "traces", "--events", "100000", "--", *launch, "./program", str(data / "out"))
    expected = (data / "out").stat().st_size
    assert expected == 2 * CALLS * LENGTH
    text = run_sonde(tmp_path, "replay", "traces", "--on", str(data), "--below", str(data), "--json")
    document = json.loads(text)
    assert document["is_exact"]
    assert count_calls(document, "") == count_calls(document, "original_")
    assert {kind: amount for kind, (_, amount) in count_calls(document, "").items()} == {
        "read": expected, "write": expected,
    }  # fmt: skip
    assert [path.name for path in data.iterdir()] == ["out"], "the replay removes its files and leaves those of the job"
