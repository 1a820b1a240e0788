# SPDX-License-Identifier: Apache-2.0
"""MPI ranks through an mpiexec: which one there is, whose it is, and how it is told what to start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sonde.launch.launchers.launcher import Launcher, Mark
from sonde.model.errors import MachineError


@dataclass(frozen=True)
class MpiexecLauncher(Launcher):
    """MPI ranks through the mpiexec of an MPI: MPICH's Hydra (also Intel's) or Open MPI's."""

    name = "mpiexec"
    marks = (
        Mark("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        Mark("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),  # Slurm's own PMI sets the first two as well
    )
    ranks: int
    program: Path
    flavour: str  # "hydra", "openmpi" or "unknown"
    extra: Sequence[str] = ()

    @classmethod
    def available(cls) -> str:
        try:
            find_mpiexec()
        except MachineError as reason:
            return str(reason)
        return ""

    @classmethod
    def of(cls, ranks: int, extra: Sequence[str]) -> MpiexecLauncher:
        examined = find_mpiexec()
        return cls(ranks, examined.program, examined.flavour, extra)

    def arguments(self, engine: Sequence[str]) -> list[str]:
        own = []
        if self.flavour == "openmpi":
            # Open MPI refuses more ranks than cores, and root, unless told: both are ordinary when testing storage.
            own = ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
        return [str(self.program), *own, *self.extra, "-n", str(self.ranks), *engine]

    def environment(self) -> Mapping[str, str]:
        # The MPI that belongs to this mpiexec, where it lives in a prefix the loader does not search (a Python
        # environment): without it the ranks could load another MPI than the one that starts them.
        library = self.program.parent.parent / "lib"
        if self.flavour == "hydra" and (library / "libmpi_abi.so.1").exists():
            before = os.environ.get("LD_LIBRARY_PATH")
            return {"LD_LIBRARY_PATH": f"{library}:{before}" if before else str(library)}
        return {}


@dataclass(frozen=True)
class Mpiexec:
    """An mpiexec that was found."""

    program: Path
    flavour: str
    version: str = field(default="")


def find_mpiexec() -> Mpiexec:
    """$SONDE_MPIEXEC, else the one in this Python environment, else the first on PATH."""
    named = os.environ.get("SONDE_MPIEXEC")
    if named:
        found = shutil.which(named)
        if found is None:
            raise MachineError(f"$SONDE_MPIEXEC is {named}, which is not a program that can be run.")
        return _examined(Path(found))
    inside = Path(sys.prefix) / "bin" / "mpiexec"
    for candidate in (str(inside), "mpiexec", "mpirun"):
        found = shutil.which(candidate)
        if found is not None:
            return _examined(Path(found))
    raise MachineError(
        "There is no mpiexec in this Python environment or on PATH; load your site's MPI module, or install one with"
        " `pip install mpich`."
    )


def _examined(program: Path) -> Mpiexec:
    try:
        answer = subprocess.run(
            [str(program), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return Mpiexec(program, "unknown")
    text = answer.stdout + answer.stderr
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if "HYDRA" in text or "Intel(R) MPI" in text:
        version = next((line.split(":", 1)[1].strip() for line in text.splitlines() if "Version:" in line), first)
        return Mpiexec(program, "hydra", version)
    if "Open MPI" in text or "OpenRTE" in text or "PRTE" in text:
        return Mpiexec(program, "openmpi", first)
    return Mpiexec(program, "unknown", first)
