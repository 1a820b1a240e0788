# SPDX-License-Identifier: Apache-2.0
"""Checks which routers the packets to the other side take, as the kernel chooses among all rules and routes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_next_hops import compare_next_hops
from sonde.design.routes.check_standby import find_standby_faults, is_standby_gateway
from sonde.design.routes.fabric import covers_range, is_address_in_ranges, overlaps_range
from sonde.design.routes.far_addresses import list_far_addresses
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, ObservedRoute, describe_rule_selectors
from sonde.design.routes.host_view import HostView
from sonde.design.routes.kernel_lookup import (
    MAIN_PREFERENCE,
    IpAddress,
    RouteLookup,
    find_kernel_route,
    find_table_route,
    get_metric,
    list_probe_addresses,
)
from sonde.design.routes.link_usability import has_usable_link

_MAIN = "main"


def find_path_faults(
    host_view: HostView, all_host_views: Sequence[HostView], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the routes that unmarked packets to the other side take. `all_host_views` are all fabrics of the host
    of this IP version."""
    sources = _list_source_addresses(host_view, host_tables)
    for far_range in host_view.other_side.ranges:
        yield CheckedItem("the way to the other side", far_range)
        for source in sources:
            yield from _check_routes_to_range(host_view, all_host_views, host_tables, far_range, source)
    yield from find_standby_faults(host_view, host_tables)


def _list_source_addresses(host_view: HostView, host_tables: HostTables) -> list[IpAddress | None]:
    """The source addresses to look up: none, for a program that binds no address, and the addresses of the host on this
    side, because the kernel repeats the lookup with the source address of the first result."""
    selected = [rule.source for rule in host_tables.rules or () if rule.source != "all"]
    if not selected:
        return [None]
    observed = [address.split("/")[0] for address in host_tables.addresses or ()]
    candidates = [
        address for address in observed if is_address_in_ranges(host_view.own_side.ranges, address)
    ] or host_view.addresses
    return [None, *(ipaddress.ip_address(address) for address in candidates[:4])]


def _check_routes_to_range(
    host_view: HostView,
    all_host_views: Sequence[HostView],
    host_tables: HostTables,
    far_range: str,
    source_address: IpAddress | None,
) -> Iterator[RouteFault]:
    outcomes: dict[object, tuple[IpAddress, RouteLookup | None]] = {}
    selecting_rules = [rule for rule in host_tables.rules or () if rule.selectors and not rule.inverted]
    for address in list_probe_addresses(host_tables, far_range):
        lookup = find_kernel_route(host_tables, address, source_address=source_address)
        outcomes.setdefault((lookup.route, lookup.rule) if lookup else None, (address, lookup))
        for rule in selecting_rules:
            lookup = find_kernel_route(host_tables, address, source_address=source_address, selecting_rule=rule)
            if lookup is not None and lookup.rule.origin == rule.origin:
                outcomes.setdefault((lookup.route, lookup.rule), (address, lookup))
    is_usable = has_usable_link(host_view, host_tables)
    far_addresses = list_far_addresses(host_view, host_tables)
    for address, lookup in outcomes.values():
        target = far_range if len(outcomes) == 1 else str(address)
        is_missed = _misses_active_route(host_view, lookup)
        if is_missed and _has_misplaced_destination(host_view, all_host_views, host_tables):
            continue  # reported with its destination
        if is_missed and is_usable and (narrow := _list_narrow_routes(host_view, host_tables, far_range)):
            yield _describe_partial_route(host_view, narrow, far_range, str(address), lookup)
        elif lookup is None:
            if not is_usable:
                continue  # the kernel has removed the routes
            yield _make_missing_route_fault(host_view, host_tables, address, target)
        elif lookup.route is not None and lookup.route.kind == "local":
            if not any(far_address.partition("/")[0] == str(address) for far_address in far_addresses):
                yield RouteFault(
                    "address of the other side", lookup.origin,
                    f"{target} is an address of {host_view.other_side.network}, and a local route leads to it: packets"
                    " to it do not leave the host",
                    f"ip addr del {target}, or remove the local route",
                )  # fmt: skip
        elif lookup.is_discarded:
            kind = lookup.rule.action if lookup.route is None else lookup.route.kind
            yield RouteFault(
                "traffic discarded", lookup.origin,
                f"packets{describe_rule_selectors(lookup.rule)} to {target} ({host_view.other_side.network}) are"
                f" discarded ({kind})",
                "remove this route or rule, or narrow it",
            )  # fmt: skip
        else:
            assert lookup.route is not None
            if is_usable or lookup.route.destination != "default" or lookup.rule.table != _MAIN:
                yield from _check_effective_route(host_view, host_tables, lookup, far_range)


