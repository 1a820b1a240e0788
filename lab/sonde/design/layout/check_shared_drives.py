# SPDX-License-Identifier: Apache-2.0
"""Joins the faults that several hosts have of one drive which all of them see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import read_identity
from sonde.design.layout.live.observations import ObservedStorage

# What the drive itself has, on whichever host it is read; the settings of a queue are those of each host.
_DRIVE_ATTRIBUTES = frozenset({
    "write_cache", "error_recovery", "zoned", "physical_block_size", "logical_block_size", "flash", "size",
})  # fmt: skip
_DIFFERS_FROM_PEERS = "differs from its peers"


def join_faults_of_shared_drives(
    storage_by_host: Mapping[str, ObservedStorage], faults: Sequence[LayoutFault]
) -> list[LayoutFault]:
    """The faults, where one host's difference between peers is a consequence of the fault of the same drives that
    another host has: in an array that the other host runs, or between other peers."""
    identities = [_list_identities(storage_by_host, fault) for fault in faults]
    causes: dict[tuple[frozenset[str], str], int] = {}
    for is_difference in (False, True):
        for number, fault in enumerate(faults):
            if (fault.kind == _DIFFERS_FROM_PEERS) == is_difference and identities[number]:
                for attribute in _DRIVE_ATTRIBUTES & set(fault.attributes):
                    causes.setdefault((identities[number], attribute), number)
    remaining = dict(enumerate(faults))
    for number, fault in enumerate(faults):
        keys = [(identities[number], attribute) for attribute in fault.attributes]
        cause = next((causes[key] for key in keys if causes.get(key, number) != number), None)
        if cause is not None and fault.kind == _DIFFERS_FROM_PEERS and cause in remaining:
            text = f"{fault.location}: {fault.problem} (the same drive)"
            consequences = (*remaining[cause].consequences, text)
            remaining[cause] = replace(remaining[cause], consequences=consequences)
            del remaining[number]
    return list(remaining.values())


def _list_identities(storage_by_host: Mapping[str, ObservedStorage], fault: LayoutFault) -> frozenset[str]:
    """The identities of the drives that a fault is about; empty where one of its parts has none."""
    identities = set()
    for part in fault.parts or (fault.location,):
        host, _, name = part.partition(": ")
        storage = storage_by_host.get(host, ObservedStorage())
        disk = storage.disks.get(name)
        identity = read_identity(disk, storage.disks) if disk is not None and disk.kind != "md" else ""
        if not identity:
            return frozenset()
        identities.add(identity)
    return frozenset(identities)
