# SPDX-License-Identifier: Apache-2.0
"""Compares the arrays of all hosts: those of one level on equal drives should be alike, on whichever host they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_peer_attributes import find_group_differences, group_arrays
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedStorage
from sonde.design.layout.peer_groups import PeerGroup

_KIND = "differs from its peers"


def find_array_differences(storage_by_host: Mapping[str, ObservedStorage]) -> Iterator[LayoutFault | CheckedItem]:
    """Attributes in which an array differs from those of all hosts."""
    peers_by_role: dict[tuple[str, object], dict[str, Mapping[str, str]]] = {}
    identities: set[str] = set()
    for host, storage in storage_by_host.items():
        for group in group_arrays(storage):
            for name, attributes in group.peers.items():
                identity = storage.disks[name].settings.get("array_uuid", "")
                if identity in identities:
                    continue  # the partner of its host sees it too
                identities |= {identity} - {""}
                peers_by_role.setdefault((group.parts, group.key), {})[f"{host}: {name}"] = attributes
    groups = [PeerGroup(parts, peers, False) for (parts, _), peers in peers_by_role.items()]
    yield from find_group_differences(groups if len(storage_by_host) > 1 else (), {})


def join_array_differences(
    storage_by_host: Mapping[str, ObservedStorage], faults: Sequence[LayoutFault], differences: Sequence[LayoutFault]
) -> list[LayoutFault]:
    """The faults of all hosts with the differences between arrays of several hosts, of which each explains that two
    arrays of one host, or the targets on them, differ."""
    remaining = list(faults)
    for difference in differences:
        if any(each.kind != _KIND and _is_about(each, difference) for each in faults):
            continue
        same = [each for each in remaining if each.kind == _KIND and _is_about(each, difference)]
        targets = [each for each in remaining if each.kind == _KIND and set(each.attributes) & {"unit", "width"}
                   and difference.location in _list_devices(storage_by_host, each.location)]  # fmt: skip
        texts = [text for each in same for text in each.consequences]
        texts += [f"{each.location}: {each.problem}" for each in targets]
        remaining = [each for each in remaining if each not in (*same, *targets)]
        remaining.append(replace(difference, consequences=tuple(dict.fromkeys(texts))))
    return remaining


def _is_about(fault: LayoutFault, difference: LayoutFault) -> bool:
    return fault.covers(difference.location, difference.attributes[0])


def _list_devices(storage_by_host: Mapping[str, ObservedStorage], target_name: str) -> set[str]:
    """The devices that carry the label of a target, each after its host."""
    return {f"{host}: {disk.name}" for host, storage in storage_by_host.items() for disk in storage.disks.values()
            if disk.settings.get("fs_label") == target_name}  # fmt: skip
