# SPDX-License-Identifier: Apache-2.0
"""Processing elements of Cray's ALPS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.launch.launchers.launcher import Launcher


@dataclass(frozen=True)
class AprunLauncher(Launcher):
    """``aprun``. It tells what it starts no number of processes, so there is no mark: the MPI knows it."""

    name = "aprun"
    ranks: int
    extra: Sequence[str] = ()

    def arguments(self, engine: Sequence[str]) -> list[str]:
        return ["aprun", "-n", str(self.ranks), *self.extra, *engine]