def _misses_active_route(host_view: HostView, lookup: RouteLookup | None) -> bool:
    """Whether a packet takes no route, the default route or a route of standby routers only, of the main table."""
    if lookup is None:
        return True
    if lookup.route is None or lookup.rule.table != _MAIN:
        return False
    gateways = [hop.via for hop in lookup.route.hops if hop.via in host_view.routers_by_gateway]
    is_standby = bool(gateways) and all(is_standby_gateway(host_view, gateway) for gateway in gateways)
    return lookup.route.destination == "default" or is_standby


def _has_misplaced_destination(
    host_view: HostView, all_host_views: Sequence[HostView], host_tables: HostTables
) -> bool:
    """Whether a multipath route by active routers leads to where the other side has no hosts, or, on a host of a single
    fabric, to a wider range than the other side has."""
    far_ranges = host_view.other_side.ranges
    is_single = len(all_host_views) == 1
    return any(
        not any(overlaps_range(route.destination, far_range) for far_range in far_ranges)
        or (is_single and any(covers_range(route.destination, far_range) for far_range in far_ranges))
        for route in _list_active_routes(host_view, host_tables)
        if len(route.hops) > 1 and route.destination not in far_ranges
    )


def _list_active_routes(host_view: HostView, host_tables: HostTables) -> list[ObservedRoute]:
    """The routes of the main table by active routers alone, without default routes."""
    return [
        route
        for route in host_tables.routes or ()
        if route.table == _MAIN
        and route.destination != "default"
        and route.hops
        and all(
            hop.via in host_view.routers_by_gateway and not is_standby_gateway(host_view, hop.via) for hop in route.hops
        )
    ]


def _list_narrow_routes(host_view: HostView, host_tables: HostTables, far_range: str) -> list[ObservedRoute]:
    """Routes of the main table that lead to a part of a range by the active routers."""
    return [
        route
        for route in _list_active_routes(host_view, host_tables)
        if overlaps_range(route.destination, far_range) and not covers_range(route.destination, far_range)
    ]


def _describe_partial_route(
    host_view: HostView,
    narrow_routes: Sequence[ObservedRoute],
    far_range: str,
    uncovered_address: str,
    lookup: RouteLookup | None,
) -> RouteFault:
    destinations = ", ".join(route.destination for route in narrow_routes)
    route = lookup.route if lookup is not None else None
    hops = ", ".join(hop.via or hop.device for hop in route.hops) or route.device if route is not None else ""
    is_default = route is not None and route.destination == "default"
    fate = f"take {'the default route' if is_default else 'standby routers'} ({hops})" if route else "have no route"
    return RouteFault(
        "route for a part", narrow_routes[0].origin,
        f"the main table leads to {destinations} only by the routers, a part of {far_range}"
        f" ({host_view.other_side.network}): packets to the other hosts, as {uncovered_address}, {fate}",
        f"lead to {far_range}, with the multipath route of the plan",
    )  # fmt: skip


def _make_missing_route_fault(
    host_view: HostView, host_tables: HostTables, address: IpAddress, target: str
) -> RouteFault:
    network = host_view.other_side.network
    route = find_table_route(host_tables.routes or (), _MAIN, address)
    if route is not None and route.kind != "throw" and host_tables.rules is not None:
        main_rules = [rule for rule in host_tables.rules if rule.table == _MAIN and rule.action == "lookup"]
        ignored = next((rule for rule in main_rules if rule.suppressed_prefix is not None), None)
        jumping = next((rule for rule in host_tables.rules if rule.jump is not None and rule.is_for_all_packets), None)
        if jumping is not None and main_rules:
            return RouteFault(
                "no route", jumping.origin,
                f"the main table has a route to {target} ({network}), but this rule goes past the rule of that table"
                f" (goto {jumping.jump}): this host cannot reach the other side",
                "remove this rule, or go to a rule before that of the main table",
            )  # fmt: skip
        rule_text = (
            f"{ignored.origin} ignores it (suppress_prefixlength {ignored.suppressed_prefix})"
            if ignored
            else "no rule leads packets into the main table"
        )
        return RouteFault(
            "no route", ignored.origin if ignored else "rules",
            f"the main table has a route to {target} ({network}), but {rule_text}: this host cannot reach the other"
            " side",
            f"ip rule add pref {MAIN_PREFERENCE} from all lookup main",
        )  # fmt: skip
    if route is not None and route.kind == "throw":
        return RouteFault(
            "no route", route.origin,
            f"the route to {route.destination} in the main table gives packets back (throw), and no other table leads"
            f" to {target} ({network}): this host cannot reach it",
            "remove this route, and add the multipath route of the plan where it is missing",
        )  # fmt: skip
    return RouteFault(
        "no route", "main table",
        f"nothing leads to {target} ({network}): this host cannot reach the other side",
        "add the multipath route of the plan",
    )  # fmt: skip


