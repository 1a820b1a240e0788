# SPDX-License-Identifier: Apache-2.0
"""Launches tasks of a Slurm job step."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from sonde.launch.launchers.launcher import Launcher, RankVariables


@dataclass(frozen=True)
class SrunLauncher(Launcher):
    """``srun``."""

    name = "srun"
    rank_variables = (RankVariables("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"),)
    missing_rank_hint = ', or name the PMI with --launcher-args "--mpi=…"'
    ranks: int
    extra: Sequence[str] = ()

    @classmethod
    def describe_unavailability(cls) -> str:
        return "" if shutil.which("srun") else "There is no srun on PATH; --launcher srun needs Slurm."

    def make_command_line(self, engine_command: Sequence[str]) -> list[str]:
        # Without a PMI every task would run as the only rank; both MPICH and Slurm support PMI-2.
        pmi = [] if any(option.startswith("--mpi") for option in self.extra) else ["--mpi=pmi2"]
        options = [f"--ntasks={self.ranks}", *pmi, "--kill-on-bad-exit=1", "--input=none"]
        return ["srun", *options, *self.extra, *engine_command]

    def choose_forwarded_signal(self, signal_number: int) -> int:
        # srun prints a status report at the first SIGINT and kills its tasks at SIGTERM; it forwards SIGUSR1.
        return signal.SIGUSR1
