# SPDX-License-Identifier: Apache-2.0
"""Checks which routers the packets to the other side take, as the kernel chooses among all rules and routes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_routes import is_diverting_route
from sonde.design.routes.fabric import FabricRouter, covers_range, is_address_in_ranges, overlaps_range
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


def find_path_faults(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the routes that unmarked packets to the other side take."""
    sources = _list_source_addresses(host_view, host_tables)
    for far_range in host_view.other_side.ranges:
        yield CheckedItem("the way to the other side", far_range)
        for source in sources:
            yield from _check_routes_to_range(host_view, host_tables, far_range, source)
    yield from _find_standby_faults(host_view, host_tables)


def _list_source_addresses(host_view: HostView, host_tables: HostTables) -> list[IpAddress | None]:
    """No source address, as a program sends that binds none, and the addresses of the host on this side: the kernel
    asks again with the address that the first answer gave."""
    selected = [rule.source for rule in host_tables.rules or () if rule.source != "all"]
    if not selected:
        return [None]
    observed = [address.split("/")[0] for address in host_tables.addresses or ()]
    candidates = [
        address for address in observed if is_address_in_ranges(host_view.own_side.ranges, address)
    ] or host_view.addresses
    return [None, *(ipaddress.ip_address(address) for address in candidates[:4])]


