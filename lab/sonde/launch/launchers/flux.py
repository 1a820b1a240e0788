# SPDX-License-Identifier: Apache-2.0
"""Launches tasks in a Flux instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.launch.launchers.launcher import Launcher, RankVariables


@dataclass(frozen=True)
class FluxLauncher(Launcher):
    """``flux run`` inside a Flux instance."""

    name = "flux"
    rank_variables = (RankVariables("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),)
    missing_rank_hint = ', or name what the MPI needs with --launcher-args "-o mpi=…"'
    ranks: int
    extra: Sequence[str] = ()

    def make_command_line(self, engine_command: Sequence[str]) -> list[str]:
        return ["flux", "run", f"--ntasks={self.ranks}", *self.extra, *engine_command]
