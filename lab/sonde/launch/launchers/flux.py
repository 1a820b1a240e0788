# SPDX-License-Identifier: Apache-2.0
"""Tasks of a Flux instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.launch.launchers.launcher import Launcher, Mark


@dataclass(frozen=True)
class FluxLauncher(Launcher):
    """``flux run`` inside a Flux instance."""

    name = "flux"
    marks = (Mark("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),)
    lost = ', or name what the MPI needs with --launcher-args "-o mpi=…"'
    ranks: int
    extra: Sequence[str] = ()

    def arguments(self, engine: Sequence[str]) -> list[str]:
        return ["flux", "run", f"--ntasks={self.ranks}", *self.extra, *engine]
