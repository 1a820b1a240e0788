# SPDX-License-Identifier: Apache-2.0
"""Ready-made experiments: plans that come with Sonde, each known by a name."""

from __future__ import annotations

from pathlib import Path

from sonde.model.errors import PlanError, suggestion
from sonde.model.shipped import is_file_name, shipped


def ready_made() -> dict[str, Path]:
    """Name and file of each."""
    return shipped("experiments")


def plan_source(name: str) -> str:
    """The file that `name` means: a file, or the name of a ready-made experiment; ``-`` is standard input."""
    if name == "-" or is_file_name(name):
        return name
    known = ready_made()
    if name in known:
        return str(known[name])
    listed = ", ".join(known) or "none"
    raise PlanError(
        f'There is no plan file "{name}" and no ready-made experiment of that name; ready-made are {listed}.'
        + suggestion(name, known)
    )
