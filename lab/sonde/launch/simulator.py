# SPDX-License-Identifier: Apache-2.0
"""Locates the simulator and starts it in place of the engine, with the same arguments plus the machine, its faults and
the random seed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sonde.launch.components import Component, locate_component
from sonde.launch.launchers.launcher import Launcher

SIMULATOR_COMPONENT = Component(
    "sonde-simulate",
    "SONDE_SIMULATOR",
    "simulate",
    "The simulator is not installed: there is no sonde-simulate in this package;",
)

MESSAGES_FILE = "messages"  # file of the log messages of the machine, in the folder of its traces


def find_simulator() -> Path:
    return locate_component(SIMULATOR_COMPONENT).path


def list_known_faults(simulator: Path) -> str:
    """The list of faults that the simulator can switch on, as it prints them."""
    return subprocess.run([str(simulator), "faults"], capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True)
class SimulatedLauncher(Launcher):
    """Starts the simulator instead of the engine."""

    name = "simulated"
    ranks: int | None = None
    simulator: Path = Path()
    system: Path = Path()  # resolved system as JSON
    mount: str = ""  # id of a mount, file system or pool
    faults: tuple[str, ...] = ()
    seed: int = 1
    nodes: int | None = None
    processes: int | None = None
    traces: Path | None = None

    @classmethod
    def describe_unavailability(cls) -> str:
        return ""

    def make_command_line(self, engine_command: Sequence[str]) -> list[str]:
        arguments = [str(self.simulator), *engine_command[1:], "--system", str(self.system), "--seed", str(self.seed)]
        arguments += ["--mount", self.mount] if self.mount else []
        arguments += ["--nodes", str(self.nodes)] if self.nodes else []
        arguments += ["--processes", str(self.processes)] if self.processes else []
        arguments += ["--traces", str(self.traces)] if self.traces else []
        for fault in self.faults:
            arguments += ["--fault", fault]
        return arguments
