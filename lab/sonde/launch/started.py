# SPDX-License-Identifier: Apache-2.0
"""Whether a launcher started this program itself, several times over."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

# Launcher -> variables with rank and number of ranks; each must be there with a number, the third only be there.
_MARKS = {
    "mpiexec": (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ""),
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),  # Slurm's own PMI sets the first two as well
    ),
    "srun": (("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"),),
}


@dataclass(frozen=True)
class Started:
    """One of several."""

    launcher: str
    rank: int
    size: int


def started_by(environment: Mapping[str, str] = os.environ) -> Started | None:
    """How this process was started by a launcher of several; None when it stands alone."""
    for launcher, marks in _MARKS.items():
        for rank, size, other in marks:
            numbers = [environment.get(rank, ""), environment.get(size, "")]
            if all(one.isdecimal() for one in numbers) and (not other or other in environment):
                found = Started(launcher, int(numbers[0]), int(numbers[1]))
                return found if found.size > 1 else None
    return None
