# SPDX-License-Identifier: Apache-2.0
"""Checks by which controllers of an array the maps of a host reach their LUNs, as far as ALUA priorities show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk


def find_controller_faults(maps: Sequence[ObservedDisk]) -> Iterator[LayoutFault | CheckedItem]:
    """Maps of one product: all without paths to the same controller, or one without paths to its preferred one."""
    products = dict.fromkeys(disk.settings.get("product", "") for disk in maps)
    for product in products:
        peers = [disk for disk in maps if disk.settings.get("product", "") == product and _list_priorities(disk)]
        if len(peers) > 1:
            yield CheckedItem("controllers of the array", ", ".join(disk.name for disk in peers))
            yield from _compare_priorities(product, peers)


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
