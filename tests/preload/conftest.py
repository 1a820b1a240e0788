# SPDX-License-Identifier: Apache-2.0
"""The library, and the programs that it is tried on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from preload_under_test import Outcome, Plain, Preload, find_library  # noqa: E402  (found through the path above)


@pytest.fixture(scope="session")
def preload() -> Preload:
    """The library under test."""
    library = find_library()
    if library is None:
        pytest.skip("the preload library is not built: cmake --preset dev && cmake --build --preset dev")
    return Preload(library)


@pytest.fixture(scope="session")
def run_bare(preload: Preload) -> Plain:
    """Runs a command without the library, in a new subfolder `without` of the given folder. It is done once
    for all settings of the library that it is compared with, on each file system."""
    outcomes: dict[tuple[object, ...], Outcome] = {}

    def outcome(command: Sequence[str | Path], folder: Path) -> Outcome:
        key = (*command, folder.stat().st_dev)
        if key not in outcomes:
            outcomes[key] = preload.outcome(command, folder / "without")
        return outcomes[key]

    return outcome


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder where syncing costs nothing, if there is one."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="sonde-preload-", dir=shared) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def compile_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compiles programs/NAME.c or NAME.cpp once and returns the program."""
    folder = tmp_path_factory.mktemp("programs")

    def compiled(name: str) -> Path:
        program = folder / name
        program.parent.mkdir(exist_ok=True)
        if not program.exists():
            source = HERE / "programs" / f"{name}.c"
            compiler = os.environ.get("SONDE_TEST_CC", "cc").split()
            if not source.exists():
                source = source.with_suffix(".cpp")
                compiler = [*os.environ.get("SONDE_TEST_CXX", "c++").split(), "-std=c++20"]
            if shutil.which(compiler[0]) is None:
                pytest.skip(f"there is no compiler {compiler[0]} here")
            subprocess.run([*compiler, "-O1", "-g", "-w", "-pthread", "-o", str(program), str(source)], check=True)
        return program

    return compiled


@pytest.fixture(scope="session")
def compile_same_program(compile_program: Callable[[str], Path]) -> Callable[[str], Path]:
    """A program of programs/same: scenarios in which somebody could notice the library."""
    return lambda name: compile_program(f"same/{name}")
