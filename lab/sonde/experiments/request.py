# SPDX-License-Identifier: Apache-2.0
"""Requests to run an experiment, with profile, settings and directories.

The archive stores each request completely, so that it can be resumed unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Any

from sonde.experiments.locations import RunLocations
from sonde.experiments.results import build_experiment, hash_experiment
from sonde.model.errors import UserError
from sonde.model.experiment import Experiment
from sonde.model.experiment.description import RunSchedule
from sonde.store.archive import Archive, make_run_id
from sonde.store.groups import check_group_name, iterate_group_names, read_group_request

_LARGEST_SEED = 1 << 31


@dataclass(frozen=True)
class ExperimentRequest:
    """A request to run or resume an experiment."""

    document: Mapping[str, Any]  # of the file, with its plans included
    origin: str
    profile: str
    settings: tuple[str, ...]
    locations: RunLocations
    group: str
    seed: int
    experiment: Experiment  # with profile and settings applied
    tags: tuple[str, ...] = ()
    note: str = ""
    stored: Mapping[str, Any] = field(default_factory=dict)  # what the archive stores of it

    @property
    def repeat_rules(self) -> RunSchedule:
        """The repeat rules of the experiment."""
        return self.experiment.file.repeat or RunSchedule()

    def to_json(self) -> dict[str, Any]:
        """Returns the form that the archive stores."""
        return {
            "hash": hash_experiment(self.experiment),
            "id": self.experiment.id,
            "title": self.experiment.title,
            "document": self.document,
            "origin": self.origin,
            "profile": self.profile,
            "settings": list(self.settings),
            "seed": self.seed,
            "tags": list(self.tags),
            "note": self.note,
            "where": {
                "default": self.locations.default,
                "by_name": dict(self.locations.by_name),
                "pools": {name: list(directories) for name, directories in self.locations.pools.items()},
                "system": self.locations.system,
                "launcher": self.locations.launcher,
                "launcher_args": self.locations.launcher_args,
            },
        }


def create_request(
    experiment: Experiment,
    profile: str,
    setting_texts: Sequence[str],
    locations: RunLocations,
    run_group: str = "",
    tags: Sequence[str] = (),
    note: str = "",
) -> ExperimentRequest:
    """Returns a new request for `experiment`, read without a profile. Raises UserError for a bad profile or setting."""
    document = experiment.document
    experiment_as_run = build_experiment(document, experiment.origin, profile, setting_texts)
    repeat = experiment_as_run.file.repeat or RunSchedule()
    seed = repeat.seed if repeat.seed is not None else SystemRandom().randrange(_LARGEST_SEED)
    group_name = check_group_name(run_group) if run_group else make_run_id(experiment_as_run.id)
    return ExperimentRequest(
        document,
        experiment.origin,
        profile,
        tuple(setting_texts),
        locations,
        group_name,
        seed,
        experiment_as_run,
        tuple(tags),
        note,
    )


def read_stored_request(archive: Archive, run_group: str, locations: RunLocations) -> ExperimentRequest:
    """Reads a request from the archive to resume it; its stored locations are used if `locations` is empty."""
    stored = read_group_request(archive.root, run_group)
    settings = tuple(str(setting) for setting in stored["settings"])
    experiment = build_experiment(stored["document"], str(stored["origin"]), str(stored["profile"]), settings)
    return ExperimentRequest(
        stored["document"],
        str(stored["origin"]),
        str(stored["profile"]),
        settings,
        locations if locations.is_given else _parse_locations(stored.get("where", {})),
        str(stored["group"]),
        int(stored["seed"]),
        experiment,
        tuple(stored.get("tags", ())),
        str(stored.get("note", "")),
        stored,
    )


def _parse_locations(stored_members: Mapping[str, Any]) -> RunLocations:
    """Earlier archives have one directory of a pool, as a text."""
    pools = {
        name: (directories,) if isinstance(directories, str) else tuple(directories)
        for name, directories in stored_members.get("pools", {}).items()
    }
    return RunLocations(**{**stored_members, "pools": pools})


def resume_request(archive: Archive, request: ExperimentRequest, is_required: bool) -> ExperimentRequest:
    """Returns the stored request of that group name if there is one, or (`is_required`) the latest stored request of
    the same experiment. Raises UserError if another experiment has the name, or if a required request does not exist.
    """
    experiment_hash = hash_experiment(request.experiment)
    if request.group in list(iterate_group_names(archive.root)):
        stored_request = read_stored_request(archive, request.group, request.locations)
        if hash_experiment(stored_request.experiment) != experiment_hash:
            raise UserError(
                f"The group {request.group} is there already and was run with another experiment, profile or"
                f" settings; give another name."
            )
        return stored_request
    if not is_required:
        return request
    for name in sorted(iterate_group_names(archive.root), reverse=True):
        if read_group_request(archive.root, name).get("hash") == experiment_hash:
            return read_stored_request(archive, name, request.locations)
    raise UserError(
        f"The archive {archive.root} has no run of {request.experiment.id} with this profile and these settings;"
        f" leave out --resume to begin one."
    )
