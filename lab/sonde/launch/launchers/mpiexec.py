# SPDX-License-Identifier: Apache-2.0
"""Launches MPI ranks through an mpiexec: locates it, identifies its MPI, and builds its command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sonde.launch.launchers.launcher import Launcher, RankVariables
from sonde.model.errors import MachineError


@dataclass(frozen=True)
class MpiexecLauncher(Launcher):
    """MPI ranks through the mpiexec of an MPI: MPICH's Hydra (also Intel's) or Open MPI's."""

    name = "mpiexec"
    rank_variables = (
        RankVariables("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        RankVariables("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),  # Slurm's own PMI sets the first two as well
    )
    ranks: int
    program: Path
    flavor: str  # "hydra", "openmpi" or "unknown"
    extra: Sequence[str] = ()

    @classmethod
    def describe_unavailability(cls) -> str:
        try:
            find_mpiexec()
        except MachineError as reason:
            return str(reason)
        return ""

    @classmethod
    def make_for_ranks(cls, rank_count: int, extra_arguments: Sequence[str]) -> MpiexecLauncher:
        mpiexec = find_mpiexec()
        return cls(rank_count, mpiexec.program, mpiexec.flavor, extra_arguments)

    def make_command_line(self, engine_command: Sequence[str]) -> list[str]:
        options = []
        if self.flavor == "openmpi":
            # Open MPI refuses more ranks than cores, and root, by default: both are common when testing storage.
            options = ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
        return [str(self.program), *options, *self.extra, "-n", str(self.ranks), *engine_command]

    def make_environment(self) -> Mapping[str, str]:
        # The library of this mpiexec, when it is in a prefix that the loader does not search (a Python environment):
        # otherwise the ranks could load another MPI than the one that starts them.
        library = self.program.parent.parent / "lib"
        if self.flavor == "hydra" and (library / "libmpi_abi.so.1").exists():
            before = os.environ.get("LD_LIBRARY_PATH")
            return {"LD_LIBRARY_PATH": f"{library}:{before}" if before else str(library)}
        return {}


@dataclass(frozen=True)
class MpiexecProgram:
    """The mpiexec of this machine, the kind of its MPI (hydra, openmpi, unknown) and its version."""

    program: Path
    flavor: str
    version: str = field(default="")


def find_mpiexec() -> MpiexecProgram:
    """$SONDE_MPIEXEC, else the mpiexec in this Python environment, else the first on PATH. Raises MachineError."""
    override = os.environ.get("SONDE_MPIEXEC")
    if override:
        path = shutil.which(override)
        if path is None:
            raise MachineError(f"$SONDE_MPIEXEC is {override}, which is not a program that can be run.")
        return _identify_mpiexec(Path(path))
    in_environment = Path(sys.prefix) / "bin" / "mpiexec"
    for candidate in (str(in_environment), "mpiexec", "mpirun"):
        path = shutil.which(candidate)
        if path is not None:
            return _identify_mpiexec(Path(path))
    raise MachineError(
        "There is no mpiexec in this Python environment or on PATH; load your site's MPI module, or install one with"
        " `pip install mpich`."
    )


def _identify_mpiexec(program_file: Path) -> MpiexecProgram:
    try:
        answer = subprocess.run(
            [str(program_file), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return MpiexecProgram(program_file, "unknown")
    text = answer.stdout + answer.stderr
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if "HYDRA" in text or "Intel(R) MPI" in text:
        version = next((line.split(":", 1)[1].strip() for line in text.splitlines() if "Version:" in line), first)
        return MpiexecProgram(program_file, "hydra", version)
    if "Open MPI" in text or "OpenRTE" in text or "PRTE" in text:
        return MpiexecProgram(program_file, "openmpi", first)
    return MpiexecProgram(program_file, "unknown", first)
