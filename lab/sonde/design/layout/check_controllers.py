# SPDX-License-Identifier: Apache-2.0
"""Checks by which controllers of an array the maps of a host reach their LUNs, as far as ALUA priorities show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk

# What the prioritizers of multipath give the states of ALUA; the preferred bit adds 80.
_ALUA_PRIORITIES = frozenset(state + preferred for state in (0, 1, 5, 10, 50) for preferred in (0, 80))
_MIN_MAPS = 2
_MIN_PEERS_OF_OWNER = 3  # two LUNs may belong to one controller by chance


def find_controller_faults(maps: Sequence[ObservedDisk]) -> Iterator[LayoutFault | CheckedItem]:
    """Maps of one product: all without paths to the same controller, or one without paths to its preferred one."""
    products = dict.fromkeys(disk.settings.get("product", "") for disk in maps)
    for product in products:
        peers = [disk for disk in maps if disk.settings.get("product", "") == product and _list_priorities(disk)]
        if len(peers) > 1:
            yield CheckedItem("controllers of the array", ", ".join(disk.name for disk in peers))
            yield from _compare_priorities(product, peers)
            yield from _find_single_owner(product, peers)
        alike = [disk for disk in maps if disk.settings.get("product", "") == product]
        yield from _find_mixed_groups(product, alike)
        yield from _compare_adapters(product, alike)


def _find_mixed_groups(product: str, maps: Sequence[ObservedDisk]) -> Iterator[LayoutFault | CheckedItem]:
    """Path groups that hold optimized and other paths: their priority is no state of ALUA, but a mean or a constant."""
    mixed: dict[str, list[ObservedDisk]] = {}
    for disk in [disk for disk in maps if "alua" in disk.settings.get("handler", "")]:
        priorities = {path.priority for path in disk.paths if not path.state.startswith("fail")}
        ready = [path for path in disk.paths if path.state == "active ready"]
        yield CheckedItem("priorities of path groups", disk.name)
        if priorities == {1} and len({path.port for path in ready}) > 1:
            mixed.setdefault("constant", []).append(disk)
        elif any(priority is not None and priority > 1 and priority not in _ALUA_PRIORITIES for priority in priorities):
            mixed.setdefault("mean", []).append(disk)
    for form, disks in mixed.items():
        reason = (
            "all of their paths have priority 1, though the array reports states of ALUA (prio const)"
            if form == "constant"
            else "a path group holds paths of several priorities (multibus), of which multipath prints the mean"
        )
        yield LayoutFault(
            "paths of both controllers in use", ", ".join(disk.name for disk in disks),
            f"{_join_names(disks)}: {reason}",
            f"requests also go to the controller of {product or 'the array'} that does not own the LUN, which passes"
            " them on, and the LUN may change its owner again and again",
            'path_grouping_policy "group_by_prio" and prio "alua" in multipath.conf, then multipathd reconfigure',
            ("path groups", "policy"), tuple(disk.name for disk in disks),
        )  # fmt: skip


def _compare_adapters(product: str, maps: Sequence[ObservedDisk]) -> Iterator[LayoutFault | CheckedItem]:
    """Adapters by which all maps have fewer paths than by another one."""
    counts = [Counter(path.adapter for path in disk.paths) for disk in maps]
    adapters = sorted(set().union(*counts))
    has_all_adapters = "" not in adapters and all(len(each) == len(adapters) for each in counts)
    if len(maps) < _MIN_MAPS or len(adapters) < 2 or not has_all_adapters:
        return
    yield CheckedItem("paths by each adapter", ", ".join(disk.name for disk in maps))
    most = max(adapters, key=lambda adapter: sum(each[adapter] for each in counts))
    ports = {adapter: sorted({path.port for disk in maps for path in disk.paths if path.adapter == adapter})
             for adapter in adapters}  # fmt: skip
    for adapter in adapters:
        if all(each[adapter] < each[most] for each in counts) and len(ports[adapter]) < len(ports[most]):
            yield LayoutFault(
                "adapter sees fewer ports", f"host{adapter}",
                f"adapter host{adapter} sees {', '.join(ports[adapter])} of {product or 'the array'}, host{most} sees"
                f" {', '.join(ports[most])}: all {len(maps)} maps ({_join_names(maps[:3])}) lack paths",
                f"the LUNs of the controller that it does not see have one adapter, and lose their good paths with"
                f" host{most}",
                f"look at the zoning of host{adapter}, the cable and the port of the array (ports of the fabric in"
                " /sys/class/fc_remote_ports), then rescan", parts=tuple(disk.name for disk in maps),
            )  # fmt: skip


def _find_single_owner(product: str, maps: Sequence[ObservedDisk]) -> Iterator[LayoutFault]:
    """Maps that all have their optimized paths on ports which no map uses otherwise: those of one controller."""
    priorities = {disk.name: _list_priorities(disk) for disk in maps}
    if len(maps) < _MIN_PEERS_OF_OWNER or any(len(each) < 2 for each in priorities.values()):
        return
    pairs = [(path.port, path.priority == priorities[disk.name][0]) for disk in maps for path in disk.paths]
    optimized = {port for port, is_optimized in pairs if is_optimized}
    others = {port for port, is_optimized in pairs if not is_optimized}
    if "" not in optimized | others and not optimized & others:
        yield LayoutFault(
            "one controller owns all disks", ", ".join(disk.name for disk in maps),
            f"the optimized paths of all {len(maps)} LUNs of {product or 'the array'} lead to the same ports"
            f" ({', '.join(sorted(optimized))}): one controller owns all of them, and the one behind"
            f" {', '.join(sorted(others))} has nothing to do",
            "all requests go through the processors, cache and ports of one controller: half of the rate of the array",
            "let the array give each LUN back to its preferred controller; if all prefer the same one, give every"
            " second LUN to the other", ("controller",), tuple(disk.name for disk in maps),
        )  # fmt: skip


def _list_priorities(disk: ObservedDisk) -> list[int]:
    """The priorities of the usable paths of a map with ALUA, each once, the best first."""
    if "alua" not in disk.settings.get("handler", ""):
        return []
    return sorted({path.priority for path in disk.paths if path.priority and not path.state.startswith("fail")},
                  reverse=True)  # fmt: skip


def _join_names(disks: Sequence[ObservedDisk]) -> str:
    return ", ".join(disk.settings.get("name") or disk.name for disk in disks)


def _compare_priorities(product: str, maps: Sequence[ObservedDisk]) -> Iterator[LayoutFault]:
    priorities = {disk.name: _list_priorities(disk) for disk in maps}
    best = max(each[0] for each in priorities.values())
    remote = [disk for disk in maps if priorities[disk.name][0] < best]
    near = [disk for disk in maps if disk not in remote]
    if remote and all(len(each) == 1 for each in priorities.values()):
        yield LayoutFault(
            "one controller for all disks", ", ".join(disk.name for disk in maps),
            f"no LUN of {product or 'the array'} has paths to both controllers: {_join_names(near)} have paths of"
            f" priority {best} only, {_join_names(remote)} of {priorities[remote[0].name][0]}",
            f"{_join_names(remote)} run over the controller that does not own them, and the next failure of a"
            " controller stops all",
            "look at the other controller (is it up?), at its ports and at the zoning, then rescan",
            parts=tuple(disk.name for disk in maps),
        )  # fmt: skip
        return
    for disk in remote:
        yield LayoutFault(
            "on alternate paths", disk.name,
            f"its paths have priority {priorities[disk.name][0]} at most; other LUNs of {product or 'the array'} have"
            f" paths of {best}", "it runs over the controller that does not own it",
            "look at the ports of the other controller, the zoning and the mapping of this LUN, then rescan",
        )  # fmt: skip
