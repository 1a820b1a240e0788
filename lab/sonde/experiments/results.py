# SPDX-License-Identifier: Apache-2.0
"""Reads the runs of an experiment from the archive: the cell of each run, and the cells that were not run.

Every run.json has its placement under "experiment" (`RunPlacement`); ``experiments/GROUP/experiment.json`` has the
request. Both exist from the first run on, so results can be read while the experiment runs and after an interruption.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sonde.model.errors import RecordError
from sonde.model.experiment import Experiment, change_members_by_path, make_experiment
from sonde.model.settings import parse_setting
from sonde.store.archive import Archive
from sonde.store.groups import locate_group_folder, read_group_request
from sonde.store.summary import Summary, read_summary

PLACEMENT_MEMBER = "experiment"  # member of run.json
Scalar = str | int | float | bool


@dataclass(frozen=True)
class RunPlacement:
    """The placement of a run in its experiment: the member "experiment" of run.json."""

    id: str  # of the experiment
    hash: str  # `hash_experiment`
    cell: str
    axis_values: Mapping[str, Any]  # axis -> value
    plan: str
    variant: str
    repeat: int
    warm_up: bool
    profile: str
    seed: int
    number: int  # runs of the experiment that began before it
    simulated: bool = False

    def to_facts(self) -> dict[str, Any]:
        """Returns the members for run.json."""
        return {PLACEMENT_MEMBER: asdict(self)}


@dataclass(frozen=True)
class CellRun:
    """One successful run of one cell."""

    cell: str  # cell.id
    axis_values: Mapping[str, Scalar]  # axis -> value
    plan: str  # id of the plan within the experiment; "" when it has only one
    variant: str  # "" when the experiment has no variants
    repeat: int  # from 0; warm-ups are counted separately
    warm_up: bool
    folder: Path  # of the run in the archive: run.json, record.ndjson, tables


@dataclass(frozen=True)
class Results:
    """An experiment and its runs."""

    experiment: Experiment  # with profile and settings applied
    group: str  # name of the group of runs in the archive
    runs: tuple[CellRun, ...]  # successful runs, in order of time
    refusals: Mapping[str, str]  # cell id -> one sentence why it was not run
    failures: Mapping[str, str] = field(default_factory=dict)  # cell id -> error message of its latest failed run
    directories: Mapping[str, str] = field(default_factory=dict)  # cell id -> directory that was measured
    profile: str = ""
    simulated: bool = False
    folder: Path = Path()  # in the archive: experiment.json and the page
    system: str = ""  # system file that the runs were given: a path, or the name of a shipped one
    settings: tuple[str, ...] = ()  # as path=value

    def list_runs_of_cell(self, cell_id: str, is_warm_up: bool = False) -> tuple[CellRun, ...]:
        """Returns the runs of one cell in order of time: the measured runs or the warm-ups."""
        return tuple(run for run in self.runs if run.cell == cell_id and run.warm_up == is_warm_up)


def hash_experiment(experiment: Experiment) -> str:
    """Returns 16 hex digits that identify an experiment with its profile and settings."""
    text = json.dumps(experiment.document, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def build_experiment(
    experiment_document: Mapping[str, Any], document_origin: str, profile: str, setting_texts: Sequence[str]
) -> Experiment:
    """Builds an experiment from a document that includes its plans, with profile and ``path=value`` settings
    applied."""
    experiment = make_experiment(experiment_document, document_origin, profile)
    changes = {".".join(steps): value for steps, value in (parse_setting(setting) for setting in setting_texts)}
    if not changes:
        return experiment
    return change_members_by_path(experiment, changes, make_experiment(experiment_document, document_origin))


def read_group_results(archive: Archive, group_reference: str) -> Results:
    """Reads the results of a group, given by name, unique prefix, or "last". Raises UserError."""
    from sonde.store.names import find_folders_of_group  # pyarrow takes long to import

    stored = read_group_request(archive.root, group_reference)
    name = str(stored["group"])
    experiment = build_experiment(
        stored["document"], str(stored["origin"]), str(stored["profile"]), list(stored["settings"])
    )
    runs, failed, turns_read = list[tuple[int, CellRun]](), dict[str, str](), set[tuple[str, int, bool]]()
    for folder in find_folders_of_group(archive.root, name):
        try:
            summary = read_summary(folder)
        except RecordError:
            continue  # removed meanwhile
        placement = find_placement(summary)
        if placement is None:
            continue  # in the group, but not in the experiment: a retest
        if summary.status == "done":
            run = _make_cell_run(placement, summary)
            if (run.cell, run.repeat, run.warm_up) not in turns_read:  # two runners may have run at once
                runs.append((int(placement["number"]), run))
            turns_read.add((run.cell, run.repeat, run.warm_up))
        else:
            failed[str(placement["cell"])] = str(summary.document.get("text") or f"{summary.id}: {summary.status}")
    return Results(
        experiment,
        name,
        tuple(run for _, run in sorted(runs, key=lambda numbered: numbered[0])),
        dict(stored.get("refusals", {})),
        failed,
        dict(stored.get("directories", {})),
        str(stored["profile"]),
        bool(stored.get("simulated")),
        locate_group_folder(archive.root, name),
        _read_system_name(stored),
        tuple(str(setting) for setting in stored["settings"]),
    )


def _read_system_name(stored_request: Mapping[str, Any]) -> str:
    locations = stored_request.get("where")
    return str(locations.get("system") or "") if isinstance(locations, Mapping) else ""


def find_unfinished_run_directories(archive: Archive, run_group: str) -> list[Path]:
    """Returns the directories on the storage that killed runs of an experiment left behind."""
    from sonde.store.names import find_folders_of_group

    directories = []
    for folder in find_folders_of_group(archive.root, run_group):
        try:
            run = read_summary(folder)
        except RecordError:
            continue
        directory = Path(run.target) / f"sonde-{run.id}"
        if run.status != "done" and directory.is_dir():
            directories.append(directory)
    return directories


def find_placement(run_summary: Summary) -> Mapping[str, Any] | None:
    """Returns a run's placement in an experiment, or None. (Imported runs of other tools have a member of the same name
    with different content.)"""
    placement = run_summary.document.get(PLACEMENT_MEMBER)
    return placement if isinstance(placement, Mapping) and {"cell", "repeat", "number"} <= placement.keys() else None


def _make_cell_run(stored_placement: Mapping[str, Any], summary: Summary) -> CellRun:
    return CellRun(
        str(stored_placement["cell"]),
        dict(stored_placement["axis_values"]),
        str(stored_placement["plan"]),
        str(stored_placement["variant"]),
        int(stored_placement["repeat"]),
        bool(stored_placement["warm_up"]),
        summary.folder,
    )
