# SPDX-License-Identifier: Apache-2.0
"""Executes runs of an experiment on a simulated machine.

Before each run, the clients and storage of the cell are written into the system file: the part that holds the files,
the nodes that make calls, and the stripe count of files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sonde.conduct.run import RunResult, RunSetup, conduct_run
from sonde.experiments.executor import RunAttempt, StoppableExecutor
from sonde.experiments.member_use import find_unused_members
from sonde.experiments.results import PLACEMENT_MEMBER
from sonde.launch.session import LineObserver
from sonde.launch.simulator import SimulatedLauncher
from sonde.model.confined_files import write_file
from sonde.model.errors import UserError
from sonde.model.experiment.description import Clients, Storage, Variant
from sonde.model.plan import Plan
from sonde.model.record import RecordReader
from sonde.model.system import System
from sonde.model.system.changes import apply_changes
from sonde.model.system.index import PartItem

# Roles of the nodes that make the calls. A forwarded call begins on a compute node.
_NODE_ROLES: Mapping[str, str] = {
    "compute": "compute",
    "forwarded": "compute",
    "service": "service",
    "server": "system",
}


@dataclass
class SimulatedExecutor(StoppableExecutor):
    """Runs the simulator, with a different seed for each run."""

    launcher: SimulatedLauncher
    system: System
    begin: Callable[[RunAttempt], None] = lambda attempt: None
    simulated: bool = True
    part_names: Mapping[str, str] = field(default_factory=dict)  # name in the experiment -> part of the system
    # Changes of the system file by variant id; they replace the commands of a real machine.
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _system_files: dict[str, Path] = field(default_factory=dict, init=False)

    def execute(self, attempt: RunAttempt) -> RunResult:
        if attempt.variant is not None:
            self._require_simulated_variant(attempt.variant)
        placement = attempt.facts.get(PLACEMENT_MEMBER) or {}
        part = (
            find_system_part(self.system, placement.get("axis_values") or {}, attempt.storage, self.part_names)
            or self.launcher.mount
        )
        changes = compute_system_changes(self.system, part, attempt.clients, attempt.storage)
        if attempt.variant is not None:
            changes.update(self.variants.get(attempt.variant.id, {}))
        launcher = replace(
            self.launcher,
            seed=self.launcher.seed + int(placement.get("number", 0)),
            mount=part,
            system=self._write_changed_system(changes),
        )
        clients = attempt.clients
        if clients.nodes:
            launcher = replace(launcher, nodes=min(clients.nodes, attempt.plan.processes))
        self.begin(attempt)
        setup = replace(self.setup, system=self.system)

        def find_unused_plan_members(record: RecordReader) -> list[dict[str, Any]]:
            return find_unused_members(
                clients, attempt.storage, record, attempt.plan, self.system, attempt.swept, is_simulated=True
            )

        # The directory that the runner prepared is on this machine, and nothing is written there.
        plan = attempt.plan.with_settings([f"target.path={json.dumps(find_mount_path(self.system, part))}"])
        return run_plan_in_simulator(
            plan, setup, self.observer, launcher, attempt.name, attempt.facts, find_unused_plan_members
        )

    def _require_simulated_variant(self, variant: Variant) -> None:
        """Raises UserError for a variant that the simulator cannot represent: both sides would be the same run."""
        if variant.iobuf or variant.engine or variant.environment:
            raise UserError(
                f"The variant {variant.id} runs a real program otherwise (iobuf, engine or environment), which a"
                f" model of a machine does not know."
            )
        if (variant.before or variant.after) and variant.id not in self.variants:
            raise UserError(
                f"The variant {variant.id} is set up by a command, which a model of a machine does not know:"
                f" simulate a plan on two system files instead."
            )

    def _write_changed_system(self, value_by_path: Mapping[str, Any]) -> Path:
        """Returns the system file with the changes applied; each set of changes is written once."""
        if not value_by_path:
            return self.launcher.system
        key = repr(sorted(value_by_path.items()))
        if key not in self._system_files:
            path = self.launcher.system.with_name(f"system-{len(self._system_files) + 1}.json")
            write_file(path, apply_changes(self.system, value_by_path).to_json())
            self._system_files[key] = path
        return self._system_files[key]


def run_plan_in_simulator(
    plan: Plan,
    setup: RunSetup,
    observer: LineObserver,
    launcher: SimulatedLauncher,
    run_name: str | None = None,
    extra_run_facts: Mapping[str, Any] | None = None,
    inspect_record: Callable[[RecordReader], Sequence[Mapping[str, Any]]] = lambda record: (),
) -> RunResult:
    """Runs one plan on the launcher's machine and stores the run. Raises UserError if nothing was simulated."""
    simulated_facts = {"simulated": {"mount": launcher.mount, "seed": launcher.seed, "faults": list(launcher.faults)}}
    with_launcher = replace(setup, launcher=launcher)
    return conduct_run(
        _remove_separate_phase_processes(plan),
        with_launcher,
        observer,
        run_name,
        {**simulated_facts, **(extra_run_facts or {})},
        inspect_record,
    )


