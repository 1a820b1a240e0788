# SPDX-License-Identifier: Apache-2.0
"""Folders with results of other tools, for example those that IO500 writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sonde.model.errors import UserError
from sonde.sources.formats import identify_result_format, read_result_text

MAX_FOLDER_FILES = 100_000
# IO500 writes the same numbers several times; the first of these that a folder has is read.
_IO500_FILES = ("result.txt", "result_summary.txt")
_IO500_FORMATS = ("IO500 result", "IO500 summary")


@dataclass(frozen=True)
class ResultFolder:
    """The files of a folder that hold results, and how many of the others hold none."""

    files: tuple[Path, ...]
    other_files: int


def find_result_files(top_folder: Path) -> ResultFolder:
    """The result files in a folder and the folders in it; hidden files are no results, links are not followed.

    Raises UserError when there are too many files.
    """
    results: list[Path] = []
    other_files = 0
    for count, path in enumerate(_iterate_visible_files(top_folder)):
        if count == MAX_FOLDER_FILES:
            raise UserError(
                f"{top_folder} has more than {MAX_FOLDER_FILES:,} files; name the folders of results in it."
            )
        format_name = _identify_file(path)
        if not format_name or (format_name in _IO500_FORMATS and _is_repeated_elsewhere(path)):
            other_files += 1
        else:
            results.append(path)
    return ResultFolder(tuple(results), other_files)


def _iterate_visible_files(top_folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(top_folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _identify_file(file_path: Path) -> str:
    try:
        chosen = identify_result_format(read_result_text(file_path))
    except UserError:
        return ""
    return chosen.name if chosen else ""


def _is_repeated_elsewhere(result_file: Path) -> bool:
    """Whether another file in the folder holds the same numbers of IO500, and more."""
    earlier = _IO500_FILES[: _IO500_FILES.index(result_file.name)] if result_file.name in _IO500_FILES else _IO500_FILES
    return any((result_file.parent / name).is_file() for name in earlier)
