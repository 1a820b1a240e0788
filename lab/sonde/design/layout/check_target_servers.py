# SPDX-License-Identifier: Apache-2.0
"""Checks which servers run the planned targets of Lustre: mounted on none, on the failover server, and what the
metadata server lacks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.check_planned_devices import list_planned_targets
from sonde.design.layout.check_shared_arrays import MemberView, find_member_view
from sonde.design.layout.device_identity import is_planned_device
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.joining import read_identity
from sonde.design.layout.live.observations import ObservedStorage
from sonde.design.layout.planned_roles import read_target_name
from sonde.design.layout.written_attributes import WrittenAttribute, group_by_command

_MOST_NAMES = 3
_OBJECT_TARGET_PATTERN = re.compile(r"(\w+)-OST[0-9a-f]{4}")


def list_mounted_targets(storage: ObservedStorage) -> set[str]:
    """The names of the targets that a host has mounted."""
    mounted = [each for each in storage.file_systems if each.kind == "lustre" and each.location.startswith("/")]
    return {read_target_name(storage, each) for each in mounted if each.device.startswith("/")} - {""}


def find_server_faults(
    storage_by_host: Mapping[str, ObservedStorage], written: Sequence[WrittenAttribute]
) -> Iterator[LayoutFault | CheckedItem]:
    """Planned targets that no host has mounted although several see their device, and targets that run on the failover
    server while their own server is among the hosts."""
    commands = group_by_command(written)
    targets = list_planned_targets(commands.values())
    mounted = {host: list_mounted_targets(storage) for host, storage in storage_by_host.items()
               if any(each.options for each in storage.file_systems)}  # fmt: skip
    by_host = {host: storage_by_host[host] for host in mounted}
    members = {label: {host: view for host in mounted if (view := find_member_view(by_host, host, path))}
               for label, path in targets.items()}  # fmt: skip
    identities = {label: {identity for host in mounted for identity in _list_identities(storage_by_host[host], path)}
                  for label, path in targets.items()}  # fmt: skip
    visible = {
        label: [host for host in mounted if _sees_device(storage_by_host[host], path, identities[label])
                or (host in members[label] and members[label][host].is_complete)]
        for label, path in targets.items()
    }  # fmt: skip
    for label, servers in visible.items():
        if len(servers) < 2 or label == "MGS":
            continue
        yield CheckedItem("a server of a planned target", label)
        if not any(label in names for names in mounted.values()):
            yield LayoutFault(
                "target not mounted", label, f"{' and '.join(servers)} see its device, but none has it mounted",
                "files with objects on it cannot be read or written",
                "look at the log of the kernel and of the cluster, then mount -t lustre"
                f" {targets[label]} on one of them",
            )  # fmt: skip
    yield from _find_invisible_devices(mounted, visible, members, written)
    yield from _find_failed_over_targets(mounted, visible, _group_by_primary(written))


def _find_invisible_devices(
    mounted: Mapping[str, set[str]],
    visible: Mapping[str, Sequence[str]],
    members: Mapping[str, Mapping[str, MemberView]],
    written: Sequence[WrittenAttribute],
) -> Iterator[LayoutFault]:
    """Devices that one server of a pair does not see, while it sees those of other targets of the same servers. Only
    one server runs an array of md: the other one sees its members."""
    services: dict[int, set[str]] = {}
    for attribute in written:
        if attribute.key == ("mkfs.lustre", "--servicenode"):
            services.setdefault(attribute.number, set()).add(attribute.value)
    groups: dict[frozenset[str], list[str]] = {}
    for number, options in group_by_command(written).items():
        labels = list(list_planned_targets([options]))
        if labels and len(services.get(number, ())) > 1:
            groups.setdefault(frozenset(services[number]), []).append(labels[0])
    for labels in groups.values():
        servers = [host for host in mounted if any(host in visible[label] for label in labels)]
        for label in labels:
            blind = [host for host in servers if host not in visible[label]]
            partial = [host for host in blind if host in members[label] and members[label][host].visible_count]
            for host in partial if visible[label] else ():
                yield _report_missing_members(label, host, members[label][host])
            blind = [host for host in blind if host not in partial]
            if visible[label] and blind:
                yield LayoutFault(
                    "device not visible", label,
                    f"{' and '.join(blind)} {'does' if len(blind) == 1 else 'do'} not see its device, which"
                    f" {' and '.join(visible[label])} {'sees' if len(visible[label]) == 1 else 'see'}",
                    "it cannot be started there after a failure of its server",
                    "look at zoning and mapping of the LUN, then rescan the hosts", hosts=tuple(blind),
                )  # fmt: skip


def _report_missing_members(label: str, host: str, view: MemberView) -> LayoutFault:
    missing = join_first_names(view.missing, _MOST_NAMES)
    return LayoutFault(
        "device not visible", label,
        f"{host} sees {view.visible_count} of the {view.visible_count + len(view.missing)} members of its array, which"
        f" {view.host} runs; it does not see {missing}",
        "after a failure of its server it starts there degraded, or not at all",
        "look at the cables of the enclosure and at zoning, then rescan the host",
        devices=tuple(view.missing), hosts=(host,),
    )  # fmt: skip


def _list_identities(storage: ObservedStorage, path: str) -> set[str]:
    """The identities of what a host has at a planned path."""
    return {read_identity(disk, storage.disks) for disk in storage.disks.values()
            if is_planned_device(storage, path, disk)} - {""}  # fmt: skip


def _sees_device(storage: ObservedStorage, path: str, identities: set[str]) -> bool:
    """Whether a host has the planned device, by the planned path or as a map of the LUN that another host has there."""
    return any(is_planned_device(storage, path, disk)
               or (disk.kind == "multipath" and read_identity(disk, storage.disks) in identities)
               for disk in storage.disks.values())  # fmt: skip


def _group_by_primary(written: Sequence[WrittenAttribute]) -> dict[str, list[str]]:
    """The targets of each server, by the address that the plan gives first; without targets of one server only."""
    services: dict[int, list[str]] = {}
    for attribute in written:
        if attribute.key == ("mkfs.lustre", "--servicenode"):
            services.setdefault(attribute.number, []).append(attribute.value)
    groups: dict[str, list[str]] = {}
    for number, options in group_by_command(written).items():
        labels = list(list_planned_targets([options]))
        if labels and len(services.get(number, ())) > 1:
            groups.setdefault(services[number][0], []).append(labels[0])
    return groups


def _find_failed_over_targets(
    mounted: Mapping[str, set[str]],
    visible: Mapping[str, Sequence[str]],
    servers_by_target: Mapping[str, Sequence[str]],
) -> Iterator[LayoutFault]:
    """Targets on a host that is the server of other ones. The host that has most targets of a server is that server;
    of a server without any, the other host that sees all of its devices."""
    counts = Counter({(address, host): sum(label in names for label in labels)
                      for address, labels in servers_by_target.items() for host, names in mounted.items()
                      if all(host in visible[label] for label in labels)})  # fmt: skip
    hosts: dict[str, str] = {}
    for (address, host), _ in counts.most_common():
        if address not in hosts and host not in hosts.values():
            hosts[address] = host
    for address, labels in servers_by_target.items():
        for label in labels if address in hosts else ():
            others = [host for host, names in mounted.items() if label in names and host != hosts[address]]
            if others and label not in mounted[hosts[address]]:
                yield LayoutFault(
                    "target on its failover server", label,
                    f"{others[0]} has it mounted; its server in the plan is {address} ({hosts[address]})",
                    f"{others[0]} serves more targets than planned while {hosts[address]} is partly idle",
                    f"look why it moved, then unmount it on {others[0]} and mount it on {hosts[address]} (fail back)",
                )  # fmt: skip


def find_unknown_targets(
    observed_storage: ObservedStorage, written: Sequence[WrittenAttribute]
) -> Iterator[LayoutFault | CheckedItem]:
    """Planned object targets for which a running metadata server has no device, and an absent management service."""
    commands = group_by_command(written)
    targets = list_planned_targets(commands.values())
    devices = {each.location for each in observed_storage.file_systems if each.facts.get("device_state")}
    for label in targets:
        match = _OBJECT_TARGET_PATTERN.fullmatch(label)
        servers = [name for name in devices if match and re.fullmatch(rf"{match[1]}-MDT[0-9a-f]{{4}}", name)]
        for server in sorted(servers):
            yield CheckedItem("the targets of a metadata server", server)
            if f"{label}-osc-{server.rpartition('-')[2]}" not in devices:
                yield LayoutFault(
                    "target unknown to its metadata server", server,
                    f"lctl dl shows no device (osp) for {label}, which is planned",
                    "no file gets an object on it: its space and bandwidth are left out",
                    "mount the target while the management server runs, and look at the log of the metadata server",
                    parts=(label,),
                )  # fmt: skip
    yield from _find_absent_management(observed_storage, devices, {
        label for options in commands.values() if ("mkfs.lustre", "--mgs") in options
        for label in list_planned_targets([options])
    })  # fmt: skip


def _find_absent_management(
    observed_storage: ObservedStorage, devices: set[str], labels: set[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Whether the management service runs on the host that has its target mounted."""
    for label in sorted(labels & list_mounted_targets(observed_storage)) if devices else ():
        yield CheckedItem("the management service", label)
        if "MGS" not in devices:
            yield LayoutFault(
                "no management service", label, "it holds the management target, but lctl dl shows no MGS",
                "clients cannot mount, and targets cannot register or learn of a failover",
                "look at the log of the kernel, then mount it again; its label must have the flag MGS (tunefs.lustre)",
            )  # fmt: skip
