# SPDX-License-Identifier: Apache-2.0
"""Where the simulator is, and how it is started in the place of the engine: with the same words, and what machine it is
to be, what is wrong with it, and the seed of chance."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sonde.launch.launchers.launcher import Launcher
from sonde.launch.parts import Part, find

SIMULATOR = Part(
    "sonde-simulate",
    "SONDE_SIMULATOR",
    "simulate",
    "The simulator is not installed: there is no sonde-simulate in this package;",
)


def find_simulator() -> Path:
    return find(SIMULATOR).path


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
