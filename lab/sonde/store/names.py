# SPDX-License-Identifier: Apache-2.0
"""Resolves a name on the command line to one run, or to the runs of a group."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as compute

from sonde.model.errors import UserError, suggest_close_name
from sonde.store.catalog import Catalog

_MAX_COMPARED_NAMES = 1000  # runs whose names are compared with a misspelled one


def find_run_folders_by_name(archive_root: Path, run_reference: str, includes_calibrations: bool = False) -> list[Path]:
    """Folders of a run, of a group of runs, of a unique beginning of either, or of "last". Raises UserError."""
    runs = Catalog(archive_root).read_run_table(["run", "folder", "group", "role"])
    if not len(runs):
        raise UserError(f"There are no runs in the archive {archive_root}; `sonde check DIR` makes some.")
    if run_reference == "last":
        last = compute.max(runs["run"]).as_py()
        (row,) = runs.filter(compute.equal(runs["run"], last)).slice(0, 1).to_pylist()
        return (
            _find_run_folders_of_group(archive_root, runs, row["group"], includes_calibrations)
            if row["group"]
            else [archive_root / row["folder"]]
        )
    exact = runs.filter(compute.equal(runs["run"], run_reference))
    if len(exact):
        return [archive_root / exact["folder"][0].as_py()]
    if compute.any(compute.equal(runs["group"], run_reference)).as_py():  # acc, although there is acc2
        return _find_run_folders_of_group(archive_root, runs, run_reference, includes_calibrations)
    return _find_folders_by_name_start(archive_root, runs, run_reference, includes_calibrations)


def find_folders_of_group(archive_root: Path, group_name: str) -> list[Path]:
    """Folders of all runs of the group with exactly this name, in the order of their start; none when there is none."""
    return _find_run_folders_of_group(
        archive_root,
        Catalog(archive_root).read_run_table(["run", "folder", "group", "role"]),
        group_name,
        includes_calibrations=True,
    )


def count_runs_by_group(archive_root: Path) -> Counter[str]:
    """How many runs each group has, calibrations included."""
    groups = Catalog(archive_root).read_run_table(["group"])["group"].drop_null().to_pylist()
    return Counter(groups)


def _find_folders_by_name_start(
    archive_root: Path, run_table: Any, name_start: str, includes_calibrations: bool
) -> list[Path]:
    in_group = run_table.filter(compute.fill_null(compute.starts_with(run_table["group"], name_start), False))
    singles = run_table.filter(compute.starts_with(run_table["run"], name_start))
    groups = set(in_group["group"].unique().to_pylist())
    alone = singles.filter(compute.invert(compute.is_in(singles["group"], in_group["group"].unique())))
    names = sorted(groups | set(alone.slice(0, 5)["run"].to_pylist()))
    count = len(groups) + len(alone)
    if count == 1:
        return (
            _find_run_folders_of_group(archive_root, run_table, names[0], includes_calibrations)
            if groups
            else [archive_root / alone["folder"][0].as_py()]
        )
    if not names:
        near = suggest_close_name(
            name_start, run_table.slice(max(0, len(run_table) - _MAX_COMPARED_NAMES))["run"].to_pylist()
        )
        raise UserError(f'There is no run "{name_start}" in the archive {archive_root}; `sonde list` shows them.{near}')
    examples = ", ".join(names[:4]) + (", …" if count > 4 else "")
    raise UserError(f'"{name_start}" could mean {count} runs ({examples}); give more of the name.')


def _find_run_folders_of_group(
    archive_root: Path, run_table: Any, group_name: str, includes_calibrations: bool
) -> list[Path]:
    """The folders of a group; those of its calibrations too if asked for, and where a killed group has no others."""
    group = run_table.filter(compute.fill_null(compute.equal(run_table["group"], group_name), False))
    measured = group.filter(compute.fill_null(compute.not_equal(group["role"], "calibration"), False))
    chosen = group if includes_calibrations or not len(measured) else measured
    return [archive_root / folder for folder in chosen["folder"].to_pylist()]
