# SPDX-License-Identifier: Apache-2.0
"""Compares hosts that see the same LUNs: settings that all maps and paths of one host have and those of the other host
lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_components import find_component_differences
from sonde.design.layout.check_peer_attributes import ATTRIBUTE_COSTS, read_peer_attributes
from sonde.design.layout.check_shared_luns import find_differences_of_luns, find_invisible_members
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.model.units import format_count_with_noun

# Faults of one host that are about its number of paths.
_PATH_FAULTS = ("adapter sees fewer ports", "fewer paths than others", "single path", "one adapter for all paths")
# The hosts see equal LUNs in different ways, or say what a LUN holds.
_OF_THE_HOST = frozenset({"fs_kind", "members", "tran"})


def compare_hosts(
    storage_by_host: Mapping[str, ObservedStorage], reported: set[tuple[str, str]]
) -> Iterator[LayoutFault | CheckedItem]:
    """Settings and numbers of paths in which hosts with the same LUNs differ. `reported` are hosts with the attributes
    and kinds of their other faults."""
    maps = {host: {identity: disk for disk in storage.disks.values() if (identity := _read_identity(disk))}
            for host, storage in storage_by_host.items()}  # fmt: skip
    yield from find_invisible_members(storage_by_host)
    for group in _group_hosts(maps):
        yield from find_component_differences(storage_by_host, group)
        yield from find_differences_of_luns(storage_by_host, maps, group)
        shared = set.intersection(*(set(maps[host]) for host in group))
        if not any((host, kind) in reported for host in group for kind in _PATH_FAULTS):
            yield from _compare_path_counts({host: [maps[host][identity] for identity in shared] for host in group})
        for part in ("maps", "paths"):
            values = {host: _list_common_values(storage_by_host[host], maps[host], shared, part) for host in group}
            for attribute in sorted(set.intersection(*(set(each) for each in values.values()))):
                yield CheckedItem(f"{attribute} of {part} on hosts with the same LUNs", ", ".join(group))
                by_host = {host: values[host][attribute] for host in group}
                if len(set(by_host.values())) > 1 and not any((host, attribute) in reported for host in group):
                    texts = ", ".join(f"{value} on {host}" for host, value in by_host.items())
                    yield LayoutFault(
                        "hosts differ", ", ".join(group),
                        f"{attribute} of the {part} of their {len(shared)} common LUNs is {texts}",
                        ATTRIBUTE_COSTS.get(attribute, "after a failover targets behave in another way than before"),
                        "set the same on all of them (udev rule, multipath.conf)", (attribute,),
                    )  # fmt: skip


def _compare_path_counts(maps_by_host: Mapping[str, Sequence[ObservedDisk]]) -> Iterator[LayoutFault | CheckedItem]:
    """Hosts with equally many adapters, of which all maps of one have fewer paths than those of another."""
    counts = {host: {len(disk.paths) for disk in maps} for host, maps in maps_by_host.items()}
    adapters = {host: {path.adapter for disk in maps for path in disk.paths} for host, maps in maps_by_host.items()}
    if any(len(each) != 1 for each in counts.values()) or len({len(each) for each in adapters.values()}) != 1:
        return
    yield CheckedItem("numbers of paths on hosts with the same LUNs", ", ".join(counts))
    numbers = {host: next(iter(each)) for host, each in counts.items()}
    most = max(numbers, key=lambda host: numbers[host])
    fewer = [host for host in numbers if numbers[host] < numbers[most]]
    if fewer:
        texts = [f"{host} ({_describe_ports(maps_by_host[host])})" for host in fewer]
        yield LayoutFault(
            "hosts differ", ", ".join(fewer),
            f"all LUNs that it shares with {most} have {numbers[fewer[0]]} paths, and {numbers[most]} on {most}:"
            f" {', '.join(texts)}; {most} ({_describe_ports(maps_by_host[most])})",
            "each adapter lacks ports of the array: with one adapter, cable or port all paths of a controller are lost",
            f"look at the cables and the zoning of {' and '.join(fewer)}: each adapter needs the ports that those of"
            f" {most} see; then rescan", parts=tuple(fewer),
        )  # fmt: skip


def _describe_ports(maps: Sequence[ObservedDisk]) -> str:
    """The number of ports of the array that each adapter of a host sees."""
    ports: dict[str, set[str]] = {}
    for path in (path for disk in maps for path in disk.paths):
        ports.setdefault(path.adapter, set()).add(path.port)
    return ", ".join(f"host{adapter} sees {format_count_with_noun(len(ports[adapter]), 'port')}"
                     for adapter in sorted(ports))  # fmt: skip


def _read_identity(disk: ObservedDisk) -> str:
    return disk.settings.get("uuid", "").removeprefix("mpath-") if disk.kind == "multipath" and disk.paths else ""


def _group_hosts(maps: Mapping[str, Mapping[str, ObservedDisk]]) -> list[list[str]]:
    """Hosts that see mostly the same LUNs, where there are several."""
    groups: list[list[str]] = []
    for host, disks in maps.items():
        group = next((each for each in groups if 2 * len(set(maps[each[0]]) & set(disks))
                      > max(len(maps[each[0]]), len(disks))), None)  # fmt: skip
        if group is None:
            groups.append([host])
        else:
            group.append(host)
    return [group for group in groups if len(group) > 1 and set.intersection(*(set(maps[host]) for host in group))]


def _list_common_values(
    storage: ObservedStorage, maps: Mapping[str, ObservedDisk], identities: set[str], part: str
) -> dict[str, str]:
    """The attributes that all of these maps, or all of their paths, have alike on one host."""
    disks: Sequence[ObservedDisk] = [maps[identity] for identity in sorted(identities)]
    if part == "paths":
        disks = [storage.disks[path.name] for disk in disks for path in disk.paths if path.name in storage.disks]
    attributes = [read_peer_attributes(disk) for disk in disks]
    if not attributes:
        return {}
    common = set.intersection(*(set(each) for each in attributes)) - _OF_THE_HOST
    return {name: attributes[0][name] for name in common if len({each[name] for each in attributes}) == 1}
