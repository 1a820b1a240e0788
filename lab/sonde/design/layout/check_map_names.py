# SPDX-License-Identifier: Apache-2.0
"""Compares the names of multipath maps over hosts that see the same LUNs: all must have the planned ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sonde.design.layout.check_planned_devices import list_planned_targets
from sonde.design.layout.check_target_devices import list_target_labels
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import read_identity
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.design.layout.written_attributes import WrittenAttribute, group_by_command

_FOLDER = "/dev/mapper/"
_ATTRIBUTES = {"device", "controller"}


@dataclass(frozen=True)
class _OtherName:
    """A map that has another name on a host than planned: its device, the name and target of the plan, and the host
    where it has that name."""

    disk: ObservedDisk
    identity: str
    planned_name: str
    label: str
    right_host: str


def correct_map_names(
    storage_by_host: Mapping[str, ObservedStorage],
    faults: Iterable[LayoutFault],
    written: Sequence[WrittenAttribute],
) -> list[LayoutFault]:
    """The faults, where a host has the LUN of a target under another name than planned, which another host has right:
    one fault of the names in the place of those that take the name for the LUN."""
    remaining = list(faults)
    corrected = []
    for host, names in _find_other_names(storage_by_host, written).items():
        parts = {f"{host}: {part}" for each in names for part in (each.disk.name, each.label)}
        effects = [fault for fault in remaining if _is_about_names(host, parts, fault)]
        remaining = [fault for fault in remaining if fault not in effects]
        corrected.append(replace(
            _report_other_names(storage_by_host[host], host, names), parts=tuple(sorted(parts)),
            consequences=tuple(dict.fromkeys(_list_consequences(effects))),
        ))  # fmt: skip
    return [*corrected, *remaining]


def _is_about_names(host: str, parts: set[str], fault: LayoutFault) -> bool:
    own_parts = fault.parts or tuple(f"{host}: {part}" for part in fault.location.partition(": ")[2].split(", "))
    is_of_host = fault.kind == "not as planned" and fault.location.startswith(f"{host}: ")
    return is_of_host and bool(_ATTRIBUTES & set(fault.attributes)) and bool(parts & set(own_parts))


def _list_consequences(effects: Iterable[LayoutFault]) -> Iterator[str]:
    for effect in effects:
        if "controller" in effect.attributes:
            yield f"{effect.location}: {effect.problem}"
        yield from effect.consequences


def _find_other_names(
    storage_by_host: Mapping[str, ObservedStorage], written: Sequence[WrittenAttribute]
) -> dict[str, list[_OtherName]]:
    targets = list_planned_targets(group_by_command(written).values())
    maps = {host: _list_maps(storage) for host, storage in storage_by_host.items()}
    labels = {host: list_target_labels(storage) for host, storage in storage_by_host.items()}
    others: dict[str, list[_OtherName]] = {}
    for label, path in targets.items():
        planned_name = path.removeprefix(_FOLDER)
        right = {disk_identity: host for host, disks in maps.items() for disk_identity, disk in disks.items()
                 if path == _FOLDER + planned_name and disk.settings.get("name") == planned_name
                 and labels[host].get(disk.name) == label}  # fmt: skip
        for identity, right_host in right.items() if len(right) == 1 else ():
            for host, disks in maps.items():
                disk = disks.get(identity)
                if disk is not None and disk.settings.get("name") != planned_name:
                    others.setdefault(host, []).append(_OtherName(disk, identity, planned_name, label, right_host))
    return others


def _list_maps(storage: ObservedStorage) -> dict[str, ObservedDisk]:
    """The maps of a host by the WWID of their LUN."""
    return {identity: disk for disk in storage.disks.values()
            if disk.kind == "multipath" and (identity := read_identity(disk, storage.disks))}  # fmt: skip


def _report_other_names(storage: ObservedStorage, host: str, names: Sequence[_OtherName]) -> LayoutFault:
    texts = [f"{each.disk.settings.get('name') or each.disk.name} is the LUN {each.identity} with {each.label}, which"
             f" is {each.planned_name} in the plan and on {each.right_host}" for each in names]  # fmt: skip
    present = {disk.settings.get("name") for disk in storage.disks.values() if disk.kind == "multipath"}
    exchanged = ", ".join(each.label for each in names if each.planned_name in present)
    labels = ", ".join(each.label for each in names)
    return LayoutFault(
        "not as planned", f"{host}: {', '.join(each.disk.name for each in names)}",
        f"{'its map has another name' if len(names) == 1 else 'its maps have other names'} than planned:"
        f" {'; '.join(texts)}",
        f"{host} takes the device of another target for {exchanged}: after a failover the mount by this name fails, or"
        " starts another target" if exchanged
        else f"the planned name does not exist on {host}: after a failure of {names[0].right_host} {labels} cannot be"
        " mounted there",
        f"correct wwid and alias in multipath.conf of {host} (multipaths), and multipathd reconfigure while these"
        " targets are not mounted there; the LUNs, their mapping and their data are as planned", ("device",),
    )  # fmt: skip
