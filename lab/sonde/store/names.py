# SPDX-License-Identifier: Apache-2.0
"""What a name on the command line means: one run, or the runs of a group."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as compute

from sonde.model.errors import UserError, suggest_name
from sonde.store.catalog import Catalog

_NEAR = 1000  # runs whose names are compared with a misspelled one


def find_folders(root: Path, name: str, calibrations: bool = False) -> list[Path]:
    """Folders of a run, of a group of runs, of a unique beginning of either, or of "last". Raises UserError."""
    runs = Catalog(root).runs(["run", "folder", "group", "role"])
    if not len(runs):
        raise UserError(f"There are no runs in the archive {root}; `sonde check DIR` makes some.")
    if name == "last":
        last = compute.max(runs["run"]).as_py()
        (row,) = runs.filter(compute.equal(runs["run"], last)).slice(0, 1).to_pylist()
        return _find_group_members(root, runs, row["group"], calibrations) if row["group"] else [root / row["folder"]]
    exact = runs.filter(compute.equal(runs["run"], name))
    if len(exact):
        return [root / exact["folder"][0].as_py()]
    if compute.any(compute.equal(runs["group"], name)).as_py():  # acc, although there is acc2
        return _find_group_members(root, runs, name, calibrations)
    return _find_folders_by_name_start(root, runs, name, calibrations)


def find_folders_of_group(root: Path, group: str) -> list[Path]:
    """Folders of all runs of the group with exactly this name, in the order of their start; none when there is none."""
    return _find_group_members(root, Catalog(root).runs(["run", "folder", "group", "role"]), group, calibrations=True)


def count_runs_by_group(root: Path) -> Counter[str]:
    """How many runs each group has, calibrations included."""
    groups = Catalog(root).runs(["group"])["group"].drop_null().to_pylist()
    return Counter(groups)


def _find_folders_by_name_start(root: Path, runs: Any, name: str, calibrations: bool) -> list[Path]:
    in_group = runs.filter(compute.fill_null(compute.starts_with(runs["group"], name), False))
    singles = runs.filter(compute.starts_with(runs["run"], name))
    groups = set(in_group["group"].unique().to_pylist())
    alone = singles.filter(compute.invert(compute.is_in(singles["group"], in_group["group"].unique())))
    names = sorted(groups | set(alone.slice(0, 5)["run"].to_pylist()))
    count = len(groups) + len(alone)
    if count == 1:
        return (
            _find_group_members(root, runs, names[0], calibrations) if groups else [root / alone["folder"][0].as_py()]
        )
    if not names:
        near = suggest_name(name, runs.slice(max(0, len(runs) - _NEAR))["run"].to_pylist())
        raise UserError(f'There is no run "{name}" in the archive {root}; `sonde list` shows them.{near}')
    examples = ", ".join(names[:4]) + (", …" if count > 4 else "")
    raise UserError(f'"{name}" could mean {count} runs ({examples}); give more of the name.')


def _find_group_members(root: Path, runs: Any, group: str, calibrations: bool) -> list[Path]:
    wanted = compute.equal(runs["group"], group)
    if not calibrations:
        wanted = compute.and_(wanted, compute.not_equal(runs["role"], "calibration"))
    return [root / folder for folder in runs.filter(compute.fill_null(wanted, False))["folder"].to_pylist()]
