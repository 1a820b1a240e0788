# SPDX-License-Identifier: Apache-2.0
"""Launches processing elements of Cray ALPS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.launch.launchers.launcher import Launcher


@dataclass(frozen=True)
class AprunLauncher(Launcher):
    """``aprun``. aprun sets no variable with the number of processes, so there are no rank variables; the MPI library
    provides the number."""

    name = "aprun"
    ranks: int
    extra: Sequence[str] = ()

    def make_command_line(self, engine_command: Sequence[str]) -> list[str]:
        return ["aprun", "-n", str(self.ranks), *self.extra, *engine_command]
