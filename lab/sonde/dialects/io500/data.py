# SPDX-License-Identifier: Apache-2.0
"""The data of a run of IO500: its directories before, and what is removed afterwards. Nothing is removed but what has
the names that IOR and mdtest give to their files, and the manifest of the engine.
"""

from __future__ import annotations

import re
import stat
from contextlib import suppress
from pathlib import Path

from sonde.dialects.io500.command_lines import RunDirectories
from sonde.model.confined_files import ConfinedDirectory, remove_file
from sonde.model.errors import MachineError, UserError

_MANIFEST_FILE = ".sonde-manifest.json"  # a phase that was stopped leaves it
BENCHMARK_PARTS = ("ior-easy", "ior-hard", "mdtest-easy", "mdtest-hard", "mdworkbench")
_FILE_PATTERNS = {
    "ior-easy": re.compile(r"ior_file_easy(\.[0-9]{8})?"),
    "ior-hard": re.compile(r"file"),
    "mdtest-easy": re.compile(r"file\.mdtest\..*"),
    "mdtest-hard": re.compile(r"file\.mdtest\..*"),
    "mdworkbench": re.compile(r"file\.[0-9]+\.[0-9]+"),
}
_FOLDER_PATTERNS = {
    "ior-easy": re.compile(r"[0-9]+"),
    "ior-hard": None,
    "mdtest-easy": re.compile(r"(test-dir|mdtest_tree)\..*"),
    "mdtest-hard": re.compile(r"(test-dir|mdtest_tree)\..*"),
    "mdworkbench": re.compile(r"set-[0-9]+|rank\.[0-9]+\.0"),
}


def require_no_data_yet(run_directories: RunDirectories) -> None:
    """Raises UserError when there is data already: the rules forbid it, and it might be somebody's."""
    for part in BENCHMARK_PARTS:
        folder = Path(run_directories.data) / part
        try:
            if folder.exists() and any(folder.iterdir()):
                raise UserError(
                    f"{folder} is not empty; if an earlier run left it, `--cleanup "
                    f"--timestamp={run_directories.timestamp}` with"
                    " the same ini file removes it, else choose another datadir."
                )
        except OSError as reason:
            raise MachineError(f"{folder} cannot be read: {reason.strerror}.") from None


def create_ior_folders(run_directories: RunDirectories) -> None:
    """The directories that IOR needs; those of mdtest are its own. Raises MachineError."""
    for part in ("ior-easy", "ior-hard"):
        folder = Path(run_directories.data) / part
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as reason:
            raise MachineError(f"{folder} cannot be made: {reason.strerror}; choose another datadir.") from None


def remove_benchmark_data(run_directories: RunDirectories) -> list[str]:
    """Removes what IOR and mdtest have made below the data directory, then the directories that are empty. Returns a
    few names of files that remain."""
    top = Path(run_directories.data)
    with suppress(OSError), ConfinedDirectory.open(top) as directory:
        for part in BENCHMARK_PARTS:
            _remove_files_of_part(directory, part, part)
    if top.name == run_directories.timestamp:
        _remove_empty_folder(top)  # else it is the user's own
    for part in BENCHMARK_PARTS:
        with suppress(OSError):
            remove_file(Path(run_directories.results) / f"{part}.stonewall")
    return [str(path) for path in sorted(top.iterdir())[:5]] if top.is_dir() else []


def _remove_files_of_part(parent_directory: ConfinedDirectory, directory_name: str, part_name: str) -> None:
    """Removes what a part made in a directory, then the directory when it is empty. Links are removed when they have
    such a name, and never followed."""
    with suppress(OSError):  # files that cannot be removed are reported as remaining
        with parent_directory.open_subdirectory(directory_name) as directory:
            for entry in directory.list_names():
                if stat.S_ISDIR(directory.stat_entry(entry).st_mode):
                    wanted = _FOLDER_PATTERNS[part_name]
                    if wanted is not None and wanted.fullmatch(entry):
                        _remove_files_of_part(directory, entry, part_name)
                elif entry == _MANIFEST_FILE or _FILE_PATTERNS[part_name].fullmatch(entry):
                    directory.remove_file(entry, missing_ok=True)
        parent_directory.remove_empty_directory(directory_name)


def _remove_empty_folder(folder: Path) -> None:
    with suppress(OSError):  # it is gone already, or something is left in it
        folder.rmdir()
