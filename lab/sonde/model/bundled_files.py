# SPDX-License-Identifier: Apache-2.0
"""Files that are installed with Sonde and selected by name: experiments and system files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from sonde.model.errors import UserError, suggest_name

TOML_SUFFIX = ".toml"


def find_bundled_toml_files(folder: str, include_subfolders: bool = False) -> dict[str, Path]:
    """Returns path by name of the TOML files in `folder` ("experiments", "systems") of the package and source tree.

    With `include_subfolders`, files in its direct subfolders are included, also by their bare name.
    """
    source = find_source_tree()
    folders = [resources.files("sonde").joinpath(folder), *([source / folder] if source else [])]
    files: dict[str, Path] = {}
    for root in folders:
        for directory in _list_folders(root) if include_subfolders else (root,):
            for entry in directory.iterdir() if directory.is_dir() else ():
                if entry.name.endswith(TOML_SUFFIX):
                    files.setdefault(entry.name.removesuffix(TOML_SUFFIX), Path(str(entry)))
    return dict(sorted(files.items()))


def find_bundled_folder(name: str) -> Path | None:
    """Returns the folder of that name in the package, else in the source tree; None if neither has it."""
    source = find_source_tree()
    installed = Path(str(resources.files("sonde").joinpath(name)))
    candidates = [installed, *([source / name] if source else [])]
    return next((folder for folder in candidates if folder.is_dir()), None)


def find_source_tree() -> Path | None:
    """Returns the root of the source tree that this package is part of; None for an installed package."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "schema").is_dir() else None


def _list_folders(folder: Traversable) -> Iterator[Traversable]:
    yield folder
    for entry in sorted(folder.iterdir(), key=lambda child: child.name) if folder.is_dir() else ():
        if entry.is_dir():
            yield entry


def is_file_reference(name: str, bundled: Collection[str]) -> bool:
    """Returns whether the user's argument is a file path, not the name of a bundled file.

    A bundled name is never a file of that name in the current directory, where another user may have put a plan.
    """
    return "/" in name or Path(name).suffix in (TOML_SUFFIX, ".json") or (name not in bundled and Path(name).exists())


def find_system_file(name: str) -> str:
    """Returns the path of a system file, given as a path or as the name of a bundled one.

    Raises UserError with the nearest name.
    """
    systems = find_bundled_toml_files("systems")
    if is_file_reference(name, systems):
        return name
    if name in systems:
        return str(systems[name])
    raise UserError(
        f'There is no system file "{name}" and no described system of that name; described are {", ".join(systems)}.'
        + suggest_name(name, systems)
    )
