# SPDX-License-Identifier: Apache-2.0
"""Compares an experiment with the system file that it names: pools, units, targets, nodes, controls."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.model.errors import SystemFileError, suggest_close_name
from sonde.model.experiment.description import Storage
from sonde.model.experiment.experiment import Experiment
from sonde.model.system.changes import apply_changes
from sonde.model.system.system import System


def find_contradictions(experiment: Experiment, system: System) -> list[str]:
    """Returns one sentence for each part that the experiment names and the system does not have.

    An experiment may also run on storage without a system file (``--on NAME=DIR``), so the caller decides whether these
    are errors.
    """
    return [
        f"{experiment.origin}: {sentence}" for sentence in dict.fromkeys(_iterate_contradictions(experiment, system))
    ]


def _iterate_contradictions(experiment: Experiment, system: System) -> Iterator[str]:
    for cell in experiment.cells:
        yield from _check_storage(experiment.resolve_storage(cell), system)
    clients = experiment.file.clients
    if clients is not None and clients.group:
        try:
            system.resolve_names(clients.group)
        except SystemFileError as error:
            yield f"clients.group: {error}"
    for variant in experiment.file.variants:
        if variant.mount:
            yield from _check_part_name(f"variants.{variant.id}.mount", variant.mount, "mounts", system)
    for expectation in experiment.file.expect:
        try:
            apply_changes(system, expectation.control or {})
        except SystemFileError as error:
            yield f"expect.{expectation.id}.control: {error}"


def _check_storage(storage: Storage, system: System) -> Iterator[str]:
    names_by_member = {
        "pool": [storage.pool] if storage.pool else [],
        "file_systems": storage.file_systems,
        "mounts": storage.mounts,
    }
    for member, names in names_by_member.items():
        for name in names:
            yield from _check_part_name(f"storage.{member}", name, "pools" if member == "pool" else member, system)
    pool = storage.pool
    if pool in system.list_part_ids("pools"):
        counts = {"units": (storage.units, len(system.find_units(pool))),
                   "targets": (storage.targets, len(system.find_targets(pool)))}  # fmt: skip
        for member, (stated, count) in counts.items():
            if count and stated is not None and stated != count:
                yield f'storage.{member} is {stated}, but pool "{pool}" of {system.id} has {count}.'


def _check_part_name(member_path: str, part_name: str, part_kind: str, system: System) -> Iterator[str]:
    ids = system.list_part_ids(part_kind)
    if part_name not in ids:
        hint = suggest_close_name(part_name, ids[:2000])
        yield (
            f'{member_path} names "{part_name}", which is none of the {part_kind.replace("_", " ")} of '
            f"{system.id}.{hint}"
        )
