# SPDX-License-Identifier: Apache-2.0
"""Where the simulator is, and how it is started in the place of the engine: with the same words, and what machine it is
to be, what is wrong with it, and the seed of chance."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sonde.launch.launchers.launcher import Launcher
from sonde.model.errors import MachineError

VARIABLE = "SONDE_SIMULATOR"
NAME = "sonde-simulate"


def find_simulator() -> Path:
    """$SONDE_SIMULATOR, else the one in this package, else the newest in the build tree around this source."""
    return find_program(VARIABLE, NAME, f"The simulator is not installed: there is no {NAME} in this package;")


def find_program(variable: str, name: str, missing: str) -> Path:
    """A program of `simulate/`. `missing` begins the sentence that is said when there is none."""
    named = os.environ.get(variable)
    if named:
        path = Path(named).expanduser()
        if not _runs(path):
            raise MachineError(f"${variable} is {named}, which is not a program that can be run.")
        return path.resolve()
    packaged = Path(str(resources.files("sonde").joinpath("bin", name)))
    if _runs(packaged):
        return packaged
    source = Path(__file__).resolve().parents[3]
    built = [path for path in source.glob(f"build/*/simulate/{name}") if _runs(path)]
    if built:
        return max(built, key=lambda path: path.stat().st_mtime)
    raise MachineError(f"{missing} install sonde again, or build it and name it in ${variable}.")


def faults_known(simulator: Path) -> str:
    """What may be wrong with a machine, as the simulator lists it."""
    return subprocess.run([str(simulator), "faults"], capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True)
class SimulatedLauncher(Launcher):
    """The simulator instead of the engine."""

    name = "simulated"
    ranks: int | None = None
    simulator: Path = Path()
    system: Path = Path()  # resolved, as JSON
    mount: str = ""  # mount, file system or pool
    faults: tuple[str, ...] = ()
    seed: int = 1
    nodes: int | None = None
    processes: int | None = None
    traces: Path | None = None

    @classmethod
    def available(cls) -> str:
        return ""

    def arguments(self, engine: Sequence[str]) -> list[str]:
        words = [str(self.simulator), *engine[1:], "--system", str(self.system), "--seed", str(self.seed)]
        words += ["--mount", self.mount] if self.mount else []
        words += ["--nodes", str(self.nodes)] if self.nodes else []
        words += ["--processes", str(self.processes)] if self.processes else []
        words += ["--traces", str(self.traces)] if self.traces else []
        for fault in self.faults:
            words += ["--fault", fault]
        return words


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
