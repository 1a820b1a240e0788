# SPDX-License-Identifier: Apache-2.0
"""Fits the plan of a discriminating experiment to a machine: nodes, tasks and volumes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sonde.diagnose.description import DEFAULT_TRAITS, DiagnosisExperiment
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import NODES, TARGET_MEDIANS, TARGETS
from sonde.model.plan import Plan

_TASKS_PER_NODE = 4
# File systems that store each file, and its name, on one target that follows from the name; and tasks for each target
# there: with four files for each target few targets have none.
_UNSTRIPED_KINDS, _TASKS_PER_UNSTRIPED_TARGET = ("gluster",), 4
BYTES_PER_TARGET_MEMBER = "per_target"  # as a volume: the number of bytes for each target, over all tasks


@dataclass(frozen=True)
class ScaledExperiment:
    """An experiment with the nodes, tasks and volume for one machine. `stripe_count` is 0 for the default of
    the file system."""

    description: DiagnosisExperiment
    plan: Mapping[str, Any]
    nodes: int
    tasks: int
    stripe_count: int
    only_target: str = ""  # the storage target of all files, when they are on one

    @property
    def id(self) -> str:
        return self.description.id

    @property
    def phase_ids(self) -> tuple[str, ...]:
        """The phases whose rates are measured, in order."""
        return tuple(phase.id for phase in self.description.rate_phases)

    @property
    def operation_phases(self) -> tuple[str, ...]:
        """Measured phases whose rate counts operations."""
        return tuple(phase.id for phase in self.description.rate_phases if phase.operations)

    @property
    def vector_kinds(self) -> tuple[str, ...]:
        """Vectors that say something about single parts: each node accesses each target, and with many requests."""
        kinds = (NODES,) if self.nodes > 1 else ()
        is_even = self.stripe_count > 0 and self.description.clients == "many" and self.reads_storage
        return (*kinds, TARGETS, TARGET_MEDIANS) if is_even else kinds

    @property
    def reads_storage(self) -> bool:
        """Whether the measured phases bypass the caches of clients."""
        return all(phase.traits.get("cache") == "direct" for phase in self.description.phases)

    @property
    def vector_keys(self) -> tuple[tuple[str, str], ...]:
        """(phase, kind) of all vectors."""
        return tuple((phase, kind) for phase in self.phase_ids for kind in self.vector_kinds)

    def make_plan(self, target_directory: str) -> Plan:
        """Returns the plan for a directory of the file system."""
        return Plan.from_document(
            {**self.plan, "target": {**self.plan.get("target", {}), "path": target_directory}}, self.id
        )


def is_predictable(experiment: DiagnosisExperiment, machine: DiagnosedMachine) -> bool:
    """Whether the model predicts the experiment: it has a metadata server, which does all operations on names."""
    return machine.file_system_kind not in _UNSTRIPED_KINDS or "meta" not in (experiment.plan or {})


def scale_experiment_to_machine(experiment: DiagnosisExperiment, machine: DiagnosedMachine) -> ScaledExperiment:
    """Returns the experiment with as many nodes and tasks as the machine needs."""
    nodes = machine.count_nodes(experiment.clients)
    tasks_per_node = int(experiment.tasks_per_node or _TASKS_PER_NODE)
    is_striped = machine.file_system_kind not in _UNSTRIPED_KINDS
    if not is_striped and _has_shared_file_on_all_targets(experiment):
        experiment = _replace_shared_file(experiment)
        tasks_per_node = max(tasks_per_node, math.ceil(_TASKS_PER_UNSTRIPED_TARGET * len(machine.targets) / nodes))
    tasks = nodes * tasks_per_node
    document: dict[str, Any] = dict(experiment.plan or {})
    if "data" in document:
        data = dict(document["data"])
        access = dict(data.get("access", {}))
        if isinstance(volume := access.get("volume"), Mapping) and BYTES_PER_TARGET_MEMBER in volume:
            transfer = int(access["transfer"])
            share = int(volume[BYTES_PER_TARGET_MEMBER]) * len(machine.targets) // tasks
            access["volume"] = access["block"] = max(1, share // transfer) * transfer
        data["access"] = access
        document["data"] = data
    is_on_one = experiment.files == "one_target" and "data" in document and bool(machine.targets)
    if is_on_one:
        document["target"] = {"striping": {"count": 1, "start": _find_target_index(machine, machine.targets[0])}}
    document |= {
        "schema": "sonde-plan/2",
        "id": f"diagnose-{experiment.id}",
        "title": experiment.title,
        "tasks": {"processes": tasks},
    }
    stripe_count = (len(machine.targets) if is_striped else 1) if experiment.files == "all_targets" else 0
    only_target = machine.targets[0] if is_on_one else ""
    return ScaledExperiment(experiment, document, nodes, tasks, stripe_count, only_target)


def _has_shared_file_on_all_targets(experiment: DiagnosisExperiment) -> bool:
    files = (experiment.plan or {}).get("data", {}).get("files", {})
    return experiment.files == "all_targets" and files.get("mapping") == "shared"


def _replace_shared_file(experiment: DiagnosisExperiment) -> DiagnosisExperiment:
    """Returns the experiment with a file for each task, where the file system stores a shared file on one target."""
    plan = dict(experiment.plan or {})
    plan["data"] = {**plan["data"], "files": {**plan["data"]["files"], "mapping": "per_task"}}
    phases = tuple(replace(item, traits={**item.traits, "sharing": "per_task"}) for item in experiment.phases)
    return replace(experiment, plan=plan, phases=phases)


def _find_target_index(machine: DiagnosedMachine, target_id: str) -> int:
    return next(int(item.get("index", 0)) for item in machine.document["targets"] if item["id"] == target_id)


def combine_traits(experiment: DiagnosisExperiment, phase_id: str) -> dict[str, str]:
    """Returns all traits of a measured phase."""
    return {**DEFAULT_TRAITS, **next(item.traits for item in experiment.phases if item.id == phase_id)}


def combine_reference_traits(experiment: DiagnosisExperiment, phase_id: str) -> dict[str, str] | None:
    """Returns the traits of the other side of a contrast; None for measurements without one."""
    item = next(item for item in experiment.phases if item.id == phase_id)
    return None if item.against is None else {**combine_traits(experiment, phase_id), **item.against}
