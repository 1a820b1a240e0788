# SPDX-License-Identifier: Apache-2.0
"""Makes one fault of the findings of many drives that one host adapter has in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sonde.design.checked_items import join_first_names
from sonde.design.layout.check_peer_attributes import read_peer_attributes
from sonde.design.layout.check_planned_pools import find_vdev_disk
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedStorage
from sonde.model.units import format_count_with_noun

_MIN_DRIVES = 3
# Of the drives of a vdev, errors of more than this fraction have one cause.
_MOST_OF_VDEV = 0.7
_PATH_DIFFERENCES = ("differs from its peers", "unequal paths")
_PCI_PATTERN = re.compile(r"/dev/disk/by-path/pci-([0-9a-f:.]+)-")
_COUNT_PATTERN = re.compile(r"(\d+) (READ|WRITE|CKSUM)")


@dataclass(frozen=True)
class _Adapter:
    """A host adapter by the number of its SCSI host, with the names of its drives."""

    host: str
    drives: frozenset[str]
    address: str = ""

    @property
    def title(self) -> str:
        """The name in the kernel, with the PCI address where links show it."""
        return f"host{self.host}" + f" (PCI {self.address})" * bool(self.address)


def join_faults_of_adapters(faults: Sequence[LayoutFault], observed_storage: ObservedStorage) -> list[LayoutFault]:
    """The faults, with one in the place of those that one adapter explains: maps of which all lost one path, paths of
    one adapter that all failed, and drives of a pool or vdev that all have errors."""
    adapters = _list_adapters(observed_storage)
    joined = _join_single_paths(faults, observed_storage, adapters)
    joined = _join_failed_paths(joined, observed_storage, adapters)
    joined = _join_settings_of_paths(joined, observed_storage, adapters)
    return _join_vdev_errors(_join_pool_errors(joined, observed_storage, adapters), observed_storage)


def _list_adapters(observed_storage: ObservedStorage) -> dict[str, _Adapter]:
    drives: dict[str, set[str]] = {}
    addresses: dict[str, set[str]] = {}
    hosts = {path.name: path.adapter for disk in observed_storage.disks.values() for path in disk.paths if path.adapter}
    for disk in observed_storage.disks.values():
        host = hosts.get(disk.name, "") or disk.settings.get("hctl", "").partition(":")[0]
        if disk.kind == "disk" and host:
            drives.setdefault(host, set()).add(disk.name)
            links = disk.settings.get("links", "").split()
            addresses.setdefault(host, set()).update(match[1] for link in links if (match := _PCI_PATTERN.match(link)))
    return {host: _Adapter(host, frozenset(names), addresses[host].pop() if len(addresses[host]) == 1 else "")
            for host, names in drives.items()}  # fmt: skip


def _replace_faults(
    faults: Sequence[LayoutFault], group: Sequence[LayoutFault], joined: LayoutFault
) -> list[LayoutFault]:
    """The faults with a joined one in the place of the first of its group."""
    return [joined if fault is group[0] else fault for fault in faults if fault is group[0] or fault not in group]


def _join_single_paths(
    faults: Sequence[LayoutFault], observed_storage: ObservedStorage, adapters: Mapping[str, _Adapter]
) -> list[LayoutFault]:
    """Maps with one path, where all maps of an adapter have no other path."""
    remaining = list(faults)
    maps = {disk.name: {path.adapter for path in disk.paths} for disk in observed_storage.disks.values() if disk.paths}
    for host, adapter in adapters.items():
        map_names = [name for name, hosts in maps.items() if host in hosts]
        group = [fault for fault in remaining if fault.kind == "single path" and fault.location in map_names]
        if len(group) < _MIN_DRIVES or len(group) < len(map_names):
            continue
        names = [observed_storage.disks[name].settings.get("name") or name for name in map_names]
        remaining = _replace_faults(remaining, group, replace(
            group[0], location=", ".join(fault.location for fault in group), parts=tuple(map_names),
            problem=f"all {len(group)} maps of {adapter.title} have no other path ({join_first_names(names)})",
            cost=f"all are lost with host{host}, its cable or its side of the enclosure",
            remedy="look at the other adapter (lspci, log of the kernel), its cable and the expander or switch behind"
            " it, not at single drives; then rescan",
        ))  # fmt: skip
    return remaining


def _join_failed_paths(
    faults: Sequence[LayoutFault], observed_storage: ObservedStorage, adapters: Mapping[str, _Adapter]
) -> list[LayoutFault]:
    """Failed paths, where all paths of an adapter failed and those of another one did not."""
    remaining = list(faults)
    paths = {path.name: path.adapter for disk in observed_storage.disks.values() for path in disk.paths}
    for host, adapter in adapters.items() if len(set(paths.values())) > 1 else ():
        path_names = {name for name, path_host in paths.items() if path_host == host}
        group = [fault for fault in remaining if fault.kind == "path failed"
                 and fault.location.rpartition(" ")[2] in path_names]  # fmt: skip
        if len(group) < _MIN_DRIVES or len({fault.location for fault in group}) < len(path_names):
            continue
        parts = dict.fromkeys(part for fault in group for part in fault.location.split(" "))
        remaining = _replace_faults(remaining, group, replace(
            group[0], location=adapter.title, parts=tuple(parts),
            problem=f"all {len(path_names)} paths of {adapter.title} have failed"
            f" ({join_first_names(sorted(path_names))})",
            remedy="look at this adapter (lspci, log of the kernel), its cable and the expander or switch behind it",
        ))  # fmt: skip
    return remaining


def _join_settings_of_paths(
    faults: Sequence[LayoutFault], observed_storage: ObservedStorage, adapters: Mapping[str, _Adapter]
) -> list[LayoutFault]:
    """Differences between paths of maps, where all paths of an adapter have one value and those of others another."""
    remaining = list(faults)
    hosts = {path.name: path.adapter for disk in observed_storage.disks.values() for path in disk.paths}
    groups: dict[str, list[LayoutFault]] = {}
    for fault in remaining:
        parts = fault.parts or (fault.location,)
        if fault.kind in _PATH_DIFFERENCES and all(part in hosts for part in parts):
            groups.setdefault(fault.attributes[0], []).append(fault)
    for attribute, group in groups.items():
        values: dict[str, set[str]] = {}
        for name, host in hosts.items():
            settings = read_peer_attributes(observed_storage.disks[name]) if name in observed_storage.disks else {}
            if attribute in settings:
                values.setdefault(host, set()).add(settings[attribute])
        single = {host: next(iter(each)) for host, each in values.items() if len(each) == 1 and host in adapters}
        if len(group) < 2 or len(single) < len(values) or len(set(single.values())) < 2:
            joined = _join_settings_of_ports(group, observed_storage, attribute) if len(group) > 1 else None
            remaining = _replace_faults(remaining, group, joined) if joined is not None else remaining
            continue
        counts = Counter(single.values())
        odd = min(single, key=lambda host: (counts[single[host]], len(single[host]), single[host]))
        names = sorted(adapters[odd].drives & set(hosts))
        others = ", ".join(f"{single[host]} on those of {adapters[host].title}" for host in single if host != odd)
        remaining = _replace_faults(remaining, group, replace(
            group[0], location=f"host{odd}", parts=tuple(names),
            problem=f"{attribute} is {single[odd]} on all {len(names)} paths of {adapters[odd].title}, {others}",
            remedy=f"give both adapters the same value: parameters of the driver of host{odd} (/etc/modprobe.d), its"
            " firmware, or a udev rule",
        ))  # fmt: skip
    return remaining


def _join_settings_of_ports(
    group: Sequence[LayoutFault], observed_storage: ObservedStorage, attribute: str
) -> LayoutFault | None:
    """One fault of the paths by some ports of an array, where all paths by each port have one value; else None."""
    ports = {path.name: path.port for disk in observed_storage.disks.values() for path in disk.paths}
    values: dict[str, set[str]] = {}
    for name, port in ports.items():
        disk = observed_storage.disks.get(name)
        settings = {**disk.settings, **read_peer_attributes(disk)} if disk is not None else {}
        if settings.get(attribute):
            values.setdefault(port, set()).add(settings[attribute])
    counts = Counter(value for port_values in values.values() for value in port_values)
    if "" in values or any(len(each) > 1 for each in values.values()) or len(counts) < 2:
        return None
    common = max(counts, key=lambda value: (counts[value], value))
    odd = sorted(port for port, port_values in values.items() if common not in port_values)
    names = sorted(name for name, port in ports.items() if port in odd)
    odd_values = " and ".join(sorted({value for port in odd for value in values[port]}))
    return replace(
        group[0], location=", ".join(odd), parts=tuple(names),
        problem=f"{attribute} is {odd_values} on all {len(names)} paths by {', '.join(odd)}, {common} on those by other"
        " ports of the array",
        remedy="look at the controller with these ports, and give it the firmware and settings of the other one",
    )  # fmt: skip


def _join_pool_errors(
    faults: Sequence[LayoutFault], observed_storage: ObservedStorage, adapters: Mapping[str, _Adapter]
) -> list[LayoutFault]:
    """Drives of a pool with errors, where these are most of one adapter and none of another one."""
    remaining = list(faults)
    for pool in observed_storage.file_systems:
        names = {vdev.name: find_vdev_disk(observed_storage, vdev.name).name for vdev in pool.vdevs
                 if vdev.kind == "drive"}  # fmt: skip
        group = [fault for fault in remaining if fault.kind == "errors of a drive"
                 and fault.location.partition(" ")[0] == pool.location and fault.parts[0] in names]  # fmt: skip
        faulty = {names[fault.parts[0]] for fault in group}
        for host, adapter in adapters.items():
            pool_drives = adapter.drives & set(names.values())
            names_text = join_first_names([fault.parts[0] for fault in group])
            if (
                len(group) < _MIN_DRIVES
                or not faulty <= pool_drives
                or 2 * len(faulty) <= len(pool_drives)
                or len(pool_drives) == len(names)
            ):
                continue
            remaining = _replace_faults(remaining, group, LayoutFault(
                "errors of an adapter", f"{pool.location} host{host}",
                f"{len(faulty)} of the {format_count_with_noun(len(pool_drives), 'drive')} at {adapter.title} have"
                f" counted {_sum_error_counts(group)} errors ({names_text});"
                " no drive of another adapter has any", group[0].cost,
                "look at the adapter (firmware, memory, heat), its cable and the expander behind it, and replace no"
                " drive before; then zpool clear and zpool scrub",
                parts=tuple(fault.parts[0] for fault in group),
            ))  # fmt: skip
            break
    return remaining


def _sum_error_counts(faults: Sequence[LayoutFault]) -> str:
    """The errors of several drives by their kind: 113 CKSUM."""
    counts: dict[str, int] = {}
    for count, name in (match for fault in faults for match in _COUNT_PATTERN.findall(fault.problem)):
        counts[name] = counts.get(name, 0) + int(count)
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _join_vdev_errors(faults: Sequence[LayoutFault], observed_storage: ObservedStorage) -> list[LayoutFault]:
    """Drives of a vdev with errors, where these are all or almost all of the vdev: they fail for one cause."""
    remaining = list(faults)
    for pool in observed_storage.file_systems:
        groups = {}
        for vdev in pool.vdevs:
            names = {member.name for member in pool.list_vdev_members(vdev.name) if member.kind == "drive"}
            group = [fault for fault in remaining if fault.kind == "errors of a drive"
                     and fault.location == f"{pool.location} {fault.parts[0]}" and fault.parts[0] in names]  # fmt: skip
            if len(names) > 1 and len(group) > _MOST_OF_VDEV * len(names):
                groups[vdev.name] = (group, len(names))
        group = [fault for vdev_faults, _ in groups.values() for fault in vdev_faults]
        if group:
            total = sum(count for _, count in groups.values())
            drives_text = f"all {total}" if len(group) == total else f"{len(group)} of the {total}"
            remaining = _replace_faults(remaining, group, LayoutFault(
                "errors of a vdev", f"{pool.location} {' '.join(groups)}",
                f"{drives_text} drives of {' and '.join(groups)} have counted {_sum_error_counts(group)} errors"
                f" ({join_first_names([fault.parts[0] for fault in group])})", group[0].cost,
                "so many drives do not fail at once: look at what they have in common (cable, backplane, power supply,"
                " adapter) and at the memory of the host (its ECC errors), and replace no drive before; then zpool"
                " clear and zpool scrub",
                parts=tuple(fault.parts[0] for fault in group),
            ))  # fmt: skip
    return remaining
