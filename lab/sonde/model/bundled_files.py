# SPDX-License-Identifier: Apache-2.0
"""Files that are installed with Sonde and selected by name: experiments and system files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from sonde.model.errors import UserError, suggest_close_name

TOML_SUFFIX = ".toml"


def find_bundled_toml_files(folder_name: str, include_subfolders: bool = False) -> dict[str, Path]:
    """Returns path by name of the TOML files in `folder_name` ("experiments", "systems") of the package and source
    tree.

    With `include_subfolders`, files in its direct subfolders are included, also by their bare name.
    """
    source = find_source_tree()
    folders = [resources.files("sonde").joinpath(folder_name), *([source / folder_name] if source else [])]
    files: dict[str, Path] = {}
    for root in folders:
        for directory in _iterate_subfolders(root) if include_subfolders else (root,):
            for entry in directory.iterdir() if directory.is_dir() else ():
                if entry.name.endswith(TOML_SUFFIX):
                    files.setdefault(entry.name.removesuffix(TOML_SUFFIX), Path(str(entry)))
    return dict(sorted(files.items()))


def find_bundled_folder(folder_name: str) -> Path | None:
    """Returns the folder of that name in the package, else in the source tree; None if neither has it."""
    source = find_source_tree()
    installed = Path(str(resources.files("sonde").joinpath(folder_name)))
    candidates = [installed, *([source / folder_name] if source else [])]
    return next((folder for folder in candidates if folder.is_dir()), None)


def find_source_tree() -> Path | None:
    """Returns the root of the source tree that this package is part of; None for an installed package."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "schema").is_dir() else None


def _iterate_subfolders(top_folder: Traversable) -> Iterator[Traversable]:
    yield top_folder
    for entry in sorted(top_folder.iterdir(), key=lambda child: child.name) if top_folder.is_dir() else ():
        if entry.is_dir():
            yield entry


def is_file_reference(file_or_bundled_name: str, bundled_names: Collection[str]) -> bool:
    """Returns whether the user's argument is a file path, not the name of a bundled file.

    A bundled name is never a file of that name in the current directory, where another user may have put a plan.
    """
    return (
        "/" in file_or_bundled_name
        or Path(file_or_bundled_name).suffix in (TOML_SUFFIX, ".json")
        or (file_or_bundled_name not in bundled_names and Path(file_or_bundled_name).exists())
    )


def find_system_file(file_or_system_name: str) -> str:
    """Returns the path of a system file, given as a path or as the name of a bundled one.

    Raises UserError with the nearest name.
    """
    systems = find_bundled_toml_files("systems")
    if is_file_reference(file_or_system_name, systems):
        return file_or_system_name
    if file_or_system_name in systems:
        return str(systems[file_or_system_name])
    raise UserError(
        f'There is no system file "{file_or_system_name}" and no described system of that name; described are '
        f"{', '.join(systems)}." + suggest_close_name(file_or_system_name, systems)
    )
