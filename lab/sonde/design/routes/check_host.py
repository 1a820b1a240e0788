# SPDX-License-Identifier: Apache-2.0
"""Checks all data in the files of a host: IP routes, LNet, or both, and lists the data that no check reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sonde.design.checked_items import split_faults_and_comparisons
from sonde.design.routes.bond_modules import apply_bonding_options
from sonde.design.routes.check import check_host_routes
from sonde.design.routes.check_absent_settings import find_absent_settings
from sonde.design.routes.check_file_mtus import find_lost_mtus
from sonde.design.routes.check_file_ports import find_port_file_faults
from sonde.design.routes.check_host_firewall import (
    FIREWALL_OF_HOST,
    find_host_firewall_faults,
    find_host_of_class,
    list_addresses_by_device,
    list_observed_devices,
)
from sonde.design.routes.check_infiniband_rates import find_infiniband_rate_faults
from sonde.design.routes.check_interface_names import find_naming_faults
from sonde.design.routes.check_interface_profiles import (
    drop_faults_of_routes_in_files,
    find_profile_faults,
    list_devices_with_ports,
)
from sonde.design.routes.check_lnet import check_lnet_tables, list_unknown_lnet
from sonde.design.routes.check_lnet_files import join_lnet_faults
from sonde.design.routes.check_lnet_networks import find_module_network_faults
from sonde.design.routes.check_lnet_policies import list_unread_policies
from sonde.design.routes.check_lnet_tunables import list_unread_module_options, list_unread_tunables
from sonde.design.routes.check_router import NOT_SET
from sonde.design.routes.check_settings import KERNEL_OPTIONS
from sonde.design.routes.check_translations import find_translation_faults_of_host
from sonde.design.routes.check_vlan_files import find_vlan_file_faults
from sonde.design.routes.fabric import Fabric, covers_range, find_fabrics
from sonde.design.routes.faults import RouteCheck, RouteFault
from sonde.design.routes.file_remedies import add_file_remedies
from sonde.design.routes.firewall_drops import split_unjudged_rules
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import HostView, find_host_views
from sonde.design.routes.kernel_settings import AVAILABLE_CONTROLS
from sonde.design.routes.matched_devices import list_unmatched_files, name_matched_devices
from sonde.design.routes.moved_ports import find_moved_ports
from sonde.design.routes.plan import plan_all_routes
from sonde.design.routes.setting_origins import IN_FILES, add_setting_files
from sonde.model.errors import UserError
from sonde.model.system import System

# The members of the tables that `check_host_routes` reads.
_IP_MEMBERS = ("rules", "routes", "addresses", "settings", "options", "neighbors")
_OTHER_LNET = ("LNet of the other hosts",)
_NO_CONFIGURATION_TEXT = "configuration files, which set all this again at the next start"
_LINK_ADDRESSES_TEXT = "whether the link addresses of neighbors are those of their interfaces"
_NEVER_EXAMINED = ("names of hosts in DNS", "RDMA (priorities and flow control of RoCE)")


def check_host(
    system: System,
    host_or_class: str,
    host_tables: HostTables,
    other_tables: HostTables | None = None,
    configured_tables: HostTables | None = None,
) -> RouteCheck:
    """Checks the IP and the LNet of a host, a class of hosts, a network of LNet or "routers". `configured_tables` hold
    the settings of its configuration files, which are checked separately. Raises UserError when no part of the system
    has that name and a plan for the contents of the tables."""
    has_configuration = configured_tables is not None or bool(host_tables.formats)
    host_tables, configured_tables = _join_file_settings(host_tables, configured_tables)
    has_ip = _has_ip(host_tables)
    moved_devices = _map_moved_devices(system, host_or_class, host_tables)
    checks, reasons = [], dict[str, UserError]()
    if has_ip or not host_tables.has_lnet:
        try:
            checks.append(check_host_routes(find_fabrics(system), host_or_class, host_tables, other_tables))
        except UserError as reason:
            reasons["ip and sysctl"] = reason
    if host_tables.has_lnet:
        try:
            checks.append(_check_lnet(system, host_or_class, host_tables, other_tables, moved_devices))
        except UserError as reason:
            reasons["LNet"] = reason
    if not checks:
        raise next(iter(reasons.values()))
    unused = [f"the files of {part}, of no use for {host_or_class} ({str(reason).rstrip('.')})"
              for part, reason in reasons.items()]  # fmt: skip
    checks.append(_check_host_firewall(system, host_or_class, host_tables))
    checks.append(_check_interface_profiles(system, host_or_class, host_tables, configured_tables))
    unknown = [text for check in checks for text in check.unknown]
    unknown += list_unknown_lnet(system, host_or_class, host_tables) if "LNet" not in reasons else []
    if configured_tables is not None and _has_ip(configured_tables) and "ip and sysctl" not in reasons:
        configured_tables = replace(configured_tables, options=host_tables.options)
        checks += _check_configuration(find_fabrics(system), host_or_class, host_tables, configured_tables, checks[0])
    if configured_tables is not None and configured_tables.has_lnet and "LNet" not in reasons:
        configured_lnet = _check_lnet(system, host_or_class, configured_tables, None, moved_devices)
        number = next(number for number, check in enumerate(checks) if check.unknown == _OTHER_LNET)
        checks[number], configured_lnet = join_lnet_faults(checks[number], configured_lnet, configured_tables)
        checks.append(_select_configuration_faults(configured_lnet, checks[number]))
    unused = [*(text for check in checks for text in check.not_examined), *unused]
    return RouteCheck(
        host_or_class,
        not_understood=host_tables.unread_files,
        faults=_name_files([fault for check in checks for fault in check.faults], host_tables, configured_tables),
        unknown=tuple(unknown),
        comparisons=tuple(item for check in checks for item in check.comparisons),
        not_compared=tuple(text for check in checks for text in check.not_compared),
        not_examined=(
            *unused,
            *_list_unread_contents(host_tables, configured_tables),
            *(() if has_configuration else (_NO_CONFIGURATION_TEXT,)),
            *_list_not_given(host_tables, other_tables),
            *_list_unread_firewalls(checks, host_tables),
            *_NEVER_EXAMINED,
        ),
    )


def _join_file_settings(
    host_tables: HostTables, configured_tables: HostTables | None
) -> tuple[HostTables, HostTables | None]:
    """The tables of a host with the settings of all files, and those of its files; both with the interfaces that the
    files choose."""
    if configured_tables is None:
        return name_matched_devices(host_tables, host_tables), None
    configured_tables = name_matched_devices(apply_bonding_options(host_tables, configured_tables), host_tables)
    host_tables = name_matched_devices(host_tables, host_tables)
    settings = (*host_tables.file_settings, *configured_tables.file_settings)
    return replace(host_tables, file_settings=settings), configured_tables


def _check_configuration(
    fabrics: Sequence[Fabric],
    host_or_class: str,
    host_tables: HostTables,
    configured_tables: HostTables,
    live_check: RouteCheck,
) -> list[RouteCheck]:
    """The checks of what configuration files set, without the faults that the running host has too."""
    hosts = [host for plan in plan_all_routes(fabrics) for host in plan.host_plans]
    planned = [route.destination for host in hosts for route in host.routes if route.hops]
    configured_tables = _add_live_ports(configured_tables, host_tables)
    configured_tables = replace(
        configured_tables, versions_without_routes=tuple(_list_versions_without_routes(configured_tables, planned))
    )
    configuration = check_host_routes(
        fabrics,
        host_or_class,
        _add_available_controls(configured_tables, host_tables),
        further_comparisons=live_check.comparisons,
    )
    if configured_tables.rules is None and configured_tables.routes is None:
        configuration = replace(configuration, not_compared=())  # the live check lists the settings
    absent = _check_absent_settings(fabrics, host_or_class, host_tables, configured_tables)
    return [_select_configuration_faults(check, live_check) for check in (configuration, absent)]


def _add_available_controls(configured_tables: HostTables, host_tables: HostTables) -> HostTables:
    """The tables of files with the congestion controls that the kernel has loaded."""
    available = (host_tables.settings or {}).get(AVAILABLE_CONTROLS)
    if configured_tables.settings is None or available is None:
        return configured_tables
    return replace(configured_tables, settings={**configured_tables.settings, AVAILABLE_CONTROLS: available})


def _add_live_ports(configured_tables: HostTables, host_tables: HostTables) -> HostTables:
    """The tables of files with the ports that bonds have now: their files do not list them all. A bond sets the MTU of
    its ports, whatever their files have."""
    ports = {device: details for device, details in host_tables.link_details.items() if details.is_bond_port}
    return replace(
        configured_tables,
        link_details={**ports, **configured_tables.link_details},
        mtus={device: mtu for device, mtu in configured_tables.mtus.items() if device not in ports},
    )


def _list_versions_without_routes(configured_tables: HostTables, planned_ranges: Sequence[str]) -> Iterator[int]:
    """The IP versions whose routes through the routers are in other files than those that were given: these have no
    route to a planned range, as files with the default route of another network."""
    for version in (4, 6):
        destinations = {
            route.destination for route in configured_tables.routes or () if route.version in (None, version)
        }
        if not any(
            _is_part_of_range(destination, planned) for destination in destinations for planned in planned_ranges
        ):
            yield version


def _is_part_of_range(destination: str, planned_range: str) -> bool:
    """Whether a destination is a planned range or a part of it; a default route is one of a default route only."""
    if "default" in (destination, planned_range):
        return destination == planned_range
    return covers_range(planned_range, destination)


def _name_files(
    faults: Sequence[RouteFault], host_tables: HostTables, configured_tables: HostTables | None
) -> tuple[RouteFault, ...]:
    """The faults with the files, and their lines, that set the wrong values; those of a file and its routes are one."""
    tables = [each for each in (host_tables, configured_tables) if each is not None]
    return add_file_remedies(
        add_setting_files(drop_faults_of_routes_in_files(faults), tables), host_tables, configured_tables
    )


def _has_ip(host_tables: HostTables) -> bool:
    """Whether anything is known of IP."""
    return bool(host_tables.formats) or any(getattr(host_tables, member) is not None for member in _IP_MEMBERS)


def _list_unread_contents(host_tables: HostTables, configured_tables: HostTables | None) -> tuple[str, ...]:
    """Members and module options of LNet that no check reads, and pictures."""
    lnet_extras = [*host_tables.lnet_extras, *list_unread_tunables(host_tables),
                   *list_unread_policies(host_tables.lnet_policies)]  # fmt: skip
    for tables in (host_tables, configured_tables):
        lnet_extras += list_unread_module_options(tables) if tables is not None else ()
    return (
        *([f"{', '.join(lnet_extras)} of LNet"] if lnet_extras else []),
        *(f"{picture} (a picture)" for picture in host_tables.pictures),
    )


def _find_views_of_system(system: System, host_or_class: str) -> list[HostView]:
    """The fabrics that a host is part of; none in a system, or for a name, without IP routes."""
    try:
        return find_host_views(find_fabrics(system), host_or_class)
    except UserError:
        return []


def _map_moved_devices(system: System, host_or_class: str, host_tables: HostTables) -> dict[str, str]:
    """The interfaces that a host of IP routes uses in place of the planned ones."""
    views = _find_views_of_system(system, host_or_class)
    return {port.host_view.host_class.device: port.device for port in find_moved_ports(views, host_tables)}


def _check_absent_settings(
    fabrics: Sequence[Fabric], host_or_class: str, host_tables: HostTables, configured_tables: HostTables
) -> RouteCheck:
    """The settings of configuration files that this host does not have."""
    hosts = [
        host
        for plan in plan_all_routes(fabrics)
        for host in plan.host_plans
        if host_or_class == host.host_class.name or host_or_class in host.host_class.hosts
    ]
    planned_names = {setting for host in hosts for setting in host.settings}
    devices = (*host_tables.devices, *(host.host_class.device for host in hosts))
    faults, comparisons = split_faults_and_comparisons(
        find_absent_settings(host_tables.settings or {}, configured_tables.settings or {}, planned_names, devices)
    )
    return RouteCheck(host_or_class, faults, (), comparisons)


def _list_not_given(host_tables: HostTables, other_tables: HostTables | None) -> tuple[str, ...]:
    """Lists inputs of a check that few hosts have and that were not given."""
    is_one_sided = bool(host_tables.neighbors) and other_tables is None
    neighbors = (f"{_LINK_ADDRESSES_TEXT} (the system file has none; --other-side)",) if is_one_sided else ()
    bond_ports = [details for details in host_tables.link_details.values() if details.is_bond_port]
    adapters = () if host_tables.adapters else ("offloads, rings and pause frames (ethtool)",)
    policies = () if host_tables.security_policies is not None else ("IPsec policies (ip xfrm policy)",)
    if any(details.kind == "bond" or details.is_bond_port for details in host_tables.link_details.values()) and not any(
        details.bond_mode for details in host_tables.link_details.values()
    ):
        policies = (*policies, "modes and options of bonds (ip -d addr)")
    has_aggregators = all(details.aggregator is not None for details in bond_ports)
    return (
        *neighbors,
        *adapters,
        *(() if host_tables.host_names else ("names of hosts (/etc/hosts)",)),
        *(() if host_tables.firewalls else ("firewalls (iptables-save, nft list ruleset)",)),
        *policies,
        *(() if has_aggregators else ("which ports LACP has joined to a bond (ip -d addr)",)),
    )


def _check_host_firewall(system: System, host_or_class: str, host_tables: HostTables) -> RouteCheck:
    results, unjudged = split_unjudged_rules(find_host_firewall_faults(system, host_or_class, host_tables))
    faults, comparisons = split_faults_and_comparisons(
        (
            *results,
            *find_translation_faults_of_host(
                system, host_or_class, _find_views_of_system(system, host_or_class), host_tables
            ),
        )
    )
    return RouteCheck(host_or_class, faults, (), comparisons, not_examined=tuple(unjudged))


def _check_interface_profiles(
    system: System, host_or_class: str, host_tables: HostTables, configured_tables: HostTables | None
) -> RouteCheck:
    """The files of interfaces of a host, of those given as live where there are no others."""
    devices = list_observed_devices(system, host_or_class, host_tables)
    profiles = (configured_tables or host_tables).interface_profiles
    addresses = list_addresses_by_device(system, host_or_class, host_tables)
    naming_tables = replace(host_tables, interface_names=(configured_tables or host_tables).interface_names)
    faults, comparisons = split_faults_and_comparisons(
        (
            *find_profile_faults(profiles, devices, host_tables, addresses),
            *find_naming_faults(list_devices_with_ports(devices, host_tables), naming_tables),
            *find_port_file_faults(list_devices_with_ports(devices, host_tables), host_tables),
            *find_vlan_file_faults(profiles, devices, host_tables),
            *find_lost_mtus(profiles, devices, naming_tables),
            *find_infiniband_rate_faults(system, find_host_of_class(system, host_or_class, host_tables), host_tables),
        )
    )
    reported_files = [fault.location.partition(",")[0] for fault in faults]
    unmatched = tuple(list_unmatched_files(profiles, host_tables, reported_files))
    return RouteCheck(host_or_class, faults, (), comparisons, not_examined=unmatched)


def _list_unread_firewalls(checks: Sequence[RouteCheck], host_tables: HostTables) -> tuple[str, ...]:
    """The part of the firewall of this host that no check reads."""
    if not host_tables.firewalls:
        return ()
    items = [item for check in checks for item in check.comparisons if item.subject == FIREWALL_OF_HOST]
    services = list(dict.fromkeys(item.location.partition(" ")[0] for item in items))
    return (f"the firewall of this host for other services than {', '.join(services)}",) if services else (
        "the firewall of this host (the system file names no GPFS, LNet over TCP or NFS of it)",
    )  # fmt: skip


def _select_configuration_faults(configuration_check: RouteCheck, live_check: RouteCheck) -> RouteCheck:
    """The faults of the configuration files that the live host has not, marked as such. Settings that these files lack
    may be in other files, so they are no faults."""
    live_faults = {(fault.kind, fault.location) for fault in live_check.faults}
    return replace(
        configuration_check,
        faults=tuple(
            replace(fault, location=f"{fault.location}{IN_FILES}")
            for fault in configuration_check.faults
            if (fault.kind, fault.location) not in live_faults and not fault.location.endswith(f"= {NOT_SET}")
        ),
        comparisons=tuple(
            replace(item, subject=f"{item.subject} in the configuration files")
            for item in configuration_check.comparisons
            if item.subject != KERNEL_OPTIONS
        ),
        not_compared=tuple(text for text in configuration_check.not_compared if text not in live_check.not_compared),
    )


def _check_lnet(
    system: System,
    host_or_class: str,
    host_tables: HostTables,
    other_tables: HostTables | None,
    moved_devices: Mapping[str, str],
) -> RouteCheck:
    faults, comparisons = split_faults_and_comparisons(
        (
            *check_lnet_tables(system, host_or_class, host_tables, other_tables, moved_devices),
            *find_module_network_faults(system, host_or_class, host_tables, moved_devices),
        )
    )
    return RouteCheck(host_or_class, faults, _OTHER_LNET, comparisons)
