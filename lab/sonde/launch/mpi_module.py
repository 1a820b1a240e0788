# SPDX-License-Identifier: Apache-2.0
"""Builds the MPI module of this machine from the sources in the package, with the compiler wrapper of the MPI.

Packages are built without the MPI of the machine where they are used. The module is a few hundred lines behind a C
interface, so it can be built afterwards; the engine loads it from its own directory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sonde.launch.engine import Engine, find_engine_message, make_engine_error
from sonde.model.confined_files import ConfinedDirectory
from sonde.model.errors import EXIT_OK, MachineError, UserError

MODULE_NAME = "sonde-mpi-site.so"
COMPILER_WRAPPERS = ("mpicxx", "mpic++", "mpiicpx", "mpicxx.openmpi", "mpicxx.mpich")
MODULE_SOURCES = ("mpi_module.cpp", "mpi_file.cpp", "mpi_waiting.cpp")
# The same flags as in engine/ranks/CMakeLists.txt.
COMPILER_FLAGS = (
    "-std=c++20",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-DOMPI_SKIP_MPICXX",
    "-DMPICH_SKIP_MPICXX",
    '-DSONDE_MPI_FLAVOR="site"',
)


@dataclass(frozen=True)
class BuiltMpiModule:
    """A module that was built and can be loaded."""

    path: Path
    wrapper: Path


def build_mpi_module(engine: Engine, wrapper: Path | None = None) -> BuiltMpiModule:
    """Builds the module next to `engine` with `wrapper`, or with the first wrapper on PATH. Raises UserError when it
    cannot be built or loaded; then the previous module stays."""
    compiler = _find_wrapper(wrapper)
    target = engine.path.resolve().parent / MODULE_NAME
    if not os.access(target.parent, os.W_OK):
        raise MachineError(
            f"The MPI module belongs next to the engine, and {target.parent} cannot be written: run this as the user"
            " who installed Sonde."
        )
    folder = _find_sources()
    # On the same file system, so that a rename replaces the module atomically.
    with tempfile.TemporaryDirectory(dir=target.parent) as directory:
        draft = Path(directory) / MODULE_NAME
        sources = [str(folder / "ranks" / source) for source in MODULE_SOURCES]
        command = [str(compiler), *COMPILER_FLAGS, f"-I{folder}", *sources, "-o", str(draft)]
        _run_compiler(command, f"{compiler} does not make the module")
        _check_module_loads(engine, draft)
        with ConfinedDirectory.open(draft.parent) as source, ConfinedDirectory.open(target.parent) as destination:
            source.rename_entry(draft.name, destination, target.name)
    return BuiltMpiModule(target, compiler)


def _find_wrapper(requested_wrapper: Path | None) -> Path:
    candidates = (str(requested_wrapper),) if requested_wrapper is not None else COMPILER_WRAPPERS
    for candidate in candidates:
        path = shutil.which(candidate)
        if path is not None:
            return Path(path)
    if requested_wrapper is not None:
        raise UserError(
            f"--wrapper {requested_wrapper} is not a program that can be run; name the MPI's C++ compiler wrapper."
        )
    raise MachineError(
        "There is no compiler wrapper of an MPI on PATH (mpicxx): load the site's MPI module, or name the wrapper with"
        " --wrapper PROGRAM."
    )


def _find_sources() -> Path:
    packaged = Path(str(resources.files("sonde").joinpath("mpi")))
    in_source = Path(__file__).resolve().parents[3] / "engine"
    for folder in (packaged, in_source):
        if (folder / "ranks" / MODULE_SOURCES[0]).is_file():
            return folder
    raise MachineError("The sources of the MPI module are not part of this installation; install sonde again.")


def _run_compiler(command: list[str], failure_text: str) -> None:
    answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        lines = [line.strip() for line in answer.stderr.splitlines() if "error" in line.lower()]
        raise MachineError(f"{failure_text}: {lines[0] if lines else f'exit code {answer.returncode}'}")


def _check_module_loads(engine: Engine, module_file: Path) -> None:
    """Raises UserError when the engine cannot start one process with the module."""
    ior_arguments = ["ior", "-a", "MPIIO", "-w", "-t", "8", "-b", "8", "-o", str(module_file.parent / "data")]
    sonde_arguments = ["--sonde-launch", "mpi", "--sonde-mpi-module", str(module_file), "--sonde-report", "none"]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    answer = subprocess.run(
        [str(engine.path), *ior_arguments, *sonde_arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if answer.returncode != EXIT_OK:
        raise make_engine_error(answer.returncode, find_engine_message(answer.stderr))
