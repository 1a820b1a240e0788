# SPDX-License-Identifier: Apache-2.0
"""Described systems that come with Sonde, each known by a name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from sonde.model.errors import SystemFileError, suggestion

SUFFIX = ".toml"


def ready_systems() -> dict[str, Path]:
    """Name and file of each: in the installed package, or in the source tree that this module is part of."""
    source = Path(__file__).resolve().parents[4]
    folders = [Path(str(resources.files("sonde").joinpath("systems")))]
    if (source / "schema").is_dir():
        folders.append(source / "systems")
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else ():
            found.setdefault(path.stem, path)
    return dict(sorted(found.items()))


def system_source(name: str) -> Path:
    """The file that `name` means: a file, or the name of a described system. Raises SystemFileError."""
    path = Path(name)
    if path.exists() or "/" in name or path.suffix in (SUFFIX, ".json"):
        return path
    known = ready_systems()
    if name in known:
        return known[name]
    listed = ", ".join(known) or "none"
    raise SystemFileError(
        f'There is no system file "{name}" and no described system of that name; described are {listed}.'
        + suggestion(name, known)
    )