def _check_effective_route(
    host_view: HostView, host_tables: HostTables, lookup: RouteLookup, far_range: str
) -> Iterator[RouteFault]:
    route = lookup.route
    assert route is not None
    hop_addresses = [hop.via for hop in route.hops]
    if not route.hops:
        if lookup.rule.table != _MAIN:
            yield _make_diversion_fault(host_view, route, lookup, f"the link of {route.device}")
        elif route.destination == "default":
            yield _make_default_route_fault(host_view, route, far_range, f"dev {route.device}")
        return  # a route on the link is reported with the others
    if not set(hop_addresses) & set(host_view.routers_by_gateway):
        strangers = ", ".join(hop_addresses)
        if lookup.rule.table != _MAIN:
            yield _make_diversion_fault(host_view, route, lookup, strangers)
        elif route.destination == "default":
            yield _make_default_route_fault(host_view, route, far_range, strangers)
        return  # other unknown next hops are reported with the routes
    if lookup.rule.table != _MAIN:
        active = [gateway for gateway in host_view.routers_by_gateway if not is_standby_gateway(host_view, gateway)]
        if set(hop_addresses) != set(active):
            yield _make_diversion_fault(host_view, route, lookup, ", ".join(hop_addresses))
        return
    standby = [
        gateway
        for gateway in hop_addresses
        if gateway in host_view.routers_by_gateway and is_standby_gateway(host_view, gateway)
    ]
    if standby and len(standby) == len(set(hop_addresses) & set(host_view.routers_by_gateway)):
        if not _has_active_route(host_view, host_tables, far_range):
            yield RouteFault(
                "active routers not used", route.origin,
                f"no route to {far_range} names the active routers"
                f" {', '.join(router.name for router in host_view.fabric.active_routers)}: only the standby routers"
                f" ({', '.join(standby)}) carry packets to it",
                "add the multipath route of the plan, and keep this one behind it",
            )  # fmt: skip
            return
        yield RouteFault(
            "standby used first", route.origin,
            f"the route to {route.destination} with the lowest metric names standby routers only"
            f" ({', '.join(standby)}): the others carry nothing",
            "give the route of the active routers the lower metric",
        )  # fmt: skip
        return
    is_narrow = not covers_range(route.destination, far_range)
    wider = next((other for other in host_tables.routes or () if is_narrow and other.table == _MAIN
                  and other.destination != "default" and covers_range(other.destination, far_range)
                  and any(hop.via in host_view.routers_by_gateway for hop in other.hops)), None)  # fmt: skip
    for fault in compare_next_hops(host_view, route, host_view.fabric.active_routers, wider):
        yield _add_later_routes(host_view, host_tables, route, fault) if fault.kind == "router not used" else fault


def _add_later_routes(
    host_view: HostView, host_tables: HostTables, route: ObservedRoute, fault: RouteFault
) -> RouteFault:
    """The fault that a route leaves out routers, with the routes of other metrics that name them."""
    active = {router.name for router in host_view.fabric.active_routers}
    used = {hop.via for hop in route.hops}
    later = [
        other for other in host_tables.routes or ()
        if other is not route and (other.table, other.destination) == (route.table, route.destination)
        and any(hop.via not in used and hop.via in host_view.routers_by_gateway
                and host_view.routers_by_gateway[hop.via].name in active for hop in other.hops)
    ]  # fmt: skip
    if not later:
        return fault
    origins = ", ".join(f"{other.origin}, metric {get_metric(other, host_view.fabric.version)}" for other in later)
    metric = get_metric(route, host_view.fabric.version)
    return replace(
        fault,
        problem=f"{fault.problem}; routes of another metric name what is left out, and the kernel does not join"
        f" them ({origins})",
        remedy=f"{fault.remedy}, in this route of metric {metric}",
    )


def _has_active_route(host_view: HostView, host_tables: HostTables, far_range: str) -> bool:
    """Whether a route of the main table to the range, or to a part of it, names an active router."""
    return any(
        route.table == _MAIN
        and (covers_range(route.destination, far_range) or overlaps_range(route.destination, far_range))
        and any(
            hop.via in host_view.routers_by_gateway and not is_standby_gateway(host_view, hop.via) for hop in route.hops
        )
        for route in host_tables.routes or ()
    )


def _make_default_route_fault(host_view: HostView, route: ObservedRoute, far_range: str, next_hop: str) -> RouteFault:
    return RouteFault(
        "default route only", route.origin,
        f"only the default route ({next_hop}) leads to {far_range} ({host_view.other_side.network}): its next hop is no"
        f" router of {host_view.fabric.name}",
        "add the multipath route of the plan",
    )  # fmt: skip


def _make_diversion_fault(host_view: HostView, route: ObservedRoute, lookup: RouteLookup, next_hop: str) -> RouteFault:
    selectors = describe_rule_selectors(lookup.rule)
    return RouteFault(
        "traffic diverted", lookup.rule.origin,
        f"a rule leads packets{selectors} to {host_view.other_side.network} into table {route.table}, by {next_hop}"
        " alone: the multipath route is not used for them",
        "remove the rule, or select by the firewall mark of one router",
    )  # fmt: skip
