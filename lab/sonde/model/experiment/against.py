# SPDX-License-Identifier: Apache-2.0
"""An experiment held against the system that it names: pools, units, targets, nodes, and what controls change."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.model.errors import SystemFileError, suggestion
from sonde.model.experiment.description import Storage
from sonde.model.experiment.experiment import Experiment
from sonde.model.system.changing import with_changes
from sonde.model.system.system import System


def contradictions(experiment: Experiment, system: System) -> list[str]:
    """One sentence for each thing that the experiment says and the system does not have; empty when they agree.

    An experiment may also run on storage that no file describes (``--on NAME=DIR``): it is the caller who knows whether
    these are errors.
    """
    return [f"{experiment.origin}: {told}" for told in dict.fromkeys(_all(experiment, system))]


def _all(experiment: Experiment, system: System) -> Iterator[str]:
    for cell in experiment.cells:
        yield from _storage(experiment.storage_of(cell), system)
    clients = experiment.file.clients
    if clients is not None and clients.group:
        try:
            system.named(clients.group)
        except SystemFileError as reason:
            yield f"clients.group: {reason}"
    for variant in experiment.file.variants:
        if variant.mount:
            yield from _unknown(f"variants.{variant.id}.mount", variant.mount, "mounts", system)
    for expectation in experiment.file.expect:
        try:
            with_changes(system, expectation.control or {})
        except SystemFileError as reason:
            yield f"expect.{expectation.id}.control: {reason}"


def _storage(storage: Storage, system: System) -> Iterator[str]:
    named = {
        "pool": [storage.pool] if storage.pool else [],
        "file_systems": storage.file_systems,
        "mounts": storage.mounts,
    }
    for member, names in named.items():
        for name in names:
            yield from _unknown(f"storage.{member}", name, "pools" if member == "pool" else member, system)
    pool = storage.pool
    if pool in system.ids("pools"):
        counted = {"units": (storage.units, len(system.units_of(pool))),
                   "targets": (storage.targets, len(system.targets_of(pool)))}  # fmt: skip
        for member, (said, count) in counted.items():
            if count and said is not None and said != count:
                yield f'storage.{member} is {said}, but pool "{pool}" of {system.id} has {count}.'


def _unknown(where: str, name: str, kind: str, system: System) -> Iterator[str]:
    known = system.ids(kind)
    if name not in known:
        near = suggestion(name, known[:2000])
        yield f'{where} names "{name}", which is none of the {kind.replace("_", " ")} of {system.id}.{near}'
