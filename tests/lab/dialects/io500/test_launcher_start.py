# SPDX-License-Identifier: Apache-2.0
"""A launcher that starts the program itself is recognized by what it puts into the environment."""

from __future__ import annotations

import pytest

from sonde.launch.launchers.rank_detection import LauncherRank, detect_launcher_rank

OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
HYDRA = {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}
SLURM = {"SLURM_STEP_ID": "7", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "8", "PMI_RANK": "1", "PMI_SIZE": "8"}


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, None),
        (OPEN_MPI, LauncherRank("mpiexec", 3, 4)),
        (HYDRA, LauncherRank("mpiexec", 0, 2)),
        (SLURM, LauncherRank("srun", 1, 8)),
        ({**HYDRA, "PMI_SIZE": "1"}, None),
        ({**SLURM, "SLURM_STEP_NUM_TASKS": "1"}, None),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),  # a batch script
        ({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "many"}, None),
    ],
)
def test_launcher_rank_is_detected_from_the_environment(
    environment: dict[str, str], wanted: LauncherRank | None
) -> None:
    assert detect_launcher_rank(environment) == wanted
