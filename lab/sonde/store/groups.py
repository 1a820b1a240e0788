# SPDX-License-Identifier: Apache-2.0
"""The request of an experiment in the archive, next to its runs: ``experiments/GROUP/experiment.json``.

The runs themselves say which cell they are of; this file says what was asked, so that a run that was broken off can be
taken up again by somebody who no longer has the file of the experiment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sonde.model.confined_files import ConfinedDirectory, read_json_file
from sonde.model.errors import MachineError, UserError, suggest_close_name
from sonde.store.shards import EXPERIMENTS_FOLDER

GROUP_FORMAT = "sonde-group/1"
GROUP_FILE = "experiment.json"
_GROUP_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")


def check_group_name(group_name: str) -> str:
    """Returns the name. Raises UserError if no group can have it."""
    if not _GROUP_NAME_PATTERN.fullmatch(group_name):
        raise UserError(
            f'"{group_name}" cannot be the name of a group; it begins with a letter or digit and goes on with up to '
            "120 of"
            " these and _ . -"
        )
    return group_name


def locate_group_folder(archive_root: Path, group_name: str) -> Path:
    """Where the archive keeps what belongs to all runs of an experiment."""
    return archive_root / EXPERIMENTS_FOLDER / group_name


def write_group_request(archive_root: Path, group_name: str, request_document: Mapping[str, Any]) -> Path:
    """Keeps what was asked. The file is written atomically. Returns its folder."""
    folder = locate_group_folder(archive_root, check_group_name(group_name))
    try:
        with (
            ConfinedDirectory.open(archive_root, create_if_absent=True) as archive,
            archive.open_subdirectory(EXPERIMENTS_FOLDER, create_if_absent=True) as experiments,
            experiments.open_subdirectory(group_name, create_if_absent=True) as directory,
        ):
            directory.write_json_file(GROUP_FILE, {"schema": GROUP_FORMAT, "group": group_name, **request_document})
            experiments.fsync_directory()
    except OSError as reason:
        raise MachineError(
            f"The archive {archive_root} cannot be written: {reason.strerror}; name another with --archive DIR."
        ) from None
    return folder


def read_group_request(archive_root: Path, group_reference: str) -> dict[str, Any]:
    """Stored request of the group that `group_reference` names: a name, its unique beginning, or "last". Raises
    UserError."""
    group_names = (
        sorted(iterate_group_names(archive_root), key=lambda group: _read_change_time(archive_root, group))
        if group_reference == "last"
        else sorted(iterate_group_names(archive_root))
    )
    if group_reference == "last" and group_names:
        matching = group_names[-1:]
    else:
        matching = (
            [group_reference]
            if group_reference in group_names
            else [group for group in group_names if group.startswith(group_reference)]
        )
    if not matching:
        raise UserError(
            f'There is no experiment "{group_reference}" in the archive '
            f"{archive_root}.{suggest_close_name(group_reference, group_names)}"
        )
    if len(matching) > 1:
        raise UserError(
            f'"{group_reference}" could mean {len(matching)} experiments ({", ".join(matching[:4])}); give more of '
            "the name."
        )
    group_file = locate_group_folder(archive_root, matching[0]) / GROUP_FILE
    document = read_json_file(group_file)
    if document is None or document.get("schema") != GROUP_FORMAT:
        raise UserError(f"{group_file} cannot be read as an experiment that was run.")
    return document


def iterate_group_names(archive_root: Path) -> Iterator[str]:
    """Names of all experiments that were run."""
    for file in (archive_root / EXPERIMENTS_FOLDER).glob(f"*/{GROUP_FILE}"):
        yield file.parent.name


def remove_empty_groups(archive_root: Path) -> None:
    """Removes the stored requests of experiments that have no runs left."""
    from sonde.store.names import count_runs_by_group  # pyarrow takes long to import

    group_names = list(iterate_group_names(archive_root))
    sizes = count_runs_by_group(archive_root) if group_names else {}
    for group in group_names:
        if group not in sizes:
            with (
                suppress(OSError),
                ConfinedDirectory.open(archive_root) as archive,
                archive.open_subdirectory(EXPERIMENTS_FOLDER) as experiments,
            ):
                experiments.remove_tree(group)


def _read_change_time(archive_root: Path, group_name: str) -> float:
    return (locate_group_folder(archive_root, group_name) / GROUP_FILE).stat().st_mtime
