# SPDX-License-Identifier: Apache-2.0
"""Files that come with Sonde, each known by a name: ready-made experiments, described systems."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from sonde.model.errors import UserError, suggestion

SUFFIX = ".toml"


def shipped(folder: str, inside: bool = False) -> dict[str, Path]:
    """Name and file of each in a folder ("experiments", "systems"): of the installed package, and of the source tree
    that this module is part of. With `inside`, those in the folders of that folder too, by the same kind of name."""
    source = Path(__file__).resolve().parents[3]
    folders = [resources.files("sonde").joinpath(folder)]
    if (source / "schema").is_dir():
        folders.append(source / folder)
    found: dict[str, Path] = {}
    for one in folders:
        for place in _folders(one) if inside else (one,):
            for entry in place.iterdir() if place.is_dir() else ():
                if entry.name.endswith(SUFFIX):
                    found.setdefault(entry.name.removesuffix(SUFFIX), Path(str(entry)))
    return dict(sorted(found.items()))


def _folders(folder: Traversable) -> Iterator[Traversable]:
    yield folder
    for entry in sorted(folder.iterdir(), key=lambda one: one.name) if folder.is_dir() else ():
        if entry.is_dir():
            yield entry


def is_file_name(name: str) -> bool:
    """Whether a word of the user means a file rather than something that is shipped."""
    return Path(name).exists() or "/" in name or Path(name).suffix in (SUFFIX, ".json")


def system_source(name: str) -> str:
    """The file that `name` means: a file, or the name of a described system. Raises UserError with the nearest name."""
    if is_file_name(name):
        return name
    known = shipped("systems")
    if name in known:
        return str(known[name])
    raise UserError(
        f'There is no system file "{name}" and no described system of that name; described are {", ".join(known)}.'
        + suggestion(name, known)
    )
