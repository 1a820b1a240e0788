# SPDX-License-Identifier: Apache-2.0
"""Finds faults of the rules, routes and settings of a host by comparison with the fabrics that it belongs to.

Nothing here sends packets: `check_host_routes` evaluates the tables that it gets, counts what it compared, and lists
the parts that it did not get.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem, split_faults_and_comparisons
from sonde.design.routes.check_adapters import find_infiniband_faults, list_adapter_settings_not_examined
from sonde.design.routes.check_arp_rules import find_arp_rule_faults
from sonde.design.routes.check_counters import find_port_counter_faults
from sonde.design.routes.check_directions import check_both_directions, find_router_of_tables, is_host_of_side
from sonde.design.routes.check_host_firewall import find_mark_faults
from sonde.design.routes.check_host_names import find_name_faults
from sonde.design.routes.check_links import find_link_faults
from sonde.design.routes.check_neighbors import compare_link_addresses
from sonde.design.routes.check_next_hops import OTHER_ORDER
from sonde.design.routes.check_paths import find_path_faults
from sonde.design.routes.check_planned import find_differences_from_plan
from sonde.design.routes.check_policies import find_policy_faults_of_host
from sonde.design.routes.check_router import check_router_tables
from sonde.design.routes.check_routes import find_route_faults, list_attributes_not_examined
from sonde.design.routes.check_rules import find_rule_faults, find_table_faults
from sonde.design.routes.check_segments import find_segment_faults_of_host
from sonde.design.routes.check_settings import find_setting_faults
from sonde.design.routes.check_written import list_options_not_compared
from sonde.design.routes.consequences import drop_consequences
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteCheck, RouteFault, drop_repeated_faults, list_unknown
from sonde.design.routes.firewall_drops import split_unjudged_rules
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import ROUTERS, HostView, find_host_views
from sonde.design.routes.interface_details import AddressDetails
from sonde.design.routes.moved_ports import (
    MISSING_INTERFACE,
    describe_moved_ports,
    find_moved_ports,
    name_used_devices,
)
from sonde.design.routes.plan import plan_all_routes
from sonde.design.routes.queue_outputs import assign_devices
from sonde.design.routes.setting_names import escape_dots_in_device_names, expand_setting_globs
from sonde.model.errors import UserError


def check_host_routes(
    fabrics: Sequence[Fabric],
    host_or_class: str,
    host_tables: HostTables,
    other_tables: HostTables | None = None,
    *,
    further_comparisons: Sequence[CheckedItem] = (),
) -> RouteCheck:
    """Checks a host, a class of hosts, a router, or "routers"; `other_tables` are those of a host of the other network.
    `further_comparisons`, of other tables of this host, count for the options of the plan that were not compared.
    Raises UserError when no fabric has the name."""
    moved_ports = find_moved_ports(find_host_views(fabrics, host_or_class), host_tables)
    host_tables = _add_names_of_plan(host_tables, fabrics, host_or_class)
    fabrics = name_used_devices(fabrics, moved_ports)
    views = find_host_views(fabrics, host_or_class)
    versions = sorted({fabric.version for fabric in fabrics if not views or fabric in [view.fabric for view in views]})
    results, unjudged_rules = split_unjudged_rules(
        check_router_tables(fabrics, host_tables, "" if host_or_class == ROUTERS else host_or_class)
        if not views
        else _check_fabrics_of_host(views, host_tables)
    )
    unknown = list_unknown(host_tables, versions)
    has_both_sides = False
    both_sides: list[RouteFault | CheckedItem] = []
    if other_tables is None:
        unknown = (*unknown, "the other side, so whether replies return the same way")
    else:
        both_sides, further_unknown = _check_other_side(fabrics, views, host_tables, other_tables)
        unknown += further_unknown
        has_both_sides = not further_unknown
    all_faults, comparisons = split_faults_and_comparisons(
        (
            *describe_moved_ports(moved_ports, host_tables),
            *results,
            *_find_inactive_profiles(host_tables),
            *find_infiniband_faults(host_tables),
            *find_port_counter_faults(host_tables),
            *find_arp_rule_faults(fabrics, host_or_class, views, host_tables),
            *find_name_faults(fabrics, host_tables),
            *find_mark_faults(views, host_tables),
            *find_segment_faults_of_host(views, host_tables),
            *both_sides,
        )
    )
    faults = tuple(
        fault
        if fault.location in host_tables.unapplied_settings
        else replace(fault, location=escape_dots_in_device_names(fault.location, host_tables.devices))
        for fault in drop_consequences(tuple(drop_repeated_faults(all_faults)), views, host_tables)
        if not (has_both_sides and fault.kind == OTHER_ORDER)  # the routes of both sides have been compared
    )
    class_name = views[0].host_class.name if views else None
    missing_interfaces = [fault.location for fault in faults if fault.kind == MISSING_INTERFACE]
    not_compared = list_options_not_compared(
        plan_all_routes(fabrics),
        class_name,
        host_tables.formats,
        (*comparisons, *further_comparisons),
        missing_interfaces,
    )
    not_examined = tuple(dict.fromkeys((*_list_not_examined(views, host_tables), *unjudged_rules)))
    return RouteCheck(host_or_class, faults, unknown, comparisons, not_compared, not_examined)


def _list_not_examined(host_views: Sequence[HostView], host_tables: HostTables) -> Iterator[str]:
    """Attributes of routes, MTUs and leases that no check examines."""
    for view in host_views:
        yield from list_attributes_not_examined(view, host_tables.select_version(view.fabric.version))
    yield from _list_unknown_mtus(host_views, host_tables)
    yield from list_adapter_settings_not_examined(host_tables)
    leased = [
        address
        for view in host_views
        for address in view.addresses
        if host_tables.address_details.get(address, AddressDetails()).is_leased
    ]
    if leased:
        yield f"whether the lease of {', '.join(leased)} is renewed, without which its routes go too"


def _list_unknown_mtus(host_views: Sequence[HostView], host_tables: HostTables) -> list[str]:
    """Interfaces on networks whose MTU the system file does not state."""
    return [
        f"the MTU of {device}, {host_tables.mtus[device]} B (the system file states none of {view.own_side.network})"
        for view in host_views
        if view.own_side.mtu is None and (device := view.host_class.device) in host_tables.mtus
    ]


def _find_inactive_profiles(host_tables: HostTables) -> Iterator[RouteFault]:
    for profile in host_tables.inactive_profiles:
        if profile.devices and not set(profile.devices) & set(host_tables.planned_devices):
            continue  # an interface that no route of the plan needs
        yield RouteFault(
            "not applied at the start", f"{profile.origin}, {profile.option}", profile.effect, profile.remedy
        )


def _check_other_side(
    fabrics: Sequence[Fabric], host_views: Sequence[HostView], host_tables: HostTables, other_tables: HostTables
) -> tuple[list[RouteFault | CheckedItem], tuple[str, ...]]:
    """Faults of both hosts together, and what the files of the other side leave unknown. Raises UserError for a host of
    the same side."""
    router = find_router_of_tables(fabrics, other_tables)
    answering = [
        view for view in host_views if not router and is_host_of_side(view.fabric, view.other_side, other_tables)
    ]
    if not answering and not router:
        _refuse_host_of_same_side(host_views, other_tables)
    reason = f"are of the router {router}" if router else "have neither such an address of it nor a router on it"
    unknown = tuple(
        f"how {view.other_side.network} answers by IPv{view.fabric.version}: the files of --other-side {reason}"
        for view in host_views
        if view not in answering
    )
    results = [
        *_check_directions(answering, host_tables, other_tables),
        *compare_link_addresses(host_tables, other_tables),
    ]
    return results, unknown


def _refuse_host_of_same_side(host_views: Sequence[HostView], other_tables: HostTables) -> None:
    """Raises UserError for tables of a host of the side that is checked itself."""
    for view in host_views:
        if other_tables.addresses is not None and is_host_of_side(view.fabric, view.own_side, other_tables):
            raise UserError(
                f"The files of --other-side are of a host of {view.own_side.network}, as those that are checked; give"
                f" those of a host of {view.other_side.network}."
            )


def _list_planned_devices(fabrics: Sequence[Fabric]) -> list[str]:
    """The devices of all hosts and routers."""
    devices: list[str] = []
    for fabric in fabrics:
        devices += [item.device for side in (fabric.near, fabric.far) for item in side.classes]
        devices += [device for router in fabric.routers for device in (router.near_device, router.far_device)]
    return devices


def _add_names_of_plan(host_tables: HostTables, fabrics: Sequence[Fabric], host_or_class: str) -> HostTables:
    """The tables with the devices and addresses of the system file, and with all devices in place of patterns in
    settings."""
    host_tables = replace(
        host_tables,
        planned_devices=tuple(_list_planned_devices(fabrics)),
        planned_addresses=_list_planned_addresses(fabrics),
        planned_rates=_map_planned_rates(fabrics, host_or_class),
        queues=tuple(assign_devices(host_tables.queues, host_tables.devices)),
        all_neighbors=host_tables.neighbors or (),
    )
    if host_tables.settings is None:
        return host_tables
    return replace(host_tables, settings=expand_setting_globs(host_tables.settings, host_tables.devices))


def _map_planned_rates(fabrics: Sequence[Fabric], host_or_class: str) -> dict[str, float]:
    """The stated rates of the devices of a host, a class of hosts or a router."""
    rates: dict[str, float] = {}
    for fabric in fabrics:
        for host_class in (*fabric.near.classes, *fabric.far.classes):
            if host_class.rate is not None and host_or_class in (host_class.name, *host_class.hosts):
                rates[host_class.device] = host_class.rate
        for router in fabric.routers:
            if router.rate is not None and host_or_class in (ROUTERS, router.name):
                rates |= dict.fromkeys((router.near_device, router.far_device), router.rate)
    return rates


def _list_planned_addresses(fabrics: Sequence[Fabric]) -> frozenset[str]:
    """The addresses of all hosts and routers."""
    routers = [router for fabric in fabrics for router in fabric.routers]
    classes = [item for fabric in fabrics for side in (fabric.near, fabric.far) for item in side.classes]
    return frozenset(
        (
            *(address for item in classes for address in item.addresses),
            *(address for router in routers for address in (router.near_address, router.far_address)),
        )
    )


def _check_directions(
    host_views: Sequence[HostView], host_tables: HostTables, other_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    for view in host_views:
        is_near = view.own_side is view.fabric.near
        sides = (host_tables, other_tables) if is_near else (other_tables, host_tables)
        yield from check_both_directions(view.fabric, *sides)


def _check_fabrics_of_host(
    host_views: Sequence[HostView], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    for version in dict.fromkeys(view.fabric.version for view in host_views):
        views = [view for view in host_views if view.fabric.version == version]
        tables = host_tables.select_version(version)
        for view in views:
            yield from find_link_faults(view, tables)
            yield from find_policy_faults_of_host(view, tables)
            if tables.routes is not None:
                yield from find_path_faults(view, views, tables)
                yield from find_route_faults(view, views, tables)
            yield from find_setting_faults(view, tables)
            yield from find_differences_from_plan(view, tables)
        yield from find_table_faults(views, tables)
        yield from find_rule_faults(views, tables)
