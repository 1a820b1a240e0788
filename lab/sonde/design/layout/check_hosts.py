# SPDX-License-Identifier: Apache-2.0
"""Checks several hosts: each by itself, because their devices have equal names, and then all targets of Lustre."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem, split_faults_and_comparisons
from sonde.design.layout.check import check_layout
from sonde.design.layout.check_default_stripes import drop_overridden_stripe_faults, join_default_stripe_faults
from sonde.design.layout.check_file_placement import find_placement_faults
from sonde.design.layout.check_host_arrays import find_array_differences, join_array_differences
from sonde.design.layout.check_host_pairs import compare_hosts
from sonde.design.layout.check_host_pools import find_pool_differences, find_unprotected_pools
from sonde.design.layout.check_lustre_services import compare_lustre_hosts
from sonde.design.layout.check_map_names import correct_map_names
from sonde.design.layout.check_own_failover import find_own_failover_nodes
from sonde.design.layout.check_partner_lines import compare_partner_lines
from sonde.design.layout.check_partner_storage import exclude_storage_of_partners
from sonde.design.layout.check_peer_attributes import find_attribute_differences
from sonde.design.layout.check_planned_devices import list_planned_targets
from sonde.design.layout.check_shared_arrays import correct_inactive_arrays, explain_shared_arrays, find_shared_arrays
from sonde.design.layout.check_shared_drives import join_faults_of_shared_drives
from sonde.design.layout.check_shared_mounts import find_shared_fstab_lines, find_shared_mounts
from sonde.design.layout.check_target_servers import find_server_faults, list_mounted_targets
from sonde.design.layout.check_targets import count_labeled_devices, find_target_faults, select_clients
from sonde.design.layout.check_written import list_not_compared
from sonde.design.layout.faults import LayoutCheck, LayoutFault
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage
from sonde.design.layout.merge_faults import merge_faults
from sonde.design.layout.merge_hosts import join_faults_of_shared_luns, join_faults_of_targets
from sonde.design.layout.merge_settings import join_lost_settings
from sonde.design.layout.written_attributes import WrittenAttribute, group_by_command


def check_hosts(
    storage_by_host: Mapping[str, ObservedStorage],
    planned_layout: FileSystemLayout | None = None,
    mount_points: Collection[str] = (),
    written: Sequence[WrittenAttribute] = (),
    written_by_plan: Sequence[WrittenAttribute] = (),
) -> LayoutCheck:
    """Checks the storage of several hosts by name. Locations begin with the name of the host. `written` is what the
    scripts of the file system write, `written_by_plan` what those of all file systems of the plan write."""
    targets = _join_targets(storage_by_host)
    shared = _find_shared_faults(storage_by_host, targets, written)
    verdicts = {
        host: check_layout(storage, planned_layout, (), mount_points, written, shared, written_by_plan)
        for host, storage in storage_by_host.items()
    }
    shared_keys = {_make_key(each) for each in shared if isinstance(each, LayoutFault)}
    versions: dict[tuple[object, ...], list[LayoutFault]] = {}
    results: list[LayoutFault | CheckedItem] = []
    own_faults: list[LayoutFault] = []
    reported = {(host, attribute) for host, verdict in verdicts.items() for fault in verdict.faults
                for attribute in (fault.kind, *fault.attributes)}  # fmt: skip
    results += [*_join_settings(compare_hosts(storage_by_host, reported)), *find_shared_mounts(storage_by_host)]
    results += find_unprotected_pools(storage_by_host)
    shared_lines = list(find_shared_fstab_lines(storage_by_host))
    results += shared_lines
    arrays = find_shared_arrays(storage_by_host)
    for host, verdict in verdicts.items():
        for fault in verdict.faults:
            if _make_key(fault) in shared_keys:
                versions.setdefault(_make_key(fault), []).append(fault)
            else:
                own_faults.append(_add_host_to_fault(host, fault))
        results += [item if item in shared else replace(item, location=f"{host}: {item.location}")
                    for item in verdict.checked_items]  # fmt: skip
    # a line without noauto that the line of another host makes graver is one fault
    shared_parts = {part for each in shared_lines if isinstance(each, LayoutFault) for part in each.parts}
    own_faults = [
        each for each in own_faults if each.kind != "target mounted at a start" or each.location not in shared_parts
    ]
    own_faults = exclude_storage_of_partners(storage_by_host, own_faults, mount_points)
    file_systems = [each for storage in storage_by_host.values() for each in storage.file_systems]
    own_faults = drop_overridden_stripe_faults(own_faults, file_systems, planned_layout, mount_points)
    own_faults = list(correct_inactive_arrays(storage_by_host, own_faults))
    own_faults = correct_map_names(storage_by_host, own_faults, written)
    # a fault that a host explains by one of its devices is missing there; another host may add planned values
    results = [*(max(faults,
    key=lambda fault: fault.fact_count) for faults in versions.values() if len(faults) == len(storage_by_host)),
               *explain_shared_arrays(arrays, join_faults_of_shared_drives(
                   storage_by_host, list(_join_hosts(own_faults)))), *results]  # fmt: skip
    differences, items = split_faults_and_comparisons(
        [*find_array_differences(storage_by_host), *find_pool_differences(storage_by_host)]
    )
    all_faults, all_items = split_faults_and_comparisons([*results, *items])
    planned_targets = list_planned_targets(group_by_command(written).values())
    joined = join_faults_of_targets(join_array_differences(storage_by_host, all_faults, differences))
    all_faults = tuple(join_faults_of_shared_luns(join_default_stripe_faults(joined), planned_targets))
    unknown = [f"{host}: {text}" for host, verdict in verdicts.items() for text in verdict.unknown]
    not_compared = list_not_compared(written, {item.subject for item in all_items}, targets)
    return LayoutCheck(all_faults, tuple(dict.fromkeys(unknown)), all_items, not_compared)


def _make_key(fault: LayoutFault) -> tuple[object, ...]:
    """What a fault of the targets has in common on all hosts, of which one may add planned values."""
    return fault.kind, fault.location, fault.attributes


def _join_settings(results: Iterable[LayoutFault | CheckedItem]) -> list[LayoutFault | CheckedItem]:
    faults, items = split_faults_and_comparisons(results)
    return [*items, *join_lost_settings(faults)]


def _add_host_to_fault(host_name: str, fault: LayoutFault) -> LayoutFault:
    return replace(
        fault, location=f"{host_name}: {fault.location}", parts=tuple(f"{host_name}: {part}" for part in fault.parts)
    )


def _join_hosts(faults: Sequence[LayoutFault]) -> Iterator[LayoutFault]:
    """Faults in the same words of several hosts as one."""
    groups: dict[tuple[object, ...], list[LayoutFault]] = {}
    for fault in faults:
        key = (fault.kind, fault.problem, fault.cost, fault.remedy, fault.attributes, fault.consequences)
        groups.setdefault(key, []).append(fault)
    for group in groups.values():
        parts = tuple(part for fault in group for part in (fault.parts or (fault.location,)))
        location = "; ".join(fault.location for fault in group)
        yield replace(group[0], location=location, parts=parts) if len(group) > 1 else group[0]


def _find_shared_faults(
    storage_by_host: Mapping[str, ObservedStorage], merged_targets: ObservedStorage, written: Sequence[WrittenAttribute]
) -> list[LayoutFault | CheckedItem]:
    """Faults of the targets of all hosts together. A target that two hosts have mounted does not count as a duplicate
    index."""
    mounted = tuple(_find_targets_on_several_hosts(storage_by_host, merged_targets))
    names = {fault.location for fault in mounted}
    differences = find_attribute_differences(merged_targets, merged_targets.file_systems)
    server_faults = list(find_server_faults(storage_by_host, written))
    reported = {each.kind for each in server_faults if isinstance(each, LayoutFault)}  # with more of the plan
    reported |= {"target unknown to its metadata server"} if written else set()  # each host is checked for it
    server_results = (*compare_lustre_hosts(storage_by_host), *find_own_failover_nodes(storage_by_host))
    others = merge_faults(
        [
            *find_target_faults(merged_targets.file_systems),
            *server_faults,
            *differences,
            *find_placement_faults(storage_by_host),
            *(each for each in server_results if not isinstance(each, LayoutFault) or each.kind not in reported),
            *compare_partner_lines(storage_by_host),
        ],
        merged_targets,
    )
    return [*mounted, *(each for each in others if not isinstance(each, LayoutFault)
                        or each.kind != "index used twice" or each.location not in names)]  # fmt: skip


def _find_targets_on_several_hosts(
    storage_by_host: Mapping[str, ObservedStorage], merged_targets: ObservedStorage
) -> Iterator[LayoutFault]:
    """Targets that more than one server has mounted, unless their labels are on LUNs that are known to differ."""
    several = {each.location for each in merged_targets.file_systems if count_labeled_devices(each) > 1}
    hosts_by_target: dict[str, list[str]] = {}
    for host, storage in storage_by_host.items():
        for name in sorted(list_mounted_targets(storage)):
            hosts_by_target.setdefault(name, []).append(host)
    for name, servers in hosts_by_target.items():
        if len(servers) > 1 and "-" in name and name not in several:
            yield LayoutFault(
                "target mounted twice", name, f"{' and '.join(servers)} have it mounted at the same time",
                "two servers that write to one file system destroy it",
                "unmount it at once on the server that does not serve it now. Never make it again: only if the WWIDs of"
                " both devices differ, one of them has a wrong label",
            )  # fmt: skip


def _join_targets(storage_by_host: Mapping[str, ObservedStorage]) -> ObservedStorage:
    """The targets of Lustre on all hosts, without devices and without what clients show of them."""
    clients = {id(each) for storage in storage_by_host.values() for each in select_clients(storage.file_systems)}
    file_systems = [replace(each, device="") for storage in storage_by_host.values() for each in storage.file_systems
                    if each.kind in ("lustre", "ldiskfs") and id(each) not in clients]  # fmt: skip
    return join_observations(ObservedStorage(tuple(file_systems)))
