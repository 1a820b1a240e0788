# SPDX-License-Identifier: Apache-2.0
"""The engine and IOR under the preload library, with one and two ranks and with each MPI that is here.
What they read is what they wrote, their own files are buffered, and files of MPI-IO are left alone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

LINE = "-t 1000 -b 100000 -s 2 -w -r -W -R -g -k"
LAUNCHERS = {
    "mpich": [str(Path(sys.prefix) / "bin" / "mpiexec")],
    "openmpi": ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe"],
}


@dataclass(frozen=True)
class Told:
    """What the library says about one open of one file."""

    path: str
    calls: int
    below: int
    let_go: str | None


def start(command: list[str], folder: Path, library: Path) -> list[Told]:
    """Runs it under the library with small pages; what the reports say about the files that it made in `folder`."""
    lines = folder / "lines"
    lines.mkdir()
    under = {
        "LD_PRELOAD": str(library),
        "IOBUF_PARAMS": f"{folder}/data*:size=64k:count=4:eager",
        "SONDE_IOBUF_LINES": str(lines),
    }
    at = command.index("--under")
    words = [*command[:at], "env", *(f"{name}={value}" for name, value in under.items()), *command[at + 1 :]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for file in lines.iterdir() for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        Told(
            one["path"],
            one["read"]["calls"] + one["write"]["calls"],
            one["read"]["below_calls"] + one["write"]["below_calls"],
            one.get("let_go"),
        )
        for one in told
        if one["type"] == "buffer" and "locktest" not in one["path"]
    ]


def program(name: str, engine: Path) -> list[str]:
    """IOR itself, where it is on PATH; or the engine, which takes the same words."""
    if name == "engine":
        return [str(engine), "ior"]
    if shutil.which("ior") is None:
        pytest.skip("ior is not on PATH")
    return ["ior"]


def launcher(name: str, of: str) -> list[str]:
    words = LAUNCHERS[name]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not here")
    if of == "ior" and name == "mpich":
        pytest.skip("which MPI an ior on PATH was built with is not known; mpiexec.openmpi is tried")
    return words


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("mpi", LAUNCHERS)
@pytest.mark.parametrize("name", ["engine", "ior"])
def test_files_of_their_own_are_buffered(
    name: str, mpi: str, ranks: int, engine: Path, tmp_path: Path, library: Path
) -> None:
    start_with = [*launcher(mpi, name), "-n", str(ranks), "--under", *program(name, engine)]
    told = start([*start_with, "-a", "POSIX", "-F", *LINE.split(), "-o", str(tmp_path / "data")], tmp_path, library)
    written = [one for one in told if one.calls > 0]
    assert len({one.path for one in written}) == ranks
    assert all(one.below * 20 < one.calls for one in written)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("mpi", LAUNCHERS)
@pytest.mark.parametrize("name", ["engine", "ior"])
def test_files_of_mpi_io_are_left_alone(
    name: str, mpi: str, ranks: int, engine: Path, tmp_path: Path, library: Path
) -> None:
    if name == "engine" and not any(engine.parent.glob("sonde-mpi-*.so")):
        pytest.skip("the engine was built without an MPI")
    start_with = [*launcher(mpi, name), "-n", str(ranks), "--under", *program(name, engine)]
    told = start([*start_with, "-a", "MPIIO", *LINE.split(), "-o", str(tmp_path / "data")], tmp_path, library)
    assert told
    assert {(one.let_go, one.calls, one.below) for one in told} == {("opened by MPI-IO", 0, 0)}
    assert os.stat(tmp_path / "data").st_size == ranks * 200_000