def _check_routes_to_range(
    host_view: HostView, host_tables: HostTables, far_range: str, source_address: IpAddress | None
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
    for address, lookup in outcomes.values():
        target = far_range if len(outcomes) == 1 else str(address)
        if lookup is None:
            if not is_usable:
                continue  # the kernel has removed the routes
            yield _make_missing_route_fault(host_view, host_tables, address, target)
        elif lookup.route is not None and lookup.route.kind == "local":
            yield RouteFault(
                "address of the other side", lookup.origin,
                f"{target} is an address of {host_view.other_side.network}, and this host has it too: packets to it "
                "do not"
                " leave the host",
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
        active = [gateway for gateway in host_view.routers_by_gateway if not _is_standby_gateway(host_view, gateway)]
        if set(hop_addresses) != set(active):
            yield _make_diversion_fault(host_view, route, lookup, ", ".join(hop_addresses))
        return
    standby = [
        gateway
        for gateway in hop_addresses
        if gateway in host_view.routers_by_gateway and _is_standby_gateway(host_view, gateway)
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
    yield from compare_next_hops(host_view, route, host_view.fabric.active_routers)


def _has_active_route(host_view: HostView, host_tables: HostTables, far_range: str) -> bool:
    """Whether a route of the main table to the range, or to a part of it, names an active router."""
    return any(
        route.table == _MAIN
        and (covers_range(route.destination, far_range) or overlaps_range(route.destination, far_range))
        and any(
            hop.via in host_view.routers_by_gateway and not _is_standby_gateway(host_view, hop.via)
            for hop in route.hops
        )
        for route in host_tables.routes or ()
    )


def _is_standby_gateway(host_view: HostView, gateway: str) -> bool:
    return host_view.routers_by_gateway[gateway] not in host_view.fabric.active_routers


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


def compare_next_hops(
    host_view: HostView, route: ObservedRoute, expected_routers: Sequence[FabricRouter]
) -> Iterator[RouteFault]:
    """Routers that a route leaves out, names twice, or weighs differently."""
    hop_addresses = [hop.via for hop in route.hops]
    wanted = {address: router for address, router in host_view.routers_by_gateway.items() if router in expected_routers}
    missing = [address for address in wanted if address not in hop_addresses]
    if missing:
        names = ", ".join(wanted[address].name for address in missing)
        yield RouteFault(
            "router not used", route.origin,
            f"the route to {route.destination} leaves out {names} ({', '.join(missing)}): its share goes to the others",
            "name every router once",
        )  # fmt: skip
    extra = [address for address in hop_addresses if address in host_view.routers_by_gateway and address not in wanted]
    if extra:
        names = ", ".join(host_view.routers_by_gateway[address].name for address in extra)
        yield RouteFault(
            "wrong priority", route.origin,
            f"the route to {route.destination} names {names}, which the system file gives another priority",
            "name routers of one priority in one route",
        )  # fmt: skip
    for address in sorted({address for address in hop_addresses if hop_addresses.count(address) > 1}):
        yield RouteFault(
            "router named twice", route.origin,
            f"the route to {route.destination} names {address}"
            f" {hop_addresses.count(address)} times: it gets that many shares",
            "name it once, and give it a weight where it should carry more",
        )  # fmt: skip
    shares = {hop.via: hop.weight for hop in route.hops if hop.via in wanted}
    planned = {address: wanted[address].weight for address in shares}
    if len(shares) > 1 and _compute_proportions(shares) != _compute_proportions(planned):
        yield RouteFault(
            "weights differ", route.origin,
            f"the weights of the route to {route.destination} are {_format_weights(shares)}; the system file says"
            f" {_format_weights(planned)}",
            "set the weights of the plan",
        )  # fmt: skip


def _compute_proportions(weights_by_router: dict[str, int]) -> dict[str, float]:
    total = sum(weights_by_router.values())
    return {name: round(weight / total, 9) for name, weight in weights_by_router.items()}


def _format_weights(weights_by_router: dict[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in weights_by_router.items())


def _find_missing_standby(host_view: HostView, routes: Sequence[ObservedRoute]) -> Iterator[RouteFault]:
    """Standby routers that no route to a range of the other side names."""
    for far_range in host_view.other_side.ranges:
        hops = {
            hop.via
            for route in routes
            if route.table == _MAIN and covers_range(route.destination, far_range)
            for hop in route.hops
        }
        absent = [
            gateway
            for gateway in host_view.routers_by_gateway
            if _is_standby_gateway(host_view, gateway) and gateway not in hops
        ]
        if absent and hops & set(host_view.routers_by_gateway):
            names = ", ".join(host_view.routers_by_gateway[gateway].name for gateway in absent)
            yield RouteFault(
                "standby missing", "main table",
                f"no route to {far_range} names the standby routers {names} ({', '.join(absent)}):"
                " nothing takes over when the active ones fail",
                "add their route with a higher metric",
            )  # fmt: skip


def _find_standby_faults(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault]:
    """Routes of higher metrics: standby routers belong there, active ones are never used there."""
    version = host_view.fabric.version
    yield from _find_missing_standby(host_view, host_tables.routes or ())
    by_destination: dict[tuple[str, str], list[ObservedRoute]] = {}
    for route in host_tables.routes or ():
        if route.table == _MAIN:
            by_destination.setdefault((route.destination, route.service), []).append(route)
    for route in host_tables.routes or ():
        others = [
            other
            for other in by_destination.get((route.destination, route.service), ())
            if other is not route and route.table == _MAIN and get_metric(other, version) <= get_metric(route, version)
        ]
        routers = [
            host_view.routers_by_gateway[hop.via] for hop in route.hops if hop.via in host_view.routers_by_gateway
        ]
        if not others or not routers or route.destination == "default":
            continue
        if all(get_metric(other, version) == get_metric(route, version) for other in others):
            if not any(hop.via in host_view.routers_by_gateway for other in others for hop in other.hops):
                continue  # that other route is reported by itself
            yield RouteFault(
                "equal metrics", route.origin,
                f"another route to {route.destination} has the same metric, {get_metric(route, version)}: IPv4 uses the"
                " first of them, IPv6 all their next hops",
                "give the route of the standby routers a higher metric, and name the others in one route",
            )  # fmt: skip
            continue
        priorities = {router.priority for router in routers}
        if len(priorities) == 1 and routers[0] not in host_view.fabric.active_routers:
            same = [router for router in host_view.fabric.routers if router.priority == routers[0].priority]
            yield from compare_next_hops(host_view, route, same)
        elif diverting := next((other for other in others if is_diverting_route(host_view, other, route)), None):
            ways = ", ".join(f"{hop.via} on {hop.device or diverting.device}" for hop in diverting.hops)
            names = ", ".join(router.name for router in routers)
            yield RouteFault(
                "traffic diverted", diverting.origin,
                f"all packets to {route.destination} go to an unknown router, {ways}: its metric"
                f" {get_metric(diverting, version)} comes before {get_metric(route, version)} of the route by {names}",
                "remove it, and what adds it (a router advertisement, a DHCP client, another file)",
            )  # fmt: skip
        elif any(router in host_view.fabric.active_routers for router in routers):
            yield RouteFault(
                "route never used", route.origin,
                f"another route to {route.destination} has a lower metric than"
                f" {get_metric(route, version)}: this one carries nothing",
                "keep one of them",
            )  # fmt: skip
