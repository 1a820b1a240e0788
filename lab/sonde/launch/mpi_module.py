# SPDX-License-Identifier: Apache-2.0
"""The MPI module of this machine: made from its sources, which are a part of the package, with the MPI's own compiler.

Packages are built without the MPI of the machine where they are used. The module is a few hundred lines behind a C
interface, so it can be made afterwards; the engine looks for it beside itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sonde.launch.engine import Engine, engine_error, last_sentence
from sonde.model.errors import DONE, MachineError, UserError

NAME = "sonde-mpi-site.so"
WRAPPERS = ("mpicxx", "mpic++", "mpiicpx", "mpicxx.openmpi", "mpicxx.mpich")
SOURCES = ("mpi_module.cpp", "mpi_file.cpp", "mpi_waiting.cpp")
# As engine/ranks/CMakeLists.txt has them.
FLAGS = (
    "-std=c++20",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-DOMPI_SKIP_MPICXX",
    "-DMPICH_SKIP_MPICXX",
    '-DSONDE_MPI_FLAVOUR="site"',
)


@dataclass(frozen=True)
class Built:
    """A module that was made and can be loaded."""

    path: Path
    wrapper: Path


def build_module(engine: Engine, wrapper: Path | None = None) -> Built:
    """Makes the module beside `engine` with `wrapper`, or with the first one on PATH. Raises UserError when it cannot
    be made or loaded; then the one before it still stands."""
    compiler = _wrapper(wrapper)
    target = engine.path.resolve().parent / NAME
    if not os.access(target.parent, os.W_OK):
        raise MachineError(
            f"The MPI module belongs beside the engine, and {target.parent} cannot be written: run this as the user who"
            " installed Sonde."
        )
    folder = _sources()
    # On the same file system, so that it takes its place in one step.
    with tempfile.TemporaryDirectory(dir=target.parent) as place:
        draft = Path(place) / NAME
        sources = [str(folder / "ranks" / source) for source in SOURCES]
        _run([str(compiler), *FLAGS, f"-I{folder}", *sources, "-o", str(draft)], f"{compiler} does not make the module")
        _try(engine, draft)
        draft.replace(target)
    return Built(target, compiler)


def _wrapper(named: Path | None) -> Path:
    candidates = (str(named),) if named is not None else WRAPPERS
    for candidate in candidates:
        found = shutil.which(candidate)
        if found is not None:
            return Path(found)
    if named is not None:
        raise UserError(f"--wrapper {named} is not a program that can be run; name the MPI's C++ compiler wrapper.")
    raise MachineError(
        "There is no compiler wrapper of an MPI on PATH (mpicxx): load the site's MPI module, or name the wrapper with"
        " --wrapper PROGRAM."
    )


def _sources() -> Path:
    packaged = Path(str(resources.files("sonde").joinpath("mpi")))
    in_source = Path(__file__).resolve().parents[3] / "engine"
    for folder in (packaged, in_source):
        if (folder / "ranks" / SOURCES[0]).is_file():
            return folder
    raise MachineError("The sources of the MPI module are not part of this installation; install sonde again.")


def _run(command: list[str], what: str) -> None:
    answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        lines = [line.strip() for line in answer.stderr.splitlines() if "error" in line.lower()]
        raise MachineError(f"{what}: {lines[0] if lines else f'exit code {answer.returncode}'}")


def _try(engine: Engine, module: Path) -> None:
    """Raises UserError when the engine cannot start one process with the module."""
    words = ["ior", "-a", "MPIIO", "-w", "-t", "8", "-b", "8", "-o", str(module.parent / "data")]
    own = ["--sonde-launch", "mpi", "--sonde-mpi-module", str(module), "--sonde-beside", "none"]
    started = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    answer = subprocess.run(
        [str(engine.path), *words, *own],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=started,
    )
    if answer.returncode != DONE:
        raise engine_error(answer.returncode, last_sentence(answer.stderr))
