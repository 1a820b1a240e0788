# SPDX-License-Identifier: Apache-2.0
"""What somebody asked to be run: an experiment, with its profile and settings, on certain directories.

It is kept in the archive word for word, so that it can be taken up again, and is the same again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Any

from sonde.experiments.results import asked, hash_of
from sonde.experiments.where import Where
from sonde.model.errors import UserError
from sonde.model.experiment import Experiment
from sonde.model.experiment.description import Repeat
from sonde.store.archive import Archive, new_id
from sonde.store.groups import check_group, groups, read_group

_LARGEST_SEED = 1 << 31


@dataclass(frozen=True)
class Request:
    """An experiment that is to be run, or taken up again."""

    document: Mapping[str, Any]  # as it was written, its plans read
    origin: str
    profile: str
    settings: tuple[str, ...]
    where: Where
    group: str
    seed: int
    experiment: Experiment  # of all that
    tags: tuple[str, ...] = ()
    note: str = ""
    kept: Mapping[str, Any] = field(default_factory=dict)  # what the archive has of it already

    @property
    def repeat(self) -> Repeat:
        """How often, and until when."""
        return self.experiment.file.repeat or Repeat()

    def as_kept(self) -> dict[str, Any]:
        """For the archive."""
        return {
            "hash": hash_of(self.experiment),
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
                "default": self.where.default,
                "named": dict(self.where.named),
                "pools": {name: list(listed) for name, listed in self.where.pools.items()},
                "system": self.where.system,
                "launcher": self.where.launcher,
                "launcher_args": self.where.launcher_args,
            },
        }


def new_request(
    experiment: Experiment,
    profile: str,
    settings: Sequence[str],
    where: Where,
    group: str = "",
    tags: Sequence[str] = (),
    note: str = "",
) -> Request:
    """A request for `experiment`, read without its profile. Raises UserError for a wrong profile or setting."""
    document = experiment.document
    whole = asked(document, experiment.origin, profile, settings)
    repeat = whole.file.repeat or Repeat()
    seed = repeat.seed if repeat.seed is not None else SystemRandom().randrange(_LARGEST_SEED)
    name = check_group(group) if group else new_id(whole.id)
    return Request(
        document, experiment.origin, profile, tuple(settings), where, name, seed, whole, tuple(tags), note
    )  # fmt: skip


def kept_request(archive: Archive, group: str, where: Where) -> Request:
    """What the archive has of an experiment, to take it up again; `where` is taken from there if nothing is said."""
    kept = read_group(archive.root, group)
    settings = tuple(str(one) for one in kept["settings"])
    whole = asked(kept["document"], str(kept["origin"]), str(kept["profile"]), settings)
    return Request(
        kept["document"],
        str(kept["origin"]),
        str(kept["profile"]),
        settings,
        where if where.said else _where(kept.get("where", {})),
        str(kept["group"]),
        int(kept["seed"]),
        whole,
        tuple(kept.get("tags", ())),
        str(kept.get("note", "")),
        kept,
    )


def _where(kept: Mapping[str, Any]) -> Where:
    """Earlier archives have one directory of a pool, as a text."""
    pools = {name: (one,) if isinstance(one, str) else tuple(one) for name, one in kept.get("pools", {}).items()}
    return Where(**{**kept, "pools": pools})


def taken_up(archive: Archive, request: Request, must: bool) -> Request:
    """The request as the archive has it, when it is there: a group of that name, or (`must`) the last run of the same
    experiment. Raises UserError when another experiment has that name, and when there is nothing to take up."""
    wanted = hash_of(request.experiment)
    if request.group in list(groups(archive.root)):
        found = kept_request(archive, request.group, request.where)
        if hash_of(found.experiment) != wanted:
            raise UserError(
                f"The group {request.group} is there already and was run with another experiment, profile or settings;"
                " give another name."
            )
        return found
    if not must:
        return request
    for name in sorted(groups(archive.root), reverse=True):
        if read_group(archive.root, name).get("hash") == wanted:
            return kept_request(archive, name, request.where)
    raise UserError(
        f"The archive {archive.root} has no run of {request.experiment.id} with this profile and these settings; leave"
        " out --resume to begin one."
    )
