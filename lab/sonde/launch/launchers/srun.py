# SPDX-License-Identifier: Apache-2.0
"""Tasks of a Slurm job step."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from sonde.launch.launchers.launcher import Launcher, Mark


@dataclass(frozen=True)
class SrunLauncher(Launcher):
    """Slurm's own launcher."""

    name = "srun"
    marks = (Mark("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"),)
    lost = ', or name the PMI with --launcher-args "--mpi=…"'
    ranks: int
    extra: Sequence[str] = ()

    @classmethod
    def available(cls) -> str:
        return "" if shutil.which("srun") else "There is no srun on PATH; --launcher srun needs Slurm."

    def arguments(self, engine: Sequence[str]) -> list[str]:
        # Without a PMI every task would believe to be alone; PMI-2 is what MPICH and Slurm share.
        pmi = [] if any(option.startswith("--mpi") for option in self.extra) else ["--mpi=pmi2"]
        own = [f"--ntasks={self.ranks}", *pmi, "--kill-on-bad-exit=1", "--input=none"]
        return ["srun", *own, *self.extra, *engine]

    def relayed(self, number: int) -> int:
        # srun answers its first SIGINT with a status report, and kills its tasks at SIGTERM; SIGUSR1 it passes on.
        return signal.SIGUSR1
