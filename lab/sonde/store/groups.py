# SPDX-License-Identifier: Apache-2.0
"""What an archive keeps of an experiment besides its runs: ``experiments/GROUP/experiment.json``.

The runs themselves say which cell they are of; this file says what was asked, so that a run that was broken off can be
taken up again by somebody who no longer has the file of the experiment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sonde.model.confined_files import ConfinedDirectory, read_json
from sonde.model.errors import MachineError, UserError, suggest_name
from sonde.store.shards import EXPERIMENTS

SCHEMA = "sonde-group/1"
NAME = "experiment.json"
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")


def check_group(name: str) -> str:
    """The name, or a sentence about why no group can have it."""
    if not _GROUP.fullmatch(name):
        raise UserError(
            f'"{name}" cannot be the name of a group; it begins with a letter or digit and goes on with up to 120 of'
            " these and _ . -"
        )
    return name


def locate_group_folder(root: Path, group: str) -> Path:
    """Where the archive keeps what belongs to all runs of an experiment."""
    return root / EXPERIMENTS / group


def write_group(root: Path, group: str, document: Mapping[str, Any]) -> Path:
    """Keeps what was asked. The file is there whole or not at all. Returns its folder."""
    folder = locate_group_folder(root, check_group(group))
    try:
        with (
            ConfinedDirectory.open(root, create=True) as archive,
            archive.enter(EXPERIMENTS, create=True) as experiments,
            experiments.enter(group, create=True) as directory,
        ):
            directory.write_json(NAME, {"schema": SCHEMA, "group": group, **document})
            experiments.sync()
    except OSError as reason:
        raise MachineError(
            f"The archive {root} cannot be written: {reason.strerror}; name another with --archive DIR."
        ) from None
    return folder


def read_group(root: Path, name: str) -> dict[str, Any]:
    """What was asked in the group that `name` means: a name, its unique beginning, or "last". Raises UserError."""
    group_names = (
        sorted(groups(root), key=lambda group: _read_change_time(root, group))
        if name == "last"
        else sorted(groups(root))
    )
    if name == "last" and group_names:
        matching = group_names[-1:]
    else:
        matching = [name] if name in group_names else [group for group in group_names if group.startswith(name)]
    if not matching:
        raise UserError(f'There is no experiment "{name}" in the archive {root}.{suggest_name(name, group_names)}')
    if len(matching) > 1:
        raise UserError(
            f'"{name}" could mean {len(matching)} experiments ({", ".join(matching[:4])}); give more of the name.'
        )
    document = read_json(locate_group_folder(root, matching[0]) / NAME)
    if document is None or document.get("schema") != SCHEMA:
        raise UserError(
            f"{locate_group_folder(root, matching[0]) / NAME} cannot be read as an experiment that was run."
        )
    return document


def groups(root: Path) -> Iterator[str]:
    """Names of all experiments that were run."""
    for file in (root / EXPERIMENTS).glob(f"*/{NAME}"):
        yield file.parent.name


def remove_empty(root: Path) -> None:
    """Removes what is kept of experiments that have no run any more."""
    from sonde.store.names import count_runs_by_group  # pyarrow takes long to import

    group_names = list(groups(root))
    sizes = count_runs_by_group(root) if group_names else {}
    for group in group_names:
        if group not in sizes:
            with (
                suppress(OSError),
                ConfinedDirectory.open(root) as archive,
                archive.enter(EXPERIMENTS) as experiments,
            ):
                experiments.remove_tree(group)


def _read_change_time(root: Path, group: str) -> float:
    return (locate_group_folder(root, group) / NAME).stat().st_mtime
