# SPDX-License-Identifier: Apache-2.0
"""Runs of an experiment on a described machine: a model of it takes the place of the engine and its storage.

What an experiment says of clients and storage is put into the machine before each run: on which of its parts the files
are, which nodes make the calls, and over how many targets a file lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sonde.conduct.run import Observer, Result, Setup, conduct
from sonde.experiments.executor import Attempt, Stoppable
from sonde.experiments.results import FACTS
from sonde.launch.simulator import SimulatedLauncher
from sonde.model.errors import UserError
from sonde.model.experiment.description import Clients, Storage, Variant
from sonde.model.plan import Plan
from sonde.model.system import System
from sonde.model.system.changing import with_changes
from sonde.model.system.index import Item

# Roles of the nodes that calls come from: where a call is forwarded it begins on a compute node.
_ROLES: Mapping[str, str] = {"compute": "compute", "forwarded": "compute", "service": "service", "server": "system"}


@dataclass
class Simulated(Stoppable):
    """Lets the simulator do each run, every one with a seed of its own."""

    launcher: SimulatedLauncher
    system: System
    begin: Callable[[Attempt], None] = lambda attempt: None
    simulated: bool = True
    places: Mapping[str, str] = field(default_factory=dict)  # name in the experiment -> part of the system
    # What a variant changes about the machine, in the place of the commands that change a real one.
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _written: dict[str, Path] = field(default_factory=dict, init=False)

    def execute(self, attempt: Attempt) -> Result:
        if attempt.variant is not None:
            self._check(attempt.variant)
        place = attempt.facts.get(FACTS) or {}
        part = part_of(self.system, place.get("at") or {}, attempt.storage, self.places) or self.launcher.mount
        changes = changes_of(self.system, part, attempt.clients, attempt.storage)
        if attempt.variant is not None:
            changes.update(self.variants.get(attempt.variant.id, {}))
        launcher = replace(
            self.launcher,
            seed=self.launcher.seed + int(place.get("number", 0)),
            mount=part,
            system=self._changed(changes),
        )
        clients = attempt.clients
        if clients.nodes:
            launcher = replace(launcher, nodes=min(clients.nodes, attempt.plan.processes))
        self.begin(attempt)
        setup = replace(self.setup, described=self.system)
        return simulate(attempt.plan, setup, self.observer, launcher, attempt.name, attempt.facts)

    def _check(self, variant: Variant) -> None:
        """Raises UserError for a variant that means nothing to a model: both sides would be the same run."""
        if variant.iobuf or variant.engine or variant.environment:
            raise UserError(
                f"The variant {variant.id} runs a real program otherwise (iobuf, engine or environment), which a model"
                " of a machine does not know."
            )
        if (variant.before or variant.after) and variant.id not in self.variants:
            raise UserError(
                f"The variant {variant.id} is set up by a command, which a model of a machine does not know: simulate"
                " a plan on two system files instead."
            )

    def _changed(self, changes: Mapping[str, Any]) -> Path:
        """The file of the machine with changes, written once for each set of them."""
        if not changes:
            return self.launcher.system
        key = repr(sorted(changes.items()))
        if key not in self._written:
            path = self.launcher.system.with_name(f"system-{len(self._written) + 1}.json")
            path.write_text(with_changes(self.system, changes).to_json(), encoding="utf-8")
            self._written[key] = path
        return self._written[key]


def simulate(
    plan: Plan,
    setup: Setup,
    observer: Observer,
    launcher: SimulatedLauncher,
    name: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Result:
    """One plan on the machine of the launcher, kept as any other run. Raises UserError when nothing was simulated."""
    said = {"simulated": {"mount": launcher.mount, "seed": launcher.seed, "faults": list(launcher.faults)}}
    with_launcher = replace(setup, launcher=launcher)
    return conduct(_in_one_process(plan), with_launcher, observer, name, {**said, **(facts or {})})


def changes_of(system: System, part: str, clients: Clients, storage: Storage) -> dict[str, Any]:
    """What the clients and the storage of a cell change about the machine. `part` is the pool, mount or file system
    that the cell is on; empty: the first mount."""
    found: dict[str, Any] = {}
    mount = _mount(system, part)
    if mount and (nodes := _nodes(system, mount, clients)):
        found[f"mounts.{mount}.on"] = nodes
    place = _file_system(system, mount) if mount else part
    if place in system.ids("file_systems") and getattr(system.item(place).table, "kind", "") == "lustre":
        if storage.stripe_count is not None:
            within = part if part in system.ids("pools") else place
            every = len(system.targets_of(within, "ost") or system.targets_of(within))
            count = every if storage.stripe_count == "all" else int(storage.stripe_count)
            found[f"file_systems.{place}.stripe.count"] = count
        if storage.stripe_size is not None:
            found[f"file_systems.{place}.stripe.size"] = f"{int(storage.stripe_size)} B"
    return found


def _mount(system: System, part: str) -> str:
    """The mount of a pool or file system, or the mount itself; empty where there is none."""
    mounts = system.ids("mounts")
    if part in mounts:
        return part
    if not part:  # as the simulator takes it: the first one with storage
        return next((one for one in mounts if _has_storage(system, _file_system(system, one))), "")
    owner = _file_system(system, part) if part in system.ids("pools") else part
    return next((one for one in mounts if _file_system(system, one) == owner), "")


def _file_system(system: System, part: str) -> str:
    """The file system of a mount or a pool; empty where it has none."""
    return system.reference(part, "file_system") or ""


def _has_storage(system: System, file_system: str) -> bool:
    return bool(system.references(file_system, "device") or system.targets_of(file_system))


def _nodes(system: System, mount: str, clients: Clients) -> list[str]:
    """Nodes of the mount that make the calls; empty for all of them."""
    on = list(dict.fromkeys(system.references(mount, "on")))
    if clients.group:
        chosen = set(system.named(clients.group))
    elif clients.origin:
        wanted = _ROLES[clients.origin]
        chosen = {one for one in on if (getattr(system.item(one).table, "role", "") or "compute") == wanted}
    else:
        return []
    left = [one for one in on if one in chosen]
    return left if len(left) < len(on) else []


def part_of(system: System, at: Mapping[str, Any], storage: Storage, places: Mapping[str, str]) -> str:
    """The pool, mount or file system that a cell is on, where the system has a part of that name, or `places` says
    which part a name stands for."""
    known = {one for kind in ("pools", "mounts", "file_systems") for one in system.ids(kind)}
    named = [str(at[axis]) for axis in ("pool", "mount", "file_system") if axis in at]
    named += [storage.pool, *storage.mounts[:1], *storage.file_systems[:1]]
    named = [places.get(one, one) for one in named]
    return next((one for one in named if one in known), "") or _with_purpose(system, storage)


def _with_purpose(system: System, storage: Storage) -> str:
    """The first file system on as many LUNs as are wanted, of the purpose and the width that are wanted; else empty."""
    if not storage.purpose:
        return ""
    for file_system in system.ids("file_systems"):
        luns = list(_luns(system, system.references(file_system, "device")))
        groups = [system.item(name).table for one in luns for name in system.index.share(one, "raid_group")]
        if (
            luns
            and all(getattr(one.table, "purpose", "") == storage.purpose for one in luns)
            and storage.units in (None, len(luns))
            and all(storage.data_width in (None, int(getattr(one, "data", 0) or 0)) for one in groups)
        ):
            return file_system
    return ""


def _luns(system: System, devices: Sequence[str]) -> Iterator[Item]:
    """The LUNs below devices: volumes, slices, or LUNs themselves."""
    for device in devices:
        item = system.item(device)
        if item.kind == "luns":
            yield item
        elif item.kind in ("volumes", "slices"):
            yield from _luns(system, system.index.share(item, "members" if item.kind == "volumes" else "on"))


def _in_one_process(plan: Plan) -> Plan:
    """Processes of their own for some phases mean nothing to a model: nothing of it stays in a process's memory."""
    phases = [
        {key: value for key, value in phase.items() if key != "process"} for phase in plan.document.get("phases", [])
    ]
    return Plan.from_document({**plan.document, "phases": phases}, plan.origin)
