# SPDX-License-Identifier: Apache-2.0
"""Checks several hosts: each by itself, because their devices have equal names, and then all targets of Lustre."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem, split_faults_and_comparisons
from sonde.design.layout.check import check_layout
from sonde.design.layout.check_targets import find_target_faults
from sonde.design.layout.check_written import list_not_compared
from sonde.design.layout.faults import LayoutCheck, LayoutFault
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage
from sonde.design.layout.merge_faults import merge_faults
from sonde.design.layout.planned_roles import read_target_name
from sonde.design.layout.written_attributes import WrittenAttribute


def check_hosts(
    hosts: Mapping[str, ObservedStorage],
    planned_layout: FileSystemLayout | None = None,
    mount_points: Collection[str] = (),
    written: Sequence[WrittenAttribute] = (),
) -> LayoutCheck:
    """Checks the storage of several hosts by name. Locations begin with the name of the host."""
    verdicts = {
        host: check_layout(storage, planned_layout, (), mount_points, written) for host, storage in hosts.items()
    }
    targets = _join_targets(hosts)
    shared, shared_items = split_faults_and_comparisons(merge_faults(find_target_faults(targets.file_systems), targets))
    shared_targets = tuple(_find_targets_on_several_hosts(hosts))
    names = {fault.location for fault in shared_targets}
    shared = (*shared_targets, *(fault for fault in shared
                                 if fault.kind != "index used twice" or fault.location not in names))  # fmt: skip
    explained = {text for verdict in verdicts.values() for fault in verdict.faults for text in fault.consequences}
    shared = tuple(fault for fault in shared if f"{fault.location}: {fault.problem}" not in explained)
    reported = {(fault.kind, fault.location) for fault in shared}
    faults = [
        replace(fault, location=f"{host}: {fault.location}", parts=tuple(f"{host}: {part}" for part in fault.parts))
        for host, verdict in verdicts.items() for fault in verdict.faults
        if (fault.kind, fault.location) not in reported
    ]  # fmt: skip
    items = [replace(item, location=f"{host}: {item.location}")
             for host, verdict in verdicts.items() for item in verdict.checked_items]  # fmt: skip
    unknown = [f"{host}: {text}" for host, verdict in verdicts.items() for text in verdict.unknown]
    results: list[LayoutFault | CheckedItem] = [*shared, *faults, *shared_items, *items]
    all_faults, all_items = split_faults_and_comparisons(results)
    not_compared = list_not_compared(written, {item.subject for item in all_items}, targets)
    return LayoutCheck(all_faults, tuple(dict.fromkeys(unknown)), all_items, not_compared)


def _find_targets_on_several_hosts(hosts: Mapping[str, ObservedStorage]) -> Iterator[LayoutFault]:
    """Targets that more than one server has mounted. Their labels are then no second use of an index."""
    hosts_by_target: dict[str, list[str]] = {}
    for host, storage in hosts.items():
        mounted = [each for each in storage.file_systems if each.kind == "lustre" and each.location.startswith("/")]
        names = {read_target_name(storage, each) for each in mounted if each.device.startswith("/")}
        for name in sorted(names - {""}):
            hosts_by_target.setdefault(name, []).append(host)
    for name, servers in hosts_by_target.items():
        if len(servers) > 1 and "-" in name:
            yield LayoutFault(
                "target mounted twice", name, f"{' and '.join(servers)} have it mounted at the same time",
                "two servers that write to one file system destroy it",
                "unmount it at once on the server that does not serve it now. Never make it again: only if the WWIDs of"
                " both devices differ, one of them has a wrong label",
            )  # fmt: skip


def _join_targets(hosts: Mapping[str, ObservedStorage]) -> ObservedStorage:
    """The targets of Lustre on all hosts, without devices."""
    file_systems = [replace(each, device="") for storage in hosts.values() for each in storage.file_systems
                    if each.kind in ("lustre", "ldiskfs")]  # fmt: skip
    return join_observations(ObservedStorage(tuple(file_systems)))
