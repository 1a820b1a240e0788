# SPDX-License-Identifier: Apache-2.0
"""Where in the archive a run lies: one folder a month, so that no folder grows without bounds and a reader can see
from a few time stamps what has changed.

Runs that somebody copied into the root itself are included.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sonde.model.confined_files import ConfinedDirectory, is_owned_by_user_or_root

REPORTS_FOLDER = "reports"
EXPERIMENTS_FOLDER = "experiments"  # a folder for each experiment that was run, see `groups`
JOBS_FOLDER = "jobs"  # a folder for each job that was submitted to a scheduler
ROOT_SHARD = "root"  # stands for the root itself where a month could stand
_MONTH_NAME_PATTERN = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
_TIMESTAMPED_RUN_ID_PATTERN = re.compile(r"(\d{4})(0[1-9]|1[0-2])\d\dT\d{6}Z-")
_MONTH_OF_UNDATED_RUNS = "1970-01"
_FOLDERS_WITHOUT_RUNS = (REPORTS_FOLDER, EXPERIMENTS_FOLDER, JOBS_FOLDER)


@dataclass(frozen=True)
class ShardListing:
    """Folders of one month with their change times, at one moment."""

    stamp_ns: int  # time of the folder's last change, read before its entries
    changed_ns: Mapping[str, int]  # name of each folder in it -> time of the last change in that


def format_month_folder(run_id: str) -> str:
    """The folder a run belongs in, by its id alone."""
    match = _TIMESTAMPED_RUN_ID_PATTERN.match(run_id)
    return f"{match[1]}-{match[2]}" if match else _MONTH_OF_UNDATED_RUNS


def locate_run_folder(archive_root: Path, run_id: str) -> Path:
    """The folder of a run of that id."""
    return archive_root / format_month_folder(run_id) / run_id


def locate_shard_folder(archive_root: Path, shard_name: str) -> Path:
    """The folder of a shard: a month, or the root."""
    return archive_root if shard_name == ROOT_SHARD else archive_root / shard_name


def open_shard_of_run(run_folder: Path) -> ConfinedDirectory:
    """Opens the directory that contains the folder of a run; a symbolic link instead of a month is not followed."""
    if not _MONTH_NAME_PATTERN.fullmatch(run_folder.parent.name):
        return ConfinedDirectory.open(run_folder.parent)
    with ConfinedDirectory.open(run_folder.parent.parent) as root:
        return root.open_subdirectory(run_folder.parent.name)


def read_shard_stamps(archive_root: Path) -> dict[str, int]:
    """When each shard was changed last, in ns since 1970. Raises OSError when the root cannot be read."""
    stamps_by_shard = {}
    with os.scandir(archive_root) as entries:
        months = sorted(
            entry.name for entry in entries if _MONTH_NAME_PATTERN.fullmatch(entry.name) and _is_directory(entry)
        )
    for shard in [ROOT_SHARD, *months]:
        try:
            stamps_by_shard[shard] = _read_shard_stamp(locate_shard_folder(archive_root, shard))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
    return stamps_by_shard


def _read_shard_stamp(shard_folder: Path) -> int:
    # Opened, not only looked at: a network file system then asks its server again.
    folder = os.open(shard_folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return os.fstat(folder).st_mtime_ns
    finally:
        os.close(folder)


def list_shard_contents(archive_root: Path, shard_name: str) -> ShardListing:
    """Lists the folders of a shard with their change times. Raises OSError when the shard cannot be read."""
    folder = locate_shard_folder(archive_root, shard_name)
    stamp = _read_shard_stamp(folder)
    return ShardListing(stamp, dict(_iterate_folders_with_stamps(folder, shard_name == ROOT_SHARD)))


def _is_directory(directory_entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a directory, or a link to one that the caller or root made. A link that another user planted
    does not count: it could lead to runs that only the caller may read."""
    return directory_entry.is_dir(follow_symlinks=False) or (
        directory_entry.is_symlink()
        and is_owned_by_user_or_root(directory_entry.stat(follow_symlinks=False))
        and directory_entry.is_dir()
    )


def _iterate_folders_with_stamps(shard_folder: Path, is_root: bool) -> Iterator[tuple[str, int]]:
    with os.scandir(shard_folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or (
                is_root and (entry.name in _FOLDERS_WITHOUT_RUNS or _MONTH_NAME_PATTERN.fullmatch(entry.name))
            ):
                continue
            try:
                if _is_directory(entry):
                    yield entry.name, entry.stat().st_mtime_ns
            except FileNotFoundError:
                continue  # removed since it was listed