def compute_system_changes(system: System, mount_or_pool_id: str, clients: Clients, storage: Storage) -> dict[str, Any]:
    """Returns the system changes for the clients and storage of a cell.

    `mount_or_pool_id` is the cell's pool, mount or file system; empty: the first mount with storage.
    """
    changes: dict[str, Any] = {}
    mount = _find_mount(system, mount_or_pool_id)
    if mount and (nodes := _list_calling_nodes(system, mount, clients)):
        changes[f"mounts.{mount}.on"] = nodes
    file_system = _find_file_system(system, mount) if mount else mount_or_pool_id
    if (
        file_system in system.list_part_ids("file_systems")
        and getattr(system.get_part(file_system).table, "kind", "") == "lustre"
    ):
        if storage.stripe_count is not None:
            owner = mount_or_pool_id if mount_or_pool_id in system.list_part_ids("pools") else file_system
            target_count = len(system.find_targets(owner, "ost") or system.find_targets(owner))
            count = target_count if storage.stripe_count == "all" else int(storage.stripe_count)
            changes[f"file_systems.{file_system}.stripe.count"] = count
        if storage.stripe_size is not None:
            changes[f"file_systems.{file_system}.stripe.size"] = f"{int(storage.stripe_size)} B"
    return changes


def find_mount_path(system: System, mount_or_pool_id: str) -> str:
    """Returns the path of the mount that the simulator uses: that of a pool or file system, the mount itself, or the
    first one with storage where none is stated."""
    mount = _find_mount(system, mount_or_pool_id)
    return str(getattr(system.get_part(mount).table, "path", "") or "/") if mount else "/"


def _find_mount(system: System, mount_or_pool_id: str) -> str:
    """Returns the mount that the simulator uses; empty if there is none."""
    mounts = system.list_part_ids("mounts")
    if mount_or_pool_id in mounts:
        return mount_or_pool_id
    if not mount_or_pool_id:
        return next((mount for mount in mounts if _has_storage(system, _find_file_system(system, mount))), "")
    owner = (
        _find_file_system(system, mount_or_pool_id)
        if mount_or_pool_id in system.list_part_ids("pools")
        else mount_or_pool_id
    )
    return next((mount for mount in mounts if _find_file_system(system, mount) == owner), "")


def _find_file_system(system: System, mount_or_pool_id: str) -> str:
    """Returns the file system of a mount or pool; empty if it has none."""
    return system.find_first_reference(mount_or_pool_id, "file_system") or ""


def _has_storage(system: System, file_system: str) -> bool:
    return bool(system.find_references(file_system, "device") or system.find_targets(file_system))


def _list_calling_nodes(system: System, mount_id: str, clients: Clients) -> list[str]:
    """Returns the nodes of the mount that make the calls; empty for all."""
    mounted_nodes = list(dict.fromkeys(system.find_references(mount_id, "on")))
    if clients.group:
        chosen = set(system.resolve_names(clients.group))
    elif clients.origin:
        role = _NODE_ROLES[clients.origin]
        chosen = {
            node for node in mounted_nodes if (getattr(system.get_part(node).table, "role", "") or "compute") == role
        }
    else:
        return []
    calling = [node for node in mounted_nodes if node in chosen]
    return calling if len(calling) < len(mounted_nodes) else []


def find_system_part(
    system: System, axis_values: Mapping[str, Any], storage: Storage, part_names: Mapping[str, str]
) -> str:
    """Returns the pool, mount or file system of a cell. `part_names` maps names of the experiment to parts of the
    system. Empty if the system has no such part."""
    part_ids = {name for kind in ("pools", "mounts", "file_systems") for name in system.list_part_ids(kind)}
    candidates = [str(axis_values[axis]) for axis in ("pool", "mount", "file_system") if axis in axis_values]
    candidates += [storage.pool, *storage.mounts[:1], *storage.file_systems[:1]]
    candidates = [part_names.get(name, name) for name in candidates]
    return next((name for name in candidates if name in part_ids), "") or _find_by_purpose(system, storage)


def _find_by_purpose(system: System, storage: Storage) -> str:
    """Returns the first file system with the requested purpose, number of LUNs and data width; else empty."""
    if not storage.purpose:
        return ""
    for file_system in system.list_part_ids("file_systems"):
        luns = list(_iterate_luns(system, system.find_references(file_system, "device")))
        groups = [
            system.get_part(name).table
            for item in luns
            for name in system.index.find_part_references(item, "raid_group")
        ]
        if (
            luns
            and all(getattr(item.table, "purpose", "") == storage.purpose for item in luns)
            and storage.units in (None, len(luns))
            and all(storage.data_width in (None, int(getattr(item, "data", 0) or 0)) for item in groups)
        ):
            return file_system
    return ""


def _iterate_luns(system: System, device_ids: Sequence[str]) -> Iterator[PartItem]:
    """Yields the LUNs of volumes, slices and LUNs."""
    for device in device_ids:
        item = system.get_part(device)
        if item.kind == "luns":
            yield item
        elif item.kind in ("volumes", "slices"):
            yield from _iterate_luns(
                system, system.index.find_part_references(item, "members" if item.kind == "volumes" else "on")
            )


def _remove_separate_phase_processes(plan: Plan) -> Plan:
    """Returns the plan without separate processes for phases: a model keeps no state in process memory."""
    phases = [
        {key: value for key, value in phase.items() if key != "process"} for phase in plan.document.get("phases", [])
    ]
    return Plan.from_document({**plan.document, "phases": phases}, plan.origin)
