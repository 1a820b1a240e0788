# SPDX-License-Identifier: Apache-2.0
"""The ways to start engine processes: one small class each, with the method that gives the argument list.

To add one: a class with the members of `Launcher`, and a line in `make_launcher`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sonde.model.errors import MachineError, UserError

NAMES = ("local", "mpiexec", "srun")


class Launcher(Protocol):
    """How engine processes come to life."""

    @property
    def name(self) -> str:
        """As --launcher takes it."""

    @property
    def ranks(self) -> int | None:
        """Processes this launcher starts; None when the engine itself starts them."""

    def arguments(self, engine: Sequence[str]) -> list[str]:
        """The command line that runs `engine` (a command line) in every process."""

    def environment(self) -> Mapping[str, str]:
        """Variables to set for it, beside those of this process."""

    def relayed(self, number: int) -> int:
        """The signal to send to the launcher when a person sends `number` to us."""


@dataclass(frozen=True)
class LocalLauncher:
    """The engine on this machine; it starts further processes itself when the plan asks for them."""

    name: str = "local"
    ranks: int | None = None

    def arguments(self, engine: Sequence[str]) -> list[str]:
        return list(engine)

    def environment(self) -> Mapping[str, str]:
        return {}

    def relayed(self, number: int) -> int:
        return number


@dataclass(frozen=True)
class MpiexecLauncher:
    """MPI ranks through the mpiexec of an MPI: MPICH's Hydra (also Intel's) or Open MPI's."""

    ranks: int
    program: Path
    flavour: str  # "hydra", "openmpi" or "unknown"
    extra: Sequence[str] = ()
    name: str = "mpiexec"

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

    def relayed(self, number: int) -> int:
        return number


@dataclass(frozen=True)
class SrunLauncher:
    """Tasks of a Slurm job step."""

    ranks: int
    extra: Sequence[str] = ()
    name: str = "srun"

    def arguments(self, engine: Sequence[str]) -> list[str]:
        # Without a PMI every task would believe to be alone; PMI-2 is what MPICH and Slurm share.
        pmi = [] if any(option.startswith("--mpi") for option in self.extra) else ["--mpi=pmi2"]
        return [
            "srun",
            f"--ntasks={self.ranks}",
            *pmi,
            "--kill-on-bad-exit=1",
            "--input=none",
            *self.extra,
            *engine,
        ]

    def environment(self) -> Mapping[str, str]:
        return {}

    def relayed(self, number: int) -> int:
        # srun answers its first SIGINT with a status report only; SIGTERM it passes on to the tasks.
        return signal.SIGTERM if number == signal.SIGINT else number


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


def make_launcher(name: str, ranks: int, extra: str = "") -> Launcher:
    """The launcher of that name; `extra` are further arguments for it, as one would type them."""
    try:
        options = shlex.split(extra)
    except ValueError as reason:
        raise UserError(f'--launcher-args "{extra}" cannot be split into arguments: {reason}.') from None
    if name == "local":
        if options:
            raise UserError("--launcher-args needs --launcher mpiexec or --launcher srun.")
        return LocalLauncher()
    if name == "mpiexec":
        found = find_mpiexec()
        return MpiexecLauncher(ranks, found.program, found.flavour, options)
    if name == "srun":
        if shutil.which("srun") is None:
            raise MachineError("There is no srun on PATH; --launcher srun needs Slurm.")
        return SrunLauncher(ranks, options)
    raise UserError(f'There is no launcher "{name}"; known are {", ".join(NAMES)}.')
