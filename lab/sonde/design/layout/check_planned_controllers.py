# SPDX-License-Identifier: Apache-2.0
"""Compares the controllers that own LUNs, as ALUA priorities show them, with the planned ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.device_identity import is_planned_device
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

_MOST_CONTROLLERS = 6  # of one array; more are several arrays
_COST = "one controller carries more than planned, and the other one less"
_REMEDY = (
    "look why it moved (failed paths, a restart of the controller), then let the array give each LUN back to its"
    " preferred controller; failback immediate and group_by_prio in multipath.conf keep hosts from moving it"
)


def find_planned_controller_faults(
    observed_storage: ObservedStorage, planned_layout: FileSystemLayout
) -> Iterator[LayoutFault | CheckedItem]:
    """LUNs whose optimized paths lead to another controller than planned. Which ports belong to which controller
    follows from the LUNs: ports by which one LUN has optimized paths are of one controller."""
    planned = _pair_maps_with_controllers(observed_storage, planned_layout)
    ports = {name: frozenset(_list_optimized_ports(observed_storage.disks[name])) for name in planned}
    planned = {name: controller for name, controller in planned.items() if ports[name]}
    owners = _group_by_owner(ports[name] for name in planned)
    observed = {name: next(number for number, owner in enumerate(owners) if ports[name] <= owner) for name in planned}
    controllers = sorted(set(planned.values()))
    if len(planned) < 2 or not 2 <= max(len(controllers), len(owners)) <= _MOST_CONTROLLERS:
        return
    yield CheckedItem("the planned controllers of LUNs", ", ".join(planned))
    titles = {name: observed_storage.disks[name].settings.get("name") or name for name in planned}
    if len(owners) == 1:
        yield LayoutFault(
            "not as planned", ", ".join(planned),
            f"one controller owns all of {', '.join(titles.values())}; planned are {', '.join(controllers)}",
            _COST, _REMEDY, ("controller",), tuple(planned), planned=", ".join(controllers),
        )  # fmt: skip
        return
    moved = _list_moved(planned, observed, controllers, len(owners))
    for name in moved or ():
        peers = [titles[other] for other in planned if observed[other] == observed[name] and other not in (moved or ())]
        yield LayoutFault(
            "not as planned", name,
            f"the optimized paths of {titles[name]} lead to the controller of {', '.join(peers) or 'no other LUN'};"
            f" planned is {planned[name]}", _COST, _REMEDY, ("controller",), planned=planned[name],
        )  # fmt: skip
    for controller in controllers if moved is None else ():
        names = [name for name in planned if planned[name] == controller]
        if len({observed[name] for name in names}) > 1:
            yield LayoutFault(
                "not as planned", ", ".join(names),
                f"the optimized paths of {', '.join(titles[name] for name in names)} lead to different controllers;"
                f" planned is {controller} for all", _COST, _REMEDY, ("controller",), tuple(names), planned=controller,
            )  # fmt: skip


def _pair_maps_with_controllers(observed_storage: ObservedStorage, planned_layout: FileSystemLayout) -> dict[str, str]:
    """The planned controller of each map that is a planned LUN."""
    controllers = {device.device_label: device.controller for base in planned_layout.all_devices
                   for device in base.iterate_top_down()
                   if device.kind == "luns" and device.controller and device.device_label.startswith("/")}  # fmt: skip
    maps = [disk for disk in observed_storage.disks.values() if disk.kind == "multipath" and disk.paths]
    return {disk.name: controller for disk in maps for path, controller in controllers.items()
            if is_planned_device(observed_storage, path, disk)}  # fmt: skip


def _list_optimized_ports(disk: ObservedDisk) -> list[str]:
    """The ports of the paths with the best state of ALUA, where usable paths have several states."""
    usable = [path for path in disk.paths if path.priority and path.port and path.state == "active ready"]
    best = max((path.priority or 0 for path in usable), default=0)
    has_states = "alua" in disk.settings.get("handler", "") and len({path.priority for path in usable}) > 1
    return [path.port for path in usable if path.priority == best] if has_states else []


def _group_by_owner(port_sets: Iterator[frozenset[str]]) -> list[frozenset[str]]:
    """The ports of each controller: sets that share a port are of one."""
    owners: list[frozenset[str]] = []
    for ports in port_sets:
        joined = [owner for owner in owners if owner & ports]
        owners = [owner for owner in owners if owner not in joined] + [ports.union(*joined)]
    return owners


def _list_moved(
    planned: Mapping[str, str], observed: Mapping[str, int], controllers: Sequence[str], owner_count: int
) -> list[str] | None:
    """The maps that are elsewhere by the assignment of owners to controllers that most maps agree with; None where
    several assignments are equally good."""
    counts = Counter((planned[name], observed[name]) for name in planned)
    size = max(len(controllers), owner_count)
    choices = {order: sum(counts[controller, order[number]] for number, controller in enumerate(controllers))
               for order in permutations(range(size), len(controllers))}  # fmt: skip
    best = [order for order, count in choices.items() if count == max(choices.values())]
    if len(best) > 1:
        return None
    owner_by_controller = dict(zip(controllers, best[0], strict=True))
    return [name for name in planned if observed[name] != owner_by_controller[planned[name]]]
