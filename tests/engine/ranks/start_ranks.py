# SPDX-License-Identifier: Apache-2.0
"""The launchers of this machine, and what they may be asked to start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 120  # only there so that a hang fails instead of hanging the tests


def find_built_program(program: str) -> Path | None:
    """Returns the path of `program` in the build tree SONDE_BUILD (default: the tree whose tests were built last).

    None: there is no such tree, or the program was not built in it.
    """
    build_path = os.environ.get("SONDE_BUILD")
    trees = [Path(build_path)] if build_path else [path.parents[1] for path in ROOT.glob("build/*/engine/team-probe")]
    newest = (
        trees[0]
        if build_path
        else max(trees, key=lambda tree: (tree / "engine/team-probe").stat().st_mtime, default=None)
    )
    path = newest / "engine" / program if newest else None
    return path if path is not None and path.exists() else None


@dataclass(frozen=True)
class Launcher:
    """A way to start ranks; `module` is the MPI module that fits it."""

    name: str
    start: tuple[str, ...]
    variable: tuple[str, ...]  # {name} {value}: sets a variable of the ranks
    module: str

    def command(self, ranks: int, *arguments: str, variables: dict[str, str] | None = None) -> list[str]:
        """Arguments for `ranks` ranks of one program without the launcher: one segment of an MPMD start."""
        settings = [
            part.format(name=name, value=value) for name, value in (variables or {}).items() for part in self.variable
        ]
        return ["-n", str(ranks), *settings, *arguments]

    def run(self, *segments: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Runs one segment, or several joined by ':'."""
        arguments = [*self.start, *segments[0]]
        for segment in segments[1:]:
            arguments += [":", *segment]
        return run_command(arguments, env)


def run_command(arguments: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command without terminal input; what it printed is kept."""
    return subprocess.run(
        arguments,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, **(env or {})},
    )


def find_mpich() -> Launcher | None:
    """The mpiexec of the Python package mpich, which is in the environment that runs the tests or in .venv."""
    for prefix in (Path(sys.prefix), ROOT / ".venv"):
        if (prefix / "bin" / "mpicxx_abi").exists() and (prefix / "bin" / "mpiexec").exists():
            start = (str(prefix / "bin" / "mpiexec"),)
            return Launcher("mpich", start, ("-env", "{name}", "{value}"), "sonde-mpi-abi.so")
    return None


def find_openmpi() -> Launcher | None:
    """Open MPI of the system."""
    program = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if program is None or not re.search("Open MPI|OpenRTE", run_command([program, "--version"]).stdout):
        return None
    start = (program, "--oversubscribe", *(("--allow-run-as-root",) if os.geteuid() == 0 else ()))
    return Launcher("openmpi", start, ("-x", "{name}={value}"), "sonde-mpi-site.so")


def make_ssh_launcher() -> Launcher:
    """The engine itself, which needs no MPI: only ManyNodes can start it, as it starts nothing but itself."""
    return Launcher("ssh", (), (), "sonde-engine")
