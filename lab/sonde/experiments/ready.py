# SPDX-License-Identifier: Apache-2.0
"""Ready-made experiments: plans that come with Sonde, each known by a name."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from sonde.model.errors import PlanError, suggestion

SUFFIX = ".toml"


def _folders() -> list[Traversable]:
    """In the installed package; in the source tree that this module is part of."""
    source = Path(__file__).resolve().parents[3]
    in_source = source / "experiments"
    packaged = resources.files("sonde").joinpath("experiments")
    return [packaged, in_source] if (source / "schema").is_dir() else [packaged]


def ready_made() -> dict[str, Path]:
    """Name and file of each."""
    found: dict[str, Path] = {}
    for folder in _folders():
        if folder.is_dir():
            for entry in folder.iterdir():
                if entry.name.endswith(SUFFIX):
                    found.setdefault(entry.name.removesuffix(SUFFIX), Path(str(entry)))
    return dict(sorted(found.items()))


def plan_source(name: str) -> str:
    """The file that `name` means: a file, or the name of a ready-made experiment; ``-`` is standard input."""
    if name == "-" or Path(name).exists() or "/" in name or Path(name).suffix in (SUFFIX, ".json"):
        return name
    known = ready_made()
    if name in known:
        return str(known[name])
    listed = ", ".join(known) or "none"
    raise PlanError(
        f'There is no plan file "{name}" and no ready-made experiment of that name; ready-made are {listed}.'
        + suggestion(name, known)
    )
