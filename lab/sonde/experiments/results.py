# SPDX-License-Identifier: Apache-2.0
"""The runs of an experiment as the archive keeps them: which run is of which cell, and what was not run.

Every run says in its run.json, under "experiment", where it belongs (`Place`); ``experiments/GROUP/experiment.json``
says what was asked. Both are there from the first run on, so results can be read while the experiment still runs, and
after it was broken off.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sonde.model.errors import RecordError
from sonde.model.experiment import Experiment, experiment_from_document, with_settings
from sonde.model.settings import read_setting
from sonde.store.archive import Archive
from sonde.store.groups import folder_of_group, read_group
from sonde.store.summary import Summary, read_summary

FACTS = "experiment"  # member of run.json
Scalar = str | int | float | bool


@dataclass(frozen=True)
class Place:
    """Where a run belongs in its experiment: what run.json says under "experiment"."""

    id: str  # of the experiment
    hash: str  # of what was asked: `hash_of`
    cell: str
    at: Mapping[str, Any]  # axis -> value
    plan: str
    variant: str
    repeat: int
    warm_up: bool
    profile: str
    seed: int
    number: int  # how many runs of the experiment began before it
    simulated: bool = False

    def facts(self) -> dict[str, Any]:
        """As run.json has it."""
        return {FACTS: asdict(self)}


@dataclass(frozen=True)
class CellRun:
    """One run of one cell that ended well."""

    cell: str  # cell.id
    at: Mapping[str, Scalar]  # axis -> value
    plan: str  # id of the plan within the experiment; "" when it has only one
    variant: str  # "" when the experiment has no variants
    repeat: int  # from 0; warm-ups are counted by themselves
    warm_up: bool
    folder: Path  # of the run in the archive: run.json, record.ndjson, tables


@dataclass(frozen=True)
class Results:
    """An experiment and its runs."""

    experiment: Experiment  # as it was run: with its profile and settings
    group: str  # name of the group of runs in the archive
    runs: tuple[CellRun, ...]  # in the order they were run; only those that ended well
    refused: Mapping[str, str]  # cell id -> one sentence why it was not run
    failed: Mapping[str, str] = field(default_factory=dict)  # cell id -> what its last failed run said
    directories: Mapping[str, str] = field(default_factory=dict)  # cell id -> directory that was measured
    profile: str = ""
    simulated: bool = False
    folder: Path = Path()  # in the archive, for what belongs to all runs: experiment.json, the page

    def of_cell(self, cell: str, warm_up: bool = False) -> tuple[CellRun, ...]:
        """Runs of one cell, in their order; the warm-ups only when they are asked for."""
        return tuple(one for one in self.runs if one.cell == cell and one.warm_up == warm_up)


def hash_of(experiment: Experiment) -> str:
    """What tells experiments apart: 16 hex digits of what was asked, with profile and settings."""
    text = json.dumps(experiment.document, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def asked(document: Mapping[str, Any], origin: str, profile: str, settings: Sequence[str]) -> Experiment:
    """The experiment in a document whose plans are read already, with its profile and ``path=value`` settings."""
    experiment = experiment_from_document(document, origin, profile)
    changes = {".".join(steps): value for steps, value in (read_setting(one) for one in settings)}
    if not changes:
        return experiment
    return with_settings(experiment, changes, experiment_from_document(document, origin))


def read_results(archive: Archive, group: str) -> Results:
    """Results of an experiment: by the name of its group, a unique beginning of it, or "last". Raises UserError."""
    from sonde.store.names import folders_of_group  # pyarrow takes long to import

    kept = read_group(archive.root, group)
    name = str(kept["group"])
    experiment = asked(kept["document"], str(kept["origin"]), str(kept["profile"]), list(kept["settings"]))
    runs, failed, seen = list[tuple[int, CellRun]](), dict[str, str](), set[tuple[str, int, bool]]()
    for folder in folders_of_group(archive.root, name):
        try:
            summary = read_summary(folder)
        except RecordError:
            continue  # removed meanwhile
        place = place_of(summary)
        if place is None:
            continue  # of the same group, but not of the experiment: a retest
        if summary.status == "done":
            run = _run(place, summary)
            if (run.cell, run.repeat, run.warm_up) not in seen:  # two runners at once, against all advice
                runs.append((int(place["number"]), run))
            seen.add((run.cell, run.repeat, run.warm_up))
        else:
            failed[str(place["cell"])] = str(summary.document.get("text") or f"{summary.id}: {summary.status}")
    return Results(
        experiment,
        name,
        tuple(run for _, run in sorted(runs, key=lambda one: one[0])),
        dict(kept.get("refused", {})),
        failed,
        dict(kept.get("directories", {})),
        str(kept["profile"]),
        bool(kept.get("simulated")),
        folder_of_group(archive.root, name),
    )


def remains(archive: Archive, group: str) -> list[Path]:
    """Directories that runs of an experiment left on the storage because they, or what started them, were killed."""
    from sonde.store.names import folders_of_group

    found = []
    for folder in folders_of_group(archive.root, group):
        try:
            run = read_summary(folder)
        except RecordError:
            continue
        left = Path(run.target) / f"sonde-{run.id}"
        if run.status != "done" and left.is_dir():
            found.append(left)
    return found


def place_of(run: Summary) -> Mapping[str, Any] | None:
    """What a run says about its place in an experiment; None where it says nothing. (Runs of other tools have a member
    of that name, too, that says what makes them another experiment.)"""
    place = run.document.get(FACTS)
    return place if isinstance(place, Mapping) and {"cell", "repeat", "number"} <= place.keys() else None


def _run(place: Mapping[str, Any], summary: Summary) -> CellRun:
    return CellRun(
        str(place["cell"]),
        dict(place["at"]),
        str(place["plan"]),
        str(place["variant"]),
        int(place["repeat"]),
        bool(place["warm_up"]),
        summary.folder,
    )
