# SPDX-License-Identifier: Apache-2.0
"""Ready-made experiments and plans: they come with Sonde, each known by the name of its file."""

from __future__ import annotations

from pathlib import Path

from sonde.model.errors import PlanError, suggestion
from sonde.model.experiment.description import SCHEMA
from sonde.model.shipped import is_file_name, shipped


def ready_made() -> dict[str, Path]:
    """Name and file of each plan."""
    return {name: file for name, file in shipped("experiments").items() if not _is_experiment(file)}


def ready_experiments() -> dict[str, Path]:
    """Name and file of each experiment: of the folder itself, and of its folders, one a source document."""
    return {name: file for name, file in shipped("experiments", inside=True).items() if _is_experiment(file)}


def _is_experiment(file: Path) -> bool:
    return f'schema = "{SCHEMA}"' in file.read_text(encoding="utf-8")


def plan_source(name: str) -> str:
    """The file that `name` means: a file, or the name of a ready-made plan or experiment; ``-`` is standard input."""
    if name == "-" or is_file_name(name):
        return name
    known = shipped("experiments", inside=True)
    if name in known:
        return str(known[name])
    listed = ", ".join(ready_made()) or "none"
    raise PlanError(
        f'There is no plan file "{name}" and no ready-made experiment of that name; ready-made plans are {listed}, and'
        f" there are {len(ready_experiments())} experiments (docs/reference/experiments.md)." + suggestion(name, known)
    )
